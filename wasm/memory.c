/*
 * libc's memory functions, by WebAssembly's own instructions. libc's versions have loops for every
 * alignment, but the texts that are compared and measured here are short. The allocator's realloc
 * has as much code as a second allocator, to avoid moving memory that grows; here all memory grows
 * by doubling, so moving costs little.
 */
#ifndef __wasm_bulk_memory__
#error "needs -mbulk-memory: without it these functions would call themselves"
#endif

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  return __builtin_memcpy(to, from, size);
}

void *memset(void *at, int byte, size_t size) { return __builtin_memset(at, byte, size); }

size_t strlen(const char *text) {
  const char *end = text;
  while (*end)
    end++;
  return (size_t)(end - text);
}

int memcmp(const void *a, const void *b, size_t size) {
  const unsigned char *x = a, *y = b;
  for (; size; size--, x++, y++)
    if (*x != *y) return *x - *y;
  return 0;
}

void *realloc(void *old, size_t size) {
  void *grown = malloc(size);
  if (!old || !grown) return grown;
  const size_t had = malloc_usable_size(old);
  memcpy(grown, old, had < size ? had : size);
  free(old);
  return grown;
}
