/*
 * ABP's data plane as text: calls, results, progress, notifications, elicitations. For native
 * users, who have both planes as JSON; the payload itself is never parsed, only found.
 */
#include "wire_abp.h"

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

static int read_call(abp_endpoint *ep, struct wire *wire, const json_value *payload,
                     const abp_id *id) {
  const json_value *options = json_member(payload, "options");
  const json_value *call = given(options, "callId");
  if (!call) call = given(payload, "callId");
  const struct json_slice text = json_string(call);
  const abp_id key = call ? (abp_id){text.text, (uint32_t)text.length, 0} : *id;
  const struct json_slice name = set_name(wire, json_member(payload, "capability"));
  set_payload(wire, json_member(payload, "params"));
  return abp_call_received(ep, &key, json_ms(json_member(options, "timeout")),
                           given(options, "progressToken") ? ABP_WANTS_PROGRESS : 0,
                           name.length ? ABP_NO_ERROR : ABP_INVALID_PARAMS);
}

static int read_elicitation(abp_endpoint *ep, struct wire *wire, const json_value *payload,
                            const abp_id *id) {
  const struct json_slice name = set_name(wire, json_member(payload, "method"));
  set_payload(wire, json_member(payload, "params"));
  return abp_call_received(ep, id, json_ms(json_member(payload, "timeout")), 0,
                           name.length ? ABP_NO_ERROR : ABP_INVALID_PARAMS);
}

static int read_result(abp_endpoint *ep, struct wire *wire, const json_value *payload,
                       const abp_id *id) {
  const struct json_slice code = json_string(json_member(json_member(payload, "error"), "code"));
  wire->body.payload = wire_source(wire, payload).text;
  wire->body.payload_length = wire_source(wire, payload).length;
  const int cancelled = json_is_true(json_member(payload, "cancelled"));
  if (cancelled && code.text && strcmp(code.text, abp_error_name(ABP_TIMEOUT_ERROR)) == 0)
    return abp_result_received(ep, id, ABP_TIMED_OUT);
  if (cancelled || (code.text && strcmp(code.text, abp_error_name(ABP_CANCELLED_ERROR)) == 0))
    return abp_result_received(ep, id, ABP_CANCELLED);
  return abp_result_received(ep, id, ABP_COMPLETED);
}

static int read_progress(abp_endpoint *ep, struct wire *wire, const json_value *payload,
                         const abp_id *id) {
  (void)id;
  const abp_id operation = wire_id(wire, json_member(payload, "operationId"));
  set_payload(wire, payload);
  return abp_progress_received(ep, &operation);
}

static int read_notification(abp_endpoint *ep, struct wire *wire, const json_value *payload,
                             const abp_id *id) {
  (void)ep, (void)id;
  /* One client library wraps it the other way round. */
  const json_value *event = json_member(payload, "event"), *data = json_member(payload, "data");
  set_name(wire, event ? event : json_member(payload, "method"));
  set_payload(wire, data ? data : json_member(payload, "params"));
  return ABP_OK;
}

static const struct message_type TYPES[] = {
    {"capabilities/call", ABP_APP, 0, read_call},
    {"capabilities/call-result", ABP_AGENT, 0, read_result},
    {"call-result", ABP_AGENT, 0, read_result},
    {"notification", ABP_AGENT, 0, read_notification},
    {"progress", ABP_AGENT, 0, read_progress},
    {"elicitation/request", ABP_AGENT, 0, read_elicitation},
    {"elicitation/response", ABP_APP, 0, read_result},
};

int abp_receive(abp_endpoint *ep, const char *text, size_t length) {
  int status = wire_open(ep, text, length);
  if (status != ABP_OK) return status;
  status = wire_dispatch(ep, TYPES, sizeof TYPES / sizeof *TYPES);
  return status == NOT_MINE ? wire_control(ep) : status;
}

const abp_body *abp_received(const abp_endpoint *ep) {
  static const abp_body NOTHING;
  return ep->wire ? &ep->wire->body : &NOTHING;
}

static const char *print_request(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                                 json_value *envelope, json_value *payload) {
  const struct call *call = table_call(&ep->calls.table, calls_slot(&ep->calls, action->call));
  const uint64_t timeout = call->timer ? call->deadline - ep->calls.now : 0;
  const int agent = ep->config.role == ABP_AGENT;
  int added =
      wire_add_call_id(ep, envelope, "id", action->call) &
      json_add_string(payload, agent ? "capability" : "method", body->name, body->name_length);
  if (body->payload) added &= json_add_raw(payload, "params", body->payload, body->payload_length);
  json_value *options = payload;
  if (agent) {
    options = json_add_object(payload, "options");
    added &= wire_add_call_id(ep, payload, "callId", action->call) &
             wire_add_call_id(ep, options, "callId", action->call);
    if (call->flags & CALL_PROGRESS)
      added &= wire_add_call_id(ep, options, "progressToken", action->call);
  }
  if (timeout) added &= json_add_number(options, "timeout", timeout);
  if (!added) return NULL;
  return agent ? "capabilities/call" : "elicitation/request";
}

static const char *print_result(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                                json_value *envelope) {
  int added = wire_add_reply_id(ep, envelope, body, action->call);
  if (action->arg == ABP_COMPLETED) {
    added &= json_add_raw(envelope, "payload", body->payload, body->payload_length);
  } else {
    json_value *payload = json_add_object(envelope, "payload");
    added &= json_add_bool(payload, "success", 0) & json_add_bool(payload, "cancelled", 1) &
             wire_add_error(payload,
                            action->arg == ABP_TIMED_OUT ? ABP_TIMEOUT_ERROR : ABP_CANCELLED_ERROR);
  }
  if (!added) return NULL;
  return ep->config.role == ABP_APP ? "capabilities/call-result" : "elicitation/response";
}

const char *abp_print(abp_endpoint *ep, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length) {
  if (action->kind != ABP_REQUEST && action->kind != ABP_RESULT)
    return wire_print_control(ep, action, unix_ms, length);
  *length = 0;
  if (!wire_of(ep)) return NULL;
  json_value *envelope = json_new();
  const char *type;
  if (action->kind == ABP_RESULT)
    type = print_result(ep, action, body, envelope);
  else
    type = print_request(ep, action, body, envelope, json_add_object(envelope, "payload"));
  return wire_finish(ep, envelope, type, unix_ms, length);
}

const char *abp_print_progress(abp_endpoint *ep, abp_call call, const char *info,
                               size_t info_length, uint64_t unix_ms, size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  json_value *envelope = json_new(), *payload = json_add_object(envelope, "payload");
  const char *type = wire_add_call_id(ep, payload, "operationId", call) &
                             json_add_raw(payload, "progress", info, info_length)
                         ? "progress"
                         : NULL;
  return wire_finish(ep, envelope, type, unix_ms, length);
}

const char *abp_print_notification(abp_endpoint *ep, const abp_body *body, uint64_t unix_ms,
                                   size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  json_value *envelope = json_new(), *payload = json_add_object(envelope, "payload");
  int added = json_add_string(payload, "event", body->name, body->name_length);
  if (body->payload) added &= json_add_raw(payload, "data", body->payload, body->payload_length);
  return wire_finish(ep, envelope, added ? "notification" : NULL, unix_ms, length);
}
