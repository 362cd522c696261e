/* The check of UTF-8. */
#ifndef ABP_UTF8_H
#define ABP_UTF8_H

#include <stddef.h>

/* 1 if `text` is UTF-8 without NUL. */
int abp_utf8_valid(const char *text, size_t length);

#endif
