/* What happens to a call: its states, the events, and what a step owes. call_state.c has the table.
 */
#ifndef ABP_CALL_STATE_H
#define ABP_CALL_STATE_H

#include "abp.h"

#include <stdint.h>

enum call_state {
  FREE,       /* the slot holds no call */
  QUEUED,     /* callee: accepted, its handler has not started */
  PREPARING,  /* callee: it has its place; its handler waits for something before it begins */
  RUNNING,    /* callee: the handler works */
  ASKED,      /* callee: somebody wants it to stop; the handler's answer decides */
  CANCELLING, /* callee: cancelled, and said so; the handler has not unwound */
  UNWINDING,  /* callee: the result is out or nobody wants it; the handler still has not unwound */
  UNANSWERED, /* callee: asked to stop, it gave no answer in time; the result is out and says so */
  RETURNED,   /* callee: asked to stop, it has a value; requests of its own are unanswered */
  UNWOUND,    /* callee: asked to stop, it did; requests of its own are unanswered */
  WAITING,    /* caller: sent, nothing heard */
  STOPPING,   /* caller: sent, and a cancel after it */
  STOPPED,    /* caller: the peer has accepted the cancel; its result is still to come */
  DETACHED,   /* caller: stopped with its parent, whose answer waits for this one's */
  COMPLETED,  /* callee, remembered: the handler's outcome stands */
  CANCELLED,  /* callee, remembered: the cancel stands */
  UNKNOWN,    /* callee, remembered: asked to stop, and nobody knows whether it did */
  SETTLED,    /* caller, remembered: so that late answers are known for what they are */
  CALL_STATES
};
_Static_assert(FREE == 0, "a row that is not in the table leads to FREE, which changes nothing");
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
  EV_START,    /* callee: there is room for the handler to run */
  EV_POSTPONE, /* callee: its handler waits for something before it begins */
  EV_BEGIN,    /* callee: its handler does not have to wait any more */
  EV_CANCEL,   /* somebody asks the call to stop: the peer (callee), this side (caller), a parent */
  EV_CANCEL_BY_ID, /* caller: a request to cancel it, which has an answer of its own, is sent */
  EV_ACKNOWLEDGED, /* caller: the peer has answered the cancel: true */
  EV_TIMER,        /* its deadline passed or, once it is cancelled, its grace period */
  EV_ASK,          /* callee: it is asked to stop, and the handler's answer decides */
  EV_GOES_ON,      /* callee: its handler stops waiting for a call that it made, which works on */
  EV_ACCEPTED, /* callee: whoever was asked accepts the cancel, before the handler has settled */
  EV_DECLINED, /* callee: whoever was asked declines it */
  EV_PEER_ABANDONED, /* callee: the peer cancelled it and takes no answer any more */
  EV_COMPLETE,  /* there is an outcome: the handler settled (callee), the result came (caller) */
  EV_ERROR,     /* it is an error, which stands as a value does */
  EV_FAIL,      /* it is an error, which after a cancel says that the cancel was heeded */
  EV_CANCELLED, /* there is an outcome, and it says: cancelled */
  EV_UNKNOWN,   /* callee: there is an outcome, and nobody knows which */
  EV_UNSENT,    /* caller: it could not be sent */
  EV_CHILDREN_DONE,  /* callee: all requests made on its behalf have been answered */
  EV_CANCEL_NO_WAIT, /* caller: send a cancel, and wait for no answer */
  EV_STOP_SILENTLY,  /* caller: stop; the protocol has no message that says so */
  EV_DETACH,         /* caller: its parent was stopped: send a cancel, and settle at once */
  EV_CHUNK,          /* of a stream: its handler has a chunk (callee), a chunk came (caller) */
  EV_READ,           /* caller: so much of a stream was read that the peer is to be told */
  EV_CREDIT,         /* callee: what was read makes room for a chunk again */
  EV_CLOSE,          /* the session ends in good order */
  EV_LOST,           /* the peer is gone */
  CALL_EVENTS
};

/* What a step owes the outside. Paid in the order of the bits. */
enum {
  OWE_QUEUED = 1 << 0,
  OWE_START = 1 << 1,
  OWE_REQUEST = 1 << 2,
  OWE_ACK = 1 << 3,     /* the cancel is answered: true */
  OWE_NAK = 1 << 4,     /* the cancel is answered: false, already completed */
  OWE_UNKNOWN = 1 << 5, /* the cancel is answered: false, nobody knows */
  OWE_DECLINE = 1 << 6, /* the cancel is answered: false, the callee says why */
  OWE_CANCEL = 1 << 7,
  OWE_ABORT = 1 << 8,
  OWE_RESULT = 1 << 9,
  OWE_SETTLE = 1 << 10,
  OWE_CHUNK = 1 << 11, /* a chunk is sent on, or handed to its reader */
  OWE_CREDIT = 1 << 12,
  OWE_RESUME = 1 << 13, /* the handler may go on: there is room for a chunk */
  OWE_WORD = 1 << 14,   /* never paid: the cancel is answered by a later step */
  OWE_ANSWERS = OWE_ACK | OWE_NAK | OWE_UNKNOWN | OWE_DECLINE
};

struct call_step {
  uint32_t next : 8, owed : 16;
  uint32_t fate : 8; /* abp_fate: what became of the handler's work, if this step decides it */
};

/* Where an event leads from a state. FREE: the event changes nothing. */
extern const struct call_step abp_call_steps[CALL_STATES][CALL_EVENTS];

static inline struct call_step call_step(enum call_state state, enum call_event event) {
  struct call_step step = abp_call_steps[state][event];
  if (step.next == FREE) step.next = (uint8_t)state;
  return step;
}
/* 1 if the call has ended and only its memory is left. */
static inline int call_is_over(enum call_state state) { return state >= COMPLETED; }
/* 1 if a handler has its place: it has been started, or waits for what it needs, and has not
 * returned. */
static inline int call_has_handler(enum call_state state) {
  return state >= PREPARING && state <= UNANSWERED;
}

#endif
