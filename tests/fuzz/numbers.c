/*
 * Every input that takes a handle, a number, an id, a time or a status, in any order and with any
 * value: a byte says which, the bytes after it with what. This is what JavaScript can ask of the
 * core, and more.
 */
#include "side.h"
#include "utf8.h"

#include <string.h>

static abp_id take_id(struct bytes *bytes) {
  static const char *const texts[] = {
      "a", "b", "", "\xff", "an-id-that-is-longer-than-a-cell-of-the-table-can-hold", "again.1",
  };
  const uint8_t choice = take8(bytes);
  if (choice < 6) return (abp_id){texts[choice], (uint32_t)strlen(texts[choice]), 0};
  if (choice < 128) return (abp_id){NULL, 0, choice & 7};
  if (choice < 192) return (abp_id){NULL, 0, take32(bytes)};
  const uint32_t wanted = choice & 63;
  const abp_id id = {(const char *)bytes->at, wanted < bytes->left ? wanted : (uint32_t)bytes->left,
                     0};
  bytes->at += id.length;
  bytes->left -= id.length;
  return id;
}

/* The id of a handshake has been read from a text, which was UTF-8. */
static abp_id take_session(struct bytes *bytes) {
  const abp_id id = take_id(bytes);
  return id.text && abp_utf8_valid(id.text, id.length) ? id : (abp_id){"again", 5, 0};
}

static abp_call take_handle(struct side *side, struct bytes *bytes) {
  const uint8_t choice = take8(bytes);
  return choice < 224 ? side_handle(side, choice) : take32(bytes);
}

static uint32_t take_ms(struct bytes *bytes) {
  const uint8_t choice = take8(bytes);
  return choice < 240 ? choice * 8u : take32(bytes);
}

static void look_in(struct side *side, struct bytes *bytes) {
  const abp_call call = take_handle(side, bytes);
  const int code = (int)take32(bytes);
  const abp_endpoint *ep = side->endpoint;
  char id[16];
  for (int counter = 0; counter < ABP_COUNTERS; counter++)
    abp_count(ep, (abp_counter)counter);
  abp_id_text(ep, call, id, sizeof id);
  abp_number(ep, call);
  abp_progress_wanted(ep, call);
  abp_error_retryable(code);
  REQUIRE(abp_error_name(code) && abp_error_message(code));
  const abp_action action = {.kind = take8(bytes) % 16, .arg = take8(bytes), .fate = call & 7};
  const abp_failure failure = abp_failure_told(ep, &action, &(const abp_told){0}, take32(bytes));
  REQUIRE((failure & ABP_FAILURE_ERROR) < ABP_ERROR_COUNT);
}

static void stream(struct side *side, struct bytes *bytes, uint8_t op) {
  abp_endpoint *ep = side->endpoint;
  abp_id id = take_id(bytes);
  const uint64_t size = op & 128 ? (uint64_t)take32(bytes) << 32 | take32(bytes) : take8(bytes);
  switch (take8(bytes) % 9) {
  case 0:
    side_drain(side, abp_stream_received(ep, &id, 0, 0, take8(bytes) % 4, 300, ABP_NO_ERROR));
    return;
  case 1: side_drain(side, abp_chunk(ep, take_handle(side, bytes), size)); return;
  case 2: side_drain(side, abp_chunk_read(ep, take_handle(side, bytes), size)); return;
  case 3: side_drain(side, abp_chunk_measured(ep, &id, size, take8(bytes) * 9u)); return;
  case 4: side_answer_cancel(side, take_handle(side, bytes), op & 64, op & 3); return;
  case 5: side_drain(side, abp_goes_on(ep, take_handle(side, bytes))); return;
  case 6: side_drain(side, abp_postpone(ep, take_handle(side, bytes))); return;
  case 7: side_drain(side, abp_begin(ep, take_handle(side, bytes))); return;
  default: side_drain(side, abp_credit_received(ep, &id, take8(bytes) % 4, size));
  }
}

static void step(struct side *side, struct bytes *bytes, uint64_t *now) {
  abp_endpoint *ep = side->endpoint;
  const uint8_t op = take8(bytes);
  abp_id id;
  abp_call call = 0;
  uint32_t ms;
  static const struct cancel_text from = {"7", "\"x\"", 1, 3};
  switch (op % 24) {
  case 0: side_drain(side, abp_advance(ep, *now += take_ms(bytes))); return;
  case 1: side_drain(side, abp_advance(ep, take32(bytes))); return; /* a clock that went back */
  case 2: side_drain(side, abp_connect(ep, take_ms(bytes))); return;
  case 3: side_drain(side, abp_close(ep)); return;
  case 4: side_drain(side, abp_lost(ep)); return;
  case 5: side_drain(side, abp_leave(ep, take8(bytes) & 1)); return;
  case 6:
  case 7:
    ms = take_ms(bytes);
    id = take_id(bytes);
    side_call(side, op & 1 ? &id : NULL, ms, op & 64 ? take_handle(side, bytes) : 0);
    return;
  case 8: side_drain(side, abp_cancel(ep, take_handle(side, bytes), "why", op & 3)); return;
  case 9:
    id = take_id(bytes);
    side_drain(side, abp_cancel_by_id(ep, &id, op & 64 ? "why" : NULL, 3u * (op >> 6 & 1), &call));
    return;
  case 10:
    id = take_id(bytes);
    side_drain(side, op & 128 ? abp_outcome_received(ep, &id, take32(bytes))
                              : abp_result_received(ep, &id, (abp_outcome)take8(bytes)));
    return;
  case 11: side_drain(side, abp_send_failed(ep, take_handle(side, bytes))); return;
  case 12:
    id = take_id(bytes);
    side_drain(side, abp_progress_received(ep, &id));
    return;
  case 13:
  case 14:
    ms = take_ms(bytes);
    id = take_id(bytes);
    side_drain(side, abp_call_received(ep, &id, ms, op, op & 128 ? take8(bytes) : ABP_NO_ERROR));
    return;
  case 15:
    call = take_handle(side, bytes);
    ms = take_ms(bytes);
    side_call_local(side, call, ms, op & 128 ? take8(bytes) : ABP_NO_ERROR);
    return;
  case 16: side_finish(side, take8(bytes), take8(bytes)); return;
  case 17: /* not a call that this side has, or not any more */
    call = take32(bytes);
    for (int i = 0; i < SIDE_CALLS; i++)
      if (side->calls[i].handle == call) return;
    side_drain(side, abp_finish(ep, call, ABP_COMPLETED));
    return;
  case 18:
    id = take_session(bytes);
    side_drain(side, abp_endpoint_initialize(ep, id.text, id.length, op >> 7, "0.1",
                                             op & 64 ? 1 : 3, take8(bytes)));
    return;
  case 19:
    id = take_session(bytes);
    side_drain(
        side, abp_endpoint_initialized(ep, id.text, id.length, op >> 7, op >> 6 & 1, take8(bytes)));
    return;
  case 20:
    id = take_id(bytes);
    side_drain(side, op & 128 ? abp_cancel_received(ep, &id, "why", 3)
                              : abp_endpoint_cancel(ep, &id, "why", 3, &from));
    return;
  case 21:
    id = take_id(bytes);
    call = op & 64 ? side->calls[take8(bytes) % SIDE_CALLS].handle : 0;
    side_drain(side, abp_endpoint_cancel_result(ep, &id, call, op >> 7));
    return;
  case 22:
    side_drain(side, op & 128  ? abp_endpoint_ping(ep, op >> 6 & 1)
                     : op & 64 ? abp_endpoint_shutdown(ep)
                               : abp_endpoint_bye(ep, take8(bytes) & 1));
    return;
  default:
    if (op & 32)
      stream(side, bytes, op);
    else
      look_in(side, bytes);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes bytes = {data, size};
  struct side side = {0};
  const uint8_t choice = take8(&bytes);
  uint64_t now = 1000;
  side_open(&side, choice & 1 ? ABP_APP : ABP_AGENT, choice >> 1 & 3, now);
  while (bytes.left)
    step(&side, &bytes, &now);
  side_still_works(&side);
  return 0;
}
