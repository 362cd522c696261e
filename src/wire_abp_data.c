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

/* What calls and questions have in common. Without a name they are refused. */
static void set_asked(struct wire *wire, const json_value *name, const json_value *params) {
  set_name(wire, name);
  set_payload(wire, params);
}

static void set_call(struct wire *wire, const json_value *payload) {
  const json_value *options = json_member(payload, "options");
  set_asked(wire, json_member(payload, "capability"), json_member(payload, "params"));
  const json_value *wanted = given(options, "progressToken");
  const struct json_slice token = wire_source(wire, json_is_false(wanted) ? NULL : wanted),
                          key = wire_source(wire, given(options, "idempotencyKey")),
                          repeats = wire_source(wire, given(options, "repeats"));
  wire->body.token = token.text;
  wire->body.token_length = token.length;
  wire->body.key = key.text;
  wire->body.key_length = key.length;
  wire->body.repeats = repeats.text;
  wire->body.repeats_length = repeats.length;
  wire->body.timeout_ms = json_ms(json_member(options, "timeout"));
  wire->body.input = json_is_true(json_member(options, "input"));
}

static void set_question(struct wire *wire, const json_value *payload) {
  set_asked(wire, json_member(payload, "method"), json_member(payload, "params"));
  wire->body.timeout_ms = json_ms(json_member(payload, "timeout"));
  wire->body.input = json_member(payload, "stream") != NULL;
}

static int take_call(abp_endpoint *ep, const json_value *payload, const abp_id *id, uint32_t flags,
                     abp_error fault) {
  const json_value *options = json_member(payload, "options");
  const json_value *call = given(options, "callId");
  if (!call) call = given(payload, "callId");
  const struct json_slice text = json_string(call);
  const abp_id key = call ? (abp_id){text.text, (uint32_t)text.length, 0} : *id;
  const json_value *stream = json_member(options, "stream");
  const struct json_slice repeats = json_string(json_member(options, "repeats"));
  const abp_id earlier = {repeats.text, (uint32_t)repeats.length, 0};
  return endpoint_receive(ep, &key, ep->wire->body.timeout_ms,
                          flags | (ep->wire->body.token ? ABP_WANTS_PROGRESS : 0u),
                          window_of(stream, "chunks"), window_of(stream, "bytes"),
                          repeats.text ? &earlier : NULL, fault);
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

static int take_question(abp_endpoint *ep, const json_value *payload, const abp_id *id,
                         abp_error fault) {
  const json_value *stream = json_member(payload, "stream");
  const uint32_t timeout_ms = ep->wire->body.timeout_ms;
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

/* What a response says of its call. */
static abp_outcome read_outcome(const json_value *payload) {
  const struct json_slice code = wire_error_code(payload);
  const int cancelled = json_is_true(json_member(payload, "cancelled"));
  if (cancelled && code.text && strcmp(code.text, abp_error_name(ABP_TIMEOUT_ERROR)) == 0)
    return ABP_TIMED_OUT;
  if (cancelled || (code.text && strcmp(code.text, abp_error_name(ABP_CANCELLED_ERROR)) == 0))
    return ABP_CANCELLED;
  return json_is_true(json_member(payload, "success")) ? ABP_COMPLETED : ABP_FAILED;
}

static int read_response(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  const abp_outcome outcome = read_outcome(payload);
  const abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : read_fate(payload);
  const int status = abp_result_with_fate(ep, id, outcome, fate);
  const struct json_slice code = wire_error_code(payload);
  if (status == ABP_OK && outcome == ABP_FAILED) endpoint_refused(ep, code.text, code.length);
  return status;
}

static int read_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  set_payload(ep->wire, payload);
  return read_response(ep, payload, id);
}

static int read_progress(abp_endpoint *ep, const json_value *payload) {
  const abp_id operation = wire_id(ep->wire, json_member(payload, "operationId"));
  set_payload(ep->wire, payload);
  return abp_progress_received(ep, &operation);
}

static int read_notification(abp_endpoint *ep, const json_value *payload) {
  /* One client library says `method` and `params` instead. */
  const json_value *event = given(payload, "event"), *data = given(payload, "data");
  const struct json_slice name = set_name(ep->wire, event ? event : json_member(payload, "method"));
  set_payload(ep->wire, data ? data : json_member(payload, "params"));
  return name.text ? endpoint_notified(ep) : ABP_OK;
}

enum { CALL, RESULT, NOTIFICATION, PROGRESS, ELICITATION, CHUNK, CREDIT };

static const struct message_type TYPES[] = {
    {ABP_TYPE_CALL, TO_APP, CALL},
    {ABP_TYPE_CALL_RESULT, TO_AGENT, RESULT},
    {"call-result", TO_AGENT, RESULT},
    {"notification", TO_AGENT, NOTIFICATION},
    {"progress", TO_AGENT, PROGRESS},
    {"elicitation/request", TO_AGENT, ELICITATION},
    {ABP_TYPE_ANSWER, TO_APP, RESULT},
    {"bridge/chunk", TO_APP | TO_AGENT, CHUNK},
    {"bridge/credit", TO_APP | TO_AGENT, CREDIT},
};

static int data_kind(const abp_endpoint *ep) {
  return wire_kind(ep, TYPES, sizeof TYPES / sizeof *TYPES);
}

int abp_read(abp_endpoint *ep, const char *text, size_t length) {
  const int status = wire_open(ep, text, length);
  if (status != ABP_OK) return status;
  ep->has_message = MESSAGE_READ;
  const json_value *payload = json_member(ep->wire->message, "payload");
  const int kind = data_kind(ep);
  if (kind == CALL) set_call(ep->wire, payload);
  if (kind == ELICITATION) set_question(ep->wire, payload);
  return kind == CALL || kind == ELICITATION;
}

int abp_take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  if (ep->has_message != MESSAGE_READ) return ABP_E_STATE;
  const json_value *message = ep->wire->message, *payload = json_member(message, "payload");
  const abp_id id = wire_id(ep->wire, json_member(message, "id"));
  if (!fault && !ep->wire->body.name_length) fault = ABP_INVALID_PARAMS;
  int status;
  switch (data_kind(ep)) {
  case CALL: status = take_call(ep, payload, &id, flags, fault); break;
  case RESULT: status = read_result(ep, payload, &id); break;
  case NOTIFICATION: status = read_notification(ep, payload); break;
  case PROGRESS: status = read_progress(ep, payload); break;
  case ELICITATION: status = take_question(ep, payload, &id, fault); break;
  case CHUNK: status = read_chunk(ep, payload); break;
  case CREDIT: status = read_credit(ep, payload); break;
  default: status = wire_control(ep); break;
  }
  ep->has_message = MESSAGE_TAKEN; /* the input that the message became has cleared it */
  return status;
}

int abp_receive(abp_endpoint *ep, const char *text, size_t length) {
  const int status = abp_read(ep, text, length);
  return status < 0 ? status : abp_take(ep, 0, ABP_NO_ERROR);
}

int abp_response_received(abp_endpoint *ep, const abp_id *id, const char *json, size_t length) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *response;
  const int status = wire_parse(ep, json, length, &response);
  if (status != ABP_OK) return status;
  read_response(ep, response, id);
  json_free(response);
  return ABP_OK;
}

int abp_finish_with_response(abp_endpoint *ep, abp_call call, const char *json, size_t length) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *response;
  int status = wire_parse(ep, json, length, &response);
  if (status != ABP_OK) return status;
  abp_outcome outcome = read_outcome(response);
  abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : read_fate(response);
  json_free(response);
  /* It took too long: that is an error of the handler's, not of this call's own clock. */
  if (outcome == ABP_TIMED_OUT && !fate)
    fate = ep->calls.asks ? ABP_FATE_UNKNOWN : ABP_FATE_STOPPED;
  if (fate == ABP_FATE_RUNNING)
    outcome = ABP_CANCELLED;
  else if (outcome == ABP_CANCELLED && fate == ABP_FATE_UNKNOWN)
    outcome = ABP_UNKNOWN;
  else if (outcome == ABP_TIMED_OUT)
    outcome = ABP_FAILED;
  return abp_finish_with_fate(ep, call, outcome, fate);
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
  const uint32_t slot = calls_slot(&ep->calls, action->call);
  const struct call *call = table_call(&ep->calls.table, slot);
  const uint64_t timeout = call->timer ? call->deadline - ep->calls.now : 0;
  const int agent = ep->config.role == ABP_AGENT;
  wire_begin(out);
  json_add_string(out, agent ? "capability" : "method", body->name, body->name_length);
  add_payload(out, "params", body);
  if (agent) {
    json_open(out, "options");
    wire_add_call_id(ep, "callId", action->call);
    if (body->token)
      json_add_raw(out, "progressToken", body->token, body->token_length);
    else if (call->flags & CALL_PROGRESS)
      wire_add_call_id(ep, "progressToken", action->call);
    if (body->input) json_add_bool(out, "input", 1);
    if (body->key) json_add_raw(out, "idempotencyKey", body->key, body->key_length);
    if (body->repeats) json_add_raw(out, "repeats", body->repeats, body->repeats_length);
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
  return ep->config.role == ABP_APP ? ABP_TYPE_CALL_RESULT : ABP_TYPE_ANSWER;
}

/* What is said of a call that did not succeed. */
struct failure {
  struct json_slice code, message;
  int retryable, cancelled;
  abp_fate fate;
};

static struct json_slice slice_of(const char *text) {
  return (struct json_slice){text, strlen(text)};
}

static struct failure failure_of(abp_error error, abp_fate fate) {
  return (struct failure){slice_of(abp_error_name((int)error)),
                          slice_of(abp_error_message((int)error)), abp_error_retryable((int)error),
                          0, fate};
}

static void print_failure(struct json_text *out, const struct failure *failure) {
  json_add_bool(out, "success", 0);
  if (failure->cancelled) json_add_bool(out, "cancelled", 1);
  json_open(out, "error");
  json_add_string(out, "code", failure->code.text, failure->code.length);
  json_add_string(out, "message", failure->message.text, failure->message.length);
  json_add_bool(out, "retryable", failure->retryable);
  json_close(out);
  wire_add_fate(out, failure->fate);
}

/* Only of calls: a question has no effects that anybody asks for. */
static abp_fate fate_of(const abp_endpoint *ep, const abp_action *action) {
  return ep->config.role == ABP_APP ? action->fate : ABP_FATE_NONE;
}

/* A call that this side's peer, or the clock, has ended. */
static struct failure cancelled_by(const abp_endpoint *ep, const abp_action *action,
                                   const abp_told *told) {
  const int expired = action->arg == ABP_TIMED_OUT || (told && told->expired);
  const abp_error error = action->arg == ABP_DISCONNECTED ? ABP_DISCONNECTED_ERROR
                          : expired                       ? ABP_TIMEOUT_ERROR
                                                          : ABP_CANCELLED_ERROR;
  struct failure failure = failure_of(error, fate_of(ep, action));
  failure.cancelled = error != ABP_DISCONNECTED_ERROR;
  if (told && told->reason_length && action->arg != ABP_TIMED_OUT)
    failure.message = (struct json_slice){told->reason, told->reason_length};
  return failure;
}

/* The error of a response, as whoever made it says it. */
static void read_error(const json_value *response, struct failure *failure) {
  const json_value *error = json_member(response, "error");
  const struct json_slice code = json_string(json_member(error, "code")),
                          message = json_string(json_member(error, "message")),
                          itself = json_string(error);
  const json_value *success = json_member(response, "success");
  failure->code = code.text ? code : slice_of(abp_error_name(ABP_OPERATION_FAILED));
  failure->retryable = json_is_true(json_member(error, "retryable"));
  failure->message =
      !success || !(json_is_true(success) || json_is_false(success))
          ? slice_of("The other side's answer is not an ABP response: { success, data, error }")
      : message.length ? message
      : itself.length  ? itself
      : code.text      ? code
                       : slice_of("The operation failed, and no reason was given");
}

/* Only of a call's result: of a question nobody asks what became of it. */
static int says_fate(const abp_endpoint *ep, const abp_action *action) {
  const int made = action->kind == ABP_SETTLE || action->kind == ABP_REQUEST;
  return (ep->config.role == ABP_AGENT) == made;
}

static struct failure failure_told(const abp_endpoint *ep, const abp_action *action,
                                   const abp_told *told, const json_value *response) {
  if (action->kind == ABP_REFUSE || action->kind == ABP_REQUEST) {
    struct failure refusal = failure_of((abp_error)action->arg, ABP_FATE_UNSTARTED);
    if (told->reason_length)
      refusal.message = (struct json_slice){told->reason, told->reason_length};
    refusal.cancelled = action->arg == ABP_CANCELLED_ERROR || action->arg == ABP_TIMEOUT_ERROR;
    return refusal;
  }
  const int settles = action->kind == ABP_SETTLE;
  struct failure failure = cancelled_by(ep, action, told);
  failure.fate = action->fate;
  if (settles && response && read_fate(response)) failure.fate = read_fate(response);
  int stands = 0; /* the error is that of whoever ran the call */
  if (action->arg == ABP_COMPLETED) {
    failure.cancelled = 0;
    read_error(response, &failure);
    stands = 1;
  } else if (!told->reason && response && (!settles || action->arg == ABP_CANCELLED)) {
    struct failure peers = failure;
    read_error(response, &peers);
    stands = settles ? read_outcome(response) == ABP_CANCELLED && wire_error_code(response).text
                     : json_member(response, "error") != NULL;
    /* It accepted the cancel, and then answered something else: that is no more than words. */
    if (!stands && json_member(response, "error") && read_outcome(response) != ABP_CANCELLED)
      failure.message = peers.message;
    if (stands) failure = peers;
  }
  if (!stands && !told->repeatable && failure.fate != ABP_FATE_UNSTARTED) failure.retryable = 0;
  return failure;
}

const char *abp_print_response(abp_endpoint *ep, const abp_action *action, const abp_told *told,
                               size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  json_value *response = NULL;
  if (told->response &&
      wire_parse(ep, told->response, told->response_length, &response) == ABP_E_MEMORY)
    return NULL;
  struct json_text *out = &ep->wire->printed;
  struct failure failure = failure_told(ep, action, told, response);
  if (!says_fate(ep, action)) failure.fate = ABP_FATE_NONE;
  json_begin(out);
  print_failure(out, &failure);
  json_free(response);
  return json_end(out, length);
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

static void print_result(const abp_endpoint *ep, const abp_action *action, const abp_body *body,
                         struct json_text *out) {
  json_begin(out);
  wire_add_reply_id(ep, body, action->call);
  if (action->arg == ABP_COMPLETED) {
    json_add_raw(out, "payload", body->payload, body->payload_length);
    return;
  }
  struct failure failure = cancelled_by(ep, action, NULL);
  /* Whether a capability may run twice is not known here. */
  failure.retryable &= !failure.fate || failure.fate == ABP_FATE_UNSTARTED;
  json_open(out, "payload");
  print_failure(out, &failure);
  json_close(out);
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
  if (action->kind == ABP_REQUEST && calls_slot(&ep->calls, action->call) == NO_CALL) return NULL;
  if (action->kind == ABP_RESULT) {
    print_result(ep, action, body, &ep->wire->printed);
    type = result_type(ep);
  } else if (action->kind == ABP_REQUEST) {
    print_request(ep, action, body, &ep->wire->printed);
    type = app ? "elicitation/request" : ABP_TYPE_CALL;
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
  struct failure failure =
      failure_of(error, ep->config.role == ABP_APP ? ABP_FATE_FAILED : ABP_FATE_NONE);
  if (message && utf8_valid(message, strlen(message))) failure.message = slice_of(message);
  json_open(out, "payload");
  print_failure(out, &failure);
  json_close(out);
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
