/*
 * The inputs of ABP about calls: find the call, step the table (calls.c), note the obligations.
 */
#include "endpoint.h"
#include "utf8.h"

#include <stdlib.h>

#define MAX_LOCAL_DEPTH 32 /* nesting of local calls */

/* --- Ids and handles -------------------------------------------------------------------------- */

static int id_ok(const abp_endpoint *ep, const abp_id *id) {
  if (!id->text) return id->number != 0;
  return id->length > 0 && id->length <= ep->config.max_id && abp_utf8_valid(id->text, id->length);
}

/* --- The caller ------------------------------------------------------------------------------- */

static int make_call(abp_endpoint *ep, const abp_id *id, uint32_t flags, uint32_t *slot) {
  if (!id) return abp_calls_make(&ep->calls, NULL, flags, slot);
  if (!id_ok(ep, id)) return ABP_E_ID;
  const abp_id key = abp_endpoint_canonical(ep, id, CALL_OUT);
  return abp_calls_make(&ep->calls, &key, flags, slot);
}

int abp_stream_request(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                       uint32_t bytes, abp_call parent, abp_call *call) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t slot, parent_slot = NO_CALL;
  if (ep->session.state != ABP_SESSION_READY ||
      (parent && !abp_calls_adoptable(&ep->calls, parent, &parent_slot)))
    return ABP_E_STATE;
  const uint32_t streams = flags & ABP_WANTS_STREAM ? abp_endpoint_streams(ep) : 0;
  /* An app does not wait for an answer to its own cancel: a dialog may stay open, and a source may
   * take as long as it likes for its next chunk. */
  const uint32_t stops = ep->config.role == ABP_AGENT ? 0u
                         : abp_endpoint_streams(ep)   ? CALL_NO_WAIT
                                                      : CALL_NO_CANCEL;
  const int status =
      make_call(ep, id, stops | (flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0u) | streams, &slot);
  if (status != ABP_OK) return status;
  if (streams) abp_endpoint_request_window(ep, slot, bytes);
  if (parent_slot != NO_CALL && stops && !streams)
    abp_calls_add_question(&ep->calls, parent_slot, slot);
  else if (parent_slot != NO_CALL)
    abp_table_adopt(&ep->calls.table, parent_slot, slot);
  abp_calls_set_deadline(&ep->calls, slot, timeout_ms);
  abp_calls_owe(&ep->calls, slot, OWE_REQUEST);
  *call = abp_calls_handle(&ep->calls, slot);
  return ABP_OK;
}

int abp_request(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                abp_call parent, abp_call *call) {
  return abp_stream_request(ep, id, timeout_ms, flags, 0, parent, call);
}

COLD int abp_cancel(abp_endpoint *ep, abp_call call, const char *reason, size_t length) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  abp_calls_stop(&ep->calls, slot, EV_CANCEL);
  return ABP_OK;
}

COLD int abp_cancel_by_id(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length,
                          abp_call *request) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (ep->session.state != ABP_SESSION_READY) return ABP_E_STATE;
  if (!id->text || !id_ok(ep, id)) return ABP_E_ID;
  const uint32_t target = abp_endpoint_find(ep, id, CALL_OUT);
  uint32_t slot;
  const int status = make_call(ep, NULL, CALL_NO_CANCEL | CALL_IS_CANCEL, &slot);
  if (status != ABP_OK) return status;
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  ep->target = *id;
  /* This is the call's cancel, too: its own signal need not send another one. */
  table_call(&ep->calls.table, slot)->target =
      target == NO_CALL ? 0 : abp_calls_handle(&ep->calls, target);
  if (target != NO_CALL && !(table_call(&ep->calls.table, target)->flags & CALL_NO_CANCEL))
    abp_calls_step(&ep->calls, target, EV_CANCEL_BY_ID);
  abp_calls_set_deadline(&ep->calls, slot, ep->calls.limits.grace_ms);
  abp_calls_owe(&ep->calls, slot, OWE_CANCEL);
  *request = abp_calls_handle(&ep->calls, slot);
  return ABP_OK;
}

static int answered(abp_endpoint *ep, const abp_id *id, uint32_t is_cancel, abp_outcome outcome,
                    abp_fate fate) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = abp_endpoint_find(ep, id, CALL_OUT);
  if (slot == NO_CALL) {
    abp_endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->calls.table, slot);
  if ((call->flags & CALL_IS_CANCEL) != is_cancel || call_is_over(call->state)) {
    abp_endpoint_count(ep, call_is_over(call->state) ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  if (outcome == ABP_TIMED_OUT) call->cause = ABP_TIMED_OUT;
  abp_calls_settle(&ep->calls, slot, abp_calls_ending(outcome), fate);
  return ABP_OK;
}

int abp_result_received(abp_endpoint *ep, const abp_id *id, abp_outcome outcome) {
  return answered(ep, id, 0, outcome, ABP_FATE_NONE);
}

int abp_result_with_fate(abp_endpoint *ep, const abp_id *id, abp_outcome outcome, abp_fate fate) {
  return answered(ep, id, 0, outcome, fate);
}

COLD int abp_endpoint_cancel_result(abp_endpoint *ep, const abp_id *id, abp_call call,
                                    int cancelled) {
  const uint32_t request = call ? NO_CALL : abp_endpoint_find(ep, id, CALL_OUT);
  const struct call *found = request == NO_CALL ? NULL : table_call(&ep->calls.table, request);
  const abp_call target = found && found->flags & CALL_IS_CANCEL ? found->target : call;
  const uint32_t slot = abp_calls_live(&ep->calls, target);
  if (cancelled && slot != NO_CALL) abp_calls_step(&ep->calls, slot, EV_ACKNOWLEDGED);
  /* After a signal's cancel, the call waits for its result, not for this answer. */
  if (call) return ABP_OK;
  return answered(ep, id, CALL_IS_CANCEL, cancelled ? ABP_CANCELLED : ABP_COMPLETED, ABP_FATE_NONE);
}

COLD int abp_send_failed(abp_endpoint *ep, abp_call call) {
  return abp_endpoint_enter(ep) == ABP_OK ? abp_calls_send_failed(&ep->calls, call)
                                          : ABP_E_UNDRAINED;
}

COLD int abp_progress_received(abp_endpoint *ep, const abp_id *id) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = abp_endpoint_find(ep, id, CALL_OUT);
  const int over = slot != NO_CALL && call_is_over(table_call(&ep->calls.table, slot)->state);
  if (over || !(abp_features(ep) & ABP_PROGRESS)) {
    abp_endpoint_count(ep, over ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  ep->outbox |= OUT_REPORT;
  ep->report = slot == NO_CALL ? 0 : abp_calls_handle(&ep->calls, slot);
  return ABP_OK;
}

/* --- The callee ------------------------------------------------------------------------------- */

COLD static void refuse_call(abp_endpoint *ep, abp_error error) {
  abp_endpoint_refuse(ep, error);
  abp_endpoint_count(ep, ABP_REFUSED);
}

static abp_error add_received(abp_endpoint *ep, const abp_id *id, uint32_t flags, abp_error fault,
                              uint32_t *slot) {
  if (ep->session.state != ABP_SESSION_READY) return ABP_NOT_INITIALIZED;
  if (id && !id_ok(ep, id)) return ABP_INVALID_ID;
  const abp_id key = id ? abp_endpoint_canonical(ep, id, 0) : (abp_id){0};
  const int status = abp_calls_receive(&ep->calls, id ? &key : NULL, flags, (int)fault, slot);
  switch (status) {
  case ABP_OK: return ABP_NO_ERROR;
  case ABP_E_DUPLICATE: return ABP_DUPLICATE_CALL;
  case ABP_E_LIMIT: return ABP_RATE_LIMITED;
  case ABP_E_MEMORY: return ABP_INTERNAL_ERROR;
  default: return fault;
  }
}

/* A question is about a call that waits for its result; apps receive no questions. An agent's call
 * is about the call that it repeats, which this app need not know. */
COLD static void set_about(abp_endpoint *ep, const abp_id *about, uint32_t slot) {
  if (ep->config.role == ABP_APP) table_call(&ep->calls.table, slot)->repeats = 1;
  const uint32_t parent_slot = abp_endpoint_find(ep, about, CALL_OUT);
  if (parent_slot == NO_CALL || ep->config.role != ABP_AGENT) return;
  const struct call *parent = table_call(&ep->calls.table, parent_slot);
  if (parent->state == WAITING && !(parent->flags & CALL_IS_CANCEL))
    abp_calls_add_question(&ep->calls, parent_slot, slot);
}

int abp_endpoint_receive(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                         uint32_t chunks, uint32_t bytes, const abp_id *about, abp_error fault) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_heard(&ep->session, ep->calls.now);
  uint32_t slot;
  const uint32_t streams = chunks && bytes ? abp_endpoint_streams(ep) : 0;
  const abp_error error = add_received(ep, id,
                                       (flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0u) |
                                           (flags & ABP_ASIDE ? CALL_ASIDE : 0u) | streams,
                                       fault, &slot);
  if (error) {
    refuse_call(ep, error);
    return ABP_OK;
  }
  if (streams) abp_endpoint_open_window(ep, slot, chunks, bytes);
  if (about) set_about(ep, about, slot);
  abp_calls_set_deadline(&ep->calls, slot, timeout_ms);
  abp_calls_accept(&ep->calls, slot);
  return ABP_OK;
}

int abp_call_received(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                      abp_error fault) {
  return abp_endpoint_receive(ep, id, timeout_ms, flags, 0, 0, NULL, fault);
}

int abp_stream_received(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                        uint32_t chunks, uint32_t bytes, abp_error fault) {
  return abp_endpoint_receive(ep, id, timeout_ms, flags, chunks, bytes, NULL, fault);
}

int abp_question_received(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms,
                          const abp_id *about, abp_error fault) {
  return abp_endpoint_receive(ep, id, timeout_ms, 0, 0, 0, id_ok(ep, about) ? about : NULL, fault);
}

COLD int abp_call_local(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms, abp_error fault) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t parent_slot, slot;
  if (!abp_calls_adoptable(&ep->calls, parent, &parent_slot)) return ABP_E_STATE;
  const uint8_t depth = (uint8_t)(table_call(&ep->calls.table, parent_slot)->depth + 1);
  const abp_error error =
      depth > MAX_LOCAL_DEPTH ? ABP_RATE_LIMITED : add_received(ep, NULL, CALL_LOCAL, fault, &slot);
  if (error) {
    refuse_call(ep, error);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->calls.table, slot);
  call->depth = depth;
  call->number = abp_calls_mint(&ep->calls);
  abp_table_adopt(&ep->calls.table, parent_slot, slot);
  abp_calls_set_deadline(&ep->calls, slot, timeout_ms);
  abp_calls_accept(&ep->calls, slot);
  return ABP_OK;
}

COLD int abp_postpone(abp_endpoint *ep, abp_call call) {
  return abp_endpoint_enter(ep) == ABP_OK ? abp_calls_postpone(&ep->calls, call) : ABP_E_UNDRAINED;
}

COLD int abp_begin(abp_endpoint *ep, abp_call call) {
  return abp_endpoint_enter(ep) == ABP_OK ? abp_calls_begin(&ep->calls, call) : ABP_E_UNDRAINED;
}

int abp_finish(abp_endpoint *ep, abp_call call, abp_outcome outcome) {
  return abp_finish_with_fate(ep, call, outcome, ABP_FATE_NONE);
}

/* A call that was stopped, or stops by itself, is over only when its handler's local calls are
 * over. Until then this keeps its fate, or theirs if its own is RUNNING. The same holds for a call
 * that fails after its latest local call was answered as still running. */
COLD static int await_children(struct calls *calls, uint32_t slot, enum call_event event,
                               abp_fate word) {
  struct call *call = table_call(&calls->table, slot);
  const int stops =
      !call->cause &&
      (event == EV_CANCELLED ||
       (event == EV_ERROR && table_call(&calls->table, call->child)->state == UNWINDING));
  /* There is no grace period, or its outcome is known already. */
  if (word == ABP_FATE_RUNNING || (stops && !calls->handler_decides))
    abp_calls_step(calls, slot, EV_GOES_ON);
  else if (!call->cause || calls->handler_decides)
    return 0;
  if (call->child == NO_CALL) return 0;
  call->awaits_children = 1;
  call->child_fate = word & 7u;
  return 1;
}

int abp_finish_with_fate(abp_endpoint *ep, abp_call handle, abp_outcome outcome, abp_fate fate) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&ep->calls, handle);
  if (slot == NO_CALL) return ABP_E_STATE;
  const struct call *call = table_call(&ep->calls.table, slot);
  if (!call_has_handler(call->state) || call->awaits_children) return ABP_E_STATE;
  const enum call_event event = outcome == ABP_UNKNOWN ? EV_UNKNOWN : abp_calls_ending(outcome);
  /* A foreign app may answer `cancelled` in any case. */
  if (!fate)
    fate = ep->calls.handler_decides && outcome == ABP_CANCELLED && call->state != PREPARING
               ? ABP_FATE_UNKNOWN
               : (abp_fate)call_step(call->state, event).fate;
  /* The call that still ran has returned meanwhile. */
  if (fate == ABP_FATE_RUNNING && call->child_fate) fate = (abp_fate)call->child_fate;
  if (call->child != NO_CALL && await_children(&ep->calls, slot, event, fate))
    return call->state == CANCELLING ? ABP_FOLLOWS : ABP_OK;
  abp_calls_settle(&ep->calls, slot, event, fate);
  /* In ABP, unlike in JSON-RPC, no answer waits for the calls that a handler made. */
  if (ep->calls.handler_decides) abp_calls_step(&ep->calls, slot, EV_CHILDREN_DONE);
  return ABP_OK;
}

COLD int abp_goes_on(abp_endpoint *ep, abp_call call) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot != NO_CALL) abp_calls_step(&ep->calls, slot, EV_GOES_ON);
  return ABP_OK;
}

COLD uint32_t abp_endpoint_remembered(abp_endpoint *ep, const abp_id *id) {
  const uint32_t slot = id_ok(ep, id) ? abp_endpoint_find(ep, id, 0) : NO_CALL;
  return slot == NO_CALL && id->text ? abp_calls_find(&ep->calls, id, CALL_PAST) : slot;
}

COLD abp_fate abp_became(abp_endpoint *ep, const abp_id *id, abp_outcome *outcome, abp_call *call) {
  return abp_calls_became(&ep->calls, abp_endpoint_remembered(ep, id), outcome, call);
}

COLD int abp_has_begun(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  return call_is_over(c->state) ? c->fate != ABP_FATE_UNSTARTED : c->state > PREPARING;
}

COLD int abp_has_ended(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  return slot == NO_CALL || call_is_over(table_call(&ep->calls.table, slot)->state);
}

COLD int abp_progress_wanted(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot == NO_CALL || !(abp_features(ep) & ABP_PROGRESS)) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  return c->flags & CALL_PROGRESS && c->state == RUNNING;
}

/* A cancel arrived. Returns the answer to it, if the peer waits for one. If the answer waits for
 * the handler, `*held` is kept until then, and set to NULL. */
COLD static enum cancel_answer cancel(abp_endpoint *ep, const abp_id *id, const char *reason,
                                      size_t length, struct held_cancel **held) {
  abp_session_heard(&ep->session, ep->calls.now);
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  const int ready = ep->session.state == ABP_SESSION_READY;
  const uint32_t slot = ready && id_ok(ep, id) ? abp_endpoint_find(ep, id, 0) : NO_CALL;
  const uint32_t owed = slot == NO_CALL ? 0 : abp_calls_stop(&ep->calls, slot, EV_CANCEL);
  if (owed & OWE_WORD && !*held) return ANSWER_BUSY;
  if (owed & OWE_WORD) {
    abp_endpoint_hold_cancel(ep, *held, slot);
    *held = NULL;
  }
  if (slot != NO_CALL) return abp_endpoint_answer(owed);
  if (!ready) return ANSWER_NOT_INITIALIZED;
  return id->text ? ANSWER_NOT_FOUND : ANSWER_INVALID;
}

COLD int abp_endpoint_cancel(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length,
                             const struct cancel_text *from) {
  struct held_cancel *held = NULL;
  if (ep->calls.handler_decides && abp_endpoint_copy_cancel(ep, from, &held) != ABP_OK)
    return ABP_E_MEMORY;
  ep->answer = (uint8_t)cancel(ep, id, reason, length, &held);
  free(held);
  if (ep->answer) ep->outbox |= 1u << ABP_MSG_CANCEL_RESULT;
  return ABP_OK;
}

COLD int abp_cancel_received(abp_endpoint *ep, const abp_id *id, const char *reason,
                             size_t length) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  struct held_cancel *none = NULL;
  cancel(ep, id, reason, length, &none);
  return ABP_OK;
}

COLD int abp_cancel_answered(abp_endpoint *ep, abp_call call, int accepted, const char *reason,
                             size_t length) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  abp_calls_step(&ep->calls, slot, accepted ? EV_ACCEPTED : EV_DECLINED);
  return ABP_OK;
}
