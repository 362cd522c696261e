/*
 * ABP's data plane as text: calls, results, chunks, progress, notifications, elicitations. The
 * payload itself is never looked into, only found; a shim puts a number in its place.
 */
#include "wire_abp.h"

#include "utf8.h"

#include <string.h>

static void set_payload(struct wire *wire, const json_value *value) {
  wire_source(wire, value, &wire->body.payload, &wire->body.payload_length);
}

/* A member, unless it is null, which some languages write for what is absent. */
static const json_value *given(const json_value *object, const char *name) {
  const json_value *member = json_member(object, name);
  return json_is_null(member) ? NULL : member;
}

static void set_name(struct wire *wire, const json_value *object, const char *member) {
  wire->body.name = json_member_text(object, member);
  wire->body.name_length = wire->body.name ? strlen(wire->body.name) : 0;
}

/* The parts of a call or a question. Without a name it is refused. */
static void set_request(struct wire *wire, const json_value *payload, int call) {
  abp_body *body = &wire->body;
  const json_value *options = call ? json_member(payload, "options") : payload;
  set_name(wire, payload, call ? "capability" : "method");
  set_payload(wire, json_member(payload, "params"));
  body->timeout_ms = json_ms(json_member(options, "timeout"));
  body->input =
      call ? json_is_true(json_member(options, "input")) : json_member(payload, "stream") != NULL;
  if (!call) return;
  const json_value *token = given(options, "progressToken");
  wire_source(wire, json_is_false(token) ? NULL : token, &body->token, &body->token_length);
  wire_source(wire, given(options, "idempotencyKey"), &body->key, &body->key_length);
  wire_source(wire, given(options, "repeats"), &body->repeats, &body->repeats_length);
}

static int take_request(abp_endpoint *ep, const json_value *payload, int call, const abp_id *id,
                        uint32_t flags, abp_error fault) {
  const abp_body *body = &ep->wire->body;
  const json_value *options = call ? json_member(payload, "options") : payload;
  const struct window window = wire_read_window(options);
  const json_value *named = given(options, "callId") ? options : payload;
  /* The call that this one repeats, or on behalf of which something is asked. */
  const abp_id about = wire_id_of(json_member_text(options, call ? "repeats" : "callId"));
  abp_id key = *id;
  if (call && given(named, "callId")) key = wire_id_of(json_member_text(named, "callId"));
  return endpoint_receive(ep, &key, body->timeout_ms,
                          !call         ? 0
                          : body->token ? flags | ABP_WANTS_PROGRESS
                                        : flags,
                          window.chunks, window.bytes,
                          about.text && (call || !json_member(options, "stream")) ? &about : NULL,
                          fault);
}

static int read_notification(abp_endpoint *ep, const json_value *payload) {
  /* One client library says `method` and `params` instead. */
  const json_value *data = given(payload, "data");
  set_name(ep->wire, payload, given(payload, "event") ? "event" : "method");
  set_payload(ep->wire, data ? data : json_member(payload, "params"));
  return ep->wire->body.name ? endpoint_notified(ep) : ABP_OK;
}

int abp_read(abp_endpoint *ep, const char *text, size_t length) {
  const int status = wire_open(ep, text, length);
  if (status != ABP_OK) return status;
  ep->has_message = MESSAGE_READ;
  const int kind = wire_kind(ep);
  if (kind != KIND_CALL && kind != KIND_QUESTION) return ABP_OK;
  set_request(ep->wire, json_member(ep->wire->message, "payload"), kind == KIND_CALL);
  return 1;
}

static int take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  const json_value *message = ep->wire->message, *payload = json_member(message, "payload");
  const int kind = wire_kind(ep);
  abp_id id, call;
  wire_id(ep->wire, json_member(message, "id"), &id);
  wire_id(ep->wire, json_member(payload, kind == KIND_PROGRESS ? "operationId" : "callId"), &call);
  if (!fault && !ep->wire->body.name_length) fault = ABP_INVALID_PARAMS;
  switch (kind) {
  case KIND_CALL:
  case KIND_QUESTION: return take_request(ep, payload, kind == KIND_CALL, &id, flags, fault);
  case KIND_RESULT:
  case KIND_ANSWER: set_payload(ep->wire, payload); return wire_take_response(ep, payload, &id);
  case KIND_NOTIFICATION: return read_notification(ep, payload);
  case KIND_PROGRESS: set_payload(ep->wire, payload); return abp_progress_received(ep, &call);
  case KIND_CHUNK:
    set_payload(ep->wire, json_member(payload, "chunk"));
    return abp_chunk_received(ep, &call, json_count(json_member(payload, "size")));
  case KIND_CREDIT:
    return abp_credit_received(ep, &call, json_count(json_member(payload, "chunks")),
                               json_count(json_member(payload, "bytes")));
  default: return wire_control(ep, kind, payload, &id);
  }
}

int abp_take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  if (ep->has_message != MESSAGE_READ) return ABP_E_STATE;
  const int status = take(ep, flags, fault);
  /* The input that the message became has cleared it. Where memory was short, it can be tried
   * again. */
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

/* The call of the agent's on behalf of which something is asked, or 0: a handler of this app may
 * have called the one that the question is from, and have ended. */
static abp_call received_parent(const abp_endpoint *ep, uint32_t slot) {
  while (slot != NO_CALL && table_call(&ep->calls.table, slot)->flags & CALL_LOCAL)
    slot = table_call(&ep->calls.table, slot)->parent;
  return slot == NO_CALL ? 0 : calls_handle(&ep->calls, slot);
}

static int print_request(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  const uint32_t slot = calls_slot(&ep->calls, action->call);
  const struct call *call = table_call(&ep->calls.table, slot);
  const uint64_t timeout = call->timer ? call->deadline - ep->calls.now : 0;
  const int agent = ep->config.role == ABP_AGENT;
  wire_begin(out);
  json_add_string(out, agent ? "capability" : "method", body->name, body->name_length);
  json_add_raw(out, "params", body->payload, body->payload_length);
  if (agent) {
    json_open(out, "options");
    wire_add_call_id(ep, "callId", action->call);
    json_add_raw(out, "progressToken", body->token, body->token_length);
    if (!body->token && call->flags & CALL_PROGRESS)
      wire_add_call_id(ep, "progressToken", action->call);
    if (body->input) json_add_bool(out, "input", 1);
    json_add_raw(out, "idempotencyKey", body->key, body->key_length);
    json_add_raw(out, "repeats", body->repeats, body->repeats_length);
  }
  if (timeout) json_add_number(out, "timeout", timeout);
  if (call->flags & CALL_QUESTION) {
    const abp_call about = received_parent(ep, call->parent);
    if (about) wire_add_call_id(ep, "callId", about);
  }
  if (action->chunks) wire_add_window(out, action->chunks, action->at);
  if (agent) {
    json_close(out);
    wire_add_call_id(ep, "callId", action->call);
  }
  json_close(out);
  wire_add_call_id(ep, "id", action->call);
  return agent ? KIND_CALL : KIND_QUESTION;
}

static int result_kind(const abp_endpoint *ep) {
  return ep->config.role == ABP_APP ? KIND_RESULT : KIND_ANSWER;
}

/* A response without success, to a call. */
static void print_failure(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                          const struct failure *failure) {
  struct json_text *out = &ep->wire->printed;
  json_begin(out);
  wire_add_reply_id(ep, body, action->call);
  json_open(out, "payload");
  wire_add_failure(out, failure);
  json_close(out);
}

static int print_result(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  if (action->arg == ABP_COMPLETED) {
    json_begin(out);
    wire_add_reply_id(ep, body, action->call);
    json_add_raw(out, "payload", body->payload, body->payload_length);
  } else {
    /* Whether a capability may run twice is not known here. */
    const abp_told told = {.repeatable = !wire_tells_fate(ep, action) || !action->fate};
    const struct failure failure = wire_failure_told(ep, action, &told, NULL);
    print_failure(ep, action, body, &failure);
  }
  return result_kind(ep);
}

static int print_flow(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  struct json_text *out = &ep->wire->printed;
  const int chunk = action->kind == ABP_CHUNK;
  wire_begin(out);
  wire_add_call_id(ep, "callId", action->call);
  if (!chunk) json_add_number(out, "chunks", action->chunks);
  json_add_number(out, chunk ? "size" : "bytes", action->at);
  if (chunk) json_add_raw(out, "chunk", body->payload, body->payload_length);
  json_close(out);
  return chunk ? KIND_CHUNK : KIND_CREDIT;
}

static int print_action(const abp_endpoint *ep, const abp_action *action, const abp_body *body) {
  switch (action->kind) {
  case ABP_REQUEST: return print_request(ep, action, body);
  case ABP_RESULT: return print_result(ep, action, body);
  case ABP_CHUNK:
  case ABP_CREDIT: return print_flow(ep, action, body);
  default: return wire_print_control(ep, action);
  }
}

const char *abp_print(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  if (action->kind == ABP_REQUEST && calls_slot(&ep->calls, action->call) == NO_CALL) return NULL;
  return wire_finish(ep, print_action(ep, action, body), unix_ms, length);
}

const char *abp_print_error(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                            abp_error error, const char *message, uint64_t unix_ms,
                            size_t *length) {
  if (action->kind != ABP_RESULT || action->arg != ABP_COMPLETED)
    return abp_print(ep, action, body, unix_ms, length);
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct failure failure =
      wire_failure(error, ep->config.role == ABP_APP ? ABP_FATE_FAILED : ABP_FATE_NONE);
  if (message && utf8_valid(message, strlen(message)))
    failure.message = (struct json_slice){message, strlen(message)};
  print_failure(ep, action, body, &failure);
  return wire_finish(ep, result_kind(ep), unix_ms, length);
}

const char *abp_print_progress_token(abp_endpoint *ep, abp_call call, const abp_body *body,
                                     uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  wire_begin(out);
  json_add_raw(out, "operationId", body->token, body->token_length);
  if (!body->token) wire_add_call_id(ep, "operationId", call);
  if (body->payload_length && *body->payload == '{')
    json_add_members(out, body->payload, body->payload_length);
  else
    json_add_raw(out, "progress", body->payload, body->payload_length);
  json_close(out);
  return wire_finish(ep, KIND_PROGRESS, unix_ms, length);
}

const char *abp_print_progress(abp_endpoint *ep, abp_call call, const char *progress,
                               size_t progress_length, uint64_t unix_ms, size_t *length) {
  const abp_body body = {.payload = progress, .payload_length = progress_length};
  return abp_print_progress_token(ep, call, &body, unix_ms, length);
}

const char *abp_print_notification(abp_endpoint *ep, const abp_body *body, uint64_t unix_ms,
                                   size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  wire_begin(out);
  json_add_string(out, "event", body->name, body->name_length);
  json_add_raw(out, "data", body->payload, body->payload_length);
  json_close(out);
  return wire_finish(ep, KIND_NOTIFICATION, unix_ms, length);
}
