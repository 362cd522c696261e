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
static void set_asked(struct wire *wire, const json_value *payload, int call) {
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

static int take_asked(abp_endpoint *ep, const json_value *payload, int call, const abp_id *id,
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

/* What a response says, but for its texts: read once, as an abp_failure and these. Of an error with
 * another code than CANCELLED and TIMEOUT, JSON's error is ABP_NO_ERROR. */
enum {
  RESPONSE_GIVEN = 1 << 16, /* there is a response */
  RESPONSE_SUCCEEDS = 1 << 17,
  RESPONSE_FAILS = 1 << 18,
  RESPONSE_HAS_CODE = 1 << 19 /* and that has a code */
};

static int is_code(const char *code, abp_error error) {
  return strcmp(code, abp_error_name((int)error)) == 0;
}

static uint32_t fate_bits(abp_fate fate) { return (uint32_t)fate << ABP_FAILURE_FATE_SHIFT; }

/* ABP_FATE_NONE if it says nothing, or what is not known here. */
static abp_fate fate_in(uint32_t response) {
  return (abp_fate)(response >> ABP_FAILURE_FATE_SHIFT & 15);
}

static uint32_t read_response(const json_value *payload) {
  const json_value *error = json_member(payload, "error");
  const char *code = json_member_text(error, "code");
  const char *word = json_member_text(json_member(payload, "metadata"), "outcome");
  int fate = word ? ABP_FATE_FAILED : ABP_FATE_NONE;
  while (fate && strcmp(word, abp_fate_name(fate)) != 0)
    fate--;
  const abp_error known = !code                                ? ABP_OPERATION_FAILED
                          : is_code(code, ABP_CANCELLED_ERROR) ? ABP_CANCELLED_ERROR
                          : is_code(code, ABP_TIMEOUT_ERROR)   ? ABP_TIMEOUT_ERROR
                                                               : ABP_NO_ERROR;
  return (uint32_t)known | (payload ? RESPONSE_GIVEN : 0) |
         (json_is_true(json_member(payload, "success")) ? RESPONSE_SUCCEEDS : 0) |
         (error ? RESPONSE_FAILS : 0) | (code ? RESPONSE_HAS_CODE : 0) |
         (json_is_true(json_member(error, "retryable")) ? ABP_FAILURE_RETRYABLE : 0) |
         (json_is_true(json_member(payload, "cancelled")) ? ABP_FAILURE_CANCELLED : 0) |
         fate_bits((abp_fate)fate);
}

/* The same of a number. What cannot be read is as no response. */
static uint32_t read_failure(abp_failure number) {
  const uint32_t error = number & ABP_FAILURE_ERROR;
  return error && error < ABP_ERROR_COUNT &&
                 number >> ABP_FAILURE_FATE_SHIFT <= (uint32_t)ABP_FATE_FAILED
             ? number | RESPONSE_GIVEN | RESPONSE_FAILS | RESPONSE_HAS_CODE
             : (uint32_t)ABP_OPERATION_FAILED;
}

/* What a response says of its call. */
static abp_outcome outcome_in(uint32_t response) {
  const abp_error error = (abp_error)(response & ABP_FAILURE_ERROR);
  if (response & ABP_FAILURE_CANCELLED && error == ABP_TIMEOUT_ERROR) return ABP_TIMED_OUT;
  if (response & ABP_FAILURE_CANCELLED || error == ABP_CANCELLED_ERROR) return ABP_CANCELLED;
  return response & RESPONSE_SUCCEEDS ? ABP_COMPLETED : ABP_FAILED;
}

/* `code` is that of its error, if it has one. */
static int take_response(abp_endpoint *ep, uint32_t response, const char *code, const abp_id *id) {
  const abp_outcome outcome = outcome_in(response);
  const abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : fate_in(response);
  const int status = abp_result_with_fate(ep, id, outcome, fate);
  if (status == ABP_OK && outcome == ABP_FAILED)
    endpoint_refused(ep, code, code ? strlen(code) : 0);
  return status;
}

static int take_payload(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  return take_response(ep, read_response(payload), wire_error_code(payload), id);
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
  set_asked(ep->wire, json_member(ep->wire->message, "payload"), kind == KIND_CALL);
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
  case KIND_QUESTION: return take_asked(ep, payload, kind == KIND_CALL, &id, flags, fault);
  case KIND_RESULT:
  case KIND_ANSWER: set_payload(ep->wire, payload); return take_payload(ep, payload, &id);
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

int abp_response_received(abp_endpoint *ep, const abp_id *id, const char *json, size_t length) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *response;
  /* What cannot be read says no more than that the call has ended. */
  if (wire_parse(ep, json, length, &response) == ABP_E_MEMORY) return ABP_E_MEMORY;
  take_payload(ep, response, id);
  json_free(response);
  return ABP_OK;
}

int abp_outcome_received(abp_endpoint *ep, const abp_id *id, abp_failure failure) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  const uint32_t response = read_failure(failure);
  if (!(response & RESPONSE_GIVEN)) endpoint_count(ep, ABP_MALFORMED);
  return take_response(ep, response, abp_error_name((int)(response & ABP_FAILURE_ERROR)), id);
}

int abp_finish_with_response(abp_endpoint *ep, abp_call call, const char *json, size_t length) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *payload;
  /* What cannot be read is a failure. */
  if (wire_parse(ep, json, length, &payload) == ABP_E_MEMORY) return ABP_E_MEMORY;
  const uint32_t response = read_response(payload);
  json_free(payload);
  abp_outcome outcome = outcome_in(response);
  abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : fate_in(response);
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

/* The call of the agent's on behalf of which something is asked, or 0: a handler of this app may
 * have called the one that asks, and have ended. */
static abp_call received_above(const abp_endpoint *ep, uint32_t slot) {
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
  if (call->flags & CALL_ASKS) {
    const abp_call about = received_above(ep, call->parent);
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

/* The message of a response, as whoever made it says it. */
static const char *message_of(const json_value *payload) {
  const json_value *error = json_member(payload, "error"),
                   *success = json_member(payload, "success");
  const char *code = json_member_text(error, "code"), *message = json_member_text(error, "message");
  if (!json_is_true(success) && !json_is_false(success))
    return "The other side's answer is not an ABP response: { success, data, error }";
  if (!message || !*message) message = json_string(error).text;
  if (message && *message) return message;
  return code ? code : "The operation failed, and no reason was given";
}

/* Only of a call's result: of a question nobody asks what became of it. */
static int says_fate(const abp_endpoint *ep, const abp_action *action) {
  const int made = action->kind == ABP_SETTLE || action->kind == ABP_REQUEST;
  return (ep->config.role == ABP_AGENT) == made;
}

/* What is told of a call; `response` is what is read of told->response. The error is ABP_NO_ERROR
 * if it is that of the response, which has another code. */
static abp_failure failure_told(const abp_endpoint *ep, const abp_action *action,
                                const abp_told *told, uint32_t response) {
  const int begun = action->kind != ABP_REFUSE && action->kind != ABP_REQUEST;
  const int settles = action->kind == ABP_SETTLE;
  const abp_error error = !begun                                          ? (abp_error)action->arg
                          : action->arg == ABP_DISCONNECTED               ? ABP_DISCONNECTED_ERROR
                          : action->arg == ABP_TIMED_OUT || told->expired ? ABP_TIMEOUT_ERROR
                                                                          : ABP_CANCELLED_ERROR;
  abp_fate fate = begun ? action->fate : ABP_FATE_UNSTARTED;
  if (settles && fate_in(response)) fate = fate_in(response);
  uint32_t failure =
      error == ABP_CANCELLED_ERROR || error == ABP_TIMEOUT_ERROR ? ABP_FAILURE_CANCELLED : 0;
  uint32_t words =
      told->reason_length && !(begun && action->arg == ABP_TIMED_OUT) ? ABP_FAILURE_REASON : 0;
  int stands = 0; /* the error is that of whoever ran the call */
  if (begun && action->arg == ABP_COMPLETED) {
    failure = 0;
    stands = 1;
  } else if (begun && !told->reason && response & RESPONSE_GIVEN &&
             (!settles || action->arg == ABP_CANCELLED)) {
    const int agrees = outcome_in(response) == ABP_CANCELLED;
    stands = settles ? agrees && response & RESPONSE_HAS_CODE : (response & RESPONSE_FAILS) != 0;
    /* It accepted the cancel, and then answered something else: that is no more than words. */
    if (response & RESPONSE_FAILS && !agrees) words = ABP_FAILURE_THEIRS;
  }
  if (stands) {
    failure |= ABP_FAILURE_THEIRS | (response & (ABP_FAILURE_ERROR | ABP_FAILURE_RETRYABLE));
  } else {
    failure |= words | (error < ABP_ERROR_COUNT ? (uint32_t)error : 0);
    if (abp_error_retryable((int)error) && (told->repeatable || fate == ABP_FATE_UNSTARTED))
      failure |= ABP_FAILURE_RETRYABLE;
  }
  return says_fate(ep, action) ? failure | fate_bits(fate) : failure;
}

abp_failure abp_failure_told(const abp_endpoint *ep, const abp_action *action, const abp_told *told,
                             abp_failure theirs) {
  const uint32_t response = read_failure(theirs);
  const abp_failure failure = failure_told(ep, action, told, response);
  return failure & ABP_FAILURE_THEIRS && !(response & RESPONSE_GIVEN) ? 0 : failure;
}

/* The same with its texts. */
static struct failure failure_worded(const abp_endpoint *ep, const abp_action *action,
                                     const abp_told *told, const json_value *payload) {
  const abp_failure number = failure_told(ep, action, told, read_response(payload));
  const abp_error error = (abp_error)(number & ABP_FAILURE_ERROR);
  struct failure failure = wire_failure(error, fate_in(number));
  failure.retryable = (number & ABP_FAILURE_RETRYABLE) != 0;
  failure.cancelled = (number & ABP_FAILURE_CANCELLED) != 0;
  if (number & ABP_FAILURE_REASON)
    failure.message = (struct json_slice){told->reason, told->reason_length};
  if (number & ABP_FAILURE_THEIRS) {
    const char *message = message_of(payload);
    failure.message = (struct json_slice){message, strlen(message)};
    if (!error) failure.code = wire_error_code(payload);
  }
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
  const struct failure failure = failure_worded(ep, action, told, response);
  json_begin(out);
  wire_add_failure(out, &failure);
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
    const abp_told told = {.repeatable = !says_fate(ep, action) || !action->fate};
    const struct failure failure = failure_worded(ep, action, &told, NULL);
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
