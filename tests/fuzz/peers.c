/*
 * Two sides and a line between them that loses, repeats, reorders, cuts and alters what is sent:
 * bytes choose what happens. Whatever came through, each side stays within its limits, settles each
 * of its calls once, and works with the next honest peer.
 */
#include "side.h"

#include <string.h>

enum { ROOM = 64 };

struct line {
  struct side side; /* first, so that a side is its line */
  struct line *other;
  char *inbox[ROOM];
  size_t lengths[ROOM];
  uint32_t count;
};

static void post(struct side *side, const char *text, size_t length) {
  struct line *to = ((struct line *)side)->other;
  if (to->count == ROOM) return;
  char *copy = malloc(length);
  memcpy(copy, text, length);
  to->inbox[to->count] = copy;
  to->lengths[to->count++] = length;
}

static void deliver(struct line *to, struct bytes *bytes, uint8_t how) {
  if (!to->count) return;
  const uint32_t i = how & 8 ? take8(bytes) % to->count : 0;
  char *text = to->inbox[i];
  size_t length = to->lengths[i];
  memmove(to->inbox + i, to->inbox + i + 1, (--to->count - i) * sizeof *to->inbox);
  memmove(to->lengths + i, to->lengths + i + 1, (to->count - i) * sizeof *to->lengths);
  if (how & 16) post(&to->other->side, text, length); /* again, later */
  if (how & 32) length = take8(bytes) * length / 256;
  for (int bits = how >> 6; bits && length; bits--) {
    const size_t at = (size_t)(take8(bytes) << 8 | take8(bytes)) % length;
    text[at] = (char)take8(bytes);
  }
  side_drain(&to->side, abp_receive(to->side.endpoint, text, length));
  REQUIRE(abp_receive(to->side.endpoint, "", 0) == ABP_E_TEXT);
  free(text);
}

static void step(struct line *line, struct bytes *bytes, uint64_t *now) {
  struct side *side = &line->side;
  abp_endpoint *ep = side->endpoint;
  const uint8_t op = take8(bytes);
  const abp_id id = {"text", 1u + (op >> 4 & 3), 0};
  abp_call call;
  switch (op & 7) {
  case 0: deliver(line, bytes, op); return;
  case 1: /* all that is under way, as it is */
    for (int i = 0; i < ROOM && (line->count || line->other->count); i++) {
      deliver(line, bytes, 0);
      deliver(line->other, bytes, 0);
    }
    return;
  case 2:
    *now += op < 128 ? op : op * 64u;
    side_drain(side, abp_advance(ep, *now));
    side_drain(&line->other->side, abp_advance(line->other->side.endpoint, *now));
    return;
  case 3:
    side_call(side, op & 8 ? &id : NULL, op & 128 ? 100u : 0, op & 64 ? side_handle(side, op) : 0);
    return;
  case 4:
    side_drain(side, abp_cancel(ep, side_handle(side, op >> 4), "why", op & 8 ? 3 : 0));
    return;
  case 5: side_finish(side, op >> 4, op & 8 ? ABP_CANCELLED : ABP_COMPLETED); return;
  case 6:
    if (op & 8)
      side_drain(side, abp_cancel_by_id(ep, &id, "why", 3, &call));
    else
      side_call_local(side, side_handle(side, op >> 4), 0, ABP_NO_ERROR);
    return;
  default:
    side_drain(side, op & 128  ? abp_connect(ep, 0)
                     : op & 64 ? abp_leave(ep, op >> 3 & 1)
                     : op & 32 ? op & 16  ? op & 8 ? abp_lost(ep) : abp_unread(ep)
                                  : op & 8 ? abp_refused(ep, "NOT_INITIALIZED", 15)
                                          : abp_suspect(ep)
                               : abp_close(ep));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes bytes = {data, size};
  struct line agent = {0}, app = {0};
  uint64_t now = 1000;
  agent.other = &app;
  app.other = &agent;
  agent.side.post = app.side.post = post;
  side_open(&agent.side, ABP_AGENT, 0, now);
  side_open(&app.side, ABP_APP, take8(&bytes) & 3, now);
  side_drain(&agent.side, abp_connect(agent.side.endpoint, 0));
  deliver(&app, &bytes, 0);
  deliver(&agent, &bytes, 0);
  while (bytes.left)
    step(take8(&bytes) & 1 ? &agent : &app, &bytes, &now);
  side_still_works(&agent.side);
  side_still_works(&app.side);
  for (; agent.count; agent.count--)
    free(agent.inbox[agent.count - 1]);
  for (; app.count; app.count--)
    free(app.inbox[app.count - 1]);
  return 0;
}
