/*
 * ABP's control plane: session, cancel and its answer, refusals. Reading finds a message's parts
 * and feeds the endpoint; printing says what an action means in the protocol's words. What to do is
 * decided in endpoint_calls.c and endpoint_session.c. The data plane's text is wire_abp_data.c's: a
 * page's shim carries that itself.
 */
#include "wire_abp.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define VERSION "0.1"

static const struct {
  uint32_t bit;
  const char *name;
} FEATURES[] = {
    {ABP_NOTIFICATIONS, "notifications"},
    {ABP_PROGRESS, "progress"},
    {ABP_ELICITATION, "elicitation"},
    {ABP_DYNAMIC_CAPABILITIES, "dynamicCapabilities"},
    {ABP_PORT, "bridge.port"},
    {ABP_FRAMES, "bridge.frames"},
    {ABP_LIVENESS, "bridge.liveness"},
    {ABP_STREAMS, "bridge.streams"},
    {ABP_OUTCOMES, "bridge.outcomes"},
};
#define FEATURE_COUNT (sizeof FEATURES / sizeof *FEATURES)

static void free_wire(struct wire *wire) {
  json_free(wire->message);
  free(wire->printed.text);
  free(wire);
}

struct wire *wire_of(abp_endpoint *ep) {
  if (!ep->wire) {
    ep->wire = calloc(1, sizeof *ep->wire);
    if (ep->wire) ep->free_wire = free_wire;
  }
  return ep->wire;
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct json_slice wire_source(const struct wire *wire, const json_value *value) {
  return json_source(wire->message, wire->text, value);
}

abp_id wire_id(const struct wire *wire, const json_value *value) {
  const struct json_slice text =
      json_is_number(value) ? wire_source(wire, value) : json_string(value);
  const uint32_t length = text.length > UINT32_MAX ? UINT32_MAX : (uint32_t)text.length;
  return (abp_id){text.text, length, 0};
}

struct json_slice wire_error_code(const json_value *payload) {
  return json_string(json_member(json_member(payload, "error"), "code"));
}

static uint32_t read_features(const json_value *payload) {
  const json_value *features = json_member(payload, "features");
  uint32_t bits = 0;
  for (size_t i = 0; i < FEATURE_COUNT; i++) {
    if (json_is_true(json_member(features, FEATURES[i].name))) bits |= FEATURES[i].bit;
  }
  return bits;
}

static int read_initialize(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  const json_value *member = json_member(payload, "protocolVersion");
  /* A missing version is taken for ours; one that cannot be read is refused. */
  const struct json_slice version =
      member ? json_string(member) : (struct json_slice){VERSION, strlen(VERSION)};
  return endpoint_initialize(ep, id->text, id->length,
                             json_is_number(json_member(ep->wire->message, "id")), version.text,
                             version.length, read_features(payload));
}

static int read_initialize_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  if (!id->text || id->length != ep->prefix_length ||
      memcmp(id->text, ep->prefix, id->length) != 0) {
    endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  const struct json_slice session = json_string(json_member(payload, "sessionId"));
  const struct json_slice code = wire_error_code(payload);
  const int busy = code.text && strcmp(code.text, abp_error_name(ABP_ALREADY_INITIALIZED)) == 0;
  return endpoint_initialized(ep, session.text, session.length, session.length > 0, busy,
                              read_features(payload));
}

static int read_cancel(abp_endpoint *ep, const json_value *payload) {
  const json_value *call = json_member(payload, "callId");
  const struct json_slice text = json_string(call),
                          reason = json_string(json_member(payload, "reason"));
  const abp_id target = {text.text, (uint32_t)text.length, 0};
  ep->wire->target = wire_source(ep->wire, call);
  const struct cancel_text from = {ep->wire->body.id, ep->wire->target.text,
                                   ep->wire->body.id_length, ep->wire->target.length};
  return endpoint_cancel(ep, &target, reason.text, reason.length, &from);
}

/* What it stops is answered by its own result. */
static int read_stream_cancel(abp_endpoint *ep, const json_value *payload) {
  const struct json_slice reason = json_string(json_member(payload, "reason"));
  const abp_id call = wire_id(ep->wire, json_member(payload, "callId"));
  return abp_cancel_received(ep, &call, reason.text, reason.length);
}

/* The id of ABP_MSG_PROBE, and the call that it asks to cancel: numbers begin at 1. */
#define PROBE_SUFFIX ".0"

static int is_probe(const abp_endpoint *ep, const abp_id *id) {
  const uint32_t length = ep->prefix_length;
  return id->text && id->length == length + strlen(PROBE_SUFFIX) &&
         memcmp(id->text, ep->prefix, length) == 0 &&
         memcmp(id->text + length, PROBE_SUFFIX, strlen(PROBE_SUFFIX)) == 0;
}

static const char HEX[] = "0123456789abcdef";

/* Nobody waits for the answer to a cancel that a signal or the clock asked for, but it decides how
 * the call ends. So the cancel's id is P.c and the handle of its call: the letter tells it from
 * every call's id. add_cancel_id() writes it. Returns 0 if the id is not such a one. */
static abp_call stopped_call(const abp_endpoint *ep, const abp_id *id) {
  const uint32_t length = ep->prefix_length;
  if (!id->text || id->length != length + 10 || memcmp(id->text, ep->prefix, length) != 0 ||
      memcmp(id->text + length, ".c", 2) != 0)
    return 0;
  abp_call call = 0;
  for (uint32_t i = length + 2; i < id->length; i++) {
    const char *digit = memchr(HEX, id->text[i], 16);
    if (!digit) return 0;
    call = call << 4 | (abp_call)(digit - HEX);
  }
  return call;
}

static int read_cancel_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  if (is_probe(ep, id)) {
    const struct json_slice code = wire_error_code(payload);
    return endpoint_probed(ep, code.text, code.length);
  }
  return endpoint_cancel_result(ep, id, stopped_call(ep, id),
                                json_is_true(json_member(payload, "cancelled")));
}

/* By which an app leaves a stream of its agent's, or withdraws a question; what an agent's calls
 * need is ABP_MSG_CANCEL. */
enum { STREAM_CANCEL = ABP_MSG_PROBE + 1 };

/* Every type of the control plane. The first are at the place of their abp_message, for printing.
 */
static const struct message_type TYPES[] = {
    {"initialize", TO_APP, ABP_MSG_INITIALIZE},
    {"initialize-result", TO_AGENT, ABP_MSG_INITIALIZE_RESULT},
    {"capabilities/cancel", TO_APP, ABP_MSG_CANCEL},
    {"capabilities/cancel-result", TO_AGENT, ABP_MSG_CANCEL_RESULT},
    {"shutdown", TO_APP, ABP_MSG_SHUTDOWN},
    {"bridge/ping", TO_APP | TO_AGENT, ABP_MSG_PING},
    {"bridge/pong", TO_APP | TO_AGENT, ABP_MSG_PONG},
    {"bridge/bye", TO_APP | TO_AGENT, ABP_MSG_BYE},
    {"capabilities/cancel", 0, ABP_MSG_PROBE},
    {"bridge/cancel", TO_AGENT, STREAM_CANCEL},
    {"cancel-result", TO_AGENT, ABP_MSG_CANCEL_RESULT},
};

int wire_parse(abp_endpoint *ep, const char *text, size_t length, json_value **value) {
  int memory = 0;
  *value = length <= ep->config.max_text ? json_parse(text, length, &memory) : NULL;
  if (*value) return ABP_OK;
  if (!memory) endpoint_count(ep, ABP_MALFORMED);
  return memory ? ABP_E_MEMORY : ABP_E_TEXT;
}

int wire_open(abp_endpoint *ep, const char *text, size_t length) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  struct wire *wire = wire_of(ep);
  json_value *message;
  const int status = wire ? wire_parse(ep, text, length, &message) : ABP_E_MEMORY;
  if (status != ABP_OK) return status;
  ep->has_message = MESSAGE_TAKEN;
  json_free(wire->message);
  wire->message = message;
  wire->text = text;
  memset(&wire->body, 0, sizeof wire->body);
  wire->target = (struct json_slice){NULL, 0};
  const struct json_slice id = wire_source(wire, json_member(message, "id"));
  wire->body.id = id.text;
  wire->body.id_length = id.length;
  return ABP_OK;
}

int wire_kind(const abp_endpoint *ep, const struct message_type *types, size_t count) {
  const struct json_slice type = json_string(json_member(ep->wire->message, "type"));
  for (size_t i = 0; type.text && i < count; i++) {
    if (strcmp(type.text, types[i].type) == 0)
      return types[i].to >> ep->config.role & 1 ? types[i].kind : NOT_MINE;
  }
  return NOT_MINE;
}

int wire_control(abp_endpoint *ep) {
  const json_value *message = ep->wire->message, *payload = json_member(message, "payload");
  const abp_id id = wire_id(ep->wire, json_member(message, "id"));
  switch (wire_kind(ep, TYPES, sizeof TYPES / sizeof *TYPES)) {
  case ABP_MSG_INITIALIZE: return read_initialize(ep, payload, &id);
  case ABP_MSG_INITIALIZE_RESULT: return read_initialize_result(ep, payload, &id);
  case ABP_MSG_CANCEL: return read_cancel(ep, payload);
  case ABP_MSG_CANCEL_RESULT: return read_cancel_result(ep, payload, &id);
  case ABP_MSG_SHUTDOWN: return endpoint_shutdown(ep);
  case ABP_MSG_PING: return endpoint_ping(ep, 0);
  case ABP_MSG_PONG: return endpoint_ping(ep, 1);
  case ABP_MSG_BYE: return endpoint_bye(ep, json_is_true(json_member(payload, "persisted")));
  case STREAM_CANCEL: return read_stream_cancel(ep, payload);
  default:
    endpoint_count(ep, json_string(json_member(message, "type")).text ? ABP_UNKNOWN_TYPE
                                                                      : ABP_MALFORMED);
    return ABP_OK;
  }
}

int wire_receive_control(abp_endpoint *ep, const char *text, size_t length) {
  const int status = wire_open(ep, text, length);
  return status == ABP_OK ? wire_control(ep) : status;
}

/* --- Printing --------------------------------------------------------------------------------- */

void wire_begin(struct json_text *out) {
  json_begin(out);
  json_open(out, "payload");
}

void wire_add_text(struct json_text *out, const char *name, const char *text) {
  json_add_string(out, name, text, strlen(text));
}

void wire_add_error(struct json_text *out, abp_error code, const char *message, int repeatable) {
  json_open(out, "error");
  wire_add_text(out, "code", abp_error_name((int)code));
  wire_add_text(out, "message", message ? message : abp_error_message((int)code));
  json_add_bool(out, "retryable", repeatable && abp_error_retryable((int)code));
  json_close(out);
}

void wire_add_fate(struct json_text *out, abp_fate fate) {
  if (!fate) return;
  json_open(out, "metadata");
  wire_add_text(out, "outcome", abp_fate_name((int)fate));
  json_close(out);
}

static void add_handshake(const abp_endpoint *ep, struct json_text *out, uint32_t features) {
  wire_add_text(out, "protocolVersion", VERSION);
  for (int i = 0; i < DESCRIPTIONS && ep->about[i].json; i++) {
    /* How long keys are remembered, and by whom, matters only where outcomes do. */
    if (strcmp(ep->about[i].name, "memory") == 0 && !(features & ABP_OUTCOMES)) continue;
    json_add_raw(out, ep->about[i].name, ep->about[i].json, ep->about[i].length);
  }
  json_open(out, "features");
  for (size_t i = 0; i < FEATURE_COUNT; i++) {
    /* What the published protocol does not have is mentioned only where it holds. */
    const uint32_t bit = FEATURES[i].bit;
    const int published = bit < ABP_DYNAMIC_CAPABILITIES ||
                          (bit == ABP_DYNAMIC_CAPABILITIES && ep->config.role == ABP_APP);
    if (published || features & bit) json_add_bool(out, FEATURES[i].name, (features & bit) != 0);
  }
  json_close(out);
}

void wire_add_call_id(const abp_endpoint *ep, const char *name, abp_call call) {
  struct json_text *out = &ep->wire->printed;
  const size_t length = abp_id_text(ep, call, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    abp_id_text(ep, call, text, length);
    json_add_string(out, name, text, length);
    free(text);
  } else {
    out->failed = 1;
  }
}

void wire_add_reply_id(const abp_endpoint *ep, const abp_body *body, abp_call call) {
  if (body && body->id)
    json_add_raw(&ep->wire->printed, "id", body->id, body->id_length);
  else if (call)
    wire_add_call_id(ep, "id", call);
}

/* Whether a cancel is a request of its own, whose answer somebody waits for. That of a question is
 * not: nobody waits for its call, which may be gone by now. */
static int is_request(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = calls_slot(&ep->calls, call);
  return slot != NO_CALL && table_call(&ep->calls.table, slot)->flags & CALL_IS_CANCEL;
}

static void print_cancel(const abp_endpoint *ep, const abp_action *action, struct json_text *out) {
  if (is_request(ep, action->call))
    json_add_string(out, "callId", ep->target.text, ep->target.length);
  else
    wire_add_call_id(ep, "callId", action->call);
  /* A reason that is not well-formed is left out; the cancel is sent all the same. */
  if (action->text && utf8_valid(action->text, action->length))
    json_add_string(out, "reason", action->text, action->length);
}

static void add_probe_id(const abp_endpoint *ep, struct json_text *out, const char *name) {
  char id[PREFIX + sizeof PROBE_SUFFIX];
  memcpy(id, ep->prefix, ep->prefix_length);
  memcpy(id + ep->prefix_length, PROBE_SUFFIX, strlen(PROBE_SUFFIX));
  json_add_string(out, name, id, ep->prefix_length + strlen(PROBE_SUFFIX));
}

static void add_cancel_id(const abp_endpoint *ep, struct json_text *out, abp_call call) {
  if (is_request(ep, call)) {
    wire_add_call_id(ep, "id", call);
    return;
  }
  char id[PREFIX + 12];
  size_t length = ep->prefix_length;
  memcpy(id, ep->prefix, length);
  id[length++] = '.';
  id[length++] = 'c';
  for (int shift = 28; shift >= 0; shift -= 4)
    id[length++] = HEX[call >> shift & 15];
  json_add_string(out, "id", id, length);
}

/* Of an answer that has waited, an action's text is the id of the cancel, then its callId. */
static void print_cancel_result(const abp_endpoint *ep, const abp_action *action,
                                struct json_text *out) {
  static const struct {
    const char *reason;
    abp_error error;
  } ANSWERS[] = {
      [ANSWER_CANCELLED] = {NULL, ABP_NO_ERROR},
      [ANSWER_COMPLETED] = {"Operation already completed", ABP_NO_ERROR},
      [ANSWER_UNKNOWN] = {"It is not known whether the operation has stopped", ABP_NO_ERROR},
      [ANSWER_DECLINED] = {"The app declined the cancel", ABP_NO_ERROR},
      [ANSWER_BUSY] = {"Too many cancels are waiting for an answer", ABP_RATE_LIMITED},
      [ANSWER_NOT_FOUND] = {"Operation not found", ABP_NO_ERROR},
      [ANSWER_NOT_INITIALIZED] = {"There is no session", ABP_NOT_INITIALIZED},
      [ANSWER_INVALID] = {"The callId is not a string", ABP_INVALID_ID},
  };
  const uint32_t answer = action->text ? (uint32_t)action->at : ep->answer;
  const struct json_slice target =
      action->text
          ? (struct json_slice){action->text + action->chunks, action->length - action->chunks}
          : ep->wire->target;
  const char *reason = ANSWERS[answer].reason;
  const abp_error error = ANSWERS[answer].error;
  const char *said = answer == ANSWER_DECLINED ? ep->calls.reason : NULL;
  if (target.text)
    json_add_raw(out, "callId", target.text, target.length);
  else
    wire_add_text(out, "callId", "");
  json_add_bool(out, "cancelled", answer == ANSWER_CANCELLED);
  if (said && utf8_valid(said, ep->calls.reason_length))
    json_add_string(out, "reason", said, ep->calls.reason_length);
  else if (reason)
    wire_add_text(out, "reason", reason);
  if (error) wire_add_error(out, error, NULL, 1);
}

/* The type of the message that is being answered; none if it did not come as text. */
static struct json_slice message_type(const abp_endpoint *ep) {
  return json_string(ep->has_message ? json_member(ep->wire->message, "type") : NULL);
}

/* Writes what is in the message, and returns its type. */
static const char *print_payload(const abp_endpoint *ep, const abp_action *action,
                                 struct json_text *out) {
  if (action->kind == ABP_REFUSE) {
    const struct json_slice type = message_type(ep);
    json_add_bool(out, "success", 0);
    wire_add_error(out, (abp_error)action->arg, NULL, 1);
    if (type.text && strcmp(type.text, "initialize") == 0) return "initialize-result";
    if (ep->config.role == ABP_AGENT) return ABP_TYPE_ANSWER;
    wire_add_fate(out, ABP_FATE_UNSTARTED);
    return ABP_TYPE_CALL_RESULT;
  }
  switch (action->arg) {
  case ABP_MSG_INITIALIZE: add_handshake(ep, out, ep->session.wanted); break;
  case ABP_MSG_INITIALIZE_RESULT:
    wire_add_text(out, "sessionId", ep->prefix);
    add_handshake(ep, out, ep->session.agreed);
    break;
  case ABP_MSG_CANCEL:
    print_cancel(ep, action, out);
    if (ep->config.role == ABP_APP) return TYPES[STREAM_CANCEL].type;
    break;
  case ABP_MSG_CANCEL_RESULT: print_cancel_result(ep, action, out); break;
  case ABP_MSG_BYE: json_add_bool(out, "persisted", ep->session.staying); break;
  case ABP_MSG_PROBE: add_probe_id(ep, out, "callId"); break;
  }
  return TYPES[action->arg].type;
}

const char *wire_finish(abp_endpoint *ep, const char *type, uint64_t unix_ms, size_t *length) {
  struct json_text *out = &ep->wire->printed;
  wire_add_text(out, "type", type);
  json_add_number(out, "timestamp", unix_ms);
  return json_end(out, length);
}

const char *wire_print_control(abp_endpoint *ep, const abp_action *action, uint64_t unix_ms,
                               size_t *length) {
  *length = 0;
  if (!wire_of(ep)) return NULL;
  struct json_text *out = &ep->wire->printed;
  wire_begin(out);
  const char *type = print_payload(ep, action, out);
  json_close(out);
  if (action->kind == ABP_SEND && action->arg == ABP_MSG_CANCEL_RESULT && action->text) {
    if (action->chunks) json_add_raw(out, "id", action->text, action->chunks);
  } else if (action->kind == ABP_REFUSE || action->arg == ABP_MSG_INITIALIZE_RESULT ||
             action->arg == ABP_MSG_CANCEL_RESULT)
    wire_add_reply_id(ep, ep->has_message ? &ep->wire->body : NULL, 0);
  else if (action->arg == ABP_MSG_INITIALIZE)
    wire_add_text(out, "id", ep->prefix);
  else if (action->arg == ABP_MSG_CANCEL && ep->config.role == ABP_AGENT)
    add_cancel_id(ep, out, action->call);
  else if (action->arg == ABP_MSG_PROBE)
    add_probe_id(ep, out, "id");
  return wire_finish(ep, type, unix_ms, length);
}
