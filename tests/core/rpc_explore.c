/*
 * Every interleaving of what can happen between two JSON-RPC peers, within bounds, against a naive
 * model of what each must say, and when.
 *
 * A move is one thing that can happen: a request is made, on behalf of another or not; its signal
 * fires; a handler returns, throws or gives up; a message arrives; what arrived starts; a clock
 * goes to its next deadline; a side ends its half of the line; a side closes; the line breaks. A
 * move happens to the real peer and to the model. The model says which actions must come of it, of
 * which requests, with what argument; all of those must come and no others, a request's own in
 * order. After each move both hold the same: as many requests each way, handlers and timers.
 *
 * The model keeps plain facts about each request and searches them from end to end; it knows
 * nothing of the core's states. Depth first; a state is known by the hash of its bytes. A violation
 * is printed with the moves that lead to it.
 */
#include "arena.h"
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTS = 4, CHANNEL = 16, ARENA = 6144, GRACE = 7, TIMEOUT = 10, MAX_DEPTH = 64 };

enum move_kind {
  CALL,  /* A asks */
  TIMED, /* likewise, with a timeout */
  NEST,  /* of a request: its handler asks back */
  SIGNAL,
  POSTPONE, /* of a request: its handler waits for what it needs before it begins */
  BEGIN,
  RETURN,
  THROW,
  GIVE_UP,
  INQUIRE, /* it returns that it needs something first */
  RETRY,   /* of a request: its caller has it, and asks again */
  DELIVER, /* to a side */
  START,
  TICK,
  HALF_CLOSE, /* a side hears that the other says nothing more */
  CLOSE,
  LOSE,
  WITHDRAW, /* a side answers a request of the other for its handler */
  MOVES,
  SUBSCRIBES = MOVES, /* no move: each request is a subscription */
  BY_NAME             /* likewise: a cancel comes together with the notification beside it */
};

static const char *const NAMES[MOVES] = {"call",  "timed",   "nest",    "signal",  "postpone",
                                         "begin", "return",  "throw",   "give-up", "inquire",
                                         "retry", "deliver", "start",   "tick",    "half-close",
                                         "close", "lose",    "withdraw"};

struct bounds {
  const char *name;
  abp_dialect dialect;
  uint32_t concurrent;
  uint8_t moves[BY_NAME + 1]; /* how often each may be made; and SUBSCRIBES, BY_NAME */
};

#define ANY 255
#define ALWAYS                                                                                     \
  [BEGIN] = ANY, [RETURN] = ANY, [THROW] = ANY, [GIVE_UP] = ANY, [DELIVER] = ANY, [START] = ANY,   \
  [TICK] = ANY

static const struct bounds CONFIGURATIONS[] = {
    {"acp, one",
     ABP_ACP,
     8,
     {ALWAYS, [CALL] = 1, [TIMED] = 1, [SIGNAL] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"acp, prepares",
     ABP_ACP,
     1,
     {ALWAYS, [TIMED] = 1, [POSTPONE] = 2, [SIGNAL] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"acp, queue that prepares", ABP_ACP, 1, {ALWAYS, [CALL] = 2, [POSTPONE] = 1, [SIGNAL] = 1}},
    {"mcp, prepares",
     ABP_MCP,
     1,
     {ALWAYS, [CALL] = 1, [POSTPONE] = 2, [SIGNAL] = 1, [HALF_CLOSE] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"mcp, subscriptions that prepare",
     ABP_MCP,
     1,
     {ALWAYS, [CALL] = 2, [POSTPONE] = 1, [HALF_CLOSE] = 1, [CLOSE] = 1, [SUBSCRIBES] = 1}},
    {"acp, tree", ABP_ACP, 8, {ALWAYS, [CALL] = 1, [NEST] = 2, [SIGNAL] = 1, [CLOSE] = 1}},
    {"acp, by name",
     ABP_ACP,
     8,
     {ALWAYS, [CALL] = 1, [NEST] = 1, [SIGNAL] = 2, [CLOSE] = 1, [BY_NAME] = 1}},
    {"acp, withdrawn", ABP_ACP, 1, {ALWAYS, [CALL] = 2, [NEST] = 1, [WITHDRAW] = 1}},
    {"acp, lost", ABP_ACP, 8, {ALWAYS, [CALL] = 1, [NEST] = 1, [SIGNAL] = 2, [LOSE] = 2}},
    {"acp, half-closed",
     ABP_ACP,
     8,
     {ALWAYS, [CALL] = 1, [NEST] = 1, [SIGNAL] = 1, [HALF_CLOSE] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"acp, queue, half-closed", ABP_ACP, 1, {ALWAYS, [CALL] = 2, [NEST] = 1, [HALF_CLOSE] = 1}},
    {"mcp, half-closed",
     ABP_MCP,
     8,
     {ALWAYS, [TIMED] = 1, [NEST] = 1, [SIGNAL] = 1, [HALF_CLOSE] = 2, [LOSE] = 1}},
    {"acp, queue", ABP_ACP, 1, {ALWAYS, [CALL] = 2, [NEST] = 1, [SIGNAL] = 1}},
    {"mcp, one",
     ABP_MCP,
     8,
     {ALWAYS, [CALL] = 1, [TIMED] = 1, [SIGNAL] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"mcp, tree",
     ABP_MCP,
     8,
     {ALWAYS, [CALL] = 1, [NEST] = 2, [SIGNAL] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"mcp, queue", ABP_MCP, 1, {ALWAYS, [CALL] = 2, [NEST] = 1, [SIGNAL] = 2}},
    {"mcp, rounds",
     ABP_MCP,
     8,
     {ALWAYS, [TIMED] = 1, [INQUIRE] = 2, [RETRY] = 2, [SIGNAL] = 1, [CLOSE] = 1, [LOSE] = 1}},
    {"mcp, rounds in a tree",
     ABP_MCP,
     8,
     {ALWAYS, [CALL] = 1, [NEST] = 1, [INQUIRE] = 1, [RETRY] = 1, [SIGNAL] = 1, [HALF_CLOSE] = 1}},
    {"mcp, subscriptions",
     ABP_MCP,
     1,
     {ALWAYS, [CALL] = 2, [SIGNAL] = 1, [HALF_CLOSE] = 1, [CLOSE] = 1, [LOSE] = 1,
      [SUBSCRIBES] = 1}},
};

/* --- The state -------------------------------------------------------------------------------- */

/* What must come out now: bits 1 << abp_kind, and what they must say. */
struct expected {
  uint32_t kinds;
  uint8_t outcome; /* of ABP_SETTLE or ABP_RESULT */
  uint8_t fate;    /* and what became of the work */
};

struct fact {
  uint8_t caller; /* the side that made it */
  int8_t parent;  /* while that may stop it, else -1 */
  uint32_t number;
  /* At its caller. */
  abp_call out;
  uint8_t waits, stopped; /* stopped: why, an abp_outcome */
  uint8_t asks;           /* its peer needs something first: nothing of it is on its way */
  uint8_t left;           /* it has settled; the request above it waits for its answer */
  uint64_t deadline;
  /* At its callee. */
  abp_call in;
  uint8_t phase;    /* enum phase */
  uint8_t asked;    /* its signal has fired */
  uint8_t prepares; /* its handler has not begun */
  uint8_t mute;     /* nobody is to be answered any more */
  uint8_t named;    /* it was stopped by a name */
  uint8_t ending, held, inquires;
  struct expected expected[2]; /* of its caller, of its callee */
};

enum phase { NOT_HERE, QUEUED_UP, RUNS, HELD, OVER };

struct message {
  enum { REQUEST, CANCEL, STOP, VALUE, STOP_VALUE, FAILURE, INQUIRY } kind;
  int fact;
};

static struct state {
  struct bounds left;
  int facts;
  int closed[2];    /* the side has closed, or knows that the line broke */
  int heard_all[2]; /* the side has closed, or knows that the other says nothing more */
  int drains[2];    /* it knows only that: once all is answered, that is the end */
  uint64_t clock[2];
  abp_peer *peer[2];
  struct fact fact[FACTS];
  int count[2];
  struct message channel[2][CHANNEL];
  size_t used;
  _Alignas(16) char arena[ARENA];
} now;

static const char *violation;
static struct {
  enum move_kind kind;
  int at;
} trace[MAX_DEPTH];

static void must(int holds, const char *what) {
  if (!holds && !violation) violation = what;
}

/* --- The model -------------------------------------------------------------------------------- */

static int drops(void) { return now.left.dialect == ABP_MCP; }

static void expect(struct fact *fact, int at_callee, abp_kind kind) {
  fact->expected[at_callee].kinds |= 1u << kind;
}

static void ends(struct fact *fact, uint8_t outcome, abp_fate fate);

/* What became of the work of a handler that has ended. */
static abp_fate fate_of(const struct fact *fact) {
  return fact->ending == ABP_RETURNED                                 ? ABP_FATE_FINISHED
         : fact->ending == ABP_GAVE_UP && (fact->asked || fact->mute) ? ABP_FATE_STOPPED
                                                                      : ABP_FATE_FAILED;
}

/* No answer of it is waited for any more. */
static void is_over(struct fact *fact) {
  fact->waits = fact->asks = fact->left = 0;
  fact->deadline = 0;
  if (fact->parent < 0) return;
  struct fact *parent = &now.fact[fact->parent];
  fact->parent = -1;
  for (int i = 0; i < now.facts; i++) {
    if (now.fact[i].parent == parent - now.fact) return;
  }
  if (parent->phase == HELD) ends(parent, parent->held, fate_of(parent));
}

static void tells(struct fact *fact, uint8_t outcome, abp_fate fate) {
  fact->expected[0].outcome = outcome;
  fact->expected[0].fate = (uint8_t)fate;
  expect(fact, 0, ABP_SETTLE);
}

static void settles(struct fact *fact, uint8_t outcome, abp_fate fate) {
  tells(fact, outcome, fate);
  is_over(fact);
}

/* A caller wants it to end, and says so. */
static void stops(struct fact *fact, uint8_t why) {
  if (!fact->waits || fact->stopped) return;
  fact->stopped = why;
  fact->deadline = now.clock[fact->caller] + GRACE;
  if (!fact->asks) expect(fact, 0, ABP_SEND);
  if (drops()) settles(fact, why, ABP_FATE_UNKNOWN);
}

/* What its handler asked for ends with it: whoever waits for that is told at once. */
static void leaves(const struct fact *parent) {
  for (int i = 0; i < now.facts; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->parent != parent - now.fact || !fact->waits) continue;
    stops(fact, ABP_CANCELLED);
    if (!fact->waits) continue;
    fact->waits = 0;
    fact->left = 1;
    fact->deadline = now.clock[fact->caller] + GRACE;
    tells(fact, fact->stopped, ABP_FATE_UNKNOWN);
  }
}

static void asked(struct fact *fact) {
  fact->asked = 1;
  expect(fact, 1, ABP_ABORT);
  leaves(fact);
}

/* Its callee answers. */
static void ends(struct fact *fact, uint8_t outcome, abp_fate fate) {
  fact->phase = OVER;
  fact->expected[1].outcome = outcome;
  fact->expected[1].fate = (uint8_t)fate;
  expect(fact, 1, ABP_RESULT);
}

static void disown(const struct fact *fact) {
  for (int i = 0; i < now.facts; i++) {
    if (now.fact[i].parent == fact - now.fact) now.fact[i].parent = -1;
  }
}

static uint32_t running(int side) {
  uint32_t count = 0;
  for (int i = 0; i < now.facts; i++)
    count += now.fact[i].caller != side && now.fact[i].phase == RUNS;
  return count;
}

/* Requests come in the order of their numbers, so the first that waits is the next. */
static void admits(int side) {
  for (int i = 0; i < now.facts && running(side) < now.left.concurrent; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->caller == side || fact->phase != QUEUED_UP) continue;
    fact->phase = RUNS;
    expect(fact, 1, ABP_START);
  }
}

static void handler_ends(struct fact *fact, abp_ending ending) {
  fact->ending = (uint8_t)ending;
  if (fact->prepares) {
    fact->prepares = 0;
    const int gives_up = ending == ABP_GAVE_UP && !drops();
    if (gives_up) expect(fact, 1, ABP_ABORT);
    ends(fact, gives_up ? ABP_CANCELLED : ABP_COMPLETED,
         ending == ABP_RETURNED ? ABP_FATE_FINISHED : ABP_FATE_UNSTARTED);
    return;
  }
  if (ending == ABP_GAVE_UP && !drops() && !fact->asked && !fact->mute) asked(fact);
  if (fact->mute) {
    fact->phase = OVER;
    fact->expected[1].fate = (uint8_t)fate_of(fact);
  } else if (!fact->asked) {
    disown(fact);
    ends(fact, ABP_COMPLETED, fate_of(fact));
  } else {
    fact->held = ending == ABP_RETURNED ? ABP_COMPLETED : ABP_CANCELLED;
    fact->phase = HELD;
    int children = 0;
    for (int i = 0; i < now.facts; i++)
      children += now.fact[i].parent == fact - now.fact;
    if (!children) ends(fact, fact->held, fate_of(fact));
  }
}

/* Returns 1 if it gives its place back. */
static int cancel_comes(struct fact *fact) {
  if (fact->prepares) {
    fact->prepares = 0;
    expect(fact, 1, ABP_ABORT);
    fact->phase = OVER;
    fact->expected[1].fate = ABP_FATE_UNSTARTED;
    if (!drops()) ends(fact, ABP_CANCELLED, ABP_FATE_UNSTARTED);
    return 1;
  }
  if (fact->phase == QUEUED_UP && drops()) {
    fact->phase = OVER;
    fact->expected[1].fate = ABP_FATE_UNSTARTED;
    expect(fact, 1, ABP_ABORT);
  } else if (fact->phase == QUEUED_UP) {
    ends(fact, ABP_CANCELLED, ABP_FATE_UNSTARTED);
  } else if (fact->phase == RUNS && !fact->asked && !fact->mute) {
    fact->mute = (uint8_t)drops();
    asked(fact);
  }
  return 0;
}

/* It is answered in the place of its handler. */
static void answers(struct fact *fact, uint8_t outcome) {
  const int runs = fact->phase == RUNS;
  if (fact->mute || (!runs && fact->phase != QUEUED_UP)) return;
  if (runs && !fact->asked) expect(fact, 1, ABP_ABORT);
  const int works = runs && !fact->prepares;
  ends(fact, outcome, works ? ABP_FATE_RUNNING : ABP_FATE_UNSTARTED);
  if (works) fact->phase = RUNS;
  fact->prepares = 0;
  fact->mute = 1;
}

static void closes(int side) {
  for (int i = 0; i < now.facts; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->caller == side && fact->left) is_over(fact);
    if (fact->caller != side || !fact->waits) continue;
    if (!fact->stopped && !fact->asks) expect(fact, 0, ABP_SEND);
    settles(fact, fact->stopped ? fact->stopped : ABP_DISCONNECTED, ABP_FATE_UNKNOWN);
  }
  for (int i = 0; i < now.facts; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->caller != side)
      answers(fact, now.left.moves[SUBSCRIBES] ? ABP_COMPLETED
                    : drops()                  ? ABP_DISCONNECTED
                                               : ABP_CANCELLED);
  }
}

static void hears_all(int side) {
  int freed = 0;
  for (int i = 0; i < now.facts; i++) {
    if (now.fact[i].caller == side && now.fact[i].left) is_over(&now.fact[i]);
    if (now.fact[i].caller == side && now.fact[i].waits)
      settles(&now.fact[i], ABP_DISCONNECTED, ABP_FATE_UNKNOWN);
    if (now.fact[i].caller != side && now.left.moves[SUBSCRIBES])
      freed |= cancel_comes(&now.fact[i]);
  }
  if (freed) admits(side);
}

static uint32_t received(int side) {
  uint32_t count = 0;
  for (int i = 0; i < now.facts; i++) {
    const struct fact *fact = &now.fact[i];
    if (fact->caller != side) count += fact->phase != NOT_HERE && fact->phase != OVER;
  }
  return count;
}

static void loses(int side) {
  for (int i = 0; i < now.facts; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->caller == side) {
      fact->parent = -1;
      if (fact->left) is_over(fact);
      if (fact->waits) settles(fact, ABP_DISCONNECTED, ABP_FATE_UNKNOWN);
      continue;
    }
    if (fact->mute || fact->phase == NOT_HERE || fact->phase == OVER) continue;
    if (!fact->asked || fact->phase != RUNS) expect(fact, 1, ABP_ABORT);
    fact->mute = 1;
    if (fact->phase == QUEUED_UP || fact->prepares) fact->expected[1].fate = ABP_FATE_UNSTARTED;
    if (fact->phase == HELD) fact->expected[1].fate = (uint8_t)fate_of(fact);
    if (fact->phase != RUNS || fact->prepares) fact->phase = OVER;
    fact->prepares = 0;
  }
}

/* --- What comes of a move, compared ----------------------------------------------------------- */

static void post(int from, int kind, int fact) {
  if (now.heard_all[!from]) return;
  if (now.count[!from] == CHANNEL) {
    fprintf(stderr, "CHANNEL is too small\n");
    exit(2);
  }
  now.channel[!from][now.count[!from]++] = (struct message){kind, fact};
}

static void observe(int side, const abp_action *action) {
  if (action->kind == ABP_WAKE || action->kind == ABP_DROP) return;
  if (action->kind == ABP_SESSION) {
    must(now.drains[side] && !received(side), "it ends before all is answered");
    now.drains[side] = 0;
    return;
  }
  int at = 0, at_callee = 0;
  for (; at < now.facts; at++) {
    at_callee = now.fact[at].caller != side;
    if (action->call && action->call == (at_callee ? now.fact[at].in : now.fact[at].out)) break;
    if (action->kind == ABP_QUEUED && now.fact[at].expected[1].kinds & 1u << ABP_QUEUED) break;
  }
  must(at < now.facts, "an action of a request that nobody knows");
  if (violation) return;
  struct fact *fact = &now.fact[at];
  struct expected *due = &fact->expected[at_callee];
  must(due->kinds >> action->kind & 1, "an action that nothing asked for");
  due->kinds &= ~(1u << action->kind);
  const int before = action->kind == ABP_SETTLE || action->kind == ABP_RESULT;
  must(!before || !due->kinds, "an answer precedes what was owed before it");
  switch (action->kind) {
  case ABP_QUEUED: fact->in = action->call; break;
  case ABP_REQUEST: post(side, REQUEST, at); break;
  case ABP_SEND:
    must(abp_peer_number(now.peer[side], action->call) == fact->number, "a cancel names another");
    if (now.left.moves[BY_NAME]) post(side, STOP, at);
    post(side, CANCEL, at);
    break;
  case ABP_SETTLE:
    must(action->arg == due->outcome, "it settles as what did not happen");
    must(action->fate == due->fate, "its caller is told wrongly what became of the work");
    break;
  case ABP_RESULT:
    must(action->arg ==
             (fact->named && due->outcome == ABP_CANCELLED ? ABP_STOPPED_BY_NAME : due->outcome),
         "an answer says what did not happen");
    must(action->fate == due->fate, "an answer says wrongly what became of the work");
    for (int i = 0; i < now.facts; i++)
      must(now.fact[i].parent != at, "an answer precedes that to a request on its behalf");
    post(side,
         action->arg == ABP_STOPPED_BY_NAME                             ? STOP_VALUE
         : action->arg != ABP_COMPLETED || fact->ending != ABP_RETURNED ? FAILURE
         : fact->inquires                                               ? INQUIRY
                                                                        : VALUE,
         at);
    break;
  default: break;
  }
  const int over = at_callee ? fact->phase == OVER : !fact->waits;
  must(action->released == (over && !due->kinds), "a request is let go too early or too late");
}

static void check(int side) {
  abp_peer *peer = now.peer[side];
  const struct calls *calls = abp_peer_calls(peer);
  uint32_t out = 0, timers = 0, queued = 0;
  for (int i = 0; i < now.facts; i++) {
    const struct fact *fact = &now.fact[i];
    must(!fact->expected[0].kinds && !fact->expected[1].kinds, "an action is missing");
    if (fact->caller == side) {
      out += fact->waits + fact->left;
      timers += fact->deadline != 0;
      continue;
    }
    queued += fact->phase == QUEUED_UP;
    const uint32_t slot = abp_calls_slot(calls, fact->in);
    /* That a side which closes answers its subscriptions is no word of their handlers. */
    const int answered_for = fact->mute && now.left.moves[SUBSCRIBES];
    if (fact->in && fact->phase == OVER && slot != NO_CALL && !answered_for)
      must(table_call(&calls->table, slot)->state ==
               (fact->expected[1].outcome == ABP_COMPLETED ? COMPLETED : CANCELLED),
           "it remembers what did not happen");
    if (fact->in && fact->phase == OVER && slot != NO_CALL)
      must(table_call(&calls->table, slot)->fate == fact->expected[1].fate,
           "it remembers wrongly what became of the work");
    if (fact->in && slot != NO_CALL) {
      const abp_rpc_id id = {ABP_ID_NUMBER, NULL, 0, table_call(&calls->table, slot)->number};
      abp_outcome outcome;
      abp_call call;
      const abp_fate fate = abp_peer_became(peer, &id, &outcome, &call);
      const int over = fact->phase == OVER;
      must(fate == (over ? fact->expected[1].fate : ABP_FATE_RUNNING) &&
               call == (over ? 0 : fact->in) &&
               (outcome == ABP_PENDING) == (!over && !fact->asked && !fact->mute),
           "who asks is told wrongly what became of the work");
    }
    if (fact->in && fact->phase == RUNS)
      must(table_call(&calls->table, slot)->fate == (fact->mute ? ABP_FATE_RUNNING : ABP_FATE_NONE),
           "it is known wrongly what became of the work");
    must(!fact->in || abp_peer_running(peer, fact->in) ==
                          (fact->phase == RUNS && !fact->asked && !fact->mute && !fact->prepares),
         "progress is wanted or not, wrongly");
    must(!fact->in || abp_peer_pending(peer, fact->in) == (fact->phase != OVER),
         "it has ended or not, wrongly");
  }
  must(abp_peer_count(peer, ABP_IN_FLIGHT_IN) == received(side),
       "received requests are miscounted");
  must(!now.drains[side] || received(side), "all is answered, and it does not end");
  must(abp_peer_count(peer, ABP_IN_FLIGHT_OUT) == out, "requests made are miscounted");
  must(calls->running == running(side), "handlers are miscounted");
  must(calls->table.queue.count == queued, "the queue holds what it should not");
  must(calls->table.timer_count == timers, "a timer is left or missing");
}

static void drain(int side) {
  abp_action action;
  while (!violation && abp_peer_next(now.peer[side], &action))
    observe(side, &action);
  if (!violation) check(side);
}

/* --- Moves ------------------------------------------------------------------------------------ */

static void make(int side, int parent, uint32_t timeout) {
  const abp_call above = parent < 0 ? 0 : now.fact[parent].in;
  abp_call call;
  must(abp_peer_request(now.peer[side], timeout, 0, ABP_ROUNDS, above, &call) == ABP_OK,
       "a request fails");
  struct fact *fact = &now.fact[now.facts++];
  *fact = (struct fact){.caller = (uint8_t)side,
                        .parent = (int8_t)parent,
                        .number = abp_peer_number(now.peer[side], call),
                        .out = call,
                        .waits = 1,
                        .deadline = timeout ? now.clock[side] + timeout : 0};
  expect(fact, 0, ABP_REQUEST);
}

static void deliver(int side) {
  abp_peer *peer = now.peer[side];
  const struct message message = now.channel[side][0];
  memmove(now.channel[side], now.channel[side] + 1, sizeof message * (size_t)--now.count[side]);
  now.channel[side][now.count[side]] = (struct message){0};
  struct fact *fact = &now.fact[message.fact];
  const abp_rpc_id id = {ABP_ID_NUMBER, NULL, 0, fact->number};
  switch (message.kind) {
  case REQUEST:
    abp_peer_received(peer, &id, ABP_RPC_NO_ERROR,
                      now.left.moves[SUBSCRIBES] ? ABP_SUBSCRIPTION : 0);
    fact->phase = QUEUED_UP;
    expect(fact, 1, ABP_QUEUED);
    break;
  case CANCEL:
    abp_peer_cancel_received(peer, &id, NULL, 0, 1);
    if (cancel_comes(fact)) admits(side);
    break;
  case STOP:
    must(abp_peer_stop_received(peer, fact->in) == ABP_OK, "a name is refused");
    fact->named |= fact->phase != OVER;
    cancel_comes(fact);
    break;
  case VALUE:
  case STOP_VALUE:
    abp_peer_response(peer, &id, message.kind == VALUE ? ABP_ANSWER_RESULT : ABP_ANSWER_STOPPED);
    if (fact->left) is_over(fact);
    /* A value outweighs the caller's wish, but not its clock. */
    if (fact->waits && fact->stopped == ABP_TIMED_OUT)
      settles(fact, ABP_TIMED_OUT, message.kind == VALUE ? ABP_FATE_FINISHED : ABP_FATE_STOPPED);
    else if (fact->waits)
      settles(fact, ABP_COMPLETED, ABP_FATE_NONE);
    break;
  case FAILURE:
    abp_peer_response(peer, &id, ABP_ANSWER_ERROR);
    if (fact->left) is_over(fact);
    /* After a cancel an error may be its answer, or not. */
    if (fact->waits)
      settles(fact, fact->stopped ? fact->stopped : ABP_COMPLETED,
              fact->stopped ? ABP_FATE_UNKNOWN : ABP_FATE_FAILED);
    break;
  case INQUIRY:
    abp_peer_response(peer, &id, ABP_INPUT_REQUIRED);
    if (!fact->waits) break;
    fact->asks = 1;
    expect(fact, 0, ABP_REPORT);
    break;
  }
}

static void tick(int side) {
  now.clock[side] = abp_calls_earliest(abp_peer_calls(now.peer[side]), 0);
  abp_peer_advance(now.peer[side], now.clock[side]);
  for (int i = 0; i < now.facts; i++) {
    struct fact *fact = &now.fact[i];
    if (fact->caller != side || !fact->deadline || fact->deadline > now.clock[side]) continue;
    if (fact->left)
      is_over(fact);
    else if (fact->stopped)
      settles(fact, fact->stopped, ABP_FATE_UNKNOWN);
    else
      stops(fact, ABP_TIMED_OUT);
  }
}

static int can(enum move_kind kind, int at) {
  if (!now.left.moves[kind]) return 0;
  const struct fact *fact = &now.fact[at];
  const int known = at < now.facts;
  switch (kind) {
  case CALL:
  case TIMED: return at == 0 && !now.heard_all[0] && now.facts < FACTS;
  case NEST:
    return known && fact->phase == RUNS && !fact->asked && !fact->mute && !fact->prepares &&
           now.facts < FACTS && !now.heard_all[!fact->caller];
  case SIGNAL: return known && fact->waits;
  case POSTPONE:
    for (int i = 0; known && i < now.facts; i++)
      if (now.fact[i].parent == at) return 0;
    return known && fact->phase == RUNS && !fact->asked && !fact->mute && !fact->prepares;
  case BEGIN: return known && fact->prepares;
  case RETURN:
  case THROW:
  case GIVE_UP:
  case INQUIRE: return known && fact->phase == RUNS;
  case RETRY: return known && fact->asks;
  case WITHDRAW: return known && fact->in && fact->phase != OVER && !now.closed[!fact->caller];
  case DELIVER: return at < 2 && now.count[at] > 0 && !now.heard_all[at];
  case START:
    for (int i = 0; at < 2 && i < now.facts; i++) {
      if (now.fact[i].caller != at && now.fact[i].phase == QUEUED_UP)
        return running(at) < now.left.concurrent;
    }
    return 0;
  case TICK: return at < 2 && abp_calls_earliest(abp_peer_calls(now.peer[at]), 0) != 0;
  case HALF_CLOSE: return at < 2 && !now.heard_all[at];
  case CLOSE: return at < 2 && !now.closed[at];
  default: return at < 2 && !now.closed[at];
  }
}

static void act(enum move_kind kind, int at) {
  struct fact *fact = &now.fact[at];
  const int callee = at < now.facts ? !fact->caller : 0;
  const int at_callee = (kind >= POSTPONE && kind <= INQUIRE) || kind == NEST;
  int side = kind >= DELIVER && kind < WITHDRAW ? at
             : at_callee || kind == WITHDRAW    ? callee
                                                : fact->caller;
  if (kind == CALL || kind == TIMED) side = 0;
  if (now.left.moves[kind] != ANY) now.left.moves[kind]--;
  arena.on = 1;
  switch (kind) {
  case CALL: make(0, -1, 0); break;
  case TIMED: make(0, -1, TIMEOUT); break;
  case NEST: make(callee, at, 0); break;
  case RETRY:
    must(abp_peer_retry(now.peer[side], fact->out) == ABP_OK, "it is not asked again");
    *fact = (struct fact){.caller = fact->caller,
                          .parent = fact->parent,
                          .number = abp_peer_number(now.peer[side], fact->out),
                          .out = fact->out,
                          .waits = 1,
                          .deadline = fact->deadline};
    expect(fact, 0, ABP_REQUEST);
    break;
  case SIGNAL:
    must(abp_peer_cancel(now.peer[side], fact->out, NULL, 0) == ABP_OK, "a signal is refused");
    stops(fact, ABP_CANCELLED);
    break;
  case POSTPONE:
    must(abp_peer_postpone(now.peer[side], fact->in) == ABP_OK, "a handler cannot wait");
    fact->prepares = 1;
    break;
  case BEGIN:
    must(abp_peer_begin(now.peer[side], fact->in) == ABP_OK, "a handler cannot begin");
    fact->prepares = 0;
    break;
  case RETURN:
  case THROW:
  case GIVE_UP:
  case INQUIRE: {
    const abp_ending ending = kind == INQUIRE ? ABP_RETURNED : (abp_ending)(kind - RETURN);
    fact->inquires = kind == INQUIRE;
    must(abp_peer_finish(now.peer[side], fact->in, ending) == ABP_OK, "a handler's end is refused");
    handler_ends(fact, ending);
    admits(side);
    break;
  }
  case DELIVER: deliver(side); break;
  case START:
    abp_peer_start(now.peer[side]);
    admits(side);
    break;
  case TICK: tick(side); break;
  case HALF_CLOSE:
    abp_peer_half_closed(now.peer[side]);
    now.drains[side] = !now.heard_all[side];
    hears_all(side);
    break;
  case WITHDRAW:
    must(abp_peer_withdraw(now.peer[side], fact->in) == ABP_OK, "it cannot be withdrawn");
    fact->named = 1;
    if (fact->phase == RUNS && !fact->mute) leaves(fact);
    if (fact->phase == RUNS && !fact->mute) disown(fact);
    answers(fact, ABP_CANCELLED);
    break;
  case CLOSE:
    abp_peer_close(now.peer[side]);
    now.drains[side] = 0;
    closes(side);
    break;
  default:
    abp_peer_lost(now.peer[side]);
    now.drains[side] = 0;
    loses(side);
    break;
  }
  drain(side);
  arena.on = 0;
  if (kind >= HALF_CLOSE && kind < WITHDRAW) {
    now.heard_all[side] = 1;
    now.closed[side] |= kind != HALF_CLOSE;
    now.count[side] = 0;
    memset(now.channel[side], 0, sizeof now.channel[side]);
  }
  must(abp_peer_closed(now.peer[side]) == now.heard_all[side], "it is closed or not, wrongly");
}

/* --- Exploring -------------------------------------------------------------------------------- */

static uint64_t *seen;
static size_t seen_room, seen_count;

/* As much of the state as is in use. */
static size_t size_now(void) { return offsetof(struct state, arena) + now.used; }

static uint64_t hash(void) {
  uint64_t sum = 0;
  const uint64_t *words = (const uint64_t *)(const void *)&now;
  for (size_t i = 0; i < size_now() / sizeof *words; i++) {
    sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return sum ? sum : 1;
}

static int put(uint64_t key) {
  if (seen_count * 2 >= seen_room) {
    uint64_t *old = seen;
    const size_t room = seen_room;
    seen_room = room ? room * 2 : 1 << 16;
    seen = calloc(seen_room, sizeof *seen);
    if (!seen) exit(2);
    seen_count = 0;
    for (size_t i = 0; i < room; i++) {
      if (old[i]) put(old[i]);
    }
    free(old);
  }
  size_t i = key & (seen_room - 1);
  for (; seen[i]; i = (i + 1) & (seen_room - 1)) {
    if (seen[i] == key) return 0;
  }
  seen[i] = key;
  seen_count++;
  return 1;
}

static uint64_t transitions;

static void explore(int depth) {
  if (depth == MAX_DEPTH) {
    violation = "it goes on for ever";
    return;
  }
  const size_t size = size_now();
  struct state *before = malloc(size);
  if (!before) exit(2);
  memcpy(before, &now, size);
  for (int kind = 0; kind < MOVES; kind++) {
    for (int at = 0; at < FACTS; at++) {
      if (!can((enum move_kind)kind, at)) continue;
      trace[depth].kind = (enum move_kind)kind;
      trace[depth].at = at;
      act((enum move_kind)kind, at);
      transitions++;
      if (violation) {
        printf("violated: %s\n ", violation);
        for (int i = 0; i <= depth; i++)
          printf(" %s:%d", NAMES[trace[i].kind], trace[i].at);
        printf("\n");
        exit(1);
      }
      if (put(hash())) explore(depth + 1);
      memcpy(&now, before, size);
    }
  }
  free(before);
}

int main(void) {
  arena = (struct arena){0, now.arena, ARENA, &now.used};
  for (size_t i = 0; i < sizeof CONFIGURATIONS / sizeof *CONFIGURATIONS; i++) {
    memset(&now, 0, sizeof now);
    now.left = CONFIGURATIONS[i];
    free(seen);
    seen = NULL;
    seen_room = seen_count = 0;
    transitions = 0;
    arena.on = 1;
    for (int side = 0; side < 2; side++) {
      const abp_peer_config config = {
          .dialect = now.left.dialect, .max_concurrent = now.left.concurrent, .grace_ms = GRACE};
      now.peer[side] = abp_peer_new(&config, 0);
    }
    arena.on = 0;
    explore(0);
    printf("%s: %zu states, %llu transitions\n", now.left.name, seen_count,
           (unsigned long long)transitions);
  }
  return 0;
}
