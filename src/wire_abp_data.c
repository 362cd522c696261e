/*
 * ABP's data plane as text: calls, results, chunks, progress, notifications, elicitations. Payloads
 * are located, but not read; a shim replaces them by numbers.
 */
#include "wire_abp.h"

#include "utf8.h"

#include <string.h>

static void set_payload(struct wire *wire, const json_value *value) {
  abp_wire_source(wire, value, &wire->body.payload, &wire->body.payload_length);
}

/* A member, unless it is null, which some languages write for absent members. */
static const json_value *given(const json_value *object, const char *name) {
  const json_value *member = abp_json_member(object, name);
  return abp_json_is_null(member) ? NULL : member;
}

static void set_name(struct wire *wire, const json_value *object, const char *member) {
  wire->body.name = abp_json_member_text(object, member);
  wire->body.name_length = wire->body.name ? strlen(wire->body.name) : 0;
}

/* The parts of a call or a question. Without a name it is rejected. */
static void set_request(struct wire *wire, const json_value *payload, int call) {
  abp_body *body = &wire->body;
  const json_value *options = call ? abp_json_member(payload, "options") : payload;
  set_name(wire, payload, call ? "capability" : "method");
  set_payload(wire, abp_json_member(payload, "params"));
  body->timeout_ms = abp_json_ms(abp_json_member(options, "timeout"));
  body->input = call ? abp_json_is_true(abp_json_member(options, "input"))
                     : abp_json_member(payload, "stream") != NULL;
  if (!call) return;
  const json_value *token = given(options, "progressToken");
  abp_wire_source(wire, abp_json_is_false(token) ? NULL : token, &body->token, &body->token_length);
  abp_wire_source(wire, given(options, "idempotencyKey"), &body->key, &body->key_length);
  abp_wire_source(wire, given(options, "repeats"), &body->repeats, &body->repeats_length);
}

static int take_request(abp_endpoint *ep, const json_value *payload, int call, const abp_id *id,
                        uint32_t flags, abp_error fault) {
  const abp_body *body = &ep->wire->body;
  const json_value *options = call ? abp_json_member(payload, "options") : payload;
  const struct window window = abp_wire_read_window(options);
  const json_value *named = given(options, "callId") ? options : payload;
  /* The call that this one repeats, or on whose behalf the question is asked. */
  const abp_id about = abp_wire_id_of(abp_json_member_text(options, call ? "repeats" : "callId"));
  abp_id key = *id;
  if (call && given(named, "callId")) key = abp_wire_id_of(abp_json_member_text(named, "callId"));
  return abp_endpoint_receive(
      ep, &key, body->timeout_ms,
      !call         ? 0
      : body->token ? flags | ABP_WANTS_PROGRESS
                    : flags,
      window.chunks, window.bytes,
      about.text && (call || !abp_json_member(options, "stream")) ? &about : NULL, fault);
}

static int read_notification(abp_endpoint *ep, const json_value *payload) {
  /* One client library sends `method` and `params` instead. */
  const json_value *data = given(payload, "data");
  set_name(ep->wire, payload, given(payload, "event") ? "event" : "method");
  set_payload(ep->wire, data ? data : abp_json_member(payload, "params"));
  return ep->wire->body.name ? abp_endpoint_notified(ep) : ABP_OK;
}

int abp_read(abp_endpoint *ep, const char *text, size_t length) {
  const int status = abp_wire_open(ep, text, length);
  if (status != ABP_OK) return status;
  ep->has_message = MESSAGE_READ;
  const int kind = abp_wire_kind(ep);
  if (kind != KIND_CALL && kind != KIND_QUESTION) return ABP_OK;
  set_request(ep->wire, abp_json_member(ep->wire->message, "payload"), kind == KIND_CALL);
  return 1;
}

static int take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  const json_value *message = ep->wire->message, *payload = abp_json_member(message, "payload");
  const int kind = abp_wire_kind(ep);
  abp_id id, call;
  abp_wire_id(ep->wire, abp_json_member(message, "id"), &id);
  abp_wire_id(ep->wire, abp_json_member(payload, kind == KIND_PROGRESS ? "operationId" : "callId"),
              &call);
  if (!fault && !ep->wire->body.name_length) fault = ABP_INVALID_PARAMS;
  switch (kind) {
  case KIND_CALL:
  case KIND_QUESTION: return take_request(ep, payload, kind == KIND_CALL, &id, flags, fault);
  case KIND_RESULT:
  case KIND_ANSWER: set_payload(ep->wire, payload); return abp_wire_take_response(ep, payload, &id);
  case KIND_NOTIFICATION: return read_notification(ep, payload);
  case KIND_PROGRESS: set_payload(ep->wire, payload); return abp_progress_received(ep, &call);
  case KIND_CHUNK:
    set_payload(ep->wire, abp_json_member(payload, "chunk"));
    return abp_chunk_received(ep, &call, abp_json_count(abp_json_member(payload, "size")));
  case KIND_CREDIT:
    return abp_credit_received(ep, &call, abp_json_count(abp_json_member(payload, "chunks")),
                               abp_json_count(abp_json_member(payload, "bytes")));
  default: return abp_wire_control(ep, kind, payload, &id);
  }
}

int abp_take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  if (ep->has_message != MESSAGE_READ) return ABP_E_STATE;
  const int status = take(ep, flags, fault);
  /* The input that the message became has cleared it. If memory was short, it can be tried again.
   */
  ep->has_message = status == ABP_E_MEMORY ? MESSAGE_READ : MESSAGE_TAKEN;
  return status;
}

int abp_receive(abp_endpoint *ep, const char *text, size_t length) {
  const int status = abp_read(ep, text, length);
  return status < 0 ? status : abp_take(ep, 0, ABP_NO_ERROR);
}

const abp_body *abp_received(const abp_endpoint *ep) {
  static const abp_body NOTHING;
  return ep->has_message ? &ep->wire->body : &NOTHING;
}

/* The agent's call on whose behalf a question is asked, or 0: the call of the question may be a
 * local one, made by a handler of this app that has ended since. */
static abp_call received_parent(const abp_endpoint *ep, uint32_t slot) {
  while (slot != NO_CALL && table_call(&ep->calls.table, slot)->flags & CALL_LOCAL)
    slot = table_call(&ep->calls.table, slot)->parent;
  return slot == NO_CALL ? 0 : abp_calls_handle(&ep->calls, slot);
}

static int print_request(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  const uint32_t slot = abp_calls_slot(&ep->calls, action->call);
  const struct call *call = table_call(&ep->calls.table, slot);
  const uint64_t timeout = call->timer ? call->deadline - ep->calls.now : 0;
  const int agent = ep->config.role == ABP_AGENT;
  abp_wire_begin(out);
  abp_json_add_string(out, agent ? "capability" : "method", body->name, body->name_length);
  abp_json_add_raw(out, "params", body->payload, body->payload_length);
  if (agent) {
    abp_json_open(out, "options");
    abp_wire_add_call_id(ep, "callId", action->call);
    abp_json_add_raw(out, "progressToken", body->token, body->token_length);
    if (!body->token && call->flags & CALL_PROGRESS)
      abp_wire_add_call_id(ep, "progressToken", action->call);
    if (body->input) abp_json_add_bool(out, "input", 1);
    abp_json_add_raw(out, "idempotencyKey", body->key, body->key_length);
    abp_json_add_raw(out, "repeats", body->repeats, body->repeats_length);
  }
  if (timeout) abp_json_add_number(out, "timeout", timeout);
  if (call->flags & CALL_QUESTION) {
    const abp_call about = received_parent(ep, call->parent);
    if (about) abp_wire_add_call_id(ep, "callId", about);
  }
  if (action->chunks) abp_wire_add_window(out, action->chunks, action->at);
  if (agent) {
    abp_json_close(out);
    abp_wire_add_call_id(ep, "callId", action->call);
  }
  abp_json_close(out);
  abp_wire_add_call_id(ep, "id", action->call);
  return agent ? KIND_CALL : KIND_QUESTION;
}

static int result_kind(const abp_endpoint *ep) {
  return ep->config.role == ABP_APP ? KIND_RESULT : KIND_ANSWER;
}

/* A response to a call, without success. */
static void print_failure(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                          const struct failure *failure) {
  struct json_text *out = &ep->wire->printed;
  abp_json_begin(out);
  abp_wire_add_reply_id(ep, body, action->call);
  abp_json_open(out, "payload");
  abp_wire_add_failure(out, failure);
  abp_json_close(out);
}

static int print_result(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  if (action->arg == ABP_COMPLETED) {
    abp_json_begin(out);
    abp_wire_add_reply_id(ep, body, action->call);
    abp_json_add_raw(out, "payload", body->payload, body->payload_length);
  } else {
    /* It is not known here whether the capability may run twice. */
    const abp_told told = {.repeatable = !abp_wire_tells_fate(ep, action) || !action->fate};
    const struct failure failure = abp_wire_failure_told(ep, action, &told, NULL);
    print_failure(ep, action, body, &failure);
  }
  return result_kind(ep);
}

static int print_flow(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  const int chunk = action->kind == ABP_CHUNK;
  abp_wire_begin(out);
  abp_wire_add_call_id(ep, "callId", action->call);
  if (!chunk) abp_json_add_number(out, "chunks", action->chunks);
  abp_json_add_number(out, chunk ? "size" : "bytes", action->at);
  if (chunk) abp_json_add_raw(out, "chunk", body->payload, body->payload_length);
  abp_json_close(out);
  return chunk ? KIND_CHUNK : KIND_CREDIT;
}

static int print_action(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  switch (action->kind) {
  case ABP_REQUEST: return print_request(ep, action, body);
  case ABP_CHUNK:
  case ABP_CREDIT: return print_flow(ep, action, body);
  default: return abp_wire_print_control(ep, action);
  }
}

const char *abp_wire_print(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                           uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  if (action->kind == ABP_REQUEST && abp_calls_slot(&ep->calls, action->call) == NO_CALL)
    return NULL;
  return abp_wire_finish(ep, print_action(ep, action, body), unix_ms, length);
}

const char *abp_print(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length) {
  if (action->kind != ABP_RESULT) return abp_wire_print(ep, action, body, unix_ms, length);
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  return abp_wire_finish(ep, print_result(ep, action, body), unix_ms, length);
}

const char *abp_print_error(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                            abp_error error, const char *message, uint64_t unix_ms,
                            size_t *length) {
  if (action->kind != ABP_RESULT || action->arg != ABP_COMPLETED)
    return abp_print(ep, action, body, unix_ms, length);
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  struct failure failure =
      abp_wire_failure(error, ep->config.role == ABP_APP ? ABP_FATE_FAILED : ABP_FATE_NONE);
  if (message && abp_utf8_valid(message, strlen(message)))
    failure.message = (struct json_slice){message, strlen(message)};
  print_failure(ep, action, body, &failure);
  return abp_wire_finish(ep, result_kind(ep), unix_ms, length);
}

const char *abp_print_progress_token(abp_endpoint *ep, abp_call call, const abp_body *body,
                                     uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  abp_wire_begin(out);
  abp_json_add_raw(out, "operationId", body->token, body->token_length);
  if (!body->token) abp_wire_add_call_id(ep, "operationId", call);
  if (body->payload_length && *body->payload == '{')
    abp_json_add_members(out, body->payload, body->payload_length);
  else
    abp_json_add_raw(out, "progress", body->payload, body->payload_length);
  abp_json_close(out);
  return abp_wire_finish(ep, KIND_PROGRESS, unix_ms, length);
}

const char *abp_print_progress(abp_endpoint *ep, abp_call call, const char *progress,
                               size_t progress_length, uint64_t unix_ms, size_t *length) {
  const abp_body body = {.payload = progress, .payload_length = progress_length};
  return abp_print_progress_token(ep, call, &body, unix_ms, length);
}

const char *abp_print_notification(abp_endpoint *ep, const abp_body *body, uint64_t unix_ms,
                                   size_t *length) {
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  abp_wire_begin(out);
  abp_json_add_string(out, "event", body->name, body->name_length);
  abp_json_add_raw(out, "data", body->payload, body->payload_length);
  abp_json_close(out);
  return abp_wire_finish(ep, KIND_NOTIFICATION, unix_ms, length);
}
