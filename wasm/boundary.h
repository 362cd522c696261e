/*
 * What the boundaries have in common: a scratch through which texts go in, cells from which an
 * action is read, and an action packed into one small integer,
 *
 *   kind | arg << 8 | MORE | RELEASED
 *
 * MORE spares the call of next() that would return 0. Endpoints share an instance, since a page has
 * room for about a hundred memories; each export names the one it is about. Inputs are drained one
 * by one, so that they can share scratch, cells and action, too.
 */
#ifndef ABP_BOUNDARY_H
#define ABP_BOUNDARY_H

#include "../src/abp.h"

#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name), used))
#define MORE (1 << 16)
#define RELEASED (1 << 17)

static abp_action action;
static char *buffer;
static uint32_t room;

/* Read by JavaScript: see js/core.js and js/rpc/core.js. */
static struct {
  double at;
  uint32_t call, text, length;
} cells;

EXPORT("cells") void *get_cells(void) { return &cells; }

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
  cells.call = action.call;
  cells.text = (uint32_t)(uintptr_t)action.text;
  cells.length = (uint32_t)action.length;
  cells.at = (double)action.at;
  return (int32_t)((uint32_t)action.kind | action.arg << 8) | (more ? MORE : 0) |
         (action.released ? RELEASED : 0);
}

#endif
