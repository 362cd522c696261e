/*
 * The boundary, natively: reads scripts of inputs from stdin (tests/differential/scripts.js says
 * how they look), plays them, and writes for each the hash of all that came out.
 */
#pragma GCC diagnostic ignored "-Wattributes" /* its exports mean something to WebAssembly only */
#define connect boundary_connect              /* libc has one, too */
#define ABP_ABI 0                             /* nothing here was generated for WebAssembly */
#include "../../wasm/abp_boundary.c"

#include <stdio.h>
#include <string.h>

static abp_endpoint *ep;
static uint32_t hash;

static void add(uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    hash = (hash ^ (value >> shift & 255)) * 16777619u;
}

static void add_text(const char *text, size_t length) {
  add((uint32_t)length);
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (uint8_t)text[i]) * 16777619u;
}

/* All that an input causes. */
static void drain(int32_t packed) {
  add((uint32_t)packed);
  while (packed > 0) {
    const abp_action taken = action;
    add(taken.call);
    add((uint32_t)taken.at);
    add(taken.chunks);
    add(taken.number);
    if (taken.text) add_text(taken.text, taken.length);
    if (taken.kind == ABP_SEND || taken.kind == ABP_REFUSE) {
      const char *text = print(ep, 1700000000000.0);
      if (text) add_text(text, strlen(text));
    }
    packed = next(ep);
    add((uint32_t)packed);
  }
}

static int read_script(uint32_t *args, char *text, uint32_t *length) {
  return fread(args, 4, 10, stdin) == 10 &&
         (*length = args[9], fread(text, 1, *length, stdin) == *length);
}

int main(void) {
  static char text[1 << 16];
  uint32_t a[10], length;
  while (read_script(a, text, &length)) {
    if (!scratch(length + 64)) return 1;
    memcpy(buffer, text, length);
    switch (a[0]) {
    case 0:
      add(abp_count(ep, ABP_LATE));
      add(abp_count(ep, ABP_STRAY));
      add(abp_count(ep, ABP_MALFORMED));
      add(abp_count(ep, ABP_OVERRUN));
      fwrite(&hash, 4, 1, stdout);
      break;
    case 1:
      hash = 2166136261u;
      if (ep) destroy(ep);
      get_config();
      config = (abp_config){.role = (abp_role)a[1],
                            .features = a[2],
                            .max_calls = 4,
                            .max_concurrent = a[3],
                            .remembered = 3,
                            .remember_ms = 1000,
                            .grace_ms = 50,
                            .max_id = 64,
                            .max_text = 4096,
                            .heartbeat_ms = 200,
                            .restart = a[4] & 1,
                            .foreign = a[4] >> 1,
                            .stream_chunks = 2,
                            .stream_bytes = 100};
      memcpy(config.seed, text, sizeof config.seed);
      ep = create(a[5]);
      if (!ep) return 1;
      break;
    case 2: add((uint32_t)describe(ep, a[1])); break;
    case 3: drain(boundary_connect(ep, a[1])); break;
    case 4: drain(close_session(ep)); break;
    case 5: drain(lost(ep)); break;
    case 6: drain(leave(ep, a[1])); break;
    case 7: drain(advance(ep, a[1])); break;
    case 8: drain(request(ep, a[1], a[2], a[3], a[4], a[5])); break;
    case 9: drain(cancel(ep, a[1], a[2])); break;
    case 10: drain(cancel_by_id(ep, a[1], a[2])); break;
    case 11: drain(finish_with_outcome(ep, a[1], a[2])); break;
    case 12: drain(unsent(ep, a[1])); break;
    case 13: drain(progress_received(ep, a[1], a[2])); break;
    case 14: add((uint32_t)progress_wanted(ep, a[1])); break;
    case 15: drain(call_received(ep, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])); break;
    case 16: drain(call_local(ep, a[1], a[2], a[3])); break;
    case 17: drain(finish(ep, a[1], a[2], a[3])); break;
    case 18: drain(receive(ep, a[1])); break;
    case 19: drain(cancel_received(ep, a[1], a[2], a[3])); break;
    case 20: add((uint32_t)stream_wanted(ep, a[1])); break;
    case 21: drain(chunk(ep, a[1], a[2])); break;
    case 22: drain(chunk_received(ep, a[1], a[2], a[3], a[4])); break;
    case 23: drain(chunk_read(ep, a[1], a[2])); break;
    case 24: drain(credit_received(ep, a[1], a[2], a[3], a[4])); break;
    case 25: drain(cancel_answered(ep, a[1], a[2], a[3])); break;
    case 26: drain(suspect(ep)); break;
    case 27: drain(value_received(ep, a[1], a[2])); break;
    case 28: drain(goes_on(ep, a[1])); break;
    case 29: drain(postpone(ep, a[1])); break;
    case 30: drain(begin(ep, a[1])); break;
    case 31: drain(take(ep, a[1], a[2])); break;
    case 32: drain(outcome_received(ep, a[1], a[2], a[3])); break;
    case 33: add(failure(ep, a[1], a[2], a[3], a[4], a[5])); break;
    default: return 2;
    }
  }
  if (ep) abp_free(destroy(ep));
  free(buffer);
  return 0;
}
