/*
 * The common part of the boundaries between the cores and JavaScript: an ABI number, a scratch for
 * text that is passed in, and a configuration that JavaScript fills in field by field.
 *
 * Endpoints share an instance, since a page has room for about a hundred memories; each export
 * takes the endpoint as an argument. Inputs are drained one by one, so they can share the scratch.
 */
#ifndef ABP_BOUNDARY_H
#define ABP_BOUNDARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name), used))

enum {
  ABP_MAX_ID_BYTES = 768,  /* of an id: 256 characters */
  ABP_SCRATCH_BYTES = 1024 /* the size that JavaScript requests first: an id, then a number */
};

static char *buffer;
static uint32_t room;

/* Returns at least `size` writable bytes, valid until the next call of this function; 0 when memory
 * is short. */
EXPORT("scratch") void *scratch(uint32_t size) {
  if (size <= room) return buffer;
  char *grown = realloc(buffer, size);
  if (!grown) return NULL;
  buffer = grown;
  room = size;
  return buffer;
}

#endif
