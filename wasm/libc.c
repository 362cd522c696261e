/*
 * The function of libc that cJSON uses for numbers, as much of it as the core needs. libc's own
 * would be most of the module. What the core reads of numbers it only compares, so an error in the
 * last digit harms nobody.
 */
#include <stddef.h>

#include "libc.h"

/* Decimal text to number, without a locale. Digits past the 18th only scale. */
double small_strtod(const char *text, char **end) {
  const char *p = text;
  const int negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  double value = 0;
  int exponent = 0, any = 0, digits = 0, fraction = 0;
  for (;; p++) {
    if (*p == '.' && !fraction) {
      fraction = 1;
      continue;
    }
    if (*p < '0' || *p > '9') break;
    any = 1;
    if (digits < 18) {
      value = value * 10 + (*p - '0');
      if (value > 0) digits++;
      exponent -= fraction;
    } else {
      exponent += !fraction;
    }
  }
  if (!any) p = text;
  if (any && (*p == 'e' || *p == 'E')) {
    const char *q = p + 1;
    const int down = *q == '-';
    int power = 0;
    if (*q == '-' || *q == '+') q++;
    if (*q >= '0' && *q <= '9') {
      for (; *q >= '0' && *q <= '9'; q++) {
        if (power < 10000) power = power * 10 + (*q - '0');
      }
      exponent += down ? -power : power;
      p = q;
    }
  }
  if (exponent > 400) exponent = 400;
  if (exponent < -400) exponent = -400;
  for (; exponent > 0; exponent--)
    value *= 10;
  for (; exponent < 0; exponent++)
    value /= 10;
  if (end) *end = (char *)(size_t)p;
  return negative ? -value : value;
}
