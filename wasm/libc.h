/* Included before cJSON.c in the WebAssembly build: see libc.c. */
#ifndef ABP_LIBC_H
#define ABP_LIBC_H

#include <stdlib.h>
#include <string.h>

/* cJSON never compares more bytes than there are, and only checks for equality. */
#define strncmp memcmp

/* cJSON's allocator is never changed, so its calls can be direct. */
#define cJSON_InitHooks static cJSON_InitHooks

double small_strtod(const char *text, char **end);

#define strtod small_strtod

#endif
