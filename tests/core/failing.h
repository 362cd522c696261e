/*
 * The allocator, made to fail. Whoever includes this defines fails(), which says of each allocation
 * whether it does, and links with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free.
 */
#ifndef FAILING_H
#define FAILING_H

#include <stdlib.h>

static int fails(void);

/* Allocations that have not been freed. */
static long balance;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  void *memory = fails() ? NULL : __real_malloc(size);
  balance += memory != NULL;
  return memory;
}
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  void *memory = fails() ? NULL : __real_calloc(count, size);
  balance += memory != NULL;
  return memory;
}
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
  void *memory = fails() ? NULL : __real_realloc(old, size);
  balance += memory != NULL && old == NULL;
  return memory;
}
void __wrap_free(void *memory);
void __wrap_free(void *memory) {
  balance -= memory != NULL;
  __real_free(memory);
}

#endif
