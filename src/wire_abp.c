/*
 * ABP's control plane: session, cancel and its answer, refusals. Reading finds a message's parts
 * and passes them to the endpoint; printing writes an action as the protocol's message.
 * endpoint_calls.c and endpoint_session.c make the decisions. The text of the data plane is in
 * wire_abp_data.c, and responses in wire_abp_response.c.
 */
#include "wire_abp.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define VERSION "0.1"

/* The names of the features, in the order of their bits. */
static const char FEATURES[] = "notifications\0"
                               "progress\0"
                               "elicitation\0"
                               "dynamicCapabilities\0"
                               "bridge.port\0"
                               "bridge.frames\0"
                               "bridge.liveness\0"
                               "bridge.streams\0"
                               "bridge.outcomes\0"
                               "bridge.text";
_Static_assert(ABP_NOTIFICATIONS == 1 && ABP_TEXT == 1 << 9, "each bit has its name");
#define ALL_FEATURES (2 * ABP_TEXT - 1)

/* By kind; then further names of some kinds, which are only read. */
static const char TYPES[] = ABP_TYPE_INITIALIZE
    "\0" ABP_TYPE_INITIALIZE_RESULT "\0"
    "capabilities/cancel\0"
    "capabilities/cancel-result\0" ABP_TYPE_SHUTDOWN "\0"
    "bridge/ping\0"
    "bridge/pong\0"
    "bridge/bye\0"
    "capabilities/cancel\0"
    "bridge/cancel\0" ABP_TYPE_CALL "\0" ABP_TYPE_CALL_RESULT "\0" ABP_TYPE_ANSWER "\0"
    "notification\0"
    "progress\0" ABP_TYPE_QUESTION "\0" ABP_TYPE_CHUNK "\0"
    "bridge/credit\0"
    "cancel-result\0"
    "call-result";

/* The kind of a message of each type, for the receivers in the upper bits. */
#define TO_AGENT (1 << 6)
#define TO_APP (1 << 7)
static const uint8_t KINDS[] = {
    TO_APP | ABP_MSG_INITIALIZE,
    TO_AGENT | ABP_MSG_INITIALIZE_RESULT,
    TO_APP | ABP_MSG_CANCEL,
    TO_AGENT | ABP_MSG_CANCEL_RESULT,
    TO_APP | ABP_MSG_SHUTDOWN,
    TO_APP | TO_AGENT | ABP_MSG_PING,
    TO_APP | TO_AGENT | ABP_MSG_PONG,
    TO_APP | TO_AGENT | ABP_MSG_BYE,
    ABP_MSG_PROBE,
    TO_AGENT | KIND_STREAM_CANCEL,
    TO_APP | KIND_CALL,
    TO_AGENT | KIND_RESULT,
    TO_APP | KIND_ANSWER,
    TO_AGENT | KIND_NOTIFICATION,
    TO_AGENT | KIND_PROGRESS,
    TO_AGENT | KIND_QUESTION,
    TO_APP | TO_AGENT | KIND_CHUNK,
    TO_APP | TO_AGENT | KIND_CREDIT,
    TO_AGENT | ABP_MSG_CANCEL_RESULT,
    TO_AGENT | KIND_RESULT,
};
_Static_assert(ABP_AGENT == 0 && ABP_APP == 1 && sizeof KINDS == KIND_UNKNOWN + 2,
               "roles are bits, and each kind has a type");

static void free_wire(struct wire *wire) {
  abp_json_free(wire->message);
  free(wire->text);
  free(wire->printed.text);
  free(wire);
}

struct wire *abp_wire_of(abp_endpoint *ep) {
  if (!ep->wire) {
    ep->wire = calloc(1, sizeof *ep->wire);
    if (ep->wire) ep->free_wire = free_wire;
  }
  return ep->wire;
}

/* --- Reading ---------------------------------------------------------------------------------- */

void abp_wire_source(const struct wire *wire, const json_value *value, const char **text,
                     size_t *length) {
  const struct json_slice found = abp_json_source(wire->message, wire->text, value);
  *text = found.text;
  *length = found.length;
}

abp_id abp_wire_id_of(const char *text) {
  return (abp_id){text, text ? (uint32_t)strlen(text) : 0, 0};
}

void abp_wire_id(const struct wire *wire, const json_value *value, abp_id *id) {
  struct json_slice text = abp_json_string(value);
  if (abp_json_is_number(value)) abp_wire_source(wire, value, &text.text, &text.length);
  *id = (abp_id){text.text, text.length > UINT32_MAX ? UINT32_MAX : (uint32_t)text.length, 0};
}

abp_error abp_wire_error(const json_value *payload) {
  const char *code = abp_json_member_text(abp_json_member(payload, "error"), "code");
  return code ? abp_error_of(code, strlen(code)) : ABP_NO_ERROR;
}

struct window abp_wire_read_window(const json_value *from) {
  const json_value *stream = abp_json_member(from, "stream");
  return (struct window){abp_wire_window(abp_json_count(abp_json_member(stream, "chunks"))),
                         abp_wire_window(abp_json_count(abp_json_member(stream, "bytes")))};
}

uint32_t abp_wire_window(uint64_t count) {
  return count == UINT64_MAX ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static uint32_t read_features(const json_value *payload) {
  const json_value *features = abp_json_member(payload, "features");
  const char *name = FEATURES;
  uint32_t bits = 0;
  for (uint32_t bit = 1; bit < ALL_FEATURES; bit *= 2, name = nth_text(name, 1)) {
    if (abp_json_is_true(abp_json_member(features, name))) bits |= bit;
  }
  return bits;
}

static int read_initialize(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  ep->session.announced = abp_wire_read_window(payload);
  /* A missing version counts as this one; a version that cannot be read is rejected. */
  const char *version = abp_json_member(payload, "protocolVersion")
                            ? abp_json_member_text(payload, "protocolVersion")
                            : VERSION;
  return abp_endpoint_initialize(ep, id->text, id->length,
                                 abp_json_is_number(abp_json_member(ep->wire->message, "id")),
                                 version, version ? strlen(version) : 0, read_features(payload));
}

static int read_initialize_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  if (!id->text || id->length != ep->prefix_length ||
      memcmp(id->text, ep->prefix, id->length) != 0) {
    abp_endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  ep->session.announced = abp_wire_read_window(payload);
  const struct json_slice session = abp_json_string(abp_json_member(payload, "sessionId"));
  const int busy = abp_wire_error(payload) == ABP_ALREADY_INITIALIZED;
  return abp_endpoint_initialized(ep, session.text, session.length, session.length > 0, busy,
                                  read_features(payload));
}

static int read_cancel(abp_endpoint *ep, const json_value *payload,
                       const struct json_slice *reason) {
  struct cancel_text *from = &ep->wire->cancel;
  const abp_id target = abp_wire_id_of(abp_json_member_text(payload, "callId"));
  abp_wire_source(ep->wire, abp_json_member(payload, "callId"), &from->target,
                  &from->target_length);
  from->id = ep->wire->body.id;
  from->id_length = ep->wire->body.id_length;
  return abp_endpoint_cancel(ep, &target, reason->text, reason->length, from);
}

/* The cancelled call is answered by its own result. */
static int read_stream_cancel(abp_endpoint *ep, const json_value *payload,
                              const struct json_slice *reason) {
  abp_id call;
  abp_wire_id(ep->wire, abp_json_member(payload, "callId"), &call);
  return abp_cancel_received(ep, &call, reason->text, reason->length);
}

/* The suffix of the id of ABP_MSG_PROBE, and of the callId in it: numbers begin at 1. */
#define PROBE_SUFFIX ".0"

static int is_probe(const abp_endpoint *ep, const abp_id *id) {
  const uint32_t length = ep->prefix_length;
  return id->text && id->length == length + strlen(PROBE_SUFFIX) &&
         memcmp(id->text, ep->prefix, length) == 0 &&
         memcmp(id->text + length, PROBE_SUFFIX, strlen(PROBE_SUFFIX)) == 0;
}

/* After a cancel by a signal or a clock, the call waits for its result, but the answer to the
 * cancel decides how the call ends. So the cancel's id is P.c and the handle of its call: no call's
 * id has this letter. add_cancel_id() writes it. Returns 0 for other ids. */
static abp_call stopped_call(const abp_endpoint *ep, const abp_id *id) {
  const uint32_t length = ep->prefix_length;
  if (!id->text || id->length != length + 10 || memcmp(id->text, ep->prefix, length) != 0 ||
      memcmp(id->text + length, ".c", 2) != 0)
    return 0;
  abp_call call = 0;
  for (uint32_t i = length + 2; i < id->length; i++) {
    const char c = id->text[i];
    const uint32_t digit = (uint32_t)(c >= 'a' ? c - 'a' + 10 : c <= '9' ? c - '0' : 16);
    if (digit > 15) return 0;
    call = call << 4 | digit;
  }
  return call;
}

static int read_cancel_result(abp_endpoint *ep, const json_value *payload, const abp_id *id) {
  if (is_probe(ep, id)) return abp_endpoint_probed(ep, abp_wire_error(payload));
  return abp_endpoint_cancel_result(ep, id, stopped_call(ep, id),
                                    abp_json_is_true(abp_json_member(payload, "cancelled")));
}

int abp_wire_parse(abp_endpoint *ep, const char *text, size_t length, json_value **value) {
  int memory = 0;
  *value = length <= ep->config.max_text ? abp_json_parse(text, length, &memory) : NULL;
  if (*value) return ABP_OK;
  if (!memory) abp_endpoint_count(ep, ABP_MALFORMED);
  return memory ? ABP_E_MEMORY : ABP_E_TEXT;
}

int abp_wire_open(abp_endpoint *ep, const char *text, size_t length) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  struct wire *wire = abp_wire_of(ep);
  json_value *message;
  const int status = wire ? abp_wire_parse(ep, text, length, &message) : ABP_E_MEMORY;
  if (status != ABP_OK) return status;
  /* The caller may reuse the memory of its text before it takes the message. */
  char *copy = malloc(length + 1);
  if (!copy) {
    abp_json_free(message);
    return ABP_E_MEMORY;
  }
  memcpy(copy, text, length);
  copy[length] = '\0';
  ep->has_message = MESSAGE_TAKEN;
  abp_json_free(wire->message);
  free(wire->text);
  wire->message = message;
  wire->text = copy;
  memset(&wire->body, 0, sizeof wire->body);
  wire->cancel.target = NULL;
  abp_wire_source(wire, abp_json_member(message, "id"), &wire->body.id, &wire->body.id_length);
  return ABP_OK;
}

int abp_wire_kind(const abp_endpoint *ep) {
  const char *type = abp_json_member_text(ep->wire->message, "type"), *name = TYPES;
  for (size_t i = 0; type && i < sizeof KINDS; i++, name = nth_text(name, 1)) {
    if (strcmp(type, name) == 0)
      return KINDS[i] & TO_AGENT << ep->config.role ? KINDS[i] & (TO_AGENT - 1) : KIND_UNKNOWN;
  }
  return KIND_UNKNOWN;
}

int abp_wire_control(abp_endpoint *ep, int kind, const json_value *payload, const abp_id *id) {
  const struct json_slice reason = abp_json_string(abp_json_member(payload, "reason"));
  switch (kind) {
  case ABP_MSG_INITIALIZE: return read_initialize(ep, payload, id);
  case ABP_MSG_INITIALIZE_RESULT: return read_initialize_result(ep, payload, id);
  case ABP_MSG_CANCEL: return read_cancel(ep, payload, &reason);
  case ABP_MSG_CANCEL_RESULT: return read_cancel_result(ep, payload, id);
  case ABP_MSG_SHUTDOWN: return abp_endpoint_shutdown(ep);
  case ABP_MSG_PING: return abp_endpoint_ping(ep, 0);
  case ABP_MSG_PONG: return abp_endpoint_ping(ep, 1);
  case ABP_MSG_BYE:
    return abp_endpoint_bye(ep, abp_json_is_true(abp_json_member(payload, "persisted")));
  case KIND_STREAM_CANCEL: return read_stream_cancel(ep, payload, &reason);
  default:
    abp_endpoint_count(ep, abp_json_member_text(ep->wire->message, "type") ? ABP_UNKNOWN_TYPE
                                                                           : ABP_MALFORMED);
    return ABP_OK;
  }
}

/* --- Printing --------------------------------------------------------------------------------- */

void abp_wire_begin(struct json_text *out) {
  abp_json_begin(out);
  abp_json_open(out, "payload");
}

void abp_wire_add_text(struct json_text *out, const char *name, const char *text) {
  abp_json_add_string(out, name, text, strlen(text));
}

struct failure abp_wire_failure(abp_error error, abp_fate fate) {
  const char *message = abp_error_message((int)error);
  return (struct failure){abp_error_name((int)error),
                          {message, strlen(message)},
                          abp_error_retryable((int)error),
                          0,
                          fate};
}

static void add_error(struct json_text *out, const struct failure *failure) {
  abp_json_open(out, "error");
  abp_wire_add_text(out, "code", failure->code);
  abp_json_add_string(out, "message", failure->message.text, failure->message.length);
  abp_json_add_bool(out, "retryable", failure->retryable);
  abp_json_close(out);
}

void abp_wire_add_failure(struct json_text *out, const struct failure *failure) {
  abp_json_add_bool(out, "success", 0);
  if (failure->cancelled) abp_json_add_bool(out, "cancelled", 1);
  add_error(out, failure);
  if (!failure->fate) return;
  abp_json_open(out, "metadata");
  abp_wire_add_text(out, "outcome", abp_fate_name((int)failure->fate));
  abp_json_close(out);
}

COLD void abp_wire_add_window(struct json_text *out, uint32_t chunks, uint64_t bytes) {
  abp_json_open(out, "stream");
  abp_json_add_number(out, "chunks", chunks);
  abp_json_add_number(out, "bytes", bytes);
  abp_json_close(out);
}

static void add_handshake(const abp_endpoint *ep, struct json_text *out, uint32_t features) {
  abp_wire_add_text(out, "protocolVersion", VERSION);
  for (int i = 0; i < DESCRIPTIONS && ep->about[i].json; i++) {
    /* The memory of keys is described only if outcomes were agreed on. */
    if (strcmp(ep->about[i].name, "memory") == 0 && !(features & ABP_OUTCOMES)) continue;
    abp_json_add_raw(out, ep->about[i].name, ep->about[i].json, ep->about[i].length);
  }
  abp_json_open(out, "features");
  const char *name = FEATURES;
  for (uint32_t bit = 1; bit < ALL_FEATURES; bit *= 2, name = nth_text(name, 1)) {
    /* Features outside of the published protocol are listed only if they are set. */
    const int published = bit < ABP_DYNAMIC_CAPABILITIES ||
                          (bit == ABP_DYNAMIC_CAPABILITIES && ep->config.role == ABP_APP);
    if (published || features & bit) abp_json_add_bool(out, name, (features & bit) != 0);
  }
  abp_json_close(out);
  if (features & ABP_STREAMS)
    abp_wire_add_window(out, ep->config.stream_chunks, ep->config.stream_bytes);
}

void abp_wire_add_call_id(const abp_endpoint *ep, const char *name, abp_call call) {
  struct json_text *out = &ep->wire->printed;
  const size_t length = abp_id_text(ep, call, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    abp_id_text(ep, call, text, length);
    abp_json_add_string(out, name, text, length);
    free(text);
  } else {
    out->failed = 1;
  }
}

void abp_wire_add_reply_id(const abp_endpoint *ep, const abp_body *body, abp_call call) {
  if (body && body->id)
    abp_json_add_raw(&ep->wire->printed, "id", body->id, body->id_length);
  else if (call)
    abp_wire_add_call_id(ep, "id", call);
}

/* 1 if a cancel is a request of its own, which waits for its answer. The cancel of a question is
 * not: its call waits for no answer, and may be gone by now. */
static int is_request(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  return slot != NO_CALL && table_call(&ep->calls.table, slot)->flags & CALL_IS_CANCEL;
}

static void print_cancel(const abp_endpoint *ep, const abp_action *action, struct json_text *out) {
  if (is_request(ep, action->call))
    abp_json_add_string(out, "callId", ep->target.text, ep->target.length);
  else
    abp_wire_add_call_id(ep, "callId", action->call);
  /* A reason that is not well-formed is left out; the cancel is still sent. */
  if (action->text && abp_utf8_valid(action->text, action->length))
    abp_json_add_string(out, "reason", action->text, action->length);
}

static void add_probe_id(const abp_endpoint *ep, struct json_text *out, const char *name) {
  char id[PREFIX + sizeof PROBE_SUFFIX];
  memcpy(id, ep->prefix, ep->prefix_length);
  memcpy(id + ep->prefix_length, PROBE_SUFFIX, strlen(PROBE_SUFFIX));
  abp_json_add_string(out, name, id, ep->prefix_length + strlen(PROBE_SUFFIX));
}

static void add_cancel_id(const abp_endpoint *ep, struct json_text *out, abp_call call) {
  if (is_request(ep, call)) {
    abp_wire_add_call_id(ep, "id", call);
    return;
  }
  char id[PREFIX + 12];
  size_t length = ep->prefix_length;
  memcpy(id, ep->prefix, length);
  id[length++] = '.';
  id[length++] = 'c';
  for (int shift = 28; shift >= 0; shift -= 4)
    id[length++] = "0123456789abcdef"[call >> shift & 15];
  abp_json_add_string(out, "id", id, length);
}

/* If the answer has waited, the action's text is the id of the cancel, then its callId. */
static void print_cancel_result(const abp_endpoint *ep, const abp_action *action,
                                struct json_text *out) {
  /* By cancel_answer: why the call was not cancelled. */
  static const char REASONS[] = "\0\0"
                                "Operation already completed\0"
                                "It is not known whether the operation has stopped\0"
                                "The app declined the cancel\0"
                                "Too many cancels are waiting for an answer\0"
                                "Operation not found\0"
                                "There is no session\0"
                                "The callId is not a string";
  _Static_assert(ANSWER_CANCELLED == 1 && ANSWER_INVALID == 8, "each answer has its reason");
  const uint32_t answer = action->text ? (uint32_t)action->at : ep->answer;
  const struct json_slice target =
      action->text
          ? (struct json_slice){action->text + action->chunks, action->length - action->chunks}
          : (struct json_slice){ep->wire->cancel.target, ep->wire->cancel.target_length};
  const char *reason = nth_text(REASONS, answer);
  const abp_error error = answer == ANSWER_BUSY              ? ABP_RATE_LIMITED
                          : answer == ANSWER_NOT_INITIALIZED ? ABP_NOT_INITIALIZED
                          : answer == ANSWER_INVALID         ? ABP_INVALID_ID
                                                             : ABP_NO_ERROR;
  const char *own_reason = answer == ANSWER_DECLINED ? ep->calls.reason : NULL;
  abp_json_add_raw(out, "callId", target.text ? target.text : "\"\"",
                   target.text ? target.length : 2);
  abp_json_add_bool(out, "cancelled", answer == ANSWER_CANCELLED);
  if (own_reason && abp_utf8_valid(own_reason, ep->calls.reason_length))
    abp_json_add_string(out, "reason", own_reason, ep->calls.reason_length);
  else if (*reason)
    abp_wire_add_text(out, "reason", reason);
  if (!error) return;
  const struct failure failure = abp_wire_failure(error, ABP_FATE_NONE);
  add_error(out, &failure);
}

/* Writes the payload of a message, and returns its kind. */
static int print_payload(const abp_endpoint *ep, const abp_action *action, struct json_text *out) {
  if (action->kind == ABP_REFUSE) {
    /* A message that did not arrive as text is a call or a question. */
    const int begins = ep->has_message && abp_wire_kind(ep) == ABP_MSG_INITIALIZE;
    const int app = ep->config.role == ABP_APP;
    const struct failure failure = abp_wire_failure(
        (abp_error)action->arg, app && !begins ? ABP_FATE_UNSTARTED : ABP_FATE_NONE);
    abp_wire_add_failure(out, &failure);
    if (begins) return ABP_MSG_INITIALIZE_RESULT;
    return app ? KIND_RESULT : KIND_ANSWER;
  }
  switch (action->arg) {
  case ABP_MSG_INITIALIZE: add_handshake(ep, out, ep->session.wanted); break;
  case ABP_MSG_INITIALIZE_RESULT:
    abp_wire_add_text(out, "sessionId", ep->prefix);
    add_handshake(ep, out, ep->session.agreed);
    break;
  case ABP_MSG_CANCEL:
    print_cancel(ep, action, out);
    if (ep->config.role == ABP_APP) return KIND_STREAM_CANCEL;
    break;
  case ABP_MSG_CANCEL_RESULT: print_cancel_result(ep, action, out); break;
  case ABP_MSG_BYE:
    abp_json_add_bool(out, "persisted", ep->session.parting == PARTING_STAYS);
    if (ep->session.parting == PARTING_UNREAD) {
      const struct failure failure = abp_wire_failure(ABP_PARSE_ERROR, ABP_FATE_NONE);
      add_error(out, &failure);
    }
    break;
  case ABP_MSG_PROBE: add_probe_id(ep, out, "callId"); break;
  }
  return (int)action->arg;
}

const char *abp_wire_finish(abp_endpoint *ep, int kind, uint64_t unix_ms, size_t *length) {
  struct json_text *out = &ep->wire->printed;
  abp_wire_add_text(out, "type", nth_text(TYPES, (uint32_t)kind));
  abp_json_add_number(out, "timestamp", unix_ms);
  return abp_json_end(out, length);
}

int abp_wire_print_control(const abp_endpoint *ep, const abp_action *action) {
  struct json_text *out = &ep->wire->printed;
  abp_wire_begin(out);
  const int kind = print_payload(ep, action, out);
  abp_json_close(out);
  if (action->kind == ABP_SEND && action->arg == ABP_MSG_CANCEL_RESULT && action->text) {
    if (action->chunks) abp_json_add_raw(out, "id", action->text, action->chunks);
  } else if (action->kind == ABP_REFUSE || action->arg == ABP_MSG_INITIALIZE_RESULT ||
             action->arg == ABP_MSG_CANCEL_RESULT)
    abp_wire_add_reply_id(ep, ep->has_message ? &ep->wire->body : NULL, 0);
  else if (action->arg == ABP_MSG_INITIALIZE)
    abp_wire_add_text(out, "id", ep->prefix);
  else if (action->arg == ABP_MSG_CANCEL && ep->config.role == ABP_AGENT)
    add_cancel_id(ep, out, action->call);
  else if (action->arg == ABP_MSG_PROBE)
    add_probe_id(ep, out, "id");
  return kind;
}
