/*
 * What the boundaries between the cores and JavaScript have in common: an ABI number, a scratch
 * through which text goes in, and a configuration that JavaScript fills in field by field.
 *
 * Endpoints share an instance, since a page has room for about a hundred memories; each export
 * names the one it is about. Inputs are drained one by one, so that they can share the scratch.
 */
#ifndef ABP_BOUNDARY_H
#define ABP_BOUNDARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name), used))

enum {
  ABP_MAX_ID_BYTES = 768,  /* of an id: 256 characters */
  ABP_SCRATCH_BYTES = 1024 /* JavaScript asks for these first: an id, and a number after it */
};

static char *buffer;
static uint32_t room;

/* At least `size` bytes to write to, valid until the next call of this; 0 when memory is short. */
EXPORT("scratch") void *scratch(uint32_t size) {
  if (size <= room) return buffer;
  char *grown = realloc(buffer, size);
  if (!grown) return NULL;
  buffer = grown;
  room = size;
  return buffer;
}

#endif
