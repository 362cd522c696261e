/*
 * JSON text into either side, as a peer sends it. A byte chooses the side; then each line is a
 * message, or something else that happens:
 *
 *   +123  so many ms pass      ?x  this side calls, by that id      ?   and by one it mints
 *   !     it cancels a call    =   a handler settles                -   the connection is lost
 */
#include "side.h"
#include "wire_abp.h"

#include <string.h>

static void line(struct side *side, const char *text, size_t length, uint64_t *now) {
  const abp_id id = {text + 1, (uint32_t)length - 1, 0};
  abp_endpoint *ep = side->endpoint;
  switch (length ? *text : 0) {
  case '+': {
    uint64_t ms = 0;
    for (size_t i = 1; i < length && i < 8 && text[i] >= '0' && text[i] <= '9'; i++)
      ms = ms * 10 + (uint64_t)(text[i] - '0');
    side_drain(side, abp_advance(ep, *now += ms));
    return;
  }
  case '?': side_call(side, length > 1 ? &id : NULL, (uint32_t)length, 0); return;
  case '!':
    side_drain(side, abp_cancel(ep, side_handle(side, (uint32_t)length), text, length));
    return;
  case '=': side_finish(side, (uint32_t)length, ABP_COMPLETED); return;
  case '-':
    side_drain(side, abp_lost(ep));
    if (ep->config.role == ABP_AGENT) side_drain(side, abp_connect(ep, 0));
    return;
  default: side_drain(side, abp_receive(ep, text, length));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes bytes = {data, size};
  const uint8_t choice = take8(&bytes);
  struct side side = {0};
  uint64_t now = 1000;
  side_open(&side, choice & 1 ? ABP_APP : ABP_AGENT, choice >> 1 & 3, now);
  if (!(choice & 1)) side_drain(&side, abp_connect(side.endpoint, 0));
  while (bytes.left) {
    const uint8_t *end = memchr(bytes.at, '\n', bytes.left);
    const size_t length = end ? (size_t)(end - bytes.at) : bytes.left;
    /* Exactly as long, so that a read beyond is seen. */
    char *copy = malloc(length ? length : 1);
    memcpy(copy, bytes.at, length);
    line(&side, copy, length, &now);
    /* It stays until the next input, which this is: a message that nothing answers. */
    REQUIRE(abp_receive(side.endpoint, "", 0) == ABP_E_TEXT);
    free(copy);
    bytes.at += length + (end != NULL);
    bytes.left -= length + (end != NULL);
  }
  side_still_works(&side);
  return 0;
}
