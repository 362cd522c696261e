/*
 * The part of calls that all protocols share: find the slot, step the table, note the obligations,
 * and hand these out, call by call. The protocol decides what a message means, and which event it
 * is: endpoint_calls.c (ABP), rpc.c (JSON-RPC).
 *
 * No queue can overflow: a call's slot has bits for its obligations and a link to the next debtor.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TIMER_MS 0x7fffffffu /* longer timers fire at once in JavaScript */

COLD void abp_calls_init(struct calls *calls, const struct call_limits *limits,
                         const uint8_t seed[16], uint64_t now) {
  calls->limits = *limits;
  set_default(&calls->limits.max_calls, ABP_DEFAULT_MAX_CALLS);
  set_default(&calls->limits.max_concurrent, calls->limits.max_calls);
  set_default(&calls->limits.remembered, ABP_DEFAULT_REMEMBERED);
  set_default(&calls->limits.remember_ms, ABP_DEFAULT_REMEMBER_MS);
  calls->now = now;
  calls->debts = calls->last_debt = NO_CALL;
  abp_table_init(&calls->table, seed);
}

/* --- Ids and handles -------------------------------------------------------------------------- */

static abp_call handle_of(const struct call *call, uint32_t slot) {
  return (uint32_t)call->generation << SLOT_BITS | slot;
}

abp_call abp_calls_handle(const struct calls *calls, uint32_t slot) {
  return handle_of(table_call(&calls->table, slot), slot);
}

uint32_t abp_calls_slot(const struct calls *calls, abp_call call) {
  const uint32_t slot = call & ((1u << SLOT_BITS) - 1);
  if (slot >= calls->table.slab_count * SLAB_CALLS) return NO_CALL;
  const struct call *c = table_call(&calls->table, slot);
  return c->state != FREE && c->generation == call >> SLOT_BITS ? slot : NO_CALL;
}

uint32_t abp_calls_live(const struct calls *calls, abp_call call) {
  const uint32_t slot = abp_calls_slot(calls, call);
  if (slot == NO_CALL || call_is_over(table_call(&calls->table, slot)->state)) return NO_CALL;
  return slot;
}

uint32_t abp_calls_find(struct calls *calls, const abp_id *key, uint32_t direction) {
  return abp_table_find(&calls->table, key, abp_table_hash(&calls->table, key, direction),
                        direction);
}

uint32_t abp_calls_mint(struct calls *calls) {
  abp_id id = {NULL, 0, 0};
  do {
    id.number = ++calls->minted;
    if (id.number == 0) calls->wrapped = 1;
  } while (id.number == 0 || (calls->wrapped && abp_calls_find(calls, &id, CALL_OUT) != NO_CALL));
  return id.number;
}

/* --- Steps ------------------------------------------------------------------------------------ */

ONE_COPY void abp_calls_owe(struct calls *calls, uint32_t slot, uint32_t owed) {
  struct call *call = table_call(&calls->table, slot);
  if (!owed) return;
  if (!call->owed) {
    call->debtor = NO_CALL;
    if (calls->debts == NO_CALL)
      calls->debts = slot;
    else
      table_call(&calls->table, calls->last_debt)->debtor = slot;
    calls->last_debt = slot;
  }
  call->owed |= (uint16_t)owed;
}

ONE_COPY static void forget(struct calls *calls, uint32_t slot) {
  abp_list_remove(&calls->table, &calls->table.memory, slot);
  abp_table_release(&calls->table, slot);
}

/* If memory is short, ended calls make room for new ones. */
static int add(struct calls *calls, const abp_id *id, uint32_t hash, uint32_t flags,
               uint32_t *slot) {
  int status;
  while ((status = abp_table_add(&calls->table, id, hash, flags, slot)) == ABP_E_MEMORY &&
         calls->table.memory.count)
    forget(calls, calls->table.memory.head);
  return status;
}

COLD void abp_calls_forget_old(struct calls *calls, uint32_t keep) {
  struct call_list *memory = &calls->table.memory;
  while (memory->count > keep ||
         (memory->count && calls->now - table_call(&calls->table, memory->head)->deadline >
                               calls->limits.remember_ms))
    forget(calls, memory->head);
}

/* A call is over and has handed out its obligations: only its id and its outcome are kept.
 * abp_calls_advance() removes those that are too old. */
ONE_COPY static void remember(struct calls *calls, uint32_t slot) {
  struct call *call = table_call(&calls->table, slot);
  if (!(call->flags & CALL_INDEXED)) {
    abp_table_release(&calls->table, slot);
    return;
  }
  call->deadline = calls->now;
  abp_list_push(&calls->table, &calls->table.memory, slot);
  if (calls->table.memory.count > calls->limits.remembered) forget(calls, calls->table.memory.head);
}

/* Every event is listed, so that a new event does not compile until it is added. */
static uint8_t cause_of(enum call_event event) {
  switch (event) {
  case EV_COMPLETE:
  case EV_FAIL:
  case EV_ERROR:
  case EV_UNSENT: return ABP_COMPLETED;
  case EV_TIMER: return ABP_TIMED_OUT;
  case EV_LOST: return ABP_DISCONNECTED;
  case EV_CLOSE: return CAUSE_CLOSED;
  case EV_CANCEL:
  case EV_CANCEL_BY_ID:
  case EV_ASK:
  case EV_PEER_ABANDONED:
  case EV_CANCELLED:
  case EV_GOES_ON:
  case EV_UNKNOWN:
  case EV_CANCEL_NO_WAIT:
  case EV_STOP_SILENTLY:
  case EV_DETACH: return ABP_CANCELLED;
  case EV_START: /* ends nothing */
  case EV_POSTPONE:
  case EV_BEGIN:
  case EV_ACKNOWLEDGED:
  case EV_ACCEPTED:
  case EV_DECLINED:
  case EV_CHUNK:
  case EV_READ:
  case EV_CREDIT:
  case EV_CHILDREN_DONE: /* the request to stop was the cause */
  case CALL_EVENTS: break;
  }
  return ABP_PENDING;
}

/* The calls that a handler made end with it: when a call stops, its children are stopped first, but
 * only once. A foreign app may decline, and is not asked again with each further step. */
COLD static void stop_children(struct calls *calls, const struct call *parent) {
  for (uint32_t slot = parent->child, next; slot != NO_CALL; slot = next) {
    struct call *child = table_call(&calls->table, slot);
    next = child->sibling;
    if (child->flags & CALL_SWEPT) continue;
    child->flags |= CALL_SWEPT;
    child->cause = child->cause                    ? child->cause
                   : parent->cause > ABP_COMPLETED ? parent->cause
                                                   : ABP_CANCELLED;
    abp_calls_stop(calls, slot, calls->children_detach ? EV_DETACH : EV_CANCEL);
  }
}

void abp_calls_admit(struct calls *calls) {
  while (calls->running < calls->limits.max_concurrent && calls->table.queue.head != NO_CALL &&
         abp_calls_step(calls, calls->table.queue.head, EV_START))
    ;
}

COLD void abp_calls_keep_places(struct calls *calls) { calls->kept_places = calls->running + 1; }

COLD void abp_calls_give_places(struct calls *calls) {
  const uint32_t before = calls->kept_places - 1;
  calls->kept_places = 0;
  if (calls->running < before) abp_calls_admit(calls);
}

COLD void abp_calls_disown(struct calls *calls, uint32_t slot) {
  while (table_call(&calls->table, slot)->child != NO_CALL)
    abp_table_orphan(&calls->table, table_call(&calls->table, slot)->child);
}

/* A call has ended: its parent may have waited for it, and its children have no parent now. */
COLD static void end_family(struct calls *calls, uint32_t slot, enum call_state before) {
  const uint32_t parent = table_call(&calls->table, slot)->parent;
  const uint32_t fate = table_call(&calls->table, slot)->fate;
  abp_calls_disown(calls, slot);
  abp_table_orphan(&calls->table, slot);
  if (parent == NO_CALL) return;
  struct call *waiting = table_call(&calls->table, parent);
  /* If the fate of a part is unknown, the fate of the whole is unknown. */
  if (waiting->awaits_children ? fate == ABP_FATE_UNKNOWN || waiting->child_fate == ABP_FATE_RUNNING
                               : before == UNWINDING)
    waiting->child_fate = fate & 7u;
  if (waiting->child != NO_CALL) return;
  if (waiting->awaits_children)
    abp_calls_settle(calls, parent, EV_CANCELLED, (abp_fate)waiting->child_fate);
  else
    abp_calls_step(calls, parent, EV_CHILDREN_DONE);
}

/* --- Clocks that stand still ------------------------------------------------------------------ */

/* A call waits for a person while one of its children does. A change is passed on to its parent. */
COLD static void pause_parents(struct calls *calls, const struct call *call) {
  for (uint32_t slot = call->parent; slot != NO_CALL;) {
    struct call *parent = table_call(&calls->table, slot);
    uint32_t waits = 0;
    for (uint32_t child = parent->child; child != NO_CALL && !waits; child = call->sibling) {
      call = table_call(&calls->table, child);
      waits = call->flags & (CALL_QUESTION | CALL_PAUSED);
    }
    if (!waits == !(parent->flags & CALL_PAUSED)) return;
    parent->flags ^= CALL_PAUSED;
    uint64_t rest = parent->deadline;
    if (waits && parent->timer && !parent->cause) { /* with a cause, it is a grace period */
      rest -= calls->now;
      abp_table_clear_timer(&calls->table, slot);
      parent->deadline = rest;
    } else if (!waits && rest && !parent->timer) {
      abp_table_set_timer(&calls->table, slot, rest + calls->now);
    }
    slot = parent->parent;
  }
}

COLD void abp_calls_add_question(struct calls *calls, uint32_t parent, uint32_t slot) {
  struct call *call = table_call(&calls->table, slot);
  call->flags |= CALL_QUESTION;
  abp_table_adopt(&calls->table, parent, slot);
  pause_parents(calls, call);
}

/* Starts the clocks of a question's parents again once it is answered or stopped; for a call whose
 * own clock stands still, once it is over. */
static void release_clocks(struct calls *calls, struct call *call, enum call_state after) {
  if (!(call->flags & (call_is_over(after) ? CALL_QUESTION | CALL_PAUSED : CALL_QUESTION))) return;
  call->flags &= (uint16_t) ~(CALL_QUESTION | CALL_PAUSED);
  pause_parents(calls, call);
}

/* The next three functions are the rules beside the table: call_state.c lists them. */

static void set_cause(struct call *call, enum call_event event, enum call_state before,
                      enum call_state after) {
  const int outweighs = ((event == EV_COMPLETE || event == EV_ERROR) && before != STOPPED) ||
                        event == EV_UNSENT || event == EV_LOST;
  if (!call->cause || after == RUNNING || (after == SETTLED && outweighs))
    call->cause = cause_of(event);
}

static void set_grace_period(struct calls *calls, uint32_t slot, enum call_state after) {
  if (after == CANCELLING || after == STOPPING || after == DETACHED ||
      (after == ASKED && calls->handler_decides))
    abp_table_set_timer(&calls->table, slot, calls->now + calls->limits.grace_ms);
  else if (after != STOPPED)
    abp_table_clear_timer(&calls->table, slot);
}

/* When such a cancel is handed out, its call may be forgotten. */
static void drop_cancel(struct call *call, struct call_step taken) {
  if (taken.next == SETTLED) call->owed &= (uint16_t)(~OWE_CANCEL | taken.owed);
}

/* Returns the obligations of the step. Answers to cancels are among them only if some wait. */
static uint32_t take_answers(struct call *call, struct call_step taken) {
  uint32_t owed = taken.owed & ~(uint32_t)OWE_WORD;
  if (!(call->flags & CALL_HAS_CANCELS)) owed &= ~(uint32_t)OWE_ANSWERS;
  if (owed & OWE_ANSWERS) call->flags &= (uint16_t)~CALL_HAS_CANCELS;
  return owed;
}

static void dequeue(struct calls *calls, uint32_t slot) {
  struct call *call = table_call(&calls->table, slot);
  if (!(call->flags & CALL_LISTED)) return;
  call->flags &= (uint16_t)~CALL_LISTED;
  abp_list_remove(&calls->table, &calls->table.queue, slot);
}

static uint32_t takes_place(const struct call *call) { return !(call->flags & CALL_ASIDE); }

static void end_call(struct calls *calls, uint32_t slot, enum call_state before) {
  const struct call *call = table_call(&calls->table, slot);
  calls->in_flight[call->flags & CALL_OUT]--;
  if ((call->parent & call->child) != NO_CALL) end_family(calls, slot, before);
  if (!call->owed) remember(calls, slot);
}

uint32_t abp_calls_settle(struct calls *calls, uint32_t slot, enum call_event event,
                          abp_fate fate) {
  struct call *call = table_call(&calls->table, slot);
  const enum call_state before = call->state;
  const struct call_step taken = call_step(before, event);
  const enum call_state after = taken.next;
  if (after == before) return taken.owed;
  const uint32_t owed = take_answers(call, taken);
  call->state = (uint8_t)taken.next;
  if (!fate) fate = (abp_fate)taken.fate;
  if (fate) call->fate = (uint8_t)fate & 7u;
  dequeue(calls, slot);
  if (before <= RUNNING && after <= RUNNING) { /* nothing is stopped */
    if (before == QUEUED) calls->running += takes_place(call);
    abp_calls_owe(calls, slot, owed);
    return taken.owed;
  }
  set_cause(call, event, before, after);
  if (call->child != NO_CALL) stop_children(calls, call);
  release_clocks(calls, call, after);
  set_grace_period(calls, slot, after);
  abp_calls_owe(calls, slot, owed);
  drop_cancel(call, taken);
  const int unwound = call_has_handler(before) && !call_has_handler(after);
  if (unwound) calls->running -= takes_place(call);
  if (call_is_over(after)) end_call(calls, slot, before);
  if (unwound && !calls->kept_places) abp_calls_admit(calls);
  return taken.owed;
}

enum call_event abp_calls_ending(abp_outcome outcome) {
  return outcome == ABP_COMPLETED ? EV_COMPLETE : outcome == ABP_FAILED ? EV_ERROR : EV_CANCELLED;
}

ONE_COPY uint32_t abp_calls_step(struct calls *calls, uint32_t slot, enum call_event event) {
  return abp_calls_settle(calls, slot, event, ABP_FATE_NONE);
}

COLD uint32_t abp_calls_stop(struct calls *calls, uint32_t slot, enum call_event why) {
  const struct call *call = table_call(&calls->table, slot);
  return abp_calls_step(calls, slot,
                        call->flags & (CALL_NO_CANCEL | CALL_HELD)         ? EV_STOP_SILENTLY
                        : call->flags & CALL_NO_WAIT                       ? EV_CANCEL_NO_WAIT
                        : calls->handler_decides && call->state == RUNNING ? EV_ASK
                                                                           : why);
}

COLD uint32_t abp_calls_next_live(const struct calls *calls, uint32_t slot) {
  const uint32_t slots = calls->table.slab_count * SLAB_CALLS;
  for (; slot < slots; slot++) {
    const enum call_state state = table_call(&calls->table, slot)->state;
    if (state != FREE && !call_is_over(state)) return slot;
  }
  return NO_CALL;
}

/* Calls made here are first: they end with the session, not with their parents, so no cancel is
 * sent for them. */
COLD static void end_each(struct calls *calls, uint32_t made, enum call_event event) {
  for (uint32_t slot = 0; (slot = abp_calls_next_live(calls, slot)) != NO_CALL; slot++) {
    struct call *call = table_call(&calls->table, slot);
    if ((call->flags & CALL_OUT) != made) continue;
    if (made) abp_calls_disown(calls, slot);
    const int local = (call->flags & CALL_LOCAL) != 0;
    if (!call->cause && local) call->cause = cause_of(event);
    /* Even if the peer is lost, the handler that made a local call waits for its answer. */
    abp_calls_step(calls, slot, local ? EV_CLOSE : event);
  }
}

COLD void abp_calls_end_all(struct calls *calls, enum call_event event) {
  abp_calls_keep_places(calls);
  end_each(calls, CALL_OUT, event);
  end_each(calls, 0, event);
  abp_calls_give_places(calls);
}

/* Handlers that have not returned keep their slots. */
COLD void abp_calls_forget_all(struct calls *calls) {
  const uint32_t slots = calls->table.slab_count * SLAB_CALLS;
  for (uint32_t slot = 0; slot < slots; slot++) {
    const struct call *call = table_call(&calls->table, slot);
    if (call->state == FREE || call->flags & CALL_PAST) continue;
    abp_table_unindex(&calls->table, slot);
  }
  for (uint32_t slot = calls->table.memory.head, next; slot != NO_CALL; slot = next) {
    next = table_call(&calls->table, slot)->next;
    if (!(table_call(&calls->table, slot)->flags & CALL_INDEXED)) forget(calls, slot);
  }
}

/* --- Obligations ------------------------------------------------------------------------------ */

uint64_t abp_calls_earliest(const struct calls *calls, uint64_t due) {
  if (!calls->table.timer_count) return due;
  const uint64_t timer = table_call(&calls->table, calls->table.timers[0])->deadline;
  return due && due < timer ? due : timer;
}

int abp_calls_wake_owed(const struct calls *calls, uint64_t due) {
  const uint64_t at = abp_calls_earliest(calls, due);
  return at && (!calls->wake || at < calls->wake);
}

void abp_calls_wake(struct calls *calls, uint64_t due, abp_action *action) {
  action->kind = ABP_WAKE;
  action->at = calls->wake = abp_calls_earliest(calls, due);
}

COLD static void set_reason(const struct calls *calls, const struct call *call,
                            abp_action *action) {
  action->text = calls->reason;
  action->length = calls->reason_length;
  if (!calls->reason && call->cause == ABP_TIMED_OUT) {
    action->text = calls->timeout_reason;
    action->length = strlen(action->text);
  }
}

/* The amount in a stream's action: the size of a chunk, the grant, or the window. */
COLD static void set_amount(struct calls *calls, uint32_t slot, uint32_t debt, abp_action *action) {
  struct stream *stream = table_stream(&calls->table, slot);
  if (debt == OWE_CHUNK) {
    action->at = calls->chunk_size;
    return;
  }
  if (debt == OWE_REQUEST) {
    action->chunks = stream->max_chunks;
    action->at = stream->max_bytes;
    return;
  }
  action->chunks = stream->read_chunks;
  action->at = stream->read_bytes;
  stream->chunks -= stream->read_chunks;
  stream->bytes -= stream->read_bytes;
  stream->read_chunks = 0;
  stream->read_bytes = 0;
}

void abp_calls_pay(struct calls *calls, abp_action *action) {
  /* Indexed by the number of the bit. */
  static const uint8_t KINDS[] = {ABP_QUEUED, ABP_START, ABP_REQUEST, ABP_SEND,  ABP_SEND,
                                  ABP_SEND,   ABP_SEND,  ABP_SEND,    ABP_ABORT, ABP_RESULT,
                                  ABP_SETTLE, ABP_CHUNK, ABP_CREDIT,  ABP_RESUME};
  _Static_assert(OWE_RESUME == 1 << (sizeof KINDS - 1) && OWE_CANCEL == 1 << 7, "bits have kinds");
  const uint32_t slot = calls->debts;
  struct call *call = table_call(&calls->table, slot);
  const uint32_t owed = call->owed, debt = owed & -owed, rest = owed ^ debt;
  call->owed = (uint16_t)rest;
  action->kind = (abp_kind)KINDS[__builtin_ctz(debt)];
  action->call = handle_of(call, slot);
  action->number = call->number;
  action->arg = debt == OWE_CANCEL            ? (uint32_t)ABP_MSG_CANCEL
                : debt & OWE_ANSWERS          ? (uint32_t)ABP_MSG_CANCEL_RESULT
                : call->state == COMPLETED    ? (uint32_t)ABP_COMPLETED
                : call->cause == CAUSE_CLOSED ? (uint32_t)ABP_CANCELLED
                                              : call->cause;
  if (debt & OWE_ANSWERS) action->at = debt;
  action->fate = (abp_fate)call->fate;
  if (debt & (OWE_CANCEL | OWE_ABORT)) set_reason(calls, call, action);
  if (call->flags & CALL_STREAM && debt & (OWE_REQUEST | OWE_CHUNK | OWE_CREDIT))
    set_amount(calls, slot, debt, action);
  if (rest) return;
  calls->debts = call->debtor;
  const int over = call_is_over(call->state);
  action->released = over || call->state == DETACHED; /* it causes no more actions */
  if (over) remember(calls, slot);
}

/* --- Inputs of all protocols ------------------------------------------------------------------ */

COLD void abp_calls_advance(struct calls *calls, uint64_t now) {
  if (now > calls->now) calls->now = now;
  if (calls->wake && calls->now >= calls->wake) calls->wake = 0;
  struct call_table *table = &calls->table;
  abp_calls_keep_places(calls);
  while (table->timer_count && table_call(table, table->timers[0])->deadline <= calls->now) {
    const uint32_t slot = table->timers[0];
    struct call *call = table_call(table, slot);
    abp_table_clear_timer(table, slot);
    if (!call->cause) call->cause = ABP_TIMED_OUT;
    abp_calls_stop(calls, slot, EV_TIMER);
  }
  abp_calls_give_places(calls);
  abp_calls_forget_old(calls, calls->limits.remembered);
}

void abp_calls_set_deadline(struct calls *calls, uint32_t slot, uint32_t timeout_ms) {
  if (timeout_ms)
    abp_table_set_timer(&calls->table, slot,
                        calls->now + (timeout_ms < MAX_TIMER_MS ? timeout_ms : MAX_TIMER_MS));
}

int abp_calls_make(struct calls *calls, const abp_id *id, uint32_t flags, uint32_t *slot) {
  if (calls->in_flight[1] >= calls->limits.max_calls) return ABP_E_LIMIT;
  const abp_id key = id ? *id : (abp_id){NULL, 0, abp_calls_mint(calls)};
  const uint32_t hash = abp_table_hash(&calls->table, &key, CALL_OUT);
  if (id) {
    const uint32_t same = abp_table_find(&calls->table, &key, hash, CALL_OUT);
    if (same != NO_CALL && !call_is_over(table_call(&calls->table, same)->state))
      return ABP_E_DUPLICATE;
    if (same != NO_CALL) forget(calls, same);
    /* A number that the caller chose is not used again. */
    if (key.number > calls->minted) calls->minted = key.number;
  }
  const int status = add(calls, &key, hash, flags | CALL_OUT, slot);
  if (status != ABP_OK) return status;
  table_call(&calls->table, *slot)->state = WAITING;
  calls->in_flight[1]++;
  return ABP_OK;
}

COLD int abp_calls_adoptable(const struct calls *calls, abp_call parent, uint32_t *slot) {
  *slot = abp_calls_live(calls, parent);
  return *slot != NO_CALL && table_call(&calls->table, *slot)->state == RUNNING;
}

int abp_calls_receive(struct calls *calls, const abp_id *id, uint32_t flags, int fault,
                      uint32_t *slot) {
  const uint32_t hash = id ? abp_table_hash(&calls->table, id, 0) : 0;
  const uint32_t same = id ? abp_table_find(&calls->table, id, hash, 0) : NO_CALL;
  if (same != NO_CALL && !call_is_over(table_call(&calls->table, same)->state))
    return ABP_E_DUPLICATE;
  if (fault) return fault;
  if (calls->in_flight[0] >= calls->limits.max_calls) return ABP_E_LIMIT;
  if (same != NO_CALL) forget(calls, same);
  const int status = add(calls, id, hash, flags, slot);
  if (status != ABP_OK) return status;
  table_call(&calls->table, *slot)->state = QUEUED;
  calls->in_flight[0]++;
  return ABP_OK;
}

void abp_calls_accept(struct calls *calls, uint32_t slot) {
  /* A local call starts at once: its parent, which has a place, may be waiting for it. */
  if (calls->running < calls->limits.max_concurrent ||
      table_call(&calls->table, slot)->flags & (CALL_LOCAL | CALL_ASIDE))
    abp_calls_step(calls, slot, EV_START);
  else
    abp_calls_queue(calls, slot);
}

COLD void abp_calls_queue(struct calls *calls, uint32_t slot) {
  table_call(&calls->table, slot)->flags |= CALL_LISTED;
  abp_list_push(&calls->table, &calls->table.queue, slot);
  abp_calls_owe(calls, slot, OWE_QUEUED);
}

/* Steps a call that may have ended. ABP_OK if it is now in this state. */
COLD static int step_to(struct calls *calls, abp_call call, enum call_event event,
                        enum call_state to) {
  const uint32_t slot = abp_calls_live(calls, call);
  if (slot == NO_CALL) return ABP_E_STATE;
  abp_calls_step(calls, slot, event);
  return table_call(&calls->table, slot)->state == to ? ABP_OK : ABP_E_STATE;
}

COLD int abp_calls_postpone(struct calls *calls, abp_call call) {
  return step_to(calls, call, EV_POSTPONE, PREPARING);
}

COLD int abp_calls_begin(struct calls *calls, abp_call call) {
  return step_to(calls, call, EV_BEGIN, RUNNING);
}

COLD int abp_calls_hold(struct calls *calls, uint32_t slot) {
  struct call *call = table_call(&calls->table, slot);
  if (call->state != WAITING) return 0;
  abp_table_unindex(&calls->table, slot);
  call->flags |= CALL_HELD;
  return 1;
}

COLD int abp_calls_retry(struct calls *calls, uint32_t slot) {
  struct call *call = table_call(&calls->table, slot);
  if (!(call->flags & CALL_HELD)) return ABP_E_STATE;
  const int status = abp_table_renumber(&calls->table, slot, abp_calls_mint(calls));
  if (status != ABP_OK) return status;
  call->flags &= (uint16_t)~CALL_HELD;
  abp_calls_owe(calls, slot, OWE_REQUEST);
  return ABP_OK;
}

COLD int abp_calls_send_failed(struct calls *calls, abp_call call) {
  const uint32_t slot = abp_calls_live(calls, call);
  if (slot == NO_CALL) return ABP_OK;
  if (!(table_call(&calls->table, slot)->flags & CALL_OUT)) return ABP_E_STATE;
  /* The peer does not know the call: there is nothing to wait for and nothing to remember. */
  abp_table_unindex(&calls->table, slot);
  abp_calls_step(calls, slot, EV_UNSENT);
  return ABP_OK;
}

static abp_outcome outcome_of(const struct call *call) {
  return call->state == COMPLETED      ? ABP_COMPLETED
         : call->cause == CAUSE_CLOSED ? ABP_DISCONNECTED
                                       : (abp_outcome)call->cause;
}

COLD abp_fate abp_calls_became(const struct calls *calls, uint32_t slot, abp_outcome *outcome,
                               abp_call *call) {
  *outcome = ABP_PENDING;
  *call = 0;
  if (slot == NO_CALL) return ABP_FATE_NONE;
  const struct call *c = table_call(&calls->table, slot);
  *outcome = outcome_of(c);
  while (c->awaits_children && c->child != NO_CALL) {
    slot = c->child;
    c = table_call(&calls->table, slot);
  }
  if (!call_is_over(c->state)) {
    *call = abp_calls_handle(calls, slot);
    return ABP_FATE_RUNNING;
  }
  *outcome = outcome_of(c);
  return c->repeats && c->fate == ABP_FATE_UNSTARTED ? ABP_FATE_NONE : (abp_fate)c->fate;
}

COLD uint32_t abp_calls_count(const struct calls *calls, const uint32_t counts[ABP_COUNTERS],
                              abp_counter counter) {
  if (counter == ABP_IN_FLIGHT_IN) return calls->in_flight[0];
  if (counter == ABP_IN_FLIGHT_OUT) return calls->in_flight[1];
  if (counter == ABP_REMEMBERED) return calls->table.memory.count;
  return counts[counter];
}
