/*
 * ABP's data plane as text: calls, results, chunks, progress, notifications, elicitations. For
 * native users, who have both planes as JSON; the payload itself is never parsed, only found.
 */
#include "wire_abp.h"

#include "utf8.h"

#include <string.h>

static void set_payload(struct wire *wire, const json_value *value) {
  const struct json_slice json = wire_source(wire, value);
  wire->body.payload = json.text;
  wire->body.payload_length = json.length;
}

/* A member, unless it is null, which some languages write for what is absent. */
static const json_value *given(const json_value *object, const char *name) {
  const json_value *member = json_member(object, name);
  return json_is_null(member) ? NULL : member;
}

static struct json_slice set_name(struct wire *wire, const json_value *value) {
  const struct json_slice name = json_string(value);
  wire->body.name = name.text;
  wire->body.name_length = name.length;
  return name;
}

/* What a caller says of a window; 0 for anything but a whole number. */
static uint32_t window_of(const json_value *stream, const char *name) {
  const uint64_t count = json_count(json_member(stream, name));
  return count == UINT64_MAX ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static int read_call(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  struct wire *wire = ep->wire;
  const json_value *options = json_member(payload, "options");
  const json_value *call = given(options, "callId");
  if (!call) call = given(payload, "callId");
  const struct json_slice text = json_string(call);
  const abp_id key = call ? (abp_id){text.text, (uint32_t)text.length, 0} : *id;
  const struct json_slice name = set_name(wire, json_member(payload, "capability"));
  set_payload(wire, json_member(payload, "params"));
  const struct json_slice token = wire_source(wire, given(options, "progressToken"));
  wire->body.token = token.text;
  wire->body.token_length = token.length;
  const json_value *stream = json_member(options, "stream");
  const struct json_slice repeats = json_string(json_member(options, "repeats"));
  const abp_id earlier = {repeats.text, (uint32_t)repeats.length, 0};
  return endpoint_receive(ep, &key, json_ms(json_member(options, "timeout")),
                          token.text ? ABP_WANTS_PROGRESS : 0, window_of(stream, "chunks"),
                          window_of(stream, "bytes"), repeats.text ? &earlier : NULL,
                          name.length ? ABP_NO_ERROR : ABP_INVALID_PARAMS);
}

static int read_chunk(abp_endpoint *ep, const json_value *payload) {
  const abp_id call = wire_id(ep->wire, json_member(payload, "callId"));
  set_payload(ep->wire, json_member(payload, "chunk"));
  return abp_chunk_received(ep, &call, json_count(json_member(payload, "size")));
}

static int read_credit(abp_endpoint *ep, const json_value *payload) {
  const abp_id call = wire_id(ep->wire, json_member(payload, "callId"));
  return abp_credit_received(ep, &call, json_count(json_member(payload, "chunks")),
                             json_count(json_member(payload, "bytes")));
}

static int read_elicitation(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  struct wire *wire = ep->wire;
  const struct json_slice name = set_name(wire, json_member(payload, "method"));
  set_payload(wire, json_member(payload, "params"));
  const json_value *stream = json_member(payload, "stream");
  const uint32_t timeout_ms = json_ms(json_member(payload, "timeout"));
  const abp_error fault = name.length ? ABP_NO_ERROR : ABP_INVALID_PARAMS;
  const struct json_slice call = json_string(json_member(payload, "callId"));
  const abp_id about = {call.text, (uint32_t)call.length, 0};
  if (!stream) return abp_question_received(ep, id, timeout_ms, &about, fault);
  return abp_stream_received(ep, id, timeout_ms, 0, window_of(stream, "chunks"),
                             window_of(stream, "bytes"), fault);
}

/* What a result says of its work; ABP_FATE_NONE if it says nothing, or what is not known here. */
static abp_fate read_fate(const json_value *payload) {
  const struct json_slice word =
      json_string(json_member(json_member(payload, "metadata"), "outcome"));
  int fate = word.text ? ABP_FATE_FAILED : ABP_FATE_NONE;
  while (fate && strcmp(word.text, abp_fate_name(fate)) != 0)
    fate--;
  return (abp_fate)fate;
}

static int read_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  const struct json_slice code = wire_error_code(payload);
  set_payload(ep->wire, payload);
  const int cancelled = json_is_true(json_member(payload, "cancelled"));
  const abp_fate fate = read_fate(payload);
  if (cancelled && code.text && strcmp(code.text, abp_error_name(ABP_TIMEOUT_ERROR)) == 0)
    return abp_result_with_fate(ep, id, ABP_TIMED_OUT, fate);
  if (cancelled || (code.text && strcmp(code.text, abp_error_name(ABP_CANCELLED_ERROR)) == 0))
    return abp_result_with_fate(ep, id, ABP_CANCELLED, fate);
  if (json_is_true(json_member(payload, "success")))
    return abp_result_received(ep, id, ABP_COMPLETED);
  const int status = abp_result_with_fate(ep, id, ABP_FAILED, fate);
  if (status == ABP_OK) endpoint_refused(ep, code.text, code.length);
  return status;
}

static int read_progress(abp_endpoint *ep, const json_value *payload) {
  const abp_id operation = wire_id(ep->wire, json_member(payload, "operationId"));
  set_payload(ep->wire, payload);
  return abp_progress_received(ep, &operation);
}

static int read_notification(struct wire *wire, const json_value *payload) {
  /* One client library says `method` and `params` instead. */
  const json_value *event = json_member(payload, "event"), *data = json_member(payload, "data");
  set_name(wire, event ? event : json_member(payload, "method"));
  set_payload(wire, data ? data : json_member(payload, "params"));
  return ABP_OK;
}

enum { CALL, RESULT, NOTIFICATION, PROGRESS, ELICITATION, CHUNK, CREDIT };

static const struct message_type TYPES[] = {
    {"capabilities/call", TO_APP, CALL},
    {"capabilities/call-result", TO_AGENT, RESULT},
    {"call-result", TO_AGENT, RESULT},
    {"notification", TO_AGENT, NOTIFICATION},
    {"progress", TO_AGENT, PROGRESS},
    {"elicitation/request", TO_AGENT, ELICITATION},
    {"elicitation/response", TO_APP, RESULT},
    {"bridge/chunk", TO_APP | TO_AGENT, CHUNK},
    {"bridge/credit", TO_APP | TO_AGENT, CREDIT},
};

static int read_message(abp_endpoint *ep) {
  const json_value *message = ep->wire->message, *payload = json_member(message, "payload");
  const abp_id id = wire_id(ep->wire, json_member(message, "id"));
  switch (wire_kind(ep, TYPES, sizeof TYPES / sizeof *TYPES)) {
  case CALL: return read_call(ep, payload, &id);
  case RESULT: return read_result(ep, payload, &id);
  case NOTIFICATION: return read_notification(ep->wire, payload);
  case PROGRESS: return read_progress(ep, payload);
  case ELICITATION: return read_elicitation(ep, payload, &id);
  case CHUNK: return read_chunk(ep, payload);
  case CREDIT: return read_credit(ep, payload);
  default: return wire_control(ep);
  }
}

int abp_receive(abp_endpoint *ep, const char *text, size_t length) {
  int status = wire_open(ep, text, length);
  if (status != ABP_OK) return status;
  status = read_message(ep);
  ep->has_message = 1; /* the input that the message became has cleared it */
  return status;
}

const abp_body *abp_received(const abp_endpoint *ep) {
  static const abp_body NOTHING;
  return ep->has_message ? &ep->wire->body : &NOTHING;
}

static void add_payload(struct json_text *out, const char *name, const abp_body *body) {
  if (body->payload) json_add_raw(out, name, body->payload, body->payload_length);
}

/* The call of the agent's on behalf of which something is asked, or 0: a handler of this app may
 * have called the one that asks, and have ended. */
static abp_call received_above(const abp_endpoint *ep, uint32_t slot) {
  while (slot != NO_CALL && table_call(&ep->calls.table, slot)->flags & CALL_LOCAL)
    slot = table_call(&ep->calls.table, slot)->parent;
  return slot == NO_CALL ? 0 : calls_handle(&ep->calls, slot);
}

static void print_request(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                          struct json_text *out) {
  const struct call *call = table_call(&ep->calls.table, calls_slot(&ep->calls, action->call));
  const uint64_t timeout = call->timer ? call->deadline - ep->calls.now : 0;
  const int agent = ep->config.role == ABP_AGENT;
  wire_begin(out);
  json_add_string(out, agent ? "capability" : "method", body->name, body->name_length);
  add_payload(out, "params", body);
  if (agent) {
    json_open(out, "options");
    wire_add_call_id(ep, "callId", action->call);
    if (call->flags & CALL_PROGRESS) wire_add_call_id(ep, "progressToken", action->call);
  }
  if (timeout) json_add_number(out, "timeout", timeout);
  if (call->flags & CALL_ASKS) {
    const abp_call about = received_above(ep, call->parent);
    if (about) wire_add_call_id(ep, "callId", about);
  }
  if (action->chunks) {
    json_open(out, "stream");
    json_add_number(out, "chunks", action->chunks);
    json_add_number(out, "bytes", action->at);
    json_close(out);
  }
  if (agent) {
    json_close(out);
    wire_add_call_id(ep, "callId", action->call);
  }
  json_close(out);
  wire_add_call_id(ep, "id", action->call);
}

static const char *result_type(const abp_endpoint *ep) {
  return ep->config.role == ABP_APP ? "capabilities/call-result" : "elicitation/response";
}

static void print_failure(struct json_text *out, int cancelled, abp_fate fate, abp_error error,
                          const char *message) {
  json_open(out, "payload");
  json_add_bool(out, "success", 0);
  if (cancelled) json_add_bool(out, "cancelled", 1);
  /* Whether a capability may run twice is not known here. */
  wire_add_error(out, error, message, !cancelled || !fate || fate == ABP_FATE_UNSTARTED);
  wire_add_fate(out, fate);
  json_close(out);
}

/* Only of calls: a question has no effects that anybody asks for. */
static abp_fate fate_of(const abp_endpoint *ep, const abp_action *action) {
  return ep->config.role == ABP_APP ? action->fate : ABP_FATE_NONE;
}

static void print_result(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                         struct json_text *out) {
  json_begin(out);
  wire_add_reply_id(ep, body, action->call);
  if (action->arg == ABP_COMPLETED)
    json_add_raw(out, "payload", body->payload, body->payload_length);
  else
    print_failure(out, 1, fate_of(ep, action),
                  action->arg == ABP_TIMED_OUT ? ABP_TIMEOUT_ERROR : ABP_CANCELLED_ERROR, NULL);
}

static void print_flow(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                       struct json_text *out) {
  wire_begin(out);
  wire_add_call_id(ep, "callId", action->call);
  if (action->kind == ABP_CHUNK) {
    json_add_number(out, "size", action->at);
    json_add_raw(out, "chunk", body->payload, body->payload_length);
  } else {
    json_add_number(out, "chunks", action->chunks);
    json_add_number(out, "bytes", action->at);
  }
  json_close(out);
}

const char *abp_print(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length) {
  if (action->kind != ABP_REQUEST && action->kind != ABP_RESULT && action->kind != ABP_CHUNK &&
      action->kind != ABP_CREDIT)
    return wire_print_control(ep, action, unix_ms, length);
  *length = 0;
  if (!wire_of(ep)) return NULL;
  const int app = ep->config.role == ABP_APP;
  const char *type;
  if (action->kind == ABP_RESULT) {
    print_result(ep, action, body, &ep->wire->printed);
    type = result_type(ep);
  } else if (action->kind == ABP_REQUEST) {
    print_request(ep, action, body, &ep->wire->printed);
    type = app ? "elicitation/request" : "capabilities/call";
  } else {
    print_flow(ep, action, body, &ep->wire->printed);
    type = action->kind == ABP_CHUNK ? "bridge/chunk" : "bridge/credit";
  }
  return wire_finish(ep, type, unix_ms, length);
}

const char *abp_print_error(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                            abp_error error, const char *message, uint64_t unix_ms,
                            size_t *length) {
  if (action->kind != ABP_RESULT || action->arg != ABP_COMPLETED)
    return abp_print(ep, action, body, unix_ms, length);
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  json_begin(out);
  wire_add_reply_id(ep, body, action->call);
  print_failure(out, 0, ep->config.role == ABP_APP ? ABP_FATE_FAILED : ABP_FATE_NONE, error,
                message && utf8_valid(message, strlen(message)) ? message : NULL);
  return wire_finish(ep, result_type(ep), unix_ms, length);
}

const char *abp_print_progress_token(abp_endpoint *ep, abp_call call, const abp_body *body,
                                     uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  wire_begin(out);
  if (body->token)
    json_add_raw(out, "operationId", body->token, body->token_length);
  else
    wire_add_call_id(ep, "operationId", call);
  if (body->payload_length && *body->payload == '{')
    json_add_members(out, body->payload, body->payload_length);
  else
    json_add_raw(out, "progress", body->payload, body->payload_length);
  json_close(out);
  return wire_finish(ep, "progress", unix_ms, length);
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
  add_payload(out, "data", body);
  json_close(out);
  return wire_finish(ep, "notification", unix_ms, length);
}
