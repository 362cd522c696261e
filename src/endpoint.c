/*
 * An endpoint: its errors, its ids as text, and its session. What happens to calls, which is most
 * of what happens, is endpoint_calls.c's.
 */
#include "abp_internal.h"

#include <stdlib.h>
#include <string.h>

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

/* --- Ids as text ------------------------------------------------------------------------------ */

const char *endpoint_prefix(const abp_endpoint *ep, uint32_t own, uint32_t *length) {
  *length = own ? ep->prefix_length : ep->session.id_length;
  return own ? ep->prefix : ep->session.id;
}

size_t abp_id_text(const abp_endpoint *ep, abp_call call, char *buffer, size_t size) {
  const uint32_t slot = calls_slot(&ep->calls, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  char digits[11];
  uint32_t length = c->id_length, digits_length = 0;
  const char *text = digits;
  if (c->number) {
    text = endpoint_prefix(ep, c->flags & (CALL_OUT | CALL_LOCAL), &length);
    char *first = print_number(digits + sizeof digits, c->number);
    *--first = '.';
    digits_length = (uint32_t)(digits + sizeof digits - first);
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
  ep->prefix_length = (uint32_t)(p + length - ep->prefix);
}

/* --- The session ------------------------------------------------------------------------------ */

void endpoint_refuse(abp_endpoint *ep, abp_error error) {
  ep->outbox |= OUT_REFUSE;
  ep->refuse = (uint8_t)error;
}

static void change_session(abp_endpoint *ep, enum session_event event) {
  struct session *session = &ep->session;
  const struct session_step taken = session_step(session->state, event);
  if (taken.refuse) endpoint_refuse(ep, (abp_error)taken.refuse);
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
    endpoint_refuse(ep, valid ? ABP_NOT_SUPPORTED : ABP_INVALID_ID);
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
