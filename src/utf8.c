#include "utf8.h"

#include <stdint.h>
#include <string.h>

/* 1 if the next eight bytes are ASCII without NUL. */
static int plain(const uint8_t *s) {
  uint64_t eight;
  memcpy(&eight, s, 8);
  return !((eight | (eight - 0x0101010101010101u)) & 0x8080808080808080u);
}

int abp_utf8_valid(const char *text, size_t length) {
  const uint8_t *s = (const uint8_t *)text, *end = s + length;
  while (s < end) {
    /* Most ids are ASCII: check eight bytes at once, in the last step some of them again. */
    const uint8_t *const eight = end - s >= 8 || length < 8 ? s : end - 8;
    if (length >= 8 && plain(eight)) {
      s = eight + 8;
      continue;
    }
    const uint8_t lead = *s++;
    if (lead == 0) return 0;
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || end - s < more) return 0;
    uint32_t point = lead & (0x3fu >> more);
    for (int i = 0; i < more; i++) {
      if ((s[i] & 0xc0) != 0x80) return 0;
      point = point << 6 | (s[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    s += more;
  }
  return 1;
}
