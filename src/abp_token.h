/*
 * abp_token.h - a word of memory that says whether a call is cancelled, for code that computes
 * without returning to whoever feeds the endpoint. This header is all there is: no library.
 *
 * Whoever runs the computation asks, say every few hundred rounds:
 *
 *   if (abp_token_cancelled(token)) return STOPPED;
 *
 * Whoever runs the endpoint, in another thread, sets it when the core says ABP_ABORT for the call:
 *
 *   case ABP_ABORT: abp_token_cancel(token_of(action.call)); break;
 *
 * In a WebAssembly module the token is a word of its memory, which has to be shared (compiled with
 * -matomics -mbulk-memory, linked with --import-memory --shared-memory). The module tells the
 * word's address to JavaScript, which calls `token.bind(memory, address)`; the bridge then sets it.
 * Modules not written in C load 32 bits atomically (`i32.atomic.load`): not 0 is cancelled.
 * Complete: demo/examples/sieve.c.
 *
 * For GCC and Clang, in C and in C++.
 */
#ifndef ABP_TOKEN_H
#define ABP_TOKEN_H

#include <stdint.h>

/* Zero it for each call: `abp_token token = {0};`. The caller owns it, and keeps it until the
 * computation has ended and no one can cancel it any more. */
typedef struct abp_token {
  uint32_t word;
} abp_token;

/* 1 once the call is cancelled, else 0. Costs a load; any thread may ask. What the thread that
 * cancelled wrote before can be read after a 1. The token must outlive the call; there are no
 * errors. */
static inline int abp_token_cancelled(const abp_token *token) {
  return __atomic_load_n(&token->word, __ATOMIC_ACQUIRE) != 0;
}

/* Cancels. Any thread may, and more than once; there is no way back. The token must outlive the
 * call; there are no errors. */
static inline void abp_token_cancel(abp_token *token) {
  __atomic_store_n(&token->word, 1, __ATOMIC_RELEASE);
}

#endif
