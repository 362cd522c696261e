/*
 * ABP's responses: reading the outcome of a call from its response, and the response of a call that
 * did not succeed. Both are numbers (abp_response, abp_failure), so that the same rules apply with
 * and without text; the texts are added to the numbers.
 */
#include "wire_abp.h"

#include <string.h>

/* --- Reading ---------------------------------------------------------------------------------- */

static uint32_t fate_bits(abp_fate fate) { return (uint32_t)fate << ABP_FAILURE_FATE_SHIFT; }

/* ABP_FATE_NONE if the fate is missing or unknown. */
static abp_fate fate_in(abp_response response) {
  return (abp_fate)(response >> ABP_FAILURE_FATE_SHIFT & 15);
}

static abp_response read_response(const json_value *payload) {
  const json_value *error = abp_json_member(payload, "error"),
                   *success = abp_json_member(payload, "success");
  const char *code = abp_json_member_text(error, "code");
  const char *word = abp_json_member_text(abp_json_member(payload, "metadata"), "outcome");
  int fate = word ? ABP_FATE_FAILED : ABP_FATE_NONE;
  while (fate && strcmp(word, abp_fate_name(fate)) != 0)
    fate--;
  const int succeeds = abp_json_is_true(success);
  return (uint32_t)(code ? abp_wire_error(payload) : ABP_OPERATION_FAILED) |
         (payload ? ABP_RESPONSE_GIVEN : 0) |
         (succeeds || abp_json_is_false(success) ? ABP_RESPONSE_FORMED : 0) |
         (succeeds ? ABP_RESPONSE_SUCCEEDS : 0) | (error ? ABP_RESPONSE_FAILS : 0) |
         (code ? ABP_RESPONSE_CODED : 0) |
         (abp_json_is_true(abp_json_member(error, "retryable")) ? ABP_FAILURE_RETRYABLE : 0) |
         (abp_json_is_true(abp_json_member(payload, "cancelled")) ? ABP_FAILURE_CANCELLED : 0) |
         fate_bits((abp_fate)fate);
}

/* A number that cannot be read counts as no response. */
static abp_response read_number(abp_response number) {
  return number & ABP_RESPONSE_GIVEN && (number & ABP_FAILURE_ERROR) < ABP_ERROR_COUNT &&
                 fate_in(number) <= ABP_FATE_FAILED
             ? number
             : (abp_response)ABP_OPERATION_FAILED;
}

/* The outcome in a response. */
static abp_outcome outcome_in(abp_response response) {
  const abp_error error = (abp_error)(response & ABP_FAILURE_ERROR);
  if (response & ABP_FAILURE_CANCELLED && error == ABP_TIMEOUT_ERROR) return ABP_TIMED_OUT;
  if (response & ABP_FAILURE_CANCELLED || error == ABP_CANCELLED_ERROR) return ABP_CANCELLED;
  return response & ABP_RESPONSE_SUCCEEDS ? ABP_COMPLETED : ABP_FAILED;
}

static int take_response(abp_endpoint *ep, abp_response response, const abp_id *id) {
  const abp_outcome outcome = outcome_in(response);
  const abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : fate_in(response);
  const int status = abp_result_with_fate(ep, id, outcome, fate);
  if (status == ABP_OK && outcome == ABP_FAILED)
    abp_endpoint_refused(ep, (abp_error)(response & ABP_FAILURE_ERROR));
  return status;
}

int abp_wire_take_response(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  return take_response(ep, read_response(payload), id);
}

int abp_response_received(abp_endpoint *ep, const abp_id *id, const char *json, size_t length) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *response;
  /* A response that cannot be read shows only that the call has ended. */
  if (abp_wire_parse(ep, json, length, &response) == ABP_E_MEMORY) return ABP_E_MEMORY;
  abp_wire_take_response(ep, response, id);
  abp_json_free(response);
  return ABP_OK;
}

int abp_outcome_received(abp_endpoint *ep, const abp_id *id, abp_response number) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  const abp_response response = read_number(number);
  if (!(response & ABP_RESPONSE_GIVEN)) abp_endpoint_count(ep, ABP_MALFORMED);
  return take_response(ep, response, id);
}

int abp_finish_with_response(abp_endpoint *ep, abp_call call, const char *json, size_t length) {
  if (abp_endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  json_value *payload;
  /* A response that cannot be read is a failure. */
  if (abp_wire_parse(ep, json, length, &payload) == ABP_E_MEMORY) return ABP_E_MEMORY;
  const abp_response response = read_response(payload);
  abp_json_free(payload);
  return abp_finish_with_outcome(ep, call, response);
}

int abp_finish_with_outcome(abp_endpoint *ep, abp_call call, abp_response number) {
  const abp_response response = read_number(number);
  abp_outcome outcome = outcome_in(response);
  abp_fate fate = outcome == ABP_COMPLETED ? ABP_FATE_NONE : fate_in(response);
  /* A timeout reported by the handler, not by this call's own clock. */
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

/* --- Printing --------------------------------------------------------------------------------- */

/* When the error of a response replaces this side's error. */
enum stands {
  NEVER,
  ALWAYS,
  IF_FAILED,   /* if there is an error */
  IF_CANCELLED /* if it has a code, and also means that the call was cancelled; otherwise
                  only its message is used */
};

/* The error of a call, by its outcome. */
static const struct ending {
  uint8_t error;     /* abp_error, unless that of a response replaces it */
  uint8_t explained; /* a reason for the end replaces the message */
  uint8_t handlers;  /* enum stands, for the response of its handler (ABP_RESULT) */
  uint8_t peers;     /* enum stands, for the response of the peer (ABP_SETTLE) */
} ENDINGS[] = {
    [ABP_PENDING] = {ABP_NO_ERROR, 1, NEVER,
                     NEVER}, /* the call did not begin: the action has its error */
    [ABP_COMPLETED] = {ABP_NO_ERROR, 0, ALWAYS, ALWAYS},
    [ABP_CANCELLED] = {ABP_CANCELLED_ERROR, 1, IF_FAILED, IF_CANCELLED},
    [ABP_TIMED_OUT] = {ABP_TIMEOUT_ERROR, 0, IF_FAILED, NEVER},
    [ABP_DISCONNECTED] = {ABP_DISCONNECTED_ERROR, 1, IF_FAILED, NEVER},
};

int abp_wire_tells_fate(const abp_endpoint *ep, const abp_action *action) {
  const int made = action->kind == ABP_SETTLE || action->kind == ABP_REQUEST;
  return (ep->config.role == ABP_AGENT) == made;
}

abp_failure abp_failure_told(const abp_endpoint *ep, const abp_action *action, const abp_told *told,
                             abp_response number) {
  const abp_response response = read_number(number);
  const int begun = action->kind != ABP_REFUSE && action->kind != ABP_REQUEST;
  const int settles = action->kind == ABP_SETTLE;
  const uint32_t arg = action->arg;
  const struct ending *ending = &ENDINGS[!begun                           ? ABP_PENDING
                                         : arg && arg <= ABP_DISCONNECTED ? arg
                                                                          : ABP_CANCELLED];
  const uint32_t stands = settles ? ending->peers : ending->handlers;
  uint32_t error = begun ? ending->error : arg < ABP_ERROR_COUNT ? arg : 0;
  if (begun && told->expired && error == ABP_CANCELLED_ERROR) error = ABP_TIMEOUT_ERROR;
  /* This side's own reason outweighs the response. */
  const abp_response theirs = told->reason ? 0 : response;
  const int cancels = outcome_in(theirs) == ABP_CANCELLED;
  abp_fate fate = begun ? action->fate : ABP_FATE_UNSTARTED;
  if (settles && fate_in(response)) fate = fate_in(response);
  abp_failure failure =
      error == ABP_CANCELLED_ERROR || error == ABP_TIMEOUT_ERROR ? ABP_FAILURE_CANCELLED : 0;
  if (stands == ALWAYS || (stands == IF_FAILED && theirs & ABP_RESPONSE_FAILS) ||
      (stands == IF_CANCELLED && theirs & ABP_RESPONSE_CODED && cancels)) {
    failure |= ABP_FAILURE_THEIRS | (response & (ABP_FAILURE_ERROR | ABP_FAILURE_RETRYABLE));
  } else {
    failure |= error;
    if (stands == IF_CANCELLED && theirs & ABP_RESPONSE_FAILS && !cancels)
      failure |= ABP_FAILURE_THEIRS;
    else if (ending->explained && told->reason_length)
      failure |= ABP_FAILURE_REASON;
    if (abp_error_retryable((int)error) && (told->repeatable || fate == ABP_FATE_UNSTARTED))
      failure |= ABP_FAILURE_RETRYABLE;
  }
  return abp_wire_tells_fate(ep, action) ? failure | fate_bits(fate) : failure;
}

const char *abp_response_message(abp_response response) {
  return response & ABP_RESPONSE_FORMED
             ? "The operation failed, and no reason was given"
             : "The other side's answer is not an ABP response: { success, data, error }";
}

/* The message in a response. */
static const char *message_of(const json_value *payload, abp_response response) {
  const json_value *error = abp_json_member(payload, "error");
  const char *code = abp_json_member_text(error, "code"),
             *message = abp_json_member_text(error, "message");
  if (!message || !*message) message = abp_json_string(error).text;
  if (!message || !*message) message = code;
  return message && response & ABP_RESPONSE_FORMED ? message : abp_response_message(response);
}

struct failure abp_wire_failure_told(const abp_endpoint *ep, const abp_action *action,
                                     const abp_told *told, const json_value *payload) {
  const abp_response response = read_response(payload);
  const abp_failure number = abp_failure_told(ep, action, told, response);
  const abp_error error = (abp_error)(number & ABP_FAILURE_ERROR);
  struct failure failure = abp_wire_failure(error, fate_in(number));
  failure.retryable = (number & ABP_FAILURE_RETRYABLE) != 0;
  failure.cancelled = (number & ABP_FAILURE_CANCELLED) != 0;
  if (number & ABP_FAILURE_REASON)
    failure.message = (struct json_slice){told->reason, told->reason_length};
  if (number & ABP_FAILURE_THEIRS) {
    const char *message = message_of(payload, response);
    failure.message = (struct json_slice){message, strlen(message)};
    if (!error) failure.code = abp_json_member_text(abp_json_member(payload, "error"), "code");
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
