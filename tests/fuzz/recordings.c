/*
 * A recording, as abp-replay plays it: whoever sends one may have written it himself.
 */
#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include <stdio.h>

/* What it says is formatted, and printed nowhere. */
#define printf(...) snprintf(NULL, 0, __VA_ARGS__)
#define vprintf(...) vsnprintf(NULL, 0, __VA_ARGS__)
#define main abp_replay
#include "../../packages/inspector/replay/replay.c"
#undef main

#include "side.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  FILE *file = fmemopen((void *)data, size, "rb");
  REQUIRE(file);
  play_file("recording", file);
  return 0;
}
