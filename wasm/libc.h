/* Put before cJSON.c in the WebAssembly build: see libc.c. */
#ifndef ABP_LIBC_H
#define ABP_LIBC_H

#include <stdio.h>
#include <stdlib.h>

double small_strtod(const char *text, char **end);
int small_sprintf(char *out, const char *format, ...);
int small_sscanf(const char *text, const char *format, ...);

#define strtod small_strtod
#define sprintf small_sprintf
#define sscanf small_sscanf

#endif
