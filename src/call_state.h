/* The state machine of calls: its states, its events, and the obligations of a step. call_state.c
 * has the table. */
#ifndef ABP_CALL_STATE_H
#define ABP_CALL_STATE_H

#include "abp.h"

#include <stdint.h>

enum call_state {
  FREE,       /* the slot holds no call */
  QUEUED,     /* callee: accepted, its handler has not started */
  PREPARING,  /* callee: it has its place; its handler waits for something before it begins */
  RUNNING,    /* callee: the handler works */
  ASKED,      /* callee: asked to stop; the handler's answer decides */
  CANCELLING, /* callee: cancelled, and answered so; the handler has not returned */
  UNWINDING,  /* callee: the result was sent, or is not wanted; the handler has not returned */
  UNANSWERED, /* callee: asked to stop, it gave no answer in time; the result was sent and says so
               */
  RETURNED,   /* callee: asked to stop, it returned a value; requests of its own are unanswered */
  UNWOUND,    /* callee: asked to stop, it stopped; requests of its own are unanswered */
  WAITING,    /* caller: sent, no answer yet */
  STOPPING,   /* caller: sent, and a cancel after it */
  STOPPED,    /* caller: the peer has accepted the cancel; its result is still to come */
  DETACHED,   /* caller: stopped with its parent, whose answer waits for this one's */
  COMPLETED,  /* callee, remembered: the handler's outcome stands */
  CANCELLED,  /* callee, remembered: the cancel stands */
  UNKNOWN,    /* callee, remembered: asked to stop, but it is unknown whether it did */
  SETTLED,    /* caller, remembered: so that late answers are recognised */
  CALL_STATES
};
_Static_assert(FREE == 0, "missing rows lead to FREE, which changes nothing");
_Static_assert(
    RUNNING == PREPARING + 1 && ASKED == RUNNING + 1 && CANCELLING == ASKED + 1 &&
        UNWINDING == CANCELLING + 1 && UNANSWERED == UNWINDING + 1,
    "the states in which a handler has its place are next to each other: call_has_handler()");
_Static_assert(PREPARING == QUEUED + 1,
               "and nothing is stopped in those up to RUNNING: abp_calls_step()");
_Static_assert(CANCELLED == COMPLETED + 1 && UNKNOWN == CANCELLED + 1 && SETTLED == UNKNOWN + 1 &&
                   CALL_STATES == SETTLED + 1,
               "the states of a call that has ended are the last: call_is_over()");

enum call_event {
  EV_START,        /* callee: there is room for the handler to run */
  EV_POSTPONE,     /* callee: its handler waits for something before it begins */
  EV_BEGIN,        /* callee: its handler no longer waits */
  EV_CANCEL,       /* a request to stop the call: the peer (callee), this side (caller), a parent */
  EV_CANCEL_BY_ID, /* caller: a cancel by id, which has an answer of its own, is sent for it */
  EV_ACKNOWLEDGED, /* caller: the peer has answered its cancel: true */
  EV_TIMER,        /* its deadline passed or, once it is cancelled, its grace period */
  EV_ASK,          /* callee: it is asked to stop, and the handler's answer decides */
  EV_GOES_ON,      /* callee: its handler stops waiting for a call that it made, which works on */
  EV_ACCEPTED,     /* callee: the cancel is accepted, before the handler has settled */
  EV_DECLINED,     /* callee: the cancel is declined */
  EV_PEER_ABANDONED, /* callee: the peer has cancelled it and takes no answer */
  EV_COMPLETE,  /* there is an outcome: the handler settled (callee), the result came (caller) */
  EV_ERROR,     /* the outcome is an error, which stands as a value does */
  EV_FAIL,      /* the outcome is an error, which after a cancel means that it has stopped */
  EV_CANCELLED, /* the outcome is: cancelled */
  EV_UNKNOWN,   /* callee: there is an outcome, but it is unknown which */
  EV_UNSENT,    /* caller: it could not be sent */
  EV_CHILDREN_DONE,  /* callee: all requests made on its behalf have been answered */
  EV_CANCEL_NO_WAIT, /* caller: send a cancel, and wait for no answer */
  EV_STOP_SILENTLY,  /* caller: stop; the protocol has no message for it */
  EV_DETACH,         /* caller: its parent was stopped: send a cancel, and settle at once */
  EV_CHUNK,          /* of a stream: its handler has a chunk (callee), a chunk came (caller) */
  EV_READ,           /* caller: enough of a stream was read to report it */
  EV_CREDIT,         /* callee: the window has room for a chunk again */
  EV_CLOSE,          /* the session ends in good order */
  EV_LOST,           /* the peer is gone */
  CALL_EVENTS
};

/* The obligations of a step: actions that it owes. They are handed out in the order of the bits. */
enum {
  OWE_QUEUED = 1 << 0,
  OWE_START = 1 << 1,
  OWE_REQUEST = 1 << 2,
  OWE_ACK = 1 << 3,     /* the cancel is answered: true */
  OWE_NAK = 1 << 4,     /* the cancel is answered: false, already completed */
  OWE_UNKNOWN = 1 << 5, /* the cancel is answered: false, unknown */
  OWE_DECLINE = 1 << 6, /* the cancel is answered: false, with the callee's reason */
  OWE_CANCEL = 1 << 7,
  OWE_ABORT = 1 << 8,
  OWE_RESULT = 1 << 9,
  OWE_SETTLE = 1 << 10,
  OWE_CHUNK = 1 << 11, /* a chunk is sent, or passed to its reader */
  OWE_CREDIT = 1 << 12,
  OWE_RESUME = 1 << 13, /* the handler may go on: there is room for a chunk */
  OWE_WORD = 1 << 14,   /* never handed out: a later step answers the cancel */
  OWE_ANSWERS = OWE_ACK | OWE_NAK | OWE_UNKNOWN | OWE_DECLINE
};

struct call_step {
  uint32_t next : 8, owed : 16;
  uint32_t fate : 8; /* abp_fate: the fate of the handler's work, if this step decides it */
};

/* The step that an event causes in a state. FREE: the event changes nothing. */
extern const struct call_step abp_call_steps[CALL_STATES][CALL_EVENTS];

static inline struct call_step call_step(enum call_state state, enum call_event event) {
  struct call_step step = abp_call_steps[state][event];
  if (step.next == FREE) step.next = (uint8_t)state;
  return step;
}
/* 1 if the call has ended and only its memory is left. */
static inline int call_is_over(enum call_state state) { return state >= COMPLETED; }
/* 1 if a handler has its place: it was started, or waits for something before it begins, and has
 * not returned. */
static inline int call_has_handler(enum call_state state) {
  return state >= PREPARING && state <= UNANSWERED;
}

#endif
