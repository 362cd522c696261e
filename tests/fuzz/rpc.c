/*
 * Every input of a JSON-RPC peer, in any order and with any value: a byte says which, the bytes
 * after it with what. This is what JavaScript can ask of it, and more.
 */
#include "rpc.h"

#include "side.h"

#include <string.h>

enum { MOST = 64 };

/* Every request that has a handle, and what was said of it: 1 << abp_kind, or'ed. */
static struct known {
  abp_call handle;
  uint32_t said;
} calls[MOST];

static struct known *know(abp_call handle) {
  struct known *free_place = NULL;
  for (int i = 0; i < MOST; i++) {
    if (calls[i].handle == handle) return &calls[i];
    if (!calls[i].handle) free_place = &calls[i];
  }
  REQUIRE(free_place);
  *free_place = (struct known){handle, 0};
  return free_place;
}

static abp_rpc_id take_rpc_id(struct bytes *bytes) {
  static const double numbers[] = {0, 1, 2, 3, -1, 1.5, 4294967296., 9007199254740992., 1e300};
  static const char *const texts[] = {"", "1", "\xff",
                                      "an-id-that-is-longer-than-a-cell-of-the-table-can-hold"};
  const uint8_t choice = take8(bytes);
  if (choice < 128) return (abp_rpc_id){ABP_ID_NUMBER, NULL, 0, numbers[choice % 9]};
  if (choice < 160) return (abp_rpc_id){ABP_ID_NUMBER, NULL, 0, take32(bytes)};
  if (choice < 176) return (abp_rpc_id){ABP_ID_NULL, NULL, 0, 0};
  if (choice < 184) return (abp_rpc_id){(abp_id_type)(choice & 7), texts[0], 0, 0};
  if (choice < 192) return (abp_rpc_id){ABP_ID_TEXT, NULL, UINT32_MAX, 0};
  if (choice < 232)
    return (abp_rpc_id){ABP_ID_TEXT, texts[choice & 3], (uint32_t)strlen(texts[choice & 3]), 0};
  const uint32_t wanted = choice & 15;
  const abp_rpc_id id = {ABP_ID_TEXT, (const char *)bytes->at,
                         wanted < bytes->left ? wanted : (uint32_t)bytes->left, 0};
  bytes->at += id.length;
  bytes->left -= id.length;
  return id;
}

static abp_call take_call(struct bytes *bytes) {
  const uint8_t choice = take8(bytes);
  return choice < 224 ? calls[choice % MOST].handle : take32(bytes);
}

static void drain(abp_peer *peer, int status) {
  abp_action action;
  int count = 0;
  REQUIRE(status <= ABP_OK && status != ABP_E_MEMORY && status != ABP_E_UNDRAINED);
  while (abp_peer_next(peer, &action)) {
    REQUIRE(++count < 4 * MOST && (status == ABP_OK || action.kind == ABP_WAKE));
    if (action.kind == ABP_REFUSE) {
      REQUIRE(abp_rpc_error_code((abp_dialect)0, (int)action.arg) || action.arg >= ABP_RPC_ERRORS);
      continue;
    }
    if (!action.call || action.kind == ABP_REPORT) continue;
    struct known *call = know(action.call);
    const uint32_t bit = 1u << action.kind;
    /* Each thing is said of a request once; that it is aborted, again if the line breaks. */
    REQUIRE(!(call->said & bit) || action.kind == ABP_ABORT);
    REQUIRE(action.kind != ABP_SEND || abp_peer_number(peer, action.call));
    REQUIRE(!(action.kind == ABP_RESULT || action.kind == ABP_SETTLE) ||
            (action.arg >= ABP_COMPLETED && action.arg <= ABP_DISCONNECTED));
    call->said |= bit;
    if (action.released) call->handle = 0;
  }
  REQUIRE(!abp_peer_undrained(peer));
  side_check_calls(abp_peer_calls(peer), 0);
}

static void step(abp_peer *peer, struct bytes *bytes, uint64_t *now) {
  const uint8_t op = take8(bytes);
  const uint32_t ms = op & 128 ? take8(bytes) : 0;
  abp_call call = 0;
  abp_rpc_id id;
  switch (op % 16) {
  case 0:
    *now += take8(bytes) * 4u;
    drain(peer, op & 64 ? abp_peer_now(peer, *now) : abp_peer_advance(peer, *now));
    return;
  case 1: drain(peer, abp_peer_malformed(peer, (abp_rpc_error)take8(bytes))); return;
  case 2:
    if (take8(bytes) == 0) drain(peer, abp_peer_close(peer));
    return;
  case 3:
    switch (take8(bytes)) {
    case 0: drain(peer, abp_peer_lost(peer)); return;
    case 1: drain(peer, abp_peer_half_closed(peer)); return;
    default: return;
    }
  case 4:
  case 5:
    drain(peer,
          abp_peer_request(peer, ms, op & 64 ? take8(bytes) : 0, (op >> 4 & 15) | (op & 2 ? 96 : 0),
                           op & 1 ? take_call(bytes) : 0, &call));
    return;
  case 6: drain(peer, abp_peer_cancel(peer, take_call(bytes), "why", 3)); return;
  case 7: drain(peer, abp_peer_send_failed(peer, take_call(bytes))); return;
  case 8:
    id = take_rpc_id(bytes);
    drain(peer, abp_peer_response(peer, &id, (abp_answer)(op >> 6)));
    return;
  case 9:
    id = take_rpc_id(bytes);
    drain(peer, abp_peer_progress(peer, &id));
    return;
  case 10:
  case 11:
    id = take_rpc_id(bytes);
    drain(peer, abp_peer_received(peer, &id, (abp_rpc_error)(op & 128 ? take8(bytes) : 0),
                                  op & 64 ? ABP_SUBSCRIPTION : 0));
    return;
  case 12:
    if (op & 128 && take8(bytes) & 1)
      drain(peer, abp_peer_retry(peer, take_call(bytes)));
    else if (op & 64)
      drain(peer, op & 128 ? abp_peer_begin(peer, take_call(bytes))
                           : abp_peer_postpone(peer, take_call(bytes)));
    else
      drain(peer, abp_peer_start(peer));
    return;
  case 13:
    id = take_rpc_id(bytes);
    drain(peer, abp_peer_cancel_received(peer, &id, op & 64 ? "why" : NULL, 3, op >> 7));
    return;
  case 14: {
    call = take_call(bytes);
    drain(peer, abp_peer_finish(peer, call, (abp_ending)(take8(bytes) % 3)));
    /* One that nobody wants answered has nothing more to be told. */
    if (!abp_peer_pending(peer, call)) know(call)->handle = 0;
    return;
  }
  default:
    call = take_call(bytes);
    abp_peer_number(peer, call);
    REQUIRE(!abp_peer_running(peer, call) || abp_peer_pending(peer, call));
    REQUIRE(abp_rpc_error_message((int)take32(bytes)));
    id = take_rpc_id(bytes);
    abp_outcome outcome;
    const abp_fate fate = abp_peer_became(peer, &id, &outcome, &call);
    REQUIRE((fate == ABP_FATE_RUNNING) == abp_peer_pending(peer, call));
    for (int counter = 0; counter < ABP_COUNTERS; counter++)
      abp_peer_count(peer, (abp_counter)counter);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes bytes = {data, size};
  const abp_peer_config config = {.dialect = (abp_dialect)(take8(&bytes) % ABP_DIALECTS),
                                  .max_calls = 8,
                                  .max_concurrent = 3,
                                  .remembered = 4,
                                  .grace_ms = 50};
  uint64_t now = 1000;
  memset(calls, 0, sizeof calls);
  abp_peer *peer = abp_peer_new(&config, now);
  REQUIRE(peer);
  while (bytes.left)
    step(peer, &bytes, &now);
  /* Whatever came before, everything ends with the connection. */
  drain(peer, abp_peer_lost(peer));
  REQUIRE(abp_peer_count(peer, ABP_IN_FLIGHT_OUT) == 0);
  abp_peer_free(peer);
  return 0;
}
