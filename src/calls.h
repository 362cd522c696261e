/* The part of calls that all protocols share. */
#ifndef ABP_CALLS_H
#define ABP_CALLS_H

#include "call_state.h"
#include "call_table.h"

struct call_limits { /* as in abp_config; 0 takes the default, except for grace_ms */
  uint32_t max_calls, max_concurrent, remembered, remember_ms, grace_ms;
};

struct calls {
  struct call_table table;
  struct call_limits limits;
  uint64_t now;
  uint64_t wake; /* the time of the last ABP_WAKE, or 0 */
  uint32_t minted, debts, last_debt;
  uint32_t running;      /* handlers with a place; there are max_concurrent places */
  uint32_t in_flight[2]; /* received, made */
  const char *reason;    /* of a cancel, borrowed until the next input */
  size_t reason_length;
  const char *timeout_reason; /* the reason of a cancel that a deadline caused */
  uint64_t chunk_size;        /* of the chunk in this input */
  uint32_t kept_places; /* while several calls end: 1 + the number of handlers with a place before;
                           else 0 */
  uint8_t wrapped;      /* the numbers have passed 2^32-1 and started again */
  uint8_t handler_decides; /* handlers decide whether a cancel succeeds, within the grace period */
  uint8_t children_detach; /* when a call is stopped, calls that its handler made settle at once */
};

void abp_calls_init(struct calls *calls, const struct call_limits *limits, const uint8_t seed[16],
                    uint64_t now);
/* The first call made here gets this number (0: 1). */
static inline void calls_number_from(struct calls *calls, uint32_t first) {
  calls->minted = first ? first - 1 : 0;
}
abp_call abp_calls_handle(const struct calls *calls, uint32_t slot);
/* The slot of a call, or NO_CALL. abp_calls_live() finds only calls that are not over. */
uint32_t abp_calls_slot(const struct calls *calls, abp_call call);
uint32_t abp_calls_live(const struct calls *calls, abp_call call);
uint32_t abp_calls_find(struct calls *calls, const abp_id *key, uint32_t direction);
/* A new number for a call made here, which no other call has. */
uint32_t abp_calls_mint(struct calls *calls);

/* Takes a step and notes its obligations: for this call, for its children and for its parent.
 * Returns the obligations in the table. These include the answer to a cancel, which is noted only
 * for a call that has CALL_HAS_CANCELS. */
uint32_t abp_calls_step(struct calls *calls, uint32_t slot, enum call_event event);
/* The same with a `fate` that the handler or the peer reports, which outweighs the table's; 0: as
 * in the table. */
uint32_t abp_calls_settle(struct calls *calls, uint32_t slot, enum call_event event, abp_fate fate);
/* The event of an outcome: all outcomes but ABP_COMPLETED and ABP_FAILED are EV_CANCELLED. */
enum call_event abp_calls_ending(abp_outcome outcome);
/* Asks a call to end because of EV_CANCEL or EV_TIMER, in a way that its flags and its handler
 * allow. */
uint32_t abp_calls_stop(struct calls *calls, uint32_t slot, enum call_event why);
/* The first slot from `slot` on whose call is not over, or NO_CALL. */
uint32_t abp_calls_next_live(const struct calls *calls, uint32_t slot);
/* Steps every call when the session has ended (EV_CLOSE, EV_LOST). */
void abp_calls_end_all(struct calls *calls, enum call_event event);
void abp_calls_owe(struct calls *calls, uint32_t slot, uint32_t owed);
/* Starts the handlers of waiting calls for which there is room. */
void abp_calls_admit(struct calls *calls);
/* Several calls are about to end, perhaps waiting ones, too: no waiting call starts until
 * abp_calls_give_places(). */
void abp_calls_keep_places(struct calls *calls);
void abp_calls_give_places(struct calls *calls);
/* Makes a call a question to a person on behalf of `parent`: until it has an answer or is stopped,
 * the deadlines of its parents stand still. Grace periods do not. */
void abp_calls_add_question(struct calls *calls, uint32_t parent, uint32_t slot);
/* Detaches the calls made on behalf of this one, which continue. */
void abp_calls_disown(struct calls *calls, uint32_t slot);
/* Forgets calls that are too old, then the oldest until `keep` are left. */
void abp_calls_forget_old(struct calls *calls, uint32_t keep);
/* An older session is over: of its calls only those with CALL_PAST are still found. */
void abp_calls_forget_all(struct calls *calls);

/* Hands out the next obligation of a call. There are more while calls->debts is not NO_CALL. */
void abp_calls_pay(struct calls *calls, abp_action *action);
/* The earliest of all timers and of `due` (0: none), or 0. abp_calls_wake_owed() returns whether
 * this must be reported, and abp_calls_wake() makes the action that reports it. */
uint64_t abp_calls_earliest(const struct calls *calls, uint64_t due);
int abp_calls_wake_owed(const struct calls *calls, uint64_t due);
void abp_calls_wake(struct calls *calls, uint64_t due, abp_action *action);

void abp_calls_advance(struct calls *calls, uint64_t now);
void abp_calls_set_deadline(struct calls *calls, uint32_t slot, uint32_t timeout_ms);
/* Adds a call made here: WAITING. `id` NULL: chooses one. Returns an abp_status. */
int abp_calls_make(struct calls *calls, const abp_id *id, uint32_t flags, uint32_t *slot);
/* Adds a received call: QUEUED, but in no queue yet. `id` NULL: it has no message. Returns an
 * abp_status, or `fault` if that is not 0. */
int abp_calls_receive(struct calls *calls, const abp_id *id, uint32_t flags, int fault,
                      uint32_t *slot);
/* abp_calls_queue() makes it wait for its turn; abp_calls_accept() starts it if there is room. */
void abp_calls_queue(struct calls *calls, uint32_t slot);
void abp_calls_accept(struct calls *calls, uint32_t slot);
/* The handler of a started call waits for something before it begins. Errors: ABP_E_STATE unless it
 * runs. */
int abp_calls_postpone(struct calls *calls, abp_call call);
/* The handler begins. Errors: ABP_E_STATE: the call has ended or was cancelled, so it must not. */
int abp_calls_begin(struct calls *calls, abp_call call);
/* 1 if a call can be made on behalf of `parent`, whose slot is then in *slot. */
int abp_calls_adoptable(const struct calls *calls, abp_call parent, uint32_t *slot);
/* The peer needs input before it can answer a call made here. Until abp_calls_retry() no message
 * can cancel it, and nothing else changes. Returns 0 if it no longer waits. */
int abp_calls_hold(struct calls *calls, uint32_t slot);
/* The call is sent again, under a new number. Returns an abp_status. */
int abp_calls_retry(struct calls *calls, uint32_t slot);
/* A call made here could not be sent, and is over. Returns an abp_status. */
int abp_calls_send_failed(struct calls *calls, abp_call call);
/* The fate of a received call, as for abp_became(); NO_CALL is an unknown call. */
abp_fate abp_calls_became(const struct calls *calls, uint32_t slot, abp_outcome *outcome,
                          abp_call *call);
/* A counter: `counts` has the counters that the owner of the calls keeps. */
uint32_t abp_calls_count(const struct calls *calls, const uint32_t counts[ABP_COUNTERS],
                         abp_counter counter);

#endif
