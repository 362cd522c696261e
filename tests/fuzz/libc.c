/* The WebAssembly build's function for numbers against the C library's: the same end of every
 * number. */
#include "side.h"

#include <stdlib.h>

double small_strtod(const char *text, char **end);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* cJSON hands over at most 63 characters, and only these. */
  char text[64], *end, *expected_end;
  size_t length = 0;
  for (size_t i = 0; i < size && length < sizeof text - 1; i++)
    text[length++] = "0123456789+-eE.."[data[i] & 15];
  text[length] = 0;
  small_strtod(text, &end);
  strtod(text, &expected_end);
  REQUIRE(end == expected_end);
  return 0;
}
