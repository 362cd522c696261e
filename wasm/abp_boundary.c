/*
 * The boundary between ABP's core and JavaScript: what the module exports, all of it. What the
 * boundaries have in common is in boundary.h.
 *
 * Ids go in either as text in the scratch (`id_length`) or as `number`. An input returns its first
 * action, or a negative abp_status; next() returns the following ones, 0 when nothing is left.
 */
#include "../src/wire_abp.h"

#include "action.h"

#ifndef ABP_ABI
#include "abp_abi.h"
#endif

_Static_assert(ABP_SLOT_MASK == (1 << SLOT_BITS) - 1, "JavaScript finds a call's slot by it");

EXPORT("abi") uint32_t abi(void) { return ABP_ABI; }

static abp_packed pack(abp_endpoint *ep) {
  return abp_next(ep, &action) ? packed(endpoint_undrained(ep)) : 0;
}

static abp_packed first(abp_endpoint *ep, int status) { return status < 0 ? status : pack(ep); }

static abp_id id_of(uint32_t id_length, abp_call_number number) {
  return (abp_id){number ? NULL : buffer, id_length, number};
}

EXPORT("next") abp_packed next(abp_endpoint *ep) { return pack(ep); }
/* Stands in for endpoints that have been freed: it never has a session, so whatever still comes for
 * one of them finds none. */
static abp_endpoint *ended;

/* The configuration of the next endpoint, all zero; fill it in, then create(). */
static abp_config config;
EXPORT("config") void *get_config(void) {
  config = (abp_config){0};
  return &config;
}
/* A new endpoint, or 0 when memory is short. */
EXPORT("create") abp_endpoint *create(double now) {
  if (config.max_id > ABP_MAX_ID_BYTES) config.max_id = ABP_MAX_ID_BYTES;
  if (!ended) ended = abp_new(&(const abp_config){.role = ABP_AGENT}, 0);
  return ended ? abp_new(&config, (uint64_t)now) : NULL;
}
/* Frees an endpoint. Returns what to use in its place from now on. */
EXPORT("destroy") abp_endpoint *destroy(abp_endpoint *ep) {
  if (ep != ended) abp_free(ep);
  return ended;
}

/* In the scratch: the member's name, terminated, and the JSON from byte 32. */
EXPORT("describe") enum abp_status describe(abp_endpoint *ep, uint32_t length) {
  return (enum abp_status)abp_describe(ep, buffer, buffer + 32, length);
}

EXPORT("connect") abp_packed connect(abp_endpoint *ep, uint32_t timeout_ms) {
  return first(ep, abp_connect(ep, timeout_ms));
}
EXPORT("close") abp_packed close_session(abp_endpoint *ep) { return first(ep, abp_close(ep)); }
EXPORT("lost") abp_packed lost(abp_endpoint *ep) { return first(ep, abp_lost(ep)); }
EXPORT("suspect") abp_packed suspect(abp_endpoint *ep) { return first(ep, abp_suspect(ep)); }

/* The code is in the scratch. */
EXPORT("refused") abp_packed refused(abp_endpoint *ep, uint32_t code_length) {
  return first(ep, abp_refused(ep, buffer, code_length));
}

EXPORT("leave") abp_packed leave(abp_endpoint *ep, uint32_t persisted) {
  return first(ep, abp_leave(ep, (int)persisted));
}
EXPORT("advance") abp_packed advance(abp_endpoint *ep, double now) {
  return first(ep, abp_advance(ep, (uint64_t)now));
}

/* 0 for id_length and number mints an id. */
EXPORT("request")
abp_packed request(abp_endpoint *ep, uint32_t id_length, uint32_t timeout_ms, uint32_t flags,
                   abp_call parent) {
  const abp_id id = id_of(id_length, 0);
  abp_call call;
  return first(ep, abp_request(ep, id_length ? &id : NULL, timeout_ms, flags, parent, &call));
}
/* The reason is in the scratch; length 0 is none. */
EXPORT("cancel") abp_packed cancel(abp_endpoint *ep, abp_call call, uint32_t reason_length) {
  return first(ep, abp_cancel(ep, call, reason_length ? buffer : NULL, reason_length));
}
/* The reason follows the id in the scratch. */
EXPORT("cancel_by_id")
abp_packed cancel_by_id(abp_endpoint *ep, uint32_t id_length, uint32_t reason_length) {
  const abp_id id = id_of(id_length, 0);
  abp_call call;
  return first(ep, abp_cancel_by_id(ep, &id, reason_length ? buffer + id_length : NULL,
                                    reason_length, &call));
}
EXPORT("result_received")
abp_packed result_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                           abp_outcome outcome) {
  const abp_id id = id_of(id_length, number);
  return first(ep, abp_result_received(ep, &id, outcome));
}
EXPORT("unsent") abp_packed unsent(abp_endpoint *ep, abp_call call) {
  return first(ep, abp_send_failed(ep, call));
}
EXPORT("progress_received")
abp_packed progress_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number) {
  const abp_id id = id_of(id_length, number);
  return first(ep, abp_progress_received(ep, &id));
}
EXPORT("progress_wanted") int32_t progress_wanted(abp_endpoint *ep, abp_call call) {
  return abp_progress_wanted(ep, call);
}

/* What a peer says of a stream. UINT64_MAX is what is no whole number in 0..2^53. */
static uint64_t count_of(double number) {
  if (!(number >= 0 && number <= 9007199254740992.0)) return UINT64_MAX;
  const uint64_t count = (uint64_t)number;
  return (double)count == number ? count : UINT64_MAX;
}
/* 0 is no window, and so is what is no whole number. */
static uint32_t window_of(double number) {
  const uint64_t count = count_of(number);
  return count == UINT64_MAX ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}
/* `chunks` and `bytes` are the window of a stream, 0 of any other call. The call that a question is
 * about follows the id in the scratch; length 0 is none. */
EXPORT("call_received")
abp_packed call_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                         uint32_t timeout_ms, uint32_t flags, double chunks, double bytes,
                         abp_error fault, uint32_t about_length) {
  const abp_id id = id_of(id_length, number), about = {buffer + id_length, about_length, 0};
  return first(ep, endpoint_receive(ep, &id, timeout_ms, flags, window_of(chunks), window_of(bytes),
                                    about_length ? &about : NULL, fault));
}
EXPORT("stream_wanted") int32_t stream_wanted(abp_endpoint *ep, abp_call call) {
  return abp_stream_wanted(ep, call);
}
EXPORT("chunk") abp_packed chunk(abp_endpoint *ep, abp_call call, double size) {
  return first(ep, abp_chunk(ep, call, count_of(size)));
}
EXPORT("chunk_received")
abp_packed chunk_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number, double size,
                          uint32_t seen) {
  const abp_id id = id_of(id_length, number);
  return first(ep, abp_chunk_measured(ep, &id, count_of(size), seen));
}
EXPORT("chunk_read") abp_packed chunk_read(abp_endpoint *ep, abp_call call, double size) {
  return first(ep, abp_chunk_read(ep, call, count_of(size)));
}
EXPORT("credit_received")
abp_packed credit_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                           double chunks, double bytes) {
  const abp_id id = id_of(id_length, number);
  return first(ep, abp_credit_received(ep, &id, count_of(chunks), count_of(bytes)));
}

/* The reason follows the id in the scratch. */
EXPORT("cancel_received")
abp_packed cancel_received(abp_endpoint *ep, uint32_t id_length, abp_call_number number,
                           uint32_t reason_length) {
  const abp_id id = id_of(id_length, number);
  const char *reason = reason_length ? buffer + id_length : NULL;
  return first(ep, abp_cancel_received(ep, &id, reason, reason_length));
}
/* The reason is in the scratch; length 0 is none. */
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

/* What became of a received call: its abp_fate, and its abp_outcome from bit 8 on. If it has not
 * ended, it is the call of the action. */
EXPORT("became") int32_t became(abp_endpoint *ep, uint32_t id_length) {
  const abp_id id = id_of(id_length, 0);
  abp_outcome outcome;
  const abp_fate fate = abp_became(ep, &id, &outcome, &action.call);
  return (int32_t)((uint32_t)outcome << 8 | (uint32_t)fate);
}

/* The message is in the scratch. */
EXPORT("receive") abp_packed receive(abp_endpoint *ep, uint32_t length) {
  return first(ep, wire_receive_control(ep, buffer, length));
}
/* The text of the ABP_SEND or ABP_REFUSE just taken, terminated; 0 when memory is short. */
EXPORT("print") const char *print(abp_endpoint *ep, double unix_ms) {
  size_t length;
  return wire_print_control(ep, &action, (uint64_t)unix_ms, &length);
}
/* Writes the call's id to the scratch, at most max_id and some bytes, and returns its length. */
EXPORT("id_text") uint32_t id_text(abp_endpoint *ep, abp_call call) {
  return scratch(ABP_SCRATCH_BYTES) ? (uint32_t)abp_id_text(ep, call, buffer, ABP_SCRATCH_BYTES)
                                    : 0;
}
EXPORT("number") abp_call_number number(abp_endpoint *ep, abp_call call) {
  return abp_number(ep, call);
}
/* The protocol's error for a code: its name, what it says, and whether the same call may succeed
 * later. The texts are terminated. */
EXPORT("error_name") const char *error_name(abp_error code) { return abp_error_name((int)code); }
EXPORT("error_message") const char *error_message(abp_error code) {
  return abp_error_message((int)code);
}
EXPORT("error_retryable") int32_t error_retryable(abp_error code) {
  return abp_error_retryable((int)code);
}
EXPORT("features") uint32_t features(abp_endpoint *ep) { return abp_features(ep); }
EXPORT("state") abp_session state(abp_endpoint *ep) { return abp_session_state(ep); }
EXPORT("count") uint32_t count(abp_endpoint *ep, abp_counter counter) {
  return abp_count(ep, counter);
}
