/* The WebAssembly build's function for numbers against the C library's: the same end of every
 * number, the same value but for the last digits. */
#include "side.h"

#include <math.h>

double small_strtod(const char *text, char **end);

static int close_to(double a, double b) {
  /* Beyond what a double holds without loss, only the order counts. */
  if (!(fabs(b) < 1e300)) return fabs(a) > 1e299 && signbit(a) == signbit(b);
  if (fabs(b) < 1e-300) return fabs(a) < 1e-299;
  return fabs(a - b) <= 1e-12 * fabs(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* cJSON hands over at most 63 characters, and only these. */
  char text[64], *end, *expected_end;
  size_t length = 0;
  for (size_t i = 0; i < size && length < sizeof text - 1; i++)
    text[length++] = "0123456789+-eE.."[data[i] & 15];
  text[length] = 0;
  const double value = small_strtod(text, &end), expected = strtod(text, &expected_end);
  REQUIRE(end == expected_end);
  REQUIRE(close_to(value, expected));
  return 0;
}
