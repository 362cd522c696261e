/*
 * abp_token.h - a word of memory that shows whether a call is cancelled, for code that computes
 * without returning to the loop that feeds the endpoint. Only this header is needed, no library.
 *
 * The computation checks it, for example every few hundred rounds:
 *
 *   if (abp_token_cancelled(token)) return STOPPED;
 *
 * Another thread, which runs the endpoint, sets it when the core returns ABP_ABORT for the call:
 *
 *   case ABP_ABORT: abp_token_cancel(token_of(action.call)); break;
 *
 * In a WebAssembly module the token is a word of its memory, which must be shared (compiled with
 * -matomics -mbulk-memory, linked with --import-memory --shared-memory). The module passes the
 * word's address to JavaScript, which calls `token.bind(memory, address)`; then the bridge sets it.
 * Modules not written in C load 32 bits atomically (`i32.atomic.load`): not 0 is cancelled. A
 * complete program is demo/examples/sieve.c.
 *
 * For GCC and Clang, in C and in C++.
 */
#ifndef ABP_TOKEN_H
#define ABP_TOKEN_H

#include <stdint.h>

/* Set it to zero for each call: `abp_token token = {0};`. You own it: keep it until the computation
 * has ended and no thread can cancel it any more. */
typedef struct abp_token {
  uint32_t word;
} abp_token;

/* 1 once the call is cancelled, else 0. Costs one load; any thread may call it. After a 1, this
 * thread sees everything that the cancelling thread wrote before. The token must outlive the call.
 * No errors. */
static inline int abp_token_cancelled(const abp_token *token) {
  return __atomic_load_n(&token->word, __ATOMIC_ACQUIRE) != 0;
}

/* Cancels the call. Any thread may do so, also repeatedly; it cannot be undone. The token must
 * outlive the call. No errors. */
static inline void abp_token_cancel(abp_token *token) {
  __atomic_store_n(&token->word, 1, __ATOMIC_RELEASE);
}

#endif
