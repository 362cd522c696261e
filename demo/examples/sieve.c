/*
 * Counts primes, which takes as long as you like, and stops when its token is cancelled. As
 * WebAssembly with shared memory it runs in a worker:
 *
 *   token.bind(memory, exports.sieve_token());
 *   const count = exports.sieve(limit);
 *   token.throwIfCancelled();
 *
 * Build: emcc -O2 -matomics -mbulk-memory -I ../src sieve.c -o sieve.wasm --no-entry
 * -sSTANDALONE_WASM -sIMPORTED_MEMORY -sINITIAL_MEMORY=16777216 -Wl,--shared-memory
 */
#include <abp_token.h>

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(#name)))
#else
#define EXPORT(name)
#endif

enum { SEGMENT = 1 << 14 };

static abp_token token;
static uint8_t composite[SEGMENT];

EXPORT(sieve_token) abp_token *sieve_token(void) { return &token; }

/* Number of primes below `limit`, or -1 if the token stopped it. One segment takes some
 * microseconds, so one check for each has no measurable cost. */
EXPORT(sieve) int32_t sieve(uint32_t limit) {
  int32_t count = 0;
  for (uint32_t from = 2; from < limit;) {
    if (abp_token_cancelled(&token)) return -1;
    const uint32_t to = limit - from < SEGMENT ? limit : from + SEGMENT;
    for (uint32_t i = 0; i < to - from; i++)
      composite[i] = 0;
    for (uint32_t p = 2; (uint64_t)p * p < to; p++) {
      uint64_t at = ((uint64_t)from + p - 1) / p * p;
      if (at < (uint64_t)p * p) at = (uint64_t)p * p;
      for (; at < to; at += p)
        composite[at - from] = 1;
    }
    for (uint32_t i = 0; i < to - from; i++)
      count += !composite[i];
    from = to;
  }
  return count;
}
