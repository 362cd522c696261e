/*
 * ABP's responses: what a response says of its call, and what is told of a call that did not
 * succeed. Both are numbers (abp_failure), so that one rule decides for those who send text and
 * for those who do not; the texts are added to that.
 */
#include "wire_abp.h"

#include <string.h>

/* --- Reading ---------------------------------------------------------------------------------- */

/* What a response says, but for its texts: read once, as an abp_failure and these. Of an error with
 * another code than CANCELLED and TIMEOUT, JSON's error is ABP_NO_ERROR. */
enum {
  RESPONSE_GIVEN = 1 << 16, /* there is a response */
  RESPONSE_SUCCEEDS = 1 << 17,
  RESPONSE_FAILS = 1 << 18,   /* it has an error, */
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
  const json_value *error = abp_json_member(payload, "error");
  const char *code = abp_json_member_text(error, "code");
  const char *word = abp_json_member_text(abp_json_member(payload, "metadata"), "outcome");
  int fate = word ? ABP_FATE_FAILED : ABP_FATE_NONE;
  while (fate && strcmp(word, abp_fate_name(fate)) != 0)
    fate--;
  const abp_error known = !code                                ? ABP_OPERATION_FAILED
                          : is_code(code, ABP_CANCELLED_ERROR) ? ABP_CANCELLED_ERROR
                          : is_code(code, ABP_TIMEOUT_ERROR)   ? ABP_TIMEOUT_ERROR
                                                               : ABP_NO_ERROR;
  return (uint32_t)known | (payload ? RESPONSE_GIVEN : 0) |
         (abp_json_is_true(abp_json_member(payload, "success")) ? RESPONSE_SUCCEEDS : 0) |
         (error ? RESPONSE_FAILS : 0) | (code ? RESPONSE_HAS_CODE : 0) |
         (abp_json_is_true(abp_json_member(error, "retryable")) ? ABP_FAILURE_RETRYABLE : 0) |
         (abp_json_is_true(abp_json_member(payload, "cancelled")) ? ABP_FAILURE_CANCELLED : 0) |
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
    abp_endpoint_refused(ep, code, code ? strlen(code) : 0);
  return status;
}

int abp_wire_take_response(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  return take_response(ep, read_response(payload), abp_wire_error_code(payload), id);
}

int abp_response_received(abp_endpoint *ep, const abp_id *id, const char *json, size_t length) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *response;
  /* What cannot be read says no more than that the call has ended. */
  if (abp_wire_parse(ep, json, length, &response) == ABP_E_MEMORY) return ABP_E_MEMORY;
  abp_wire_take_response(ep, response, id);
  abp_json_free(response);
  return ABP_OK;
}

int abp_outcome_received(abp_endpoint *ep, const abp_id *id, abp_failure failure) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  const uint32_t response = read_failure(failure);
  if (!(response & RESPONSE_GIVEN)) abp_endpoint_count(ep, ABP_MALFORMED);
  return take_response(ep, response, abp_error_name((int)(response & ABP_FAILURE_ERROR)), id);
}

int abp_finish_with_response(abp_endpoint *ep, abp_call call, const char *json, size_t length) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *payload;
  /* What cannot be read is a failure. */
  if (abp_wire_parse(ep, json, length, &payload) == ABP_E_MEMORY) return ABP_E_MEMORY;
  const uint32_t response = read_response(payload);
  abp_json_free(payload);
  abp_outcome outcome = outcome_in(response);
  abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : fate_in(response);
  /* It took too long: that is an error of the handler's, not of this call's own clock. */
  if (outcome == ABP_TIMED_OUT && !fate)
    fate = ep->calls.handler_decides ? ABP_FATE_UNKNOWN : ABP_FATE_STOPPED;
  if (fate == ABP_FATE_RUNNING)
    outcome = ABP_CANCELLED;
  else if (outcome == ABP_CANCELLED && fate == ABP_FATE_UNKNOWN)
    outcome = ABP_UNKNOWN;
  else if (outcome == ABP_TIMED_OUT)
    outcome = ABP_FAILED;
  return abp_finish_with_fate(ep, call, outcome, fate);
}

/* --- Telling ---------------------------------------------------------------------------------- */

/* When the error of a response is told in place of this side's. */
enum stands {
  NEVER,
  ALWAYS,
  IF_FAILED,   /* if it has one */
  IF_CANCELLED /* if it has a code, and says as this side does that the call was cancelled; else of
                  what it says only the message is told */
};

/* What is told of a call, by how it ended. */
static const struct ending {
  uint8_t error;     /* abp_error, unless that of a response stands */
  uint8_t explained; /* whoever ended the call may have a reason, which is the message then */
  uint8_t handlers;  /* enum stands, of the response that its handler gave (ABP_RESULT), */
  uint8_t peers;     /* and of the one that the peer gave (ABP_SETTLE) */
} ENDINGS[] = {
    [ABP_PENDING] = {ABP_NO_ERROR, 1, NEVER, NEVER}, /* it never began: the action has its error */
    [ABP_COMPLETED] = {ABP_NO_ERROR, 0, ALWAYS, ALWAYS},
    [ABP_CANCELLED] = {ABP_CANCELLED_ERROR, 1, IF_FAILED, IF_CANCELLED},
    [ABP_TIMED_OUT] = {ABP_TIMEOUT_ERROR, 0, IF_FAILED, NEVER},
    [ABP_DISCONNECTED] = {ABP_DISCONNECTED_ERROR, 1, IF_FAILED, NEVER},
};

int abp_wire_tells_fate(const abp_endpoint *ep, const abp_action *action) {
  const int made = action->kind == ABP_SETTLE || action->kind == ABP_REQUEST;
  return (ep->config.role == ABP_AGENT) == made;
}

/* `response` is what is read of told->response. The error is ABP_NO_ERROR if it is that of the
 * response, which has another code. */
static abp_failure failure_told(const abp_endpoint *ep, const abp_action *action,
                                const abp_told *told, uint32_t response) {
  const int begun = action->kind != ABP_REFUSE && action->kind != ABP_REQUEST;
  const int settles = action->kind == ABP_SETTLE;
  const uint32_t arg = action->arg;
  const struct ending *ending = &ENDINGS[!begun                           ? ABP_PENDING
                                         : arg && arg <= ABP_DISCONNECTED ? arg
                                                                          : ABP_CANCELLED];
  const uint32_t stands = settles ? ending->peers : ending->handlers;
  uint32_t error = begun ? ending->error : arg < ABP_ERROR_COUNT ? arg : 0;
  if (begun && told->expired && error == ABP_CANCELLED_ERROR) error = ABP_TIMEOUT_ERROR;
  /* A reason of this side's own outweighs what the response says. */
  const uint32_t theirs = told->reason ? 0 : response;
  const int cancels = outcome_in(theirs) == ABP_CANCELLED;
  abp_fate fate = begun ? action->fate : ABP_FATE_UNSTARTED;
  if (settles && fate_in(response)) fate = fate_in(response);
  abp_failure failure =
      error == ABP_CANCELLED_ERROR || error == ABP_TIMEOUT_ERROR ? ABP_FAILURE_CANCELLED : 0;
  if (stands == ALWAYS || (stands == IF_FAILED && theirs & RESPONSE_FAILS) ||
      (stands == IF_CANCELLED && theirs & RESPONSE_HAS_CODE && cancels)) {
    failure |= ABP_FAILURE_THEIRS | (response & (ABP_FAILURE_ERROR | ABP_FAILURE_RETRYABLE));
  } else {
    failure |= error;
    if (stands == IF_CANCELLED && theirs & RESPONSE_FAILS && !cancels)
      failure |= ABP_FAILURE_THEIRS;
    else if (ending->explained && told->reason_length)
      failure |= ABP_FAILURE_REASON;
    if (abp_error_retryable((int)error) && (told->repeatable || fate == ABP_FATE_UNSTARTED))
      failure |= ABP_FAILURE_RETRYABLE;
  }
  return abp_wire_tells_fate(ep, action) ? failure | fate_bits(fate) : failure;
}

abp_failure abp_failure_told(const abp_endpoint *ep, const abp_action *action, const abp_told *told,
                             abp_failure theirs) {
  const uint32_t response = read_failure(theirs);
  const abp_failure failure = failure_told(ep, action, told, response);
  return failure & ABP_FAILURE_THEIRS && !(response & RESPONSE_GIVEN) ? 0 : failure;
}

/* The message of a response, as whoever made it says it. */
static const char *message_of(const json_value *payload) {
  const json_value *error = abp_json_member(payload, "error"),
                   *success = abp_json_member(payload, "success");
  const char *code = abp_json_member_text(error, "code"),
             *message = abp_json_member_text(error, "message");
  if (!abp_json_is_true(success) && !abp_json_is_false(success))
    return "The other side's answer is not an ABP response: { success, data, error }";
  if (!message || !*message) message = abp_json_string(error).text;
  if (message && *message) return message;
  return code ? code : "The operation failed, and no reason was given";
}

struct failure abp_wire_failure_told(const abp_endpoint *ep, const abp_action *action,
                                     const abp_told *told, const json_value *payload) {
  const abp_failure number = failure_told(ep, action, told, read_response(payload));
  const abp_error error = (abp_error)(number & ABP_FAILURE_ERROR);
  struct failure failure = abp_wire_failure(error, fate_in(number));
  failure.retryable = (number & ABP_FAILURE_RETRYABLE) != 0;
  failure.cancelled = (number & ABP_FAILURE_CANCELLED) != 0;
  if (number & ABP_FAILURE_REASON)
    failure.message = (struct json_slice){told->reason, told->reason_length};
  if (number & ABP_FAILURE_THEIRS) {
    const char *message = message_of(payload);
    failure.message = (struct json_slice){message, strlen(message)};
    if (!error) failure.code = abp_wire_error_code(payload);
  }
  return failure;
}

const char *abp_print_response(abp_endpoint *ep, const abp_action *action, const abp_told *told,
                               size_t *length) {
  *length = 0;
  if (!abp_wire_of(ep)) return NULL;
  json_value *response = NULL;
  if (told->response &&
      abp_wire_parse(ep, told->response, told->response_length, &response) == ABP_E_MEMORY)
    return NULL;
  struct json_text *out = &ep->wire->printed;
  const struct failure failure = abp_wire_failure_told(ep, action, told, response);
  abp_json_begin(out);
  abp_wire_add_failure(out, &failure);
  abp_json_free(response);
  return abp_json_end(out, length);
}
