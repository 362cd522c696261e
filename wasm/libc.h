/* Put before cJSON.c in the WebAssembly build: see libc.c. */
#ifndef ABP_LIBC_H
#define ABP_LIBC_H

#include <stdlib.h>
#include <string.h>

/* cJSON compares so many bytes as are there, and only asks whether they are equal. */
#define strncmp memcmp

double small_strtod(const char *text, char **end);

#define strtod small_strtod

#endif
