/* Put before cJSON.c in the WebAssembly build: see libc.c. */
#ifndef ABP_LIBC_H
#define ABP_LIBC_H

#include <stdlib.h>
#include <string.h>

/* cJSON compares so many bytes as are there, and only asks whether they are equal. */
#define strncmp memcmp

/* Nothing changes cJSON's allocator, so that its calls of it can be direct. */
#define cJSON_InitHooks static cJSON_InitHooks

double small_strtod(const char *text, char **end);

#define strtod small_strtod

#endif
