/*
 * SipHash-1-3: a hash with a secret key. Without the key it is impossible to predict a hash, or
 * choose texts whose hashes collide. Hashes do not reveal the key.
 */
#ifndef ABP_SIPHASH_H
#define ABP_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of a text. `last` is a byte added after it: the text's length, if only texts are hashed.
 */
uint64_t abp_siphash_text(const uint64_t key[2], const char *text, size_t length, uint8_t last);
/* The hash of one word. */
uint64_t abp_siphash_word(const uint64_t key[2], uint64_t word);
/* A word derived from a seed for one purpose. It does not reveal the seed. */
uint64_t abp_siphash_derive(const uint8_t seed[16], const char *purpose);

#endif
