/*
 * Every interleaving of what can happen between two endpoints, within bounds; world.h says what a
 * move is and what is checked in every state.
 *
 * Breadth first, so that the trace of a violation is a shortest one; it is printed as the moves
 * from the start, and `explore <configuration> <moves>` replays it.
 *
 * A state is the two endpoints, the two channels, the model and what is left of the bounds. Two
 * states are one if they can only go on alike. Hence times count relative to their side's clock,
 * and what nobody can see does not count: slots, generations, the order of free slots and of the
 * index. A state is known by 64 bits of its hash: with 10^7 states, the chance that two share one
 * is under 10^-5.
 *
 * The bounds, exactly, are in CONFIGURATIONS: how many calls there are and how often each move may
 * be made; a move that is not named is not made. Delivering, clocks and handlers' ends are never
 * bounded. Clocks are the two sides' own and run independently of each other: each goes to its next
 * deadline whenever it likes, or (SLEEP) far beyond all of them. Calls have the timeouts 10, 20 and
 * 30 and elicitations 15, a cancel waits 7, and between two ticks no time passes. What is not
 * explored: messages that overtake each other or are lost without a break, which no transport of
 * this protocol does; ids as text, frozen pages and the heartbeat, which are no part of the tables.
 *
 * `npm test` explores the configurations that are small, and of each other one a smaller world that
 * takes the same rows of the tables (SMALLER); a landing those in between; a release those that
 * take minutes, and gigabytes. Sleep sets were tried: of moves of different sides that commute, one
 * order. They leave out a fifth to a third of the transitions, no states, and a tenth of the time.
 * To expand one side alone while a message waits for it takes fewer states, but not where the line
 * may still break or a session be closed, which is what most configurations are about.
 *
 * An endpoint is copied as memory: all that it allocates comes from an arena that is a part of the
 * state. A state that waits to be expanded is kept as its difference from the first one.
 */
#include "world.h"

#include "arena.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What every configuration has: handlers settle, messages arrive and deadlines pass at any time. */
#define ALWAYS [COMPLETE] = ANY, [THROW_ABORT] = ANY, [DELIVER] = ANY, [TICK] = ANY, [LEARN] = ANY

static const struct bounds CONFIGURATIONS[] = {
    /* A new document of the agent replaces the session of the old one. */
    {.name = "restart",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .restart = 1,
     .moves = {ALWAYS, [CONNECT] = 2, [CONNECT_UNREADABLE] = 1, [CALL] = 2, [ASK] = 1, [CUT] = 1}},
    /* An app that answers calls with a value or an error though it has accepted their cancel. */
    {.name = "heedless",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .heedless = 1,
     .moves = {ALWAYS, [FAIL] = ANY, [CONNECT] = 1, [CALL_TIMED] = 1, [SIGNAL] = 1, [ASK] = 1,
               [CLOSE] = 1, [CUT] = 1}},
    /* One call, and the session ends and begins again around it. */
    {.name = "again",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [FAIL] = ANY, [GO_ON] = 2, [CONNECT] = 2, [CALL_TIMED] = 1, [SIGNAL] = 1,
               [ASK] = 1, [SLEEP] = 1, [CLOSE] = 1, [CUT] = 1}},
    /* An app that is not ours: every way to ask it, all that it may say, and a session around it.
     */
    {.name = "foreign",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .moves = {ALWAYS, [LOSE_TRACK] = ANY, [ACCEPT] = 1, [DECLINE] = 1, [CONNECT] = 1,
               [CALL_TIMED] = 1, [SIGNAL] = 1, [ASK] = 2, [PROGRESS] = 1, [CLOSE] = 1, [CUT] = 1}},
    {.name = "foreign-restart",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .restart = 1,
     .moves = {ALWAYS, [LOSE_TRACK] = ANY, [FAIL] = ANY, [CONNECT] = 2, [CALL] = 1, [ASK] = 1,
               [CUT] = 1}},
    {.name = "foreign-two",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .moves = {ALWAYS, [LOSE_TRACK] = 1, [ACCEPT] = 1, [DECLINE] = 1, [CONNECT] = 1, [CALL] = 2,
               [SIGNAL] = 2, [ASK] = 1}},
    {.name = "foreign-tree",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .chunks = {1, 1},
     .moves =
         {ALWAYS, [CONNECT] = 1, [STREAM] = 1, [YIELD] = 2, [READ] = ANY, [ASK] = 1, [LOCAL] = 1}},
    /* Deadlines of calls that run and of calls that wait. */
    {.name = "clocks",
     .mute = 1,
     .calls = 2,
     .remembered = 2,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL_TIMED] = 2, [SIGNAL] = 1, [CLOSE] = 1}},
    /* A handler that calls and asks, and all that may end it. */
    {.name = "tree",
     .calls = 1,
     .remembered = 2,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [SIGNAL] = 1, [ELICIT] = 1, [LOCAL] = 1,
               [CLOSE] = 1, [LEAVE] = 1}},
    /* Calls whose clock stands still while a person is asked, by their handler or below it. */
    {.name = "asks",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL_TIMED] = 1, [ELICIT] = 2, [CLOSE] = 1}},
    {.name = "asks-tree",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL_TIMED] = 1, [LOCAL] = 2, [ELICIT] = 1}},
    {.name = "asks-foreign",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .moves = {ALWAYS, [DECLINE] = 1, [CONNECT] = 1, [CALL_TIMED] = 1, [LOCAL] = 1, [ELICIT] = 1}},
    {.name = "asks-liar",
     .mute = 1,
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .liar = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL_TIMED] = 2, [ELICIT] = 1}},
    /* How sessions begin and end, and what a call sees of it. */
    {.name = "session",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 8,
     .moves = {ALWAYS, [CONNECT] = 2, [CONNECT_UNREADABLE] = 1, [CALL] = 1, [SIGNAL] = 1,
               [CLOSE] = 2, [LEAVE] = 1, [CUT] = 1}},
    /* Two streams, and all that may end them, through windows of 1 and 2. */
    {.name = "streams",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 2,
     .chunks = {1, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [STREAM] = 2, [YIELD] = 4, [READ] = ANY, [SIGNAL] = 1,
               [CLOSE] = 1, [CUT] = 1}},
    {.name = "streams-1-2",
     .mute = 1,
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 2,
     .chunks = {1, 2},
     .moves =
         {ALWAYS, [CONNECT] = 1, [STREAM] = 2, [YIELD] = 4, [READ] = ANY, [SIGNAL] = 1, [CUT] = 1}},
    {.name = "streams-2-1",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 2,
     .chunks = {2, 1},
     .moves =
         {ALWAYS, [CONNECT] = 1, [STREAM] = 2, [YIELD] = 4, [READ] = ANY, [SIGNAL] = 1, [CUT] = 1}},
    {.name = "streams-2-2",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 2,
     .chunks = {2, 2},
     .moves =
         {ALWAYS, [CONNECT] = 1, [STREAM] = 2, [YIELD] = 5, [READ] = ANY, [SIGNAL] = 1, [CUT] = 1}},
    /* Windows that both sides know: nothing is granted before half of one was read. */
    {.name = "streams-told",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .told = 1,
     .chunks = {3, 5},
     .moves = {ALWAYS, [CONNECT] = 1, [STREAM] = 1, [YIELD] = 7, [READ] = ANY, [SIGNAL] = 1}},
    {.name = "input-told",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .told = 1,
     .chunks = {4, 7},
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [INPUT] = 1, [YIELD] = 6, [READ] = ANY}},
    /* What a handler reads of its agent, and what ends that call, that reader and that writer. */
    {.name = "input",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .chunks = {2, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [INPUT] = 1, [YIELD] = 4, [READ] = ANY,
               [SIGNAL] = 2, [CLOSE] = 1, [CUT] = 1}},
    /* Both directions at once. */
    {.name = "both",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .chunks = {1, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [STREAM] = 1, [INPUT] = 1, [YIELD] = 4, [READ] = ANY,
               [SIGNAL] = 1, [CUT] = 1}},
    /* An agent that sends without room, and an app that grants what was not sent. */
    {.name = "greedy-input",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .greedy = 1,
     .chunks = {1, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [INPUT] = 1, [YIELD] = 3, [READ] = ANY,
               [GRANT] = 2, [SIGNAL] = 1, [ASK] = 1}},
    /* A window that bytes fill, one stream after the other, and every way to cancel it. */
    {.name = "bytes",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .bytes = {5, 4},
     .moves =
         {ALWAYS, [CONNECT] = 1, [STREAM] = 2, [YIELD] = 3, [READ] = ANY, [SIGNAL] = 1, [ASK] = 1}},
    /* An app that sends without room, and an agent that grants what was not sent. */
    {.name = "greedy",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .greedy = 1,
     .chunks = {1, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [STREAM] = 1, [CALL] = 1, [YIELD] = 4, [READ] = ANY,
               [GRANT] = 2, [SIGNAL] = 1, [ASK] = 1, [CLOSE] = 1}},
    /* Handlers that wait before they begin, and all that may end their calls meanwhile. */
    {.name = "prepares",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [FAIL] = ANY, [CONNECT] = 1, [CALL] = 2, [POSTPONE] = 2, [BEGIN] = ANY,
               [SIGNAL] = 1, [CLOSE] = 1}},
    {.name = "prepares-timed",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [FAIL] = ANY, [CONNECT] = 1, [CALL_TIMED] = 1, [POSTPONE] = 2, [BEGIN] = ANY,
               [SIGNAL] = 1, [ASK] = 1, [CLOSE] = 1, [CUT] = 1}},
    {.name = "prepares-stream",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .chunks = {1, 1},
     .moves = {ALWAYS, [CONNECT] = 1, [STREAM] = 1, [YIELD] = 2, [READ] = ANY, [POSTPONE] = 1,
               [BEGIN] = ANY, [SIGNAL] = 1, [ASK] = 1, [CUT] = 1}},
    {.name = "prepares-tree",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [LOCAL] = 1, [POSTPONE] = 2, [BEGIN] = ANY,
               [SIGNAL] = 1, [CUT] = 1}},
    /* Handlers that pass on that what they called still runs. */
    {.name = "passes-on",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [PASS_ON] = ANY, [CONNECT] = 1, [CALL] = 1, [LOCAL] = 2, [SIGNAL] = 1}},
    /* Handlers that end, in whatever way, before what they called. */
    {.name = "leaves",
     .mute = 1,
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [FAIL] = ANY, [LOSE_TRACK] = ANY, [CONNECT] = 1, [CALL_TIMED] = 1,
               [LOCAL] = 2, [CUT] = 1}},
    {.name = "prepares-foreign",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .foreign = 1,
     .moves = {ALWAYS, [LOSE_TRACK] = ANY, [CONNECT] = 1, [CALL_TIMED] = 1, [POSTPONE] = 1,
               [BEGIN] = ANY, [SIGNAL] = 1, [ASK] = 1, [CUT] = 1}},
    /* Three calls that wait for each other. */
    {.name = "three",
     .calls = 3,
     .remembered = 2,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 3, [SIGNAL] = 3, [CLOSE] = 1}},
    /* Three calls of which two run at once. */
    {.name = "beside",
     .mute = 1,
     .calls = 3,
     .remembered = 2,
     .max_concurrent = 2,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 3, [SIGNAL] = 2, [CUT] = 1}},
    /* Two calls, by every way to cancel them. */
    {.name = "two",
     .calls = 2,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [CALL_TIMED] = 1, [SIGNAL] = 2, [ASK] = 1,
               [CLOSE] = 1, [CUT] = 1}},
    /* One call, and everything that can happen to it in one session. */
    {.name = "one",
     .calls = 1,
     .remembered = 1,
     .max_concurrent = 1,
     .moves = {ALWAYS, [CONNECT] = 1, [CALL] = 1, [CALL_TIMED] = 1, [CALL_UNSENT] = 1,
               [CALL_WITHDRAWN] = 1, [SIGNAL] = 2, [ASK] = 2, [FAIL] = ANY, [PROGRESS] = 1,
               [SLEEP] = 1, [CLOSE] = 1, [CUT] = 1}},
};

/*
 * Smaller worlds: what they have less of than the configuration of that name, whose idea they keep.
 * A configuration that is not here is small itself. None of what it had may be left where another
 * smaller world has it. Large ones take minutes together, or more than a gigabyte.
 */
static const struct less {
  const char *name;
  int large; /* the whole of it */
  uint32_t moves[MOVE_KINDS];
} SMALLER[] = {
    {"again", 1, {[SLEEP] = 1, [CUT] = 1, [GO_ON] = 1}},
    {"again", 1, {[ASK] = 1, [SIGNAL] = 1, [CLOSE] = 1}},
    {"foreign", 1, {[ASK] = 1, [CUT] = 1, [PROGRESS] = 1}},
    {"foreign-two", 0, {[SIGNAL] = 1}},
    {"clocks", 1, {[CLOSE] = 1}},
    {"tree", 1, {[ELICIT] = 1, [LEAVE] = 1}},
    {"tree", 1, {[LOCAL] = 1, [CLOSE] = 1}},
    {"asks", 1, {[ELICIT] = 1}},
    {"asks-tree", 1, {[LOCAL] = 1}},
    {"asks-foreign", 0, {[LOCAL] = 1}},
    {"asks-liar", 1, {[CALL_TIMED] = 1}},
    {"session", 1, {[CLOSE] = 2}},
    {"session", 1, {[CUT] = 1, [CONNECT] = 1}},
    {"streams", 1, {[STREAM] = 1}},
    {"streams-1-2", 0, {[STREAM] = 1}},
    {"streams-2-1", 0, {[STREAM] = 1}},
    {"streams-2-2", 1, {[STREAM] = 1}},
    {"input", 1, {[SIGNAL] = 1, [YIELD] = 2}},
    {"both", 0, {[YIELD] = 2}},
    {"greedy-input", 1, {[GRANT] = 1, [SIGNAL] = 1}},
    {"bytes", 1, {[YIELD] = 1, [SIGNAL] = 1}},
    {"greedy", 1, {[CALL] = 1, [CLOSE] = 1, [GRANT] = 1}},
    {"prepares", 1, {[POSTPONE] = 1}},
    {"prepares-timed", 0, {[CUT] = 1, [ASK] = 1}},
    {"prepares-tree", 0, {[POSTPONE] = 1}},
    {"leaves", 0, {[LOCAL] = 1}},
    {"three", 1, {[SIGNAL] = 2}},
    {"beside", 0, {[SIGNAL] = 2}},
    {"two", 1, {[CALL_TIMED] = 1}},
    {"heedless", 0, {[CUT] = 1}},
    {"one", 1, {[SLEEP] = 1, [PROGRESS] = 1, [CUT] = 1, [ASK] = 1}},
};
enum { SMALLER_COUNT = sizeof SMALLER / sizeof *SMALLER };

/* --- A state as memory ------------------------------------------------------------------------ */

#define ARENA 5120

static struct state {
  _Alignas(64) struct world world;
  size_t used;
  _Alignas(16) char arena[ARENA];
} now, first;

static void *grown(void *old, size_t size) {
  void *memory = realloc(old, size);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(2);
  }
  return memory;
}

/*
 * States that wait to be expanded: a number, a map of the lines that differ, and those. Most of the
 * time goes into copies of states, so a line is what the processor compares and copies at once.
 */
#define LINE 64
#define LINES (sizeof(struct state) / LINE)
#define MAP_WORDS ((LINES + 63) / 64)

/* In blocks, which are used again: what waits at one depth is let go while the next one grows. */
enum { BLOCK_WORDS = 1 << 17, MAX_WORDS = 1 + MAP_WORDS + sizeof(struct state) / sizeof(uint64_t) };

struct block {
  struct block *next;
  size_t count;
  uint64_t words[BLOCK_WORDS];
};

static struct block *unused;

struct frontier {
  struct block *first, *last;
};

static struct block *new_block(void) {
  struct block *block = unused;
  if (block)
    unused = block->next;
  else
    block = grown(NULL, sizeof *block);
  block->next = NULL;
  block->count = 0;
  return block;
}

static void put_state(struct frontier *frontier, uint32_t number) {
  if (!frontier->last || frontier->last->count + MAX_WORDS > BLOCK_WORDS) {
    struct block *block = new_block();
    if (frontier->last)
      frontier->last->next = block;
    else
      frontier->first = block;
    frontier->last = block;
  }
  struct block *block = frontier->last;
  uint64_t *map = block->words + block->count, *word = map + 1 + MAP_WORDS;
  *map++ = number;
  memset(map, 0, MAP_WORDS * sizeof *map);
  const char *a = (const char *)&now, *b = (const char *)&first;
  for (size_t i = 0; i < LINES; i++, a += LINE, b += LINE) {
    if (memcmp(a, b, LINE) == 0) continue;
    map[i / 64] |= (uint64_t)1 << i % 64;
    memcpy(word, a, LINE);
    word += LINE / sizeof *word;
  }
  block->count = (size_t)(word - block->words);
}

/* Takes the state at a place of a block; returns the place of the next. */
static size_t get_state(const struct block *block, size_t place, uint32_t *number) {
  const uint64_t *map = block->words + place, *word = map + 1 + MAP_WORDS;
  *number = (uint32_t)*map++;
  now = first;
  char *bytes = (char *)&now;
  for (size_t i = 0; i < MAP_WORDS; i++) {
    for (uint64_t bits = map[i]; bits; bits &= bits - 1) {
      memcpy(bytes + (i * 64 + (size_t)__builtin_ctzll(bits)) * LINE, word, LINE);
      word += LINE / sizeof *word;
    }
  }
  return (size_t)(word - block->words);
}

/* --- When two states are one ------------------------------------------------------------------ */

struct key {
  uint64_t hash;
};

static void mix(struct key *key, uint64_t value) {
  key->hash = (key->hash ^ value) * 0x9e3779b97f4a7c15u;
  key->hash ^= key->hash >> 29;
}

static uint64_t pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (uint64_t)a << 48 ^ (uint64_t)b << 32 ^ (uint64_t)c << 16 ^ d;
}

static uint32_t until(uint64_t at, uint64_t clock) {
  if (!at) return 0xffff;
  return at - clock > 0x1000 ? 0xfffe : (uint32_t)(at - clock);
}

static uint32_t since(uint64_t at, uint64_t clock) {
  return clock - at > 0x1000 ? 0x1000 : (uint32_t)(clock - at);
}

static uint32_t ghost_of(const struct world *w, int side, uint32_t slot) {
  if (slot == NO_CALL) return 0xff;
  for (int i = 0; i < w->ghosts; i++) {
    const struct part *part = &w->calls[i].part[side];
    if (part->phase != NOT_HERE && (part->handle & ((1u << SLOT_BITS) - 1)) == slot)
      return (uint32_t)i;
  }
  return 0xfe;
}

static void mix_list(struct key *key, const struct world *w, int side, struct call_list list) {
  const struct call_table *table = &w->peer[side].endpoint->calls.table;
  uint64_t order = list.count;
  for (uint32_t slot = list.head; slot != NO_CALL; slot = table_call(table, slot)->next)
    order = order << 6 | ghost_of(w, side, slot);
  mix(key, order);
}

static void mix_call(struct key *key, const struct world *w, int side, const struct part *part) {
  const struct peer *peer = &w->peer[side];
  const struct call_table *table = &peer->endpoint->calls.table;
  mix(key, pack((uint32_t)(part->phase << 8 | part->prepares << 3 | part->follows << 2 |
                           part->known << 4 | part->answered << 1 | part->accepted),
                (uint32_t)(part->stopped << 8 | part->outcome),
                (uint32_t)(part->asked << 8 | part->unknown | part->fate << 4),
                until(part->deadline, peer->now)));
  mix(key, (uint32_t)(part->left << 8 | part->word << 4 | part->below));
  const struct call *call = table_call(table, part->handle & ((1u << SLOT_BITS) - 1));
  const uint32_t clock = call_is_over(call->state) ? since(call->deadline, peer->now)
                         : call->timer             ? 0x4000 + until(call->deadline, peer->now)
                                                   : 0x8000 + (uint32_t)call->deadline;
  mix(key, pack(call->state, (uint32_t)(call->cause << 12 | call->flags), call->number, clock));
  if (call->flags & CALL_STREAM && !call_is_over(call->state)) {
    const struct stream *stream = table_stream(table, part->handle & ((1u << SLOT_BITS) - 1));
    mix(key, pack(stream->chunks, stream->read_chunks, (uint32_t)stream->bytes,
                  (uint32_t)stream->read_bytes));
    mix(key, pack(part->under_way, part->unread, part->unreported, stream->max_chunks));
  }
  const uint32_t other = call->flags & CALL_IS_CANCEL && call->flags & CALL_OUT
                             ? abp_calls_live(&peer->endpoint->calls, call->target)
                             : call->sibling;
  mix(key, pack(ghost_of(w, side, call->parent), ghost_of(w, side, call->child),
                ghost_of(w, side, other), call->depth));
}

static void mix_peer(struct key *key, const struct world *w, int side) {
  const struct peer *peer = &w->peer[side];
  const abp_endpoint *ep = peer->endpoint;
  const struct session *session = &ep->session;
  const int connecting = session->state == ABP_SESSION_CONNECTING;
  mix(key, pack(peer->session, (uint32_t)peer->torn, peer->serial, peer->peer_serial));
  mix(key,
      pack(session->state, session->agreed, session->serial, until(ep->calls.wake, ep->calls.now)));
  mix(key,
      pack(ep->calls.running, ep->calls.minted, ep->calls.in_flight[0], ep->calls.in_flight[1]));
  if (connecting)
    mix(key, pack(until(session->due, ep->calls.now), until(session->give_up, ep->calls.now),
                  session->pause, until(peer->resend, peer->now)));
  for (int i = 0; i < peer->remembered; i++)
    mix(key, pack(1, (uint32_t)peer->memory[i].at, 0, since(peer->memory[i].since, peer->now)));
  uint64_t timers = ep->calls.table.timer_count;
  for (uint32_t i = 0; i < ep->calls.table.timer_count; i++)
    timers = timers << 6 | ghost_of(w, side, ep->calls.table.timers[i]);
  mix(key, timers);
  mix_list(key, w, side, ep->calls.table.queue);
  mix_list(key, w, side, ep->calls.table.memory);
}

static uint64_t state_hash(const struct world *w) {
  struct key key = {0};
  for (int i = 0; i < MOVE_KINDS; i++)
    mix(&key, w->bounds.moves[i]);
  mix(&key, pack(w->bounds.calls, (uint32_t)w->line, (uint32_t)w->unreadable, (uint32_t)w->ghosts));
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    mix(&key, pack(call->kind, call->id.serial, call->id.number, (uint32_t)call->parent & 0xff));
    mix(&key, pack((uint32_t)(call->started << 8 | call->results << 4 | call->settled),
                   (uint32_t)(call->said_true << 8 | call->said_false << 4 | call->succeeded),
                   call->depth, call->progress));
    mix(&key, pack((uint32_t)call->about, call->swept, (uint32_t)call->made_by, call->order));
    mix(&key, pack(call->stream, call->yielded, call->handed,
                   (uint32_t)(call->did << 12 | call->told << 11 | call->said_unknown << 8 |
                              call->holds)));
    for (int held = 0; held < call->holds; held++)
      mix(&key, pack(call->held[held].owner, call->held[held].serial, call->held[held].number, 1));
    for (int side = 0; side < 2; side++) {
      if (call->part[side].phase != NOT_HERE) mix_call(&key, w, side, &call->part[side]);
    }
  }
  for (int side = 0; side < 2; side++) {
    mix_peer(&key, w, side);
    mix(&key, (uint64_t)w->to[side].count);
    for (int i = 0; i < w->to[side].count; i++) {
      const struct message *m = &w->to[side].messages[i];
      mix(&key, pack((uint32_t)(m->kind << 8 | m->arg), (uint32_t)(m->fate << 1 | m->success),
                     m->timeout, m->chunks));
      mix(&key, pack(m->id.owner, m->id.serial, m->id.number, 0));
      mix(&key, pack(m->about.owner, m->about.serial, m->about.number, 0));
    }
  }
  return key.hash ? key.hash : 1;
}

/* --- The search ------------------------------------------------------------------------------- */

static struct {
  uint64_t *hashes; /* of states seen: open addressing, at most half full */
  size_t room;
  struct origin {
    uint32_t parent;
    uint8_t kind, at;
  } * origins; /* how each state was first reached */
  uint32_t states, origin_room;
} seen;

static int put_hash(uint64_t *hashes, size_t room, uint64_t hash) {
  size_t i = (hash ^ hash >> 32) & (room - 1);
  for (; hashes[i]; i = (i + 1) & (room - 1)) {
    if (hashes[i] == hash) return 0;
  }
  hashes[i] = hash;
  return 1;
}

/* 1 if the state is new. */
static int see(uint64_t hash, uint32_t parent, struct move move) {
  if ((seen.states + 1) * (size_t)2 > seen.room) {
    const size_t room = seen.room ? seen.room * 2 : 1 << 16;
    uint64_t *hashes = calloc(room, sizeof *hashes);
    if (!hashes) exit(2);
    for (size_t i = 0; i < seen.room; i++) {
      if (seen.hashes[i]) put_hash(hashes, room, seen.hashes[i]);
    }
    free(seen.hashes);
    seen.hashes = hashes;
    seen.room = room;
  }
  if (!put_hash(seen.hashes, seen.room, hash)) return 0;
  if (seen.states == seen.origin_room) {
    seen.origin_room = seen.origin_room ? seen.origin_room * 2 : 1 << 16;
    seen.origins = grown(seen.origins, seen.origin_room * sizeof *seen.origins);
  }
  seen.origins[seen.states++] = (struct origin){parent, (uint8_t)move.kind, (uint8_t)move.at};
  return 1;
}

static uint64_t transitions;

static void print_trace(const struct bounds *bounds, uint32_t state, struct move last) {
  struct move trace[256];
  int length = 0;
  trace[length++] = last;
  for (; state; state = seen.origins[state].parent)
    trace[length++] = (struct move){seen.origins[state].kind, seen.origins[state].at};
  printf("  explore %s", bounds->name);
  while (length)
    printf(" %s", move_text(trace[--length]));
  printf("\n");
}

/* Everything that can happen in a state, which is now, and comes next. Returns whether it is fine.
 */
static int expand(const struct bounds *bounds, uint32_t number, struct frontier *next) {
  static struct state before;
  const size_t size = offsetof(struct state, arena) + now.used;
  memcpy(&before, &now, sizeof before);
  for (struct move move = {0}; move.kind < MOVE_KINDS; move.kind++) {
    for (move.at = 0; move.at < move_places(&now.world, move.kind); move.at++) {
      if (!world_can(&now.world, move)) continue;
      transitions++;
      arena.on = 1;
      const int fine = world_do(&now.world, move);
      arena.on = 0;
      if (!fine) {
        printf("%s: violated: %s (call %d)\n", bounds->name, now.world.violation,
               now.world.violation_at);
        print_trace(bounds, number, move);
        return 0;
      }
      if (see(state_hash(&now.world), number, move)) put_state(next, seen.states - 1);
      /* What a table grew by is zero again, as it was. */
      memcpy(&now, &before, now.used == before.used ? size : sizeof now);
    }
  }
  return 1;
}

static int explore(const struct bounds *bounds) {
  const clock_t began = clock();
  int depth = 0;
  struct frontier at = {0}, next = {0};
  transitions = 0;
  memset(&now, 0, sizeof now);
  arena.on = 1;
  world_open(&now.world, bounds);
  arena.on = 0;
  first = now;
  seen.states = 0;
  if (seen.hashes) memset(seen.hashes, 0, seen.room * sizeof *seen.hashes);
  see(state_hash(&now.world), 0, (struct move){0});
  put_state(&at, 0);
  for (; at.first; depth++) {
    for (struct block *block = at.first, *after; block; block = after) {
      for (size_t place = 0; place < block->count;) {
        uint32_t number;
        place = get_state(block, place, &number);
        if (!expand(bounds, number, &next)) return 0;
      }
      after = block->next;
      block->next = unused;
      unused = block;
    }
    at = next;
    next = (struct frontier){0};
  }
  printf("%-16s %9u states, %10llu transitions, depth %3d, %5.1f s\n", bounds->name, seen.states,
         (unsigned long long)transitions, depth - 1, (double)(clock() - began) / CLOCKS_PER_SEC);
  fflush(stdout);
  return 1;
}

static int replay(const struct bounds *bounds, char **moves) {
  world_open(&now.world, bounds);
  for (; *moves; moves++) {
    struct move move;
    if (!move_parse(*moves, &move) || !world_can(&now.world, move)) {
      printf("%s: cannot be done here\n", *moves);
      return 0;
    }
    const int fine = world_do(&now.world, move);
    printf("%s\n", *moves);
    if (fine) continue;
    printf("violated: %s (call %d)\n", now.world.violation, now.world.violation_at);
    return 0;
  }
  world_close(&now.world);
  return 1;
}

/* The smaller worlds of a configuration: the first that is at this place or comes later, or
 * SMALLER_COUNT. */
static size_t find_smaller(const struct bounds *bounds, size_t at) {
  while (at < SMALLER_COUNT && strcmp(SMALLER[at].name, bounds->name) != 0)
    at++;
  return at;
}

static int explore_smaller(const struct bounds *bounds) {
  int fine = 1;
  for (size_t at = 0; fine && (at = find_smaller(bounds, at)) < SMALLER_COUNT; at++) {
    struct bounds small = *bounds;
    for (int kind = 0; kind < MOVE_KINDS; kind++) {
      const uint32_t less = SMALLER[at].moves[kind];
      if (less > small.moves[kind]) return 0;
      small.moves[kind] -= less;
    }
    fine = explore(&small);
  }
  return fine;
}

enum size { SMALL, MIDDLING, LARGE };

static enum size size_of(const struct bounds *bounds) {
  const size_t at = find_smaller(bounds, 0);
  return at == SMALLER_COUNT ? SMALL : SMALLER[at].large ? LARGE : MIDDLING;
}

/*
 *   explore                            every configuration
 *   explore small                      those that are small, and smaller worlds of the others
 *   explore middling                   those that are neither small nor large
 *   explore large                      those that are
 *   explore <configuration> [move]...  this one; these moves of it
 */
int main(int argc, char **argv) {
  static const char *const SIZES[] = {"small", "middling", "large"};
  const char *which = argc > 1 ? argv[1] : NULL;
  int found = 0, fine = 1;
  arena = (struct arena){0, now.arena, ARENA, &now.used};
  for (size_t i = 0; fine && i < sizeof CONFIGURATIONS / sizeof *CONFIGURATIONS; i++) {
    const struct bounds *bounds = &CONFIGURATIONS[i];
    const enum size size = size_of(bounds);
    const int smaller = which && size != SMALL && strcmp(which, SIZES[SMALL]) == 0;
    if (which && !smaller && strcmp(which, SIZES[size]) != 0 && strcmp(which, bounds->name) != 0)
      continue;
    found = 1;
    fine = smaller    ? explore_smaller(bounds)
           : argc > 2 ? replay(bounds, argv + 2)
                      : explore(bounds);
  }
  return !found || !fine;
}
