/*
 * Random walks with hundreds of calls in flight: the moves, the model and the laws of world.h,
 * chosen by dice instead of one after the other.
 *
 *   walk [steps [seed]]    1000000 steps, and a seed that is printed
 *
 * If the seed is odd, the app is not ours. Without a seed there are two walks with seeds from the
 * clock, one of each.
 *
 * A violation prints the step, which the same seed reaches again.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed;

static uint32_t dice(uint32_t sides) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t)((seed >> 16) % sides);
}

/* How often each move is tried, of all. */
static const uint32_t WEIGHTS[MOVE_KINDS] = {
    [CONNECT] = 500,     [CONNECT_UNREADABLE] = 50,
    [CALL] = 6000,       [CALL_TIMED] = 4000,
    [CALL_UNSENT] = 100, [SIGNAL] = 1500,
    [POSTPONE] = 1500,   [BEGIN] = 1200,
    [ASK] = 600,         [COMPLETE] = 2500,
    [FAIL] = 1000,       [THROW_ABORT] = 500,
    [PASS_ON] = 400,     [LOSE_TRACK] = 200,
    [ACCEPT] = 300,      [DECLINE] = 300,
    [PROGRESS] = 1000,   [ELICIT] = 1500,
    [STREAM] = 3000,     [YIELD] = 9000,
    [READ] = 6000,       [GRANT] = 100,
    [LOCAL] = 1000,      [INPUT] = 700,
    [DELIVER] = 20000,   [TICK] = 800,
    [SLEEP] = 5,         [CLOSE] = 1,
    [LEAVE] = 1,         [CUT] = 1,
    [LEARN] = 500,       [GO_ON] = 300,
};

static int walk(uint64_t steps, uint64_t start) {
  printf("walk %llu %llu\n", (unsigned long long)steps, (unsigned long long)start);
  seed = start * 0x9e3779b97f4a7c15u | 1;
  struct bounds bounds = {.foreign = start & 1,
                          .calls = ANY,
                          .max_calls = 400,
                          .max_concurrent = 150,
                          .remembered = 100,
                          .chunks = {5, 4}};
  uint32_t sum = 0;
  for (int kind = 0; kind < MOVE_KINDS; kind++) {
    bounds.moves[kind] = ANY;
    sum += WEIGHTS[kind];
  }
  static struct world world;
  world_open(&world, &bounds);
  uint64_t made[MOVE_KINDS] = {0};
  uint32_t most = 0;
  for (uint64_t step = 0; step < steps;) {
    struct move move = {0};
    for (uint32_t roll = dice(sum); roll >= WEIGHTS[move.kind]; move.kind++)
      roll -= WEIGHTS[move.kind];
    const int places = move_places(&world, move.kind);
    if (!places) continue;
    move.at = (int)dice((uint32_t)places);
    /* Any call that it can be done to, from a random one on. */
    for (int tries = places; tries && !world_can(&world, move); tries--)
      move.at = (move.at + 1) % places;
    if (!world_can(&world, move)) continue;
    if (!world_do(&world, move)) {
      printf("step %llu, %s: violated: %s (call %d)\n", (unsigned long long)step, move_text(move),
             world.violation, world.violation_at);
      return 1;
    }
    step++;
    made[move.kind]++;
    const abp_endpoint *app = world.peer[APP].endpoint;
    const uint32_t flying = abp_count(app, ABP_IN_FLIGHT_IN) + abp_count(app, ABP_IN_FLIGHT_OUT);
    if (flying > most) most = flying;
  }
  for (int kind = 0; kind < MOVE_KINDS; kind++) {
    const char *name = move_text((struct move){(enum move_kind)kind, 0});
    printf("%llu %.*s, ", (unsigned long long)made[kind], (int)strcspn(name, ":"), name);
  }
  printf("\n%u sessions, up to %u calls in flight at the app\n", world.peer[APP].serial, most);
  world_close(&world);
  return 0;
}

int main(int argc, char **argv) {
  const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
  if (argc > 2) return walk(steps, strtoull(argv[2], NULL, 10));
  const uint64_t start = (uint64_t)time(NULL);
  const int ours = walk(steps / 2, start & ~1ull);
  return walk(steps / 2, start | 1) || ours;
}
