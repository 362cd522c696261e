/*
 * The boundary between JSON-RPC's core and JavaScript: all exports of the module. boundary.h has
 * the common part of the boundaries.
 *
 * An id is passed as its abp_id_type and its value: a number, or the length of a text in the
 * scratch, UINT32_MAX if the text is too long or not well-formed. An input returns its first
 * action, or a negative abp_status; next() returns the further actions, and 0 when nothing is left.
 */
#include "../src/abp_rpc.h"

#include "action.h"

#include "rpc_abi.h"

EXPORT("abi") uint32_t abi(void) { return ABP_ABI; }

static abp_packed pack(abp_peer *peer) {
  return abp_peer_next(peer, &action) ? packed(abp_peer_undrained(peer)) : 0;
}

static abp_packed first(abp_peer *peer, int status) { return status < 0 ? status : pack(peer); }

static abp_rpc_id id_of(abp_id_type type, double number) {
  return type == ABP_ID_TEXT ? (abp_rpc_id){ABP_ID_TEXT, buffer, (uint32_t)number, 0}
                             : (abp_rpc_id){type, NULL, 0, number};
}

EXPORT("next") abp_packed next(abp_peer *peer) { return pack(peer); }

/* A replacement for peers that have been freed. It is closed, so that later inputs have no effect.
 */
static abp_peer *ended;

/* The configuration of the next peer, all zero; fill it in, then call create(). */
static abp_peer_config config;
EXPORT("config") void *get_config(void) {
  config = (abp_peer_config){0};
  return &config;
}
/* Creates a peer; 0 when memory is short. */
EXPORT("create") abp_peer *create(double now) {
  if (config.max_id > ABP_MAX_ID_BYTES) config.max_id = ABP_MAX_ID_BYTES;
  if (!ended) {
    ended = abp_peer_new(&(const abp_peer_config){.dialect = ABP_ACP}, 0);
    if (!ended) return NULL;
    abp_peer_lost(ended);
  }
  return abp_peer_new(&config, (uint64_t)now);
}
/* Frees a peer. Returns its replacement from now on. */
EXPORT("destroy") abp_peer *destroy(abp_peer *peer) {
  if (peer != ended) abp_peer_free(peer);
  return ended;
}

EXPORT("advance") abp_packed advance(abp_peer *peer, double now) {
  return first(peer, abp_peer_advance(peer, (uint64_t)now));
}
EXPORT("now") abp_packed at_time(abp_peer *peer, double now) {
  return first(peer, abp_peer_now(peer, (uint64_t)now));
}
EXPORT("malformed") abp_packed malformed(abp_peer *peer, abp_rpc_error fault) {
  return first(peer, abp_peer_malformed(peer, fault));
}
EXPORT("close") abp_packed close_peer(abp_peer *peer) { return first(peer, abp_peer_close(peer)); }
EXPORT("lost") abp_packed lost(abp_peer *peer) { return first(peer, abp_peer_lost(peer)); }
EXPORT("half_closed") abp_packed half_closed(abp_peer *peer) {
  return first(peer, abp_peer_half_closed(peer));
}
EXPORT("closed") int32_t closed(abp_peer *peer) { return abp_peer_closed(peer); }

EXPORT("request")
abp_packed request(abp_peer *peer, uint32_t timeout_ms, uint32_t longest_ms, uint32_t flags,
                   abp_call parent) {
  abp_call call;
  return first(peer, abp_peer_request(peer, timeout_ms, longest_ms, flags, parent, &call));
}
/* The reason is in the scratch; length 0: none. */
EXPORT("cancel") abp_packed cancel(abp_peer *peer, abp_call call, uint32_t reason_length) {
  return first(peer, abp_peer_cancel(peer, call, reason_length ? buffer : NULL, reason_length));
}
EXPORT("unsent") abp_packed unsent(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_send_failed(peer, call));
}
EXPORT("response")
abp_packed response(abp_peer *peer, abp_id_type type, double value, abp_answer answer) {
  const abp_rpc_id id = id_of(type, value);
  return first(peer, abp_peer_response(peer, &id, answer));
}
EXPORT("retry") abp_packed retry(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_retry(peer, call));
}
EXPORT("progress") abp_packed progress(abp_peer *peer, abp_id_type type, double value) {
  const abp_rpc_id id = id_of(type, value);
  return first(peer, abp_peer_progress(peer, &id));
}

EXPORT("received")
abp_packed received(abp_peer *peer, abp_id_type type, double value, abp_rpc_error fault,
                    uint32_t flags) {
  const abp_rpc_id id = id_of(type, value);
  return first(peer, abp_peer_received(peer, &id, fault, flags));
}
EXPORT("start") abp_packed start(abp_peer *peer) { return first(peer, abp_peer_start(peer)); }
/* The reason follows the id in the scratch, from `reason_at` on; length 0: none. */
EXPORT("cancel_received")
abp_packed cancel_received(abp_peer *peer, abp_id_type type, double value, uint32_t reason_at,
                           uint32_t reason_length, uint32_t readable) {
  const abp_rpc_id id = id_of(type, value);
  return first(peer, abp_peer_cancel_received(peer, &id, reason_length ? buffer + reason_at : NULL,
                                              reason_length, (int)readable));
}
EXPORT("stop_received") abp_packed stop_received(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_stop_received(peer, call));
}
EXPORT("withdraw") abp_packed withdraw(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_withdraw(peer, call));
}
EXPORT("postpone") abp_packed postpone(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_postpone(peer, call));
}
EXPORT("begin") abp_packed begin(abp_peer *peer, abp_call call) {
  return first(peer, abp_peer_begin(peer, call));
}
EXPORT("finish") abp_packed finish(abp_peer *peer, abp_call call, abp_ending ending) {
  return first(peer, abp_peer_finish(peer, call, ending));
}
EXPORT("pending") int32_t pending(abp_peer *peer, abp_call call) {
  return abp_peer_pending(peer, call);
}
EXPORT("running") int32_t running(abp_peer *peer, abp_call call) {
  return abp_peer_running(peer, call);
}
/* The outcome of a received request: its abp_fate, and its abp_outcome from bit 8 on. If it has not
 * ended, its handle is the call of the action. */
EXPORT("became") int32_t became(abp_peer *peer, abp_id_type type, double value) {
  const abp_rpc_id id = id_of(type, value);
  abp_outcome outcome;
  const abp_fate fate = abp_peer_became(peer, &id, &outcome, &action.call);
  return (int32_t)((uint32_t)outcome << 8 | (uint32_t)fate);
}

EXPORT("unversioned") int32_t unversioned(abp_peer *peer) { return abp_peer_unversioned(peer); }
EXPORT("cancel_method") const char *cancel_method(abp_peer *peer) {
  return abp_peer_cancel_method(peer);
}
EXPORT("cancel_key") const char *cancel_key(abp_peer *peer) { return abp_peer_cancel_key(peer); }
EXPORT("handshake") const char *handshake(abp_peer *peer) { return abp_peer_handshake(peer); }
EXPORT("subscription") const char *subscription(abp_peer *peer) {
  return abp_peer_subscription(peer);
}
EXPORT("stop_word") const char *stop_word(abp_peer *peer, abp_stop_word word) {
  return abp_peer_stop_word(peer, word);
}
EXPORT("batch_version") const char *batch_version(abp_peer *peer) {
  return abp_peer_batch_version(peer);
}
EXPORT("error_code") int32_t error_code(abp_dialect dialect, abp_rpc_error error) {
  return abp_rpc_error_code(dialect, (int)error);
}
EXPORT("error_message") const char *error_message(abp_rpc_error error) {
  return abp_rpc_error_message((int)error);
}
EXPORT("error_has_no_id") int32_t error_has_no_id(abp_rpc_error error) {
  return abp_rpc_error_has_no_id((int)error);
}
EXPORT("count") uint32_t count(abp_peer *peer, abp_counter counter) {
  return abp_peer_count(peer, counter);
}
