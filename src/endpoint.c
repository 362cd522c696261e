/*
 * Every input of ABP: find the call, step the table (calls.c does), note what is owed. What is owed
 * is handed out by abp_next.
 *
 * What an input can cause beside what calls owe is one field each, because inputs are drained one
 * by one.
 */
#include "abp_internal.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 32 /* local calls within local calls */

static const struct {
  const char *name, *message;
  int retryable;
} ERRORS[ABP_ERROR_COUNT] = {
    [ABP_NO_ERROR] = {"", "", 0},
    [ABP_NOT_INITIALIZED] = {"NOT_INITIALIZED", "There is no session: send initialize first", 1},
    [ABP_ALREADY_INITIALIZED] = {"ALREADY_INITIALIZED",
                                 "There is a session already: end it with shutdown first", 0},
    [ABP_UNKNOWN_CAPABILITY] = {"UNKNOWN_CAPABILITY", "This app has no such capability", 0},
    [ABP_CAPABILITY_UNAVAILABLE] = {"CAPABILITY_UNAVAILABLE",
                                    "This capability is not available at the moment", 1},
    [ABP_REQUIREMENT_NOT_MET] = {"REQUIREMENT_NOT_MET",
                                 "A requirement of this capability is not met", 1},
    [ABP_INVALID_PARAMS] = {"INVALID_PARAMS", "The parameters are not of the form expected", 0},
    [ABP_DUPLICATE_CALL] = {"INVALID_PARAMS",
                            "A call with this callId is in flight: choose another", 0},
    [ABP_INVALID_ID] = {"INVALID_PARAMS",
                        "The callId is empty, too long, not a string or not well-formed", 0},
    [ABP_RATE_LIMITED] = {"RATE_LIMITED",
                          "Too many calls are in flight: retry when some have ended", 1},
    [ABP_NOT_SUPPORTED] = {"NOT_SUPPORTED", "The other side does not support this", 0},
    [ABP_OPERATION_FAILED] = {"OPERATION_FAILED", "The operation failed", 0},
    [ABP_CANCELLED_ERROR] = {"CANCELLED", "The operation was cancelled", 0},
    [ABP_TIMEOUT_ERROR] = {"TIMEOUT", "The operation took longer than its timeout", 1},
    [ABP_DISCONNECTED_ERROR] = {"DISCONNECTED", "The other side is gone: reconnect", 1},
    [ABP_INTERNAL_ERROR] = {"INTERNAL_ERROR", "The bridge failed", 1},
    [ABP_PERMISSION_DENIED] = {"PERMISSION_DENIED", "This is not allowed here", 0},
};

static int known_error(int error) { return error > 0 && error < ABP_ERROR_COUNT ? error : 0; }
const char *abp_error_name(int error) { return ERRORS[known_error(error)].name; }
const char *abp_error_message(int error) { return ERRORS[known_error(error)].message; }
int abp_error_retryable(int error) { return ERRORS[known_error(error)].retryable; }

/* --- Endpoint --------------------------------------------------------------------------------- */

abp_endpoint *abp_new(const abp_config *config, uint64_t now) {
  abp_endpoint *ep = calloc(1, sizeof *ep);
  if (!ep) return NULL;
  ep->config = *config;
  const struct call_limits limits = {config->max_calls, config->max_concurrent, config->remembered,
                                     config->remember_ms,
                                     config->grace_ms          ? config->grace_ms
                                     : config->role == ABP_APP ? 3000
                                                               : 5000};
  calls_init(&ep->calls, &limits, config->seed, now);
  ep->calls.timeout_reason = "Timeout"; /* as the agent's own clock would have said */
  set_default(&ep->config.max_id, 256);
  if (ep->config.max_id > UINT16_MAX) ep->config.max_id = UINT16_MAX;
  set_default(&ep->config.max_text, 1 << 20);
  set_default(&ep->config.heartbeat_ms, 15000);
  ep->session.wanted = config->features;
  return ep;
}

void abp_free(abp_endpoint *ep) {
  if (!ep) return;
  if (ep->free_wire) ep->free_wire(ep->wire);
  table_free(&ep->calls.table);
  for (int i = 0; i < DESCRIPTIONS; i++)
    free(ep->about[i].json);
  free(ep->session.id);
  free(ep);
}

int abp_describe(abp_endpoint *ep, const char *member, const char *json, size_t length) {
  int i = 0;
  while (i < DESCRIPTIONS && ep->about[i].json && strcmp(ep->about[i].name, member) != 0)
    i++;
  if (i == DESCRIPTIONS || strlen(member) >= sizeof ep->about[i].name) return ABP_E_LIMIT;
  char *copy = malloc(length + 1);
  if (!copy) return ABP_E_MEMORY;
  memcpy(copy, json, length);
  copy[length] = 0;
  free(ep->about[i].json);
  memcpy(ep->about[i].name, member, strlen(member) + 1);
  ep->about[i].json = copy;
  ep->about[i].length = length;
  return ABP_OK;
}

void endpoint_count(abp_endpoint *ep, abp_counter counter) { ep->counts[counter]++; }

uint32_t abp_count(const abp_endpoint *ep, abp_counter counter) {
  return calls_count(&ep->calls, ep->counts, counter);
}

uint32_t abp_features(const abp_endpoint *ep) {
  return ep->session.state == ABP_SESSION_READY ? ep->session.agreed : 0;
}

abp_session abp_session_state(const abp_endpoint *ep) { return ep->session.state; }

/* --- Ids and handles -------------------------------------------------------------------------- */

static int id_ok(const abp_endpoint *ep, const abp_id *id) {
  if (!id->text) return id->number != 0;
  return id->length > 0 && id->length <= ep->config.max_id && utf8_valid(id->text, id->length);
}

static const char *prefix_of(const abp_endpoint *ep, uint32_t own, size_t *length) {
  *length = own ? strlen(ep->prefix) : ep->session.id_length;
  return own ? ep->prefix : ep->session.id;
}

/* The one place that reads "P.n" as the number n. Only the canonical decimal, so that no two texts
 * are one id. */
static abp_id canonical(const abp_endpoint *ep, const abp_id *id, uint32_t own) {
  if (!id->text) return *id;
  size_t skip;
  const char *prefix = prefix_of(ep, own, &skip);
  if (!skip || id->length < skip + 2 || id->length > skip + 11) return *id;
  if (id->text[skip] != '.' || memcmp(id->text, prefix, skip) != 0) return *id;
  uint64_t number = 0;
  for (uint32_t i = (uint32_t)skip + 1; i < id->length; i++) {
    const char digit = id->text[i];
    if (digit < '0' || digit > '9' || (digit == '0' && number == 0)) return *id;
    number = number * 10 + (uint64_t)(digit - '0');
  }
  return number > UINT32_MAX ? *id : (abp_id){NULL, 0, (uint32_t)number};
}

static uint32_t find(const abp_endpoint *ep, const abp_id *id, uint32_t direction) {
  const abp_id key = canonical(ep, id, direction);
  return calls_find(&ep->calls, &key, direction);
}

static char *print_number(char *end, uint32_t number) {
  do
    *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

size_t abp_id_text(const abp_endpoint *ep, abp_call call, char *buffer, size_t size) {
  const uint32_t slot = calls_slot(&ep->calls, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  char digits[11];
  size_t length = c->id_length, digits_length = 0;
  const char *text = digits;
  if (c->number) {
    text = prefix_of(ep, c->flags & (CALL_OUT | CALL_LOCAL), &length);
    char *first = print_number(digits + sizeof digits, c->number);
    *--first = '.';
    digits_length = (size_t)(digits + sizeof digits - first);
    if (length + digits_length <= size) memcpy(buffer + length, first, digits_length);
  } else if (length) {
    text = table_id(&ep->calls.table, slot);
  }
  if (length + digits_length <= size) memcpy(buffer, text, length);
  return length + digits_length;
}

uint32_t abp_number(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = calls_slot(&ep->calls, call);
  return slot == NO_CALL ? 0 : table_call(&ep->calls.table, slot)->number;
}

/* Unguessable, since the seed is secret, and new with each session, so that an answer to an older
 * one finds nothing. */
static void new_prefix(abp_endpoint *ep) {
  char *p = ep->prefix;
  for (int i = 0; i < 10; i++) {
    *p++ = "0123456789abcdef"[ep->config.seed[i] >> 4];
    *p++ = "0123456789abcdef"[ep->config.seed[i] & 15];
  }
  *p++ = '-';
  char digits[10];
  const char *first = print_number(digits + sizeof digits, ++ep->session.serial);
  const size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(p, first, length);
  p[length] = 0;
}

/* --- Actions ---------------------------------------------------------------------------------- */

int endpoint_undrained(const abp_endpoint *ep) {
  return ep->calls.debts != NO_CALL || ep->outbox || calls_wake_owed(&ep->calls, ep->session.due);
}

/* Takes the first of these from the outbox. */
static void hand_out(abp_endpoint *ep, uint32_t of, abp_action *action) {
  uint32_t place = 0;
  while (!(ep->outbox & of & 1u << place))
    place++;
  ep->outbox &= ~(1u << place);
  switch (1u << place) {
  case OUT_REFUSE:
    action->kind = ABP_REFUSE;
    action->arg = ep->refuse;
    break;
  case OUT_REPORT:
    action->kind = ABP_REPORT;
    action->call = ep->report;
    break;
  case OUT_SESSION:
    action->kind = ABP_SESSION;
    action->arg = ep->session.state;
    break;
  default:
    action->kind = ABP_SEND;
    action->arg = place;
    break;
  }
}

int abp_next(abp_endpoint *ep, abp_action *action) {
  *action = (abp_action){.kind = ABP_NONE};
  if (ep->outbox & OUT_FIRST)
    hand_out(ep, OUT_FIRST, action);
  else if (ep->calls.debts != NO_CALL)
    calls_pay(&ep->calls, action);
  else if (ep->outbox)
    hand_out(ep, ep->outbox, action);
  else if (calls_wake_owed(&ep->calls, ep->session.due))
    calls_wake(&ep->calls, ep->session.due, action);
  return action->kind != ABP_NONE;
}

/* --- The session ------------------------------------------------------------------------------ */

static void refuse(abp_endpoint *ep, abp_error error) {
  ep->outbox |= OUT_REFUSE;
  ep->refuse = (uint8_t)error;
}

static void change_session(abp_endpoint *ep, enum session_event event) {
  struct session *session = &ep->session;
  const struct session_step taken = session_step(session->state, event);
  if (taken.refuse) refuse(ep, (abp_error)taken.refuse);
  ep->outbox |= taken.sends;
  if (taken.calls) calls_step_all(&ep->calls, (enum call_event)(taken.calls - 1));
  if (taken.next == session->state) return;
  session->state = (abp_session)taken.next;
  /* Nobody needs to be told that it connects. */
  ep->outbox &= ~(uint32_t)OUT_SESSION;
  if (taken.next != ABP_SESSION_CONNECTING) ep->outbox |= OUT_SESSION;
  session->due = 0;
  session->suspended = 0;
  if (taken.next == ABP_SESSION_CONNECTING || event == SE_INITIALIZE) {
    calls_forget_all(&ep->calls);
    new_prefix(ep);
  }
}

/* Every input begins with it: one copy is a tenth less of the module, and no slower. */
__attribute__((noinline)) int endpoint_enter(abp_endpoint *ep) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  ep->calls.reason = NULL;
  ep->calls.reason_length = 0;
  ep->target = NULL;
  return ABP_OK;
}

int abp_connect(abp_endpoint *ep, uint32_t timeout_ms) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const abp_session state = ep->session.state;
  if (state == ABP_SESSION_CONNECTING || state == ABP_SESSION_READY) return ABP_E_STATE;
  change_session(ep, SE_CONNECT);
  set_default(&timeout_ms, 10000);
  ep->session.pause = 50;
  ep->session.give_up = ep->calls.now + timeout_ms;
  ep->session.due = ep->calls.now + (timeout_ms < 50 ? timeout_ms : 50);
  return ABP_OK;
}

static int keep_session_id(abp_endpoint *ep, const char *id, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return ABP_E_MEMORY;
  memcpy(copy, id, length);
  copy[length] = 0;
  free(ep->session.id);
  ep->session.id = copy;
  ep->session.id_length = (uint32_t)length;
  return ABP_OK;
}

int endpoint_initialize(abp_endpoint *ep, const char *id, size_t length, int number_id,
                        const char *version, size_t version_length, uint32_t features) {
  struct session *session = &ep->session;
  const int ready = session->state == ABP_SESSION_READY;
  const int valid = length > 0 && length <= ep->config.max_id;
  const int again = ready && number_id == session->number_id && length == session->id_length &&
                    memcmp(id, session->id, length) == 0;
  const int stays = ready && (again || !ep->config.restart);
  const int accepted = valid && !stays && session_version_ok(version, version_length);
  if (accepted && keep_session_id(ep, id, length) != ABP_OK) return ABP_E_MEMORY;
  session_heard(session, ep->calls.now);
  if (accepted) {
    if (ready) change_session(ep, SE_SHUTDOWN);
    session->number_id = (uint8_t)number_id;
    change_session(ep, SE_INITIALIZE);
    session->agreed = session->wanted & (features | ABP_DYNAMIC_CAPABILITIES);
    session_start_heartbeat(session, ep->calls.now, ep->config.heartbeat_ms);
  } else if (valid && stays) {
    change_session(ep, again ? SE_INITIALIZE_AGAIN : SE_INITIALIZE_OTHER);
  } else {
    refuse(ep, valid ? ABP_NOT_SUPPORTED : ABP_INVALID_ID);
  }
  return ABP_OK;
}

int endpoint_initialized(abp_endpoint *ep, const char *session_id, size_t length, int accepted,
                         int busy, uint32_t features) {
  struct session *session = &ep->session;
  if (session->state != ABP_SESSION_CONNECTING) {
    endpoint_count(ep, ABP_LATE);
    if (accepted) change_session(ep, SE_ACCEPTED);
    return ABP_OK;
  }
  if (accepted) {
    if (keep_session_id(ep, session_id, length <= ep->config.max_id ? length : 0) != ABP_OK)
      return ABP_E_MEMORY;
    session->agreed = features & (session->wanted | ABP_DYNAMIC_CAPABILITIES);
  }
  change_session(ep, accepted ? SE_ACCEPTED : busy ? SE_BUSY : SE_REFUSED);
  if (accepted) session_start_heartbeat(session, ep->calls.now, ep->config.heartbeat_ms);
  return ABP_OK;
}

int abp_close(abp_endpoint *ep) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t liveness = abp_features(ep) & ABP_LIVENESS;
  ep->session.staying = 0;
  change_session(ep, SE_CLOSE);
  /* An app has no shutdown to send. */
  const uint32_t shutdown = ep->outbox & 1u << ABP_MSG_SHUTDOWN;
  if (ep->config.role == ABP_APP && shutdown)
    ep->outbox ^= shutdown | (liveness ? 1u << ABP_MSG_BYE : 0);
  return ABP_OK;
}

int abp_lost(abp_endpoint *ep) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  change_session(ep, SE_LOST);
  return ABP_OK;
}

int abp_leave(abp_endpoint *ep, int persisted) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (abp_features(ep) & ABP_LIVENESS) ep->outbox |= 1u << ABP_MSG_BYE;
  ep->session.staying = persisted != 0;
  if (!persisted) change_session(ep, SE_LOST);
  return ABP_OK;
}

int endpoint_shutdown(abp_endpoint *ep) {
  change_session(ep, SE_SHUTDOWN);
  return ABP_OK;
}

int endpoint_bye(abp_endpoint *ep, int persisted) {
  if (!(abp_features(ep) & ABP_LIVENESS)) {
    endpoint_count(ep, ABP_UNKNOWN_TYPE);
  } else if (persisted) {
    ep->session.suspended = 1;
    ep->session.due = 0;
  } else {
    change_session(ep, SE_LOST);
  }
  return ABP_OK;
}

int endpoint_ping(abp_endpoint *ep, int pong) {
  session_heard(&ep->session, ep->calls.now);
  if (!(abp_features(ep) & ABP_LIVENESS))
    endpoint_count(ep, ABP_UNKNOWN_TYPE);
  else if (!pong)
    ep->outbox |= 1u << ABP_MSG_PONG;
  return ABP_OK;
}

int abp_advance(abp_endpoint *ep, uint64_t now) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  calls_advance(&ep->calls, now);
  const enum session_event event =
      session_tick(&ep->session, ep->calls.now, ep->config.heartbeat_ms, &ep->outbox);
  if (event != SESSION_EVENTS) change_session(ep, event);
  return ABP_OK;
}

/* --- The caller ------------------------------------------------------------------------------- */

static int make_call(abp_endpoint *ep, const abp_id *id, uint32_t flags, uint32_t *slot) {
  if (!id) return calls_make(&ep->calls, NULL, flags, slot);
  if (!id_ok(ep, id)) return ABP_E_ID;
  const abp_id key = canonical(ep, id, CALL_OUT);
  return calls_make(&ep->calls, &key, flags, slot);
}

int abp_request(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                abp_call parent, abp_call *call) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t slot, above = NO_CALL;
  if (ep->session.state != ABP_SESSION_READY ||
      (parent && !calls_adoptable(&ep->calls, parent, &above)))
    return ABP_E_STATE;
  const int status = make_call(ep, id,
                               (ep->config.role == ABP_APP ? CALL_NO_CANCEL : 0u) |
                                   (flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0u),
                               &slot);
  if (status != ABP_OK) return status;
  if (above != NO_CALL) table_adopt(&ep->calls.table, above, slot);
  calls_set_deadline(&ep->calls, slot, timeout_ms);
  calls_owe(&ep->calls, slot, OWE_REQUEST);
  *call = calls_handle(&ep->calls, slot);
  return ABP_OK;
}

int abp_cancel(abp_endpoint *ep, abp_call call, const char *reason, size_t length) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = calls_live(&ep->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  calls_stop(&ep->calls, slot, EV_CANCEL);
  return ABP_OK;
}

int abp_cancel_by_id(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length,
                     abp_call *request) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (ep->session.state != ABP_SESSION_READY) return ABP_E_STATE;
  if (!id->text || !id_ok(ep, id)) return ABP_E_ID;
  const uint32_t target = find(ep, id, CALL_OUT);
  uint32_t slot;
  const int status = make_call(ep, NULL, CALL_NO_CANCEL | CALL_IS_CANCEL, &slot);
  if (status != ABP_OK) return status;
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  ep->target = id;
  /* The call is now waiting for this cancel: its own signal need not send another. */
  struct call *call = target == NO_CALL ? NULL : table_call(&ep->calls.table, target);
  if (call && call->state == WAITING && !(call->flags & CALL_NO_CANCEL)) {
    calls_step(&ep->calls, target, EV_CANCEL);
    call->owed &= (uint16_t)~OWE_CANCEL;
    ep->calls.debts = call->debtor;
  }
  calls_set_deadline(&ep->calls, slot, ep->calls.limits.grace_ms);
  calls_owe(&ep->calls, slot, OWE_CANCEL);
  *request = calls_handle(&ep->calls, slot);
  return ABP_OK;
}

static int answered(abp_endpoint *ep, const abp_id *id, uint32_t is_cancel, abp_outcome outcome) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = find(ep, id, CALL_OUT);
  if (slot == NO_CALL) {
    endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->calls.table, slot);
  if ((call->flags & CALL_IS_CANCEL) != is_cancel || call_is_over(call->state)) {
    endpoint_count(ep, call_is_over(call->state) ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  if (outcome == ABP_TIMED_OUT) call->cause = ABP_TIMED_OUT;
  calls_step(&ep->calls, slot, outcome == ABP_COMPLETED ? EV_COMPLETE : EV_CANCELLED);
  return ABP_OK;
}

int abp_result_received(abp_endpoint *ep, const abp_id *id, abp_outcome outcome) {
  return answered(ep, id, 0, outcome);
}

int endpoint_cancel_result(abp_endpoint *ep, const abp_id *id, int cancelled) {
  /* A signal's cancel is acknowledged, too, but its call waits for the result, not for this. */
  const size_t length = strlen(ep->prefix);
  if (id->text && id->length > length + 1 && memcmp(id->text, ep->prefix, length) == 0 &&
      memcmp(id->text + length, ".c", 2) == 0)
    return ABP_OK;
  return answered(ep, id, CALL_IS_CANCEL, cancelled ? ABP_CANCELLED : ABP_COMPLETED);
}

int abp_unsent(abp_endpoint *ep, abp_call call) {
  return endpoint_enter(ep) == ABP_OK ? calls_unsent(&ep->calls, call) : ABP_E_UNDRAINED;
}

int abp_progress_received(abp_endpoint *ep, const abp_id *id) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = find(ep, id, CALL_OUT);
  const int over = slot != NO_CALL && call_is_over(table_call(&ep->calls.table, slot)->state);
  if (over || !(abp_features(ep) & ABP_PROGRESS)) {
    endpoint_count(ep, over ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  ep->outbox |= OUT_REPORT;
  ep->report = slot == NO_CALL ? 0 : calls_handle(&ep->calls, slot);
  return ABP_OK;
}

/* --- The callee ------------------------------------------------------------------------------- */

static void refuse_call(abp_endpoint *ep, abp_error error) {
  refuse(ep, error);
  endpoint_count(ep, ABP_REFUSED);
}

static abp_error add_received(abp_endpoint *ep, const abp_id *id, uint32_t flags, abp_error fault,
                              uint32_t *slot) {
  if (ep->session.state != ABP_SESSION_READY) return ABP_NOT_INITIALIZED;
  if (id && !id_ok(ep, id)) return ABP_INVALID_ID;
  const abp_id key = id ? canonical(ep, id, 0) : (abp_id){0};
  const int status = calls_receive(&ep->calls, id ? &key : NULL, flags, (int)fault, slot);
  switch (status) {
  case ABP_OK: return ABP_NO_ERROR;
  case ABP_E_DUPLICATE: return ABP_DUPLICATE_CALL;
  case ABP_E_LIMIT: return ABP_RATE_LIMITED;
  case ABP_E_MEMORY: return ABP_INTERNAL_ERROR;
  default: return fault;
  }
}

int abp_call_received(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                      abp_error fault) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->calls.now);
  uint32_t slot;
  const abp_error error =
      add_received(ep, id, flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0, fault, &slot);
  if (error) {
    refuse_call(ep, error);
    return ABP_OK;
  }
  calls_set_deadline(&ep->calls, slot, timeout_ms);
  calls_accept(&ep->calls, slot);
  return ABP_OK;
}

int abp_call_local(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms, abp_error fault) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t above, slot;
  if (!calls_adoptable(&ep->calls, parent, &above)) return ABP_E_STATE;
  const uint8_t depth = (uint8_t)(table_call(&ep->calls.table, above)->depth + 1);
  const abp_error error =
      depth > DEEPEST ? ABP_RATE_LIMITED : add_received(ep, NULL, CALL_LOCAL, fault, &slot);
  if (error) {
    refuse_call(ep, error);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->calls.table, slot);
  call->depth = depth;
  call->number = calls_mint(&ep->calls);
  table_adopt(&ep->calls.table, above, slot);
  calls_set_deadline(&ep->calls, slot, timeout_ms);
  calls_accept(&ep->calls, slot);
  return ABP_OK;
}

int abp_finish(abp_endpoint *ep, abp_call call, abp_outcome outcome) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = calls_live(&ep->calls, call);
  if (slot == NO_CALL || !call_has_handler(table_call(&ep->calls.table, slot)->state))
    return ABP_E_STATE;
  if (outcome == ABP_COMPLETED)
    calls_complete(&ep->calls, slot);
  else
    calls_step(&ep->calls, slot, EV_CANCELLED);
  return ABP_OK;
}

int abp_progress_wanted(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = calls_live(&ep->calls, call);
  if (slot == NO_CALL || !(abp_features(ep) & ABP_PROGRESS)) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  return c->state == RUNNING && c->flags & CALL_PROGRESS;
}

int endpoint_cancel(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length) {
  session_heard(&ep->session, ep->calls.now);
  ep->calls.reason = reason;
  ep->calls.reason_length = length;
  const int ready = ep->session.state == ABP_SESSION_READY;
  const uint32_t slot = ready && id_ok(ep, id) ? find(ep, id, 0) : NO_CALL;
  const uint32_t owed = slot == NO_CALL ? 0 : calls_step(&ep->calls, slot, EV_CANCEL);
  ep->answer = owed & OWE_ACK    ? ANSWER_CANCELLED
               : owed & OWE_NAK  ? ANSWER_COMPLETED
               : slot != NO_CALL ? ANSWER_NONE
               : !ready          ? ANSWER_NOT_INITIALIZED
               : id->text        ? ANSWER_NOT_FOUND
                                 : ANSWER_INVALID;
  if (ep->answer) ep->outbox |= 1u << ABP_MSG_CANCEL_RESULT;
  return ABP_OK;
}

int abp_cancel_received(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  endpoint_cancel(ep, id, reason, length);
  ep->outbox &= ~(1u << ABP_MSG_CANCEL_RESULT);
  return ABP_OK;
}
