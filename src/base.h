/* What every file of the core may use. */
#ifndef ABP_BASE_H
#define ABP_BASE_H

#include <stdint.h>
#include <string.h>

/* What happens to few calls: compiled for size, and out of the way of what happens to all. */
#ifdef __clang__ /* which takes `cold` for where code lies, not for how it is compiled */
#define COLD __attribute__((cold, minsize, noinline))
#else
#define COLD __attribute__((cold))
#endif

/* Keeps the compiler from copying a function into each place that calls it: a page downloads less,
 * and the cost of the call cannot be measured in that of a whole one. */
#ifdef __wasm__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY
#endif

/* Texts one after the other, each terminated: the one at place `n`. A table of them needs no
 * addresses, which a page would download. */
static inline const char *nth_text(const char *texts, uint32_t n) {
  while (n--)
    texts += strlen(texts) + 1;
  return texts;
}

/* Limits: 0 takes the default. */
static inline void set_default(uint32_t *limit, uint32_t value) {
  if (*limit == 0) *limit = value;
}

/* Writes a number in front of `end`. Returns where it begins. */
static inline char *print_number(char *end, uint64_t number) {
  do
    *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

#endif
