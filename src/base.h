/* Helpers for every file of the core. */
#ifndef ABP_BASE_H
#define ABP_BASE_H

#include <stdint.h>
#include <string.h>

/* For code that runs for few calls: compiled for size, and placed away from the code of every call.
 */
#ifdef __clang__ /* where `cold` decides where code lies, but not how it is compiled */
#define COLD __attribute__((cold, minsize, noinline))
#else
#define COLD __attribute__((cold))
#endif

/* Keeps the compiler from inlining a function: a page downloads less code, and one more function
 * call is too cheap to measure. */
#ifdef __wasm__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY
#endif

/* The text at place `n` of texts that follow each other, each terminated. Such a table needs no
 * addresses, which a page would have to download. */
static inline const char *nth_text(const char *texts, uint32_t n) {
  while (n--)
    texts += strlen(texts) + 1;
  return texts;
}

/* Sets a limit that is 0 to its default. */
static inline void set_default(uint32_t *limit, uint32_t value) {
  if (*limit == 0) *limit = value;
}

/* Writes a number in front of `end`. Returns its first character. */
static inline char *print_number(char *end, uint64_t number) {
  do
    *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

#endif
