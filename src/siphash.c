#include "siphash.h"

#include "base.h"

#include <string.h>

static inline uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* One loop with one round in it: the text's words, its last bytes, and three final rounds with a
 * word of 0. */
uint64_t abp_siphash_text(const uint64_t key[2], const char *text, size_t length, uint8_t last) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575u, v1 = key[1] ^ 0x646f72616e646f6du;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261u, v3 = key[1] ^ 0x7465646279746573u;
  for (int ending = 0; ending < 4;) {
    uint64_t word = 0;
    if (length >= 8) {
      memcpy(&word, text, 8);
      text += 8;
      length -= 8;
    } else if (ending++ == 0) {
      word = (uint64_t)last << 56;
      for (size_t i = 0; i < length; i++)
        word |= (uint64_t)(uint8_t)text[i] << 8 * i;
    } else if (ending == 2) {
      v2 ^= 0xff;
    }
    v3 ^= word;
    v0 += v1;
    v2 += v3;
    v1 = rotate(v1, 13) ^ v0;
    v3 = rotate(v3, 16) ^ v2;
    v0 = rotate(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = rotate(v1, 17) ^ v2;
    v3 = rotate(v3, 21) ^ v0;
    v2 = rotate(v2, 32);
    v0 ^= word;
  }
  return v0 ^ v1 ^ v2 ^ v3;
}

COLD uint64_t abp_siphash_word(const uint64_t key[2], uint64_t word) {
  char bytes[sizeof word];
  memcpy(bytes, &word, sizeof word);
  return abp_siphash_text(key, bytes, sizeof bytes, sizeof bytes);
}

COLD uint64_t abp_siphash_derive(const uint8_t seed[16], const char *purpose) {
  uint64_t key[2];
  memcpy(key, seed, sizeof key);
  return abp_siphash_text(key, purpose, strlen(purpose), (uint8_t)strlen(purpose));
}
