/*
 * The common part of an endpoint's inputs: their beginning, errors, memory, ids as text.
 * endpoint_calls.c, endpoint_cancels.c and endpoint_streams.c have the inputs about calls,
 * endpoint_session.c those about the session, and endpoint_actions.c the actions.
 */
#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

/* For each abp_error its name, then its message. */
static const char ERRORS[] =
    "\0\0"
    "NOT_INITIALIZED\0There is no session: begin one, or wait\0"
    "ALREADY_INITIALIZED\0There is a session already: end it with shutdown first\0"
    "UNKNOWN_CAPABILITY\0This app has no such capability\0"
    "CAPABILITY_UNAVAILABLE\0This capability is not available now\0"
    "REQUIREMENT_NOT_MET\0A requirement of this capability is not met\0"
    "INVALID_PARAMS\0The parameters do not have the expected form\0"
    "INVALID_PARAMS\0A call with this callId is in flight: choose another\0"
    "INVALID_PARAMS\0The callId is empty, too long, not a string or not well-formed\0"
    "RATE_LIMITED\0Too many calls are in flight: retry later\0"
    "NOT_SUPPORTED\0The other side does not support this\0"
    "OPERATION_FAILED\0The operation failed\0"
    "CANCELLED\0The operation was cancelled\0"
    "TIMEOUT\0The operation took longer than its timeout\0"
    "DISCONNECTED\0The connection ended: begin another\0"
    "INTERNAL_ERROR\0The bridge failed\0"
    "PERMISSION_DENIED\0This is not allowed here\0"
    "PARSE_ERROR\0A frame could not be read\0"
    "SESSION_EXPIRED\0The connection ended: begin another\0"
    "SESSION_INVALID\0The connection ended: begin another";
_Static_assert(ABP_DUPLICATE_CALL == 7 && ABP_SESSION_INVALID == 19 && ABP_ERROR_COUNT == 20,
               "each error has its texts");

/* Errors after which the same request may succeed later. */
#define RETRYABLE                                                                                  \
  (1 << ABP_NOT_INITIALIZED | 1 << ABP_CAPABILITY_UNAVAILABLE | 1 << ABP_REQUIREMENT_NOT_MET |     \
   1 << ABP_RATE_LIMITED | 1 << ABP_TIMEOUT_ERROR | 1 << ABP_DISCONNECTED_ERROR |                  \
   1 << ABP_INTERNAL_ERROR | 1 << ABP_PARSE_ERROR | 1 << ABP_SESSION_EXPIRED |                     \
   1 << ABP_SESSION_INVALID)

static const char *error_text(int error, uint32_t which) {
  return nth_text(ERRORS, error > 0 && error < ABP_ERROR_COUNT ? 2 * (uint32_t)error + which : 0);
}
const char *abp_error_name(int error) { return error_text(error, 0); }
const char *abp_error_message(int error) { return error_text(error, 1); }

abp_error abp_error_of(const char *name, size_t length) {
  const char *each = nth_text(ERRORS, 2);
  for (uint32_t error = 1; error < ABP_ERROR_COUNT; error++, each = nth_text(each, 2)) {
    if (length == strlen(each) && memcmp(name, each, length) == 0) return (abp_error)error;
  }
  return ABP_NO_ERROR;
}
int abp_error_retryable(int error) {
  return error > 0 && error < ABP_ERROR_COUNT ? RETRYABLE >> error & 1 : 0;
}

COLD abp_error abp_status_error(const abp_endpoint *ep, int status, int parent) {
  switch (status) {
  case ABP_E_LIMIT: return ABP_RATE_LIMITED;
  case ABP_E_ID: return ABP_INVALID_ID;
  case ABP_E_DUPLICATE: return ABP_DUPLICATE_CALL;
  case ABP_E_STATE:
    return parent                                  ? ABP_CANCELLED_ERROR
           : ep->session.state == ABP_SESSION_LOST ? ABP_DISCONNECTED_ERROR
                                                   : ABP_NOT_INITIALIZED;
  default: return ABP_INTERNAL_ERROR;
  }
}

/* wasm/generate-boundary.mjs derives these names from the enumerators, too. */
const char *abp_fate_name(int fate) {
  static const char NAMES[] = "\0unstarted\0stopped\0finished\0running\0unknown\0failed";
  return nth_text(NAMES, fate > 0 && fate <= ABP_FATE_FAILED ? (uint32_t)fate : 0);
}

/* --- Endpoint --------------------------------------------------------------------------------- */

abp_endpoint *abp_new(const abp_config *config, uint64_t now) {
  abp_endpoint *ep = calloc(1, sizeof *ep);
  if (!ep) return NULL;
  ep->config = *config;
  set_default(&ep->config.max_id, ABP_DEFAULT_MAX_ID);
  if (ep->config.max_id > UINT16_MAX) ep->config.max_id = UINT16_MAX;
  set_default(&ep->config.max_text, ABP_DEFAULT_MAX_TEXT);
  set_default(&ep->config.heartbeat_ms, ABP_DEFAULT_HEARTBEAT_MS);
  set_default(&ep->config.probe_ms, ABP_DEFAULT_PROBE_MS);
  set_default(&ep->config.stream_chunks, ABP_DEFAULT_STREAM_CHUNKS);
  set_default(&ep->config.stream_bytes, ABP_DEFAULT_STREAM_BYTES);
  set_default(&ep->config.grace_ms,
              config->role == ABP_APP ? ABP_DEFAULT_APP_GRACE_MS : ABP_DEFAULT_AGENT_GRACE_MS);
  const struct call_limits limits = {config->max_calls, config->max_concurrent, config->remembered,
                                     config->remember_ms, ep->config.grace_ms};
  abp_calls_init(&ep->calls, &limits, config->seed, now);
  calls_number_from(&ep->calls, config->first_number);
  ep->calls.timeout_reason = "Timeout"; /* the same reason as from the agent's own clock */
  ep->calls.handler_decides = config->foreign != 0;
  ep->session.wanted = config->features;
  return ep;
}

void abp_free(abp_endpoint *ep) {
  if (!ep) return;
  if (ep->free_wire) ep->free_wire(ep->wire);
  abp_endpoint_free_cancels(ep);
  abp_table_free(&ep->calls.table);
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

void abp_endpoint_refuse(abp_endpoint *ep, abp_error error) {
  ep->outbox |= OUT_REFUSE;
  ep->refuse = (uint8_t)error;
}

void abp_endpoint_count(abp_endpoint *ep, abp_counter counter) { ep->counts[counter]++; }

uint32_t abp_count(const abp_endpoint *ep, abp_counter counter) {
  return abp_calls_count(&ep->calls, ep->counts, counter);
}

uint32_t abp_features(const abp_endpoint *ep) {
  return ep->session.state == ABP_SESSION_READY ? ep->session.agreed : 0;
}

abp_session abp_session_state(const abp_endpoint *ep) { return ep->session.state; }

/* --- Inputs ----------------------------------------------------------------------------------- */

int abp_endpoint_undrained(const abp_endpoint *ep) {
  return ep->calls.debts != NO_CALL || ep->due || ep->outbox ||
         abp_calls_wake_owed(&ep->calls, ep->session.due);
}

/* Begins every input. */
ONE_COPY int abp_endpoint_enter(abp_endpoint *ep) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  ep->calls.reason = NULL;
  ep->calls.reason_length = 0;
  ep->has_message = 0;
  if (ep->answered) abp_endpoint_forget_answered(ep);
  return ABP_OK;
}

/* --- Ids as text ------------------------------------------------------------------------------ */

const char *abp_endpoint_prefix(const abp_endpoint *ep, uint32_t own, uint32_t *length) {
  *length = own ? ep->prefix_length : ep->session.id_length;
  return own ? ep->prefix : ep->session.id;
}

/* The only place that reads "P.n" as the number n. Only the canonical decimal form counts, so that
 * no two texts are the same id. */
static abp_id number_in(const abp_endpoint *ep, const abp_id *id, uint32_t own) {
  uint32_t skip;
  const char *prefix = abp_endpoint_prefix(ep, own, &skip);
  if (!skip || id->length < skip + 2 || id->length > skip + 11) return *id;
  if (id->text[skip] != '.' || memcmp(id->text, prefix, skip) != 0) return *id;
  uint64_t number = 0;
  for (uint32_t i = skip + 1; i < id->length; i++) {
    const char digit = id->text[i];
    if (digit < '0' || digit > '9' || (digit == '0' && number == 0)) return *id;
    number = number * 10 + (uint64_t)(digit - '0');
  }
  return number > UINT32_MAX ? *id : (abp_id){NULL, 0, (uint32_t)number};
}

abp_id abp_endpoint_canonical(const abp_endpoint *ep, const abp_id *id, uint32_t own) {
  return id->text ? number_in(ep, id, own) : *id;
}

uint32_t abp_endpoint_find(abp_endpoint *ep, const abp_id *id, uint32_t direction) {
  const abp_id key = abp_endpoint_canonical(ep, id, direction);
  return abp_calls_find(&ep->calls, &key, direction);
}

size_t abp_id_text(const abp_endpoint *ep, abp_call call, char *buffer, size_t size) {
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&ep->calls.table, slot);
  char digits[11];
  uint32_t length = c->id_length, digits_length = 0;
  const char *text = digits;
  if (c->number) {
    text = abp_endpoint_prefix(ep, c->flags & (CALL_OUT | CALL_LOCAL), &length);
    char *first = print_number(digits + sizeof digits, c->number);
    *--first = '.';
    digits_length = (uint32_t)(digits + sizeof digits - first);
    if (length + digits_length <= size) memcpy(buffer + length, first, digits_length);
  } else if (length) {
    text = abp_table_id(&ep->calls.table, slot);
  }
  if (length + digits_length <= size) memcpy(buffer, text, length);
  return length + digits_length;
}

COLD void abp_endpoint_age(abp_endpoint *ep) {
  struct call_table *table = &ep->calls.table;
  const uint32_t slots = table->slab_count * SLAB_CALLS;
  for (uint32_t slot = 0; slot < slots; slot++) {
    const struct call *call = table_call(table, slot);
    if (call->state == FREE || call->flags & (CALL_OUT | CALL_LOCAL | CALL_PAST)) continue;
    const abp_call handle = abp_calls_handle(&ep->calls, slot);
    const size_t length = abp_id_text(ep, handle, NULL, 0);
    char *text = malloc(length);
    if (!text) continue; /* the call is forgotten */
    abp_id_text(ep, handle, text, length);
    abp_table_age(table, slot, &(const abp_id){text, (uint32_t)length, 0});
    free(text);
  }
}

uint32_t abp_number(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  return slot == NO_CALL ? 0 : table_call(&ep->calls.table, slot)->number;
}
