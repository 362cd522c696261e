/*
 * The function of libc that cJSON uses for numbers. libc's own would be most of the module.
 */
#include <stddef.h>

#include "libc.h"

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *skip_digits(const char *p) {
  while (is_digit(*p))
    p++;
  return p;
}

/* Finds the end of a decimal number, and its value. The core reads counts and times, which are
 * exact up to 2^53 if they are written without an exponent, as JavaScript writes them. */
double small_strtod(const char *text, char **end) {
  const char *first = text + (*text == '-' || *text == '+'), *point = skip_digits(first);
  const char *p = *point == '.' ? skip_digits(point + 1) : point;
  *end = (char *)(size_t)text;
  if (p - first == (*point == '.')) return 0;
  double value = 0;
  int exponent = 0, scale = 0;
  for (const char *at = first; at < p; at++)
    if (is_digit(*at)) {
      value = value * 10 + (*at - '0');
      scale += at > point;
    }
  if (*p == 'e' || *p == 'E') {
    const char *power = p + 1 + (p[1] == '-' || p[1] == '+'), *last = skip_digits(power);
    for (; power < last; power++)
      if (exponent < 1000) exponent = exponent * 10 + (*power - '0');
    if (last != p + 1 + (p[1] == '-' || p[1] == '+')) {
      if (p[1] == '-') exponent = -exponent;
      p = last;
    }
  }
  for (exponent -= scale; exponent > 0; exponent--)
    value *= 10;
  for (; exponent < 0; exponent++)
    value /= 10;
  *end = (char *)(size_t)p;
  return *text == '-' ? -value : value;
}
