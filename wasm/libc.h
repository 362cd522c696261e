/* Put before cJSON.c in the WebAssembly build: see libc.c. */
#ifndef ABP_LIBC_H
#define ABP_LIBC_H

#include <stdlib.h>

double small_strtod(const char *text, char **end);

#define strtod small_strtod

#endif
