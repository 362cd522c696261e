/* Memory of endpoints that is a part of a state, so that copying the state copies them. */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>

/* Whoever allocates now is an endpoint: it is given memory from here, which is never freed. Linked
 * with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free. */
extern struct arena {
  int on;
  char *bytes;
  size_t room;
  size_t *used; /* in the state */
} arena;

#endif
