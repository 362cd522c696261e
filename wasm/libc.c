/*
 * The function of libc that cJSON uses for numbers, as much of it as the core needs. libc's own
 * would be most of the module.
 */
#include <stddef.h>

#include "libc.h"

static const char *skip_digits(const char *p) {
  while (*p >= '0' && *p <= '9')
    p++;
  return p;
}

/* Finds where a decimal number ends. What it is worth only the data plane asks (json_ms), which
 * JavaScript carries itself. */
double small_strtod(const char *text, char **end) {
  const char *first = text + (*text == '-' || *text == '+'), *point = skip_digits(first);
  const char *p = *point == '.' ? skip_digits(point + 1) : point;
  if (p - first == (*point == '.')) {
    p = text;
  } else if (*p == 'e' || *p == 'E') {
    const char *power = p + 1 + (p[1] == '-' || p[1] == '+');
    if (power != skip_digits(power)) p = skip_digits(power);
  }
  *end = (char *)(size_t)p;
  return 0;
}
