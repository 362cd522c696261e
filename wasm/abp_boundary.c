/*
 * The boundary between ABP's core and JavaScript: all exports of the module. boundary.h has the
 * common part of the boundaries.
 *
 * Ids are passed either as text in the scratch (`id_length`) or as `number`. An input returns its
 * first action, or a negative abp_status; next() returns the further actions, and 0 when nothing is
 * left.
 */
#include "../src/wire_abp.h"

#include "action.h"

#ifndef ABP_ABI
#include "abp_abi.h"
#endif

_Static_assert(ABP_SLOT_MASK == (1 << SLOT_BITS) - 1, "JavaScript finds a call's slot by it");

EXPORT("abi") uint32_t abi(void) { return ABP_ABI; }

static abp_packed pack(abp_endpoint *ep) {
  return abp_next(ep, &action) ? packed(abp_endpoint_undrained(ep)) : 0;
}

static abp_packed first(abp_endpoint *ep, int status) { return status < 0 ? status : pack(ep); }

/* The ids of the current input; the second is that of a call that it is about. */
static abp_id ids[2];
ONE_COPY static const abp_id *id_of(uint32_t id_length, abp_call_number number) {
  ids[0] = (abp_id){number ? NULL : buffer, id_length, number};
  return ids;
}

/* A time in ms. */
ONE_COPY static uint64_t ms_of(double ms) { return (uint64_t)ms; }

EXPORT("next") abp_packed next(abp_endpoint *ep) { return pack(ep); }
/* Replacements for endpoints that have been freed, by role and by how their session ended: later
 * inputs for such an endpoint have no effect. */
static abp_endpoint *ended[ABP_APP + 1][ABP_SESSION_LOST + 1];

static abp_endpoint *stand_in(abp_role role, abp_session state) {
  abp_endpoint **place = &ended[role][state];
  if (!*place) *place = abp_new(&(const abp_config){.role = role}, 0);
  if (*place) (*place)->session.state = state;
  return *place;
}

/* The configuration of the next endpoint, all zero; fill it in, then call create(). */
static abp_config config;
EXPORT("config") void *get_config(void) {
  config = (abp_config){0};
  return &config;
}
/* Creates an endpoint; 0 when memory is short. */
EXPORT("create") abp_endpoint *create(double now) {
  if (config.max_id > ABP_MAX_ID_BYTES) config.max_id = ABP_MAX_ID_BYTES;
  return stand_in(config.role, ABP_SESSION_NONE) ? abp_new(&config, ms_of(now)) : NULL;
}
/* Frees an endpoint. Returns its replacement from now on. */
EXPORT("destroy") abp_endpoint *destroy(abp_endpoint *ep) {
  const abp_role role = ep->config.role;
  const abp_session state = ep->session.state;
  if (ep == ended[role][state]) return ep;
  abp_free(ep);
  const int over = state > ABP_SESSION_READY;
  abp_endpoint *stands = stand_in(role, over ? state : ABP_SESSION_NONE);
  return stands ? stands : ended[role][ABP_SESSION_NONE];
}

/* In the scratch: the member's name, terminated, and the JSON from byte 32 on. */
EXPORT("describe") enum abp_status describe(abp_endpoint *ep, uint32_t length) {
  return (enum abp_status)abp_describe(ep, buffer, buffer + 32, length);
}

EXPORT("connect") abp_packed connect(abp_endpoint *ep, uint32_t timeout_ms) {
  return first(ep, abp_connect(ep, timeout_ms));
}
EXPORT("close") abp_packed close_session(abp_endpoint *ep) { return first(ep, abp_close(ep)); }
EXPORT("lost") abp_packed lost(abp_endpoint *ep) { return first(ep, abp_lost(ep)); }
EXPORT("unread") abp_packed unread(abp_endpoint *ep) { return first(ep, abp_unread(ep)); }
EXPORT("suspect") abp_packed suspect(abp_endpoint *ep) { return first(ep, abp_suspect(ep)); }

EXPORT("leave") abp_packed leave(abp_endpoint *ep, uint32_t persisted) {
  return first(ep, abp_leave(ep, (int)persisted));
}
EXPORT("advance") abp_packed advance(abp_endpoint *ep, double now) {
  return first(ep, abp_advance(ep, ms_of(now)));
}

/* If id_length is 0, an id is chosen. `bytes` is the window of a stream; 0 is the default. */
EXPORT("request")
abp_packed request(abp_endpoint *ep, uint32_t id_length, uint32_t timeout_ms, uint32_t flags,
                   abp_call parent, uint32_t bytes) {
  const abp_id *id = id_length ? id_of(id_length, 0) : NULL;
  return first(ep, abp_stream_request(ep, id, timeout_ms, flags, bytes, parent, &action.call));
}
/* The reason is in the scratch; length 0: none. */
EXPORT("cancel") abp_packed cancel(abp_endpoint *ep, abp_call call, uint32_t reason_length) {
  return first(ep, abp_cancel(ep, call, reason_length ? buffer : NULL, reason_length));
}
/* The reason follows the id in the scratch. */
EXPORT("cancel_by_id")
abp_packed cancel_by_id(abp_endpoint *ep, uint32_t id_length, uint32_t reason_length) {
  const abp_id *id = id_of(id_length, 0);
  return first(ep, abp_cancel_by_id(ep, id, reason_length ? buffer + id_length : NULL,
                                    reason_length, &action.call));
}
/* A result with a value arrived. */
EXPORT("value_received")
abp_packed value_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number) {
  const abp_id *id = id_of(id_length, number);
  return first(ep, abp_result_received(ep, id, ABP_COMPLETED));
}
EXPORT("unsent") abp_packed unsent(abp_endpoint *ep, abp_call call) {
  return first(ep, abp_send_failed(ep, call));
}
EXPORT("progress_received")
abp_packed progress_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number) {
  const abp_id *id = id_of(id_length, number);
  return first(ep, abp_progress_received(ep, id));
}
EXPORT("has_begun") int32_t has_begun(abp_endpoint *ep, abp_call call) {
  return abp_has_begun(ep, call);
}
EXPORT("has_ended") int32_t has_ended(abp_endpoint *ep, abp_call call) {
  return abp_has_ended(ep, call);
}
EXPORT("progress_wanted") int32_t progress_wanted(abp_endpoint *ep, abp_call call) {
  return abp_progress_wanted(ep, call);
}

/* `chunks` and `bytes` are the window of a stream, 0 for other calls. The id of the call that a
 * question is about follows the id in the scratch; length 0: none. */
EXPORT("call_received")
abp_packed call_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                         uint32_t timeout_ms, uint32_t flags, double chunks, double bytes,
                         abp_error fault, uint32_t about_length) {
  const abp_id *id = id_of(id_length, number);
  ids[1] = (abp_id){buffer + id_length, about_length, 0};
  return first(ep, abp_endpoint_receive(ep, id, timeout_ms, flags,
                                        abp_wire_window(abp_json_whole(chunks)),
                                        abp_wire_window(abp_json_whole(bytes)),
                                        about_length ? &ids[1] : NULL, fault));
}
EXPORT("stream_wanted") int32_t stream_wanted(abp_endpoint *ep, abp_call call) {
  return abp_stream_wanted(ep, call);
}
EXPORT("chunk") abp_packed chunk(abp_endpoint *ep, abp_call call, double size) {
  return first(ep, abp_chunk(ep, call, abp_json_whole(size)));
}
EXPORT("chunk_received")
abp_packed chunk_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number, double size,
                          uint32_t seen) {
  const abp_id *id = id_of(id_length, number);
  return first(ep, abp_chunk_measured(ep, id, abp_json_whole(size), seen));
}
EXPORT("chunk_read") abp_packed chunk_read(abp_endpoint *ep, abp_call call, double size) {
  return first(ep, abp_chunk_read(ep, call, abp_json_whole(size)));
}
EXPORT("credit_received")
abp_packed credit_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                           double chunks, double bytes) {
  const abp_id *id = id_of(id_length, number);
  return first(ep, abp_credit_received(ep, id, abp_json_whole(chunks), abp_json_whole(bytes)));
}

/* The reason follows the id in the scratch. */
EXPORT("cancel_received")
abp_packed cancel_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                           uint32_t reason_length) {
  const abp_id *id = id_of(id_length, number);
  const char *reason = reason_length ? buffer + id_length : NULL;
  return first(ep, abp_cancel_received(ep, id, reason, reason_length));
}
/* The reason is in the scratch; length 0: none. */
EXPORT("cancel_answered")
abp_packed cancel_answered(abp_endpoint *ep, abp_call call, uint32_t accepted,
                           uint32_t reason_length) {
  return first(ep, abp_cancel_answered(ep, call, (int)accepted, reason_length ? buffer : NULL,
                                       reason_length));
}
EXPORT("goes_on") abp_packed goes_on(abp_endpoint *ep, abp_call call) {
  return first(ep, abp_goes_on(ep, call));
}
EXPORT("postpone") abp_packed postpone(abp_endpoint *ep, abp_call call) {
  return first(ep, abp_postpone(ep, call));
}
EXPORT("begin") abp_packed begin(abp_endpoint *ep, abp_call call) {
  return first(ep, abp_begin(ep, call));
}
EXPORT("call_local")
abp_packed call_local(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms, abp_error fault) {
  return first(ep, abp_call_local(ep, parent, timeout_ms, fault));
}
EXPORT("finish")
abp_packed finish(abp_endpoint *ep, abp_call call, abp_outcome outcome, abp_fate fate) {
  return first(ep, abp_finish_with_fate(ep, call, outcome, fate));
}

/* The outcome of a received call: its abp_fate, and its abp_outcome from bit 8 on. If it has not
 * ended, its handle is the call of the action. */
EXPORT("became") int32_t became(abp_endpoint *ep, abp_call call) {
  abp_outcome outcome;
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  const abp_fate fate = abp_calls_became(&ep->calls, slot, &outcome, &action.call);
  return (int32_t)((uint32_t)outcome << 8 | (uint32_t)fate);
}
/* The handle of a received call while it is remembered, else 0. */
EXPORT("remembered") abp_call remembered(abp_endpoint *ep, uint32_t id_length) {
  const abp_id *id = id_of(id_length, 0);
  const uint32_t slot = abp_endpoint_remembered(ep, id);
  return slot == NO_CALL ? 0 : abp_calls_handle(&ep->calls, slot);
}

/* The message is in the scratch. ABP_FOLLOWS: it is a call or a question, for take(). */
EXPORT("receive") abp_packed receive(abp_endpoint *ep, uint32_t length) {
  const int status = abp_read(ep, buffer, length);
  return status > 0 ? ABP_FOLLOWS : first(ep, status < 0 ? status : abp_take(ep, 0, ABP_NO_ERROR));
}
EXPORT("take") abp_packed take(abp_endpoint *ep, uint32_t flags, abp_error fault) {
  return first(ep, abp_take(ep, flags, fault));
}
/* The parts of the message that was received: an abp_body. */
EXPORT("received") const void *received(abp_endpoint *ep) { return abp_received(ep); }
EXPORT("outcome_received")
abp_packed outcome_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                            abp_response response) {
  const abp_id *id = id_of(id_length, number);
  return first(ep, abp_outcome_received(ep, id, response));
}
EXPORT("finish_with_outcome")
abp_packed finish_with_outcome(abp_endpoint *ep, abp_call call, abp_response response) {
  return first(ep, abp_finish_with_outcome(ep, call, response));
}

/* The length of the last printed text. Unused: the texts are terminated. */
static size_t printed;

/* The text of the ABP_SEND or ABP_REFUSE just taken, terminated; 0 when memory is short. */
EXPORT("print") const char *print(abp_endpoint *ep, double unix_ms) {
  return abp_wire_print(ep, &action, NULL, ms_of(unix_ms), &printed);
}
static void cut(const char **at, const char **text, size_t *length, uint32_t of) {
  *text = of ? *at : NULL;
  *length = of;
  *at += of;
}
/* The same for an action that was taken before, for progress (ABP_REPORT) and for a notification
 * (ABP_NOTIFY); 0 if its call is over, too. The parts are in the scratch, one after the other. */
EXPORT("print_body")
const char *print_body(abp_endpoint *ep, abp_kind kind, abp_call call, uint32_t chunks, double at,
                       double unix_ms, uint32_t name, uint32_t payload, uint32_t token,
                       uint32_t key, uint32_t repeats, int32_t input) {
  const char *text = buffer;
  abp_body body = {.input = input};
  cut(&text, &body.name, &body.name_length, name);
  cut(&text, &body.payload, &body.payload_length, payload);
  cut(&text, &body.token, &body.token_length, token);
  cut(&text, &body.key, &body.key_length, key);
  cut(&text, &body.repeats, &body.repeats_length, repeats);
  const uint64_t now = ms_of(unix_ms);
  if (kind == ABP_REPORT) return abp_print_progress_token(ep, call, &body, now, &printed);
  if (kind == ABP_NOTIFY) return abp_print_notification(ep, &body, now, &printed);
  const abp_action of = {.kind = kind, .call = call, .chunks = chunks, .at = ms_of(at)};
  return abp_wire_print(ep, &of, &body, now, &printed);
}
/* The failure of a call with this end and this `response`, 0 if there is none. `how`: 1 it expired,
 * 2 it may run twice, 4 there is a reason, 8 the reason is not empty. */
EXPORT("failure")
abp_failure failure(abp_endpoint *ep, abp_kind kind, uint32_t arg, abp_fate fate,
                    abp_response response, uint32_t how) {
  const abp_action ending = {.kind = kind, .arg = arg, .fate = fate};
  const abp_told told = {.reason = how & 4 ? "" : NULL,
                         .reason_length = how >> 3 & 1,
                         .expired = (int)(how & 1),
                         .repeatable = (int)(how & 2)};
  return abp_failure_told(ep, &ending, &told, response);
}
/* The message of a response that has no message of its own, terminated. */
EXPORT("response_message") const char *response_message(abp_response response) {
  return abp_response_message(response);
}
/* The texts of an error, terminated; empty if there is no such error. */
EXPORT("error_name") const char *error_name(uint32_t error) { return abp_error_name((int)error); }
EXPORT("error_message") const char *error_message(uint32_t error) {
  return abp_error_message((int)error);
}
EXPORT("status_error") abp_error status_error(abp_endpoint *ep, int32_t status, int32_t parent) {
  return abp_status_error(ep, status, parent);
}
/* Writes the call's id to the scratch, a little more than max_id bytes at most, and returns its
 * length. */
EXPORT("id_text") uint32_t id_text(abp_endpoint *ep, abp_call call) {
  return scratch(ABP_SCRATCH_BYTES) ? (uint32_t)abp_id_text(ep, call, buffer, ABP_SCRATCH_BYTES)
                                    : 0;
}
EXPORT("features") uint32_t features(abp_endpoint *ep) { return abp_features(ep); }
EXPORT("state") abp_session state(abp_endpoint *ep) { return abp_session_state(ep); }
EXPORT("count") uint32_t count(abp_endpoint *ep, abp_counter counter) {
  return abp_count(ep, counter);
}
