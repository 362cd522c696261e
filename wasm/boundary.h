/*
 * What the boundaries have in common: a scratch through which texts go in, and an action packed
 * into one small integer,
 *
 *   kind | arg << 8 | MORE | RELEASED
 *
 * MORE spares the call of next() that would return 0. Endpoints share an instance, since a page has
 * room for about a hundred memories; each export names the one it is about. Inputs are drained one
 * by one, so that they can share scratch and action, too.
 */
#ifndef ABP_BOUNDARY_H
#define ABP_BOUNDARY_H

#include "../src/abp.h"

#include <stddef.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name), used))
#define MORE (1 << 16)
#define RELEASED (1 << 17)

static abp_action action;
static char *buffer;
static uint32_t room;

/* Where JavaScript finds the rest of it. */
EXPORT("action") const void *get_action(void) { return &action; }
#ifdef __wasm__
_Static_assert(offsetof(abp_action, call) == 8 && offsetof(abp_action, at) == 16 &&
                   offsetof(abp_action, text) == 24 && offsetof(abp_action, length) == 28,
               "js/boundary.js reads an action as it lies here");
#endif

/* At least `size` bytes to write to, valid until the next call of this; 0 when memory is short. */
EXPORT("scratch") void *scratch(uint32_t size) {
  if (size <= room) return buffer;
  char *grown = realloc(buffer, size);
  if (!grown) return NULL;
  buffer = grown;
  room = size;
  return buffer;
}

/* Packs `action`; `more` are left. */
static int32_t packed(int more) {
  return (int32_t)((uint32_t)action.kind | action.arg << 8) | (more ? MORE : 0) |
         (action.released ? RELEASED : 0);
}

#endif
