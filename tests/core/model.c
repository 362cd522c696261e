#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Facts ------------------------------------------------------------------------------------ */

enum side model_caller(const struct ghost *call) {
  return call->kind == AN_ELICITATION ? APP : AGENT;
}

int model_made_at(const struct ghost *call, enum side side) {
  return call->kind != A_LOCAL && model_caller(call) == side;
}

enum side model_handler_side(const struct ghost *call) {
  return call->kind == AN_ELICITATION ? AGENT : APP;
}

struct part *model_handled(struct ghost *call) {
  return &call->part[model_handler_side(call)];
}

int model_live(const struct part *part) { return part->phase == WAITS || part->phase == RUNS; }

uint32_t model_handlers(const struct world *w, enum side side) {
  uint32_t count = 0;
  for (int i = 0; i < w->ghosts; i++)
    count += w->calls[i].part[side].phase == RUNS;
  return count;
}

uint32_t model_in_flight(const struct world *w, enum side side, int made) {
  uint32_t count = 0;
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    count += model_live(&call->part[side]) && model_made_at(call, side) == made;
  }
  return count;
}

int model_find(const struct world *w, struct id id) {
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    if (call->kind != NOBODY && call->kind != A_LOCAL && call->id.owner == id.owner &&
        call->id.serial == id.serial && call->id.number == id.number)
      return i;
  }
  return -1;
}

int model_find_known(const struct world *w, enum side side, struct id id) {
  const int at = model_find(w, id);
  return at >= 0 && w->calls[at].part[side].known == 1 ? at : -1;
}

int model_add(struct world *w, struct ghost call) {
  int at = 0;
  const int latest = call.parent < 0 ? -1 : model_latest_child(w, call.parent);
  call.order = latest < 0 ? 0 : w->calls[latest].order + 1;
  while (at < WORLD_CALLS && w->calls[at].kind != NOBODY)
    at++;
  if (at == WORLD_CALLS) {
    fprintf(stderr, "WORLD_CALLS is too small\n");
    exit(2);
  }
  if (at >= w->ghosts) w->ghosts = at + 1;
  w->calls[at] = call;
  return at;
}

/* Chunks are of one size, and the last one may exceed the bytes. */
uint32_t model_window(const struct world *w, enum side side) {
  const uint32_t chunks = w->bounds.chunks[side] ? w->bounds.chunks[side] : 64;
  const uint32_t fit = (w->bounds.bytes[side] + CHUNK_SIZE - 1) / CHUNK_SIZE;
  return w->bounds.bytes[side] && fit < chunks ? fit : chunks;
}

/* Who sends knows the windows of both, who reads its own. */
int model_full(const struct world *w, enum side side, const struct ghost *call) {
  const uint32_t under_way = call->part[side].under_way;
  return under_way >= model_window(w, side) || under_way >= model_window(w, model_caller(call));
}

/* More than half full: a handler that waits goes on below. */
int model_crowded(const struct world *w, const struct part *part) {
  for (int side = 0; side < 2; side++) {
    const uint32_t chunks = w->bounds.chunks[side] ? w->bounds.chunks[side] : 64;
    const uint32_t bytes = w->bounds.bytes[side];
    if (part->under_way > chunks / 2 || (bytes && part->under_way * CHUNK_SIZE > bytes / 2))
      return 1;
  }
  return 0;
}

int model_grants(const struct world *w, const struct ghost *call) {
  const enum side side = model_caller(call);
  const struct part *part = &call->part[side];
  const uint32_t bytes = w->bounds.bytes[side];
  return (part->unreported == part->under_way && !w->bounds.told) ||
         part->unreported * 2u >= (w->bounds.chunks[side] ? w->bounds.chunks[side] : 64) ||
         (bytes && part->unreported * CHUNK_SIZE * 2u >= bytes);
}

uint64_t model_earliest(const struct world *w, enum side side) {
  uint64_t first = w->peer[side].resend;
  for (int i = 0; i < w->ghosts; i++) {
    const uint64_t deadline = w->calls[i].part[side].deadline;
    if (deadline && (!first || deadline < first)) first = deadline;
  }
  return first;
}

/* A call on whose behalf this is made, at one side, or -1. */
static int above(const struct ghost *call, enum side side) {
  return side == APP ? call->parent : call->about - 1;
}

void model_asked(const struct world *w, enum side side, uint8_t asked[WORLD_CALLS]) {
  memset(asked, 0, (size_t)w->ghosts);
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    const struct part *part = &call->part[side];
    if (call->kind != AN_ELICITATION || call->stream || !model_live(part) || part->stopped)
      continue;
    for (int at = above(call, side); at >= 0; at = above(&w->calls[at], side))
      asked[at] = 1;
  }
}

void model_pause(struct world *w, enum side side) {
  uint8_t asked[WORLD_CALLS];
  model_asked(w, side, asked);
  for (int i = 0; i < w->ghosts; i++) {
    struct part *part = &w->calls[i].part[side];
    const int counts = model_live(part) && !part->stopped && !part->asked;
    if (counts && asked[i] && part->deadline) {
      part->left = part->deadline - w->peer[side].now;
      part->deadline = 0;
    } else if (counts && !asked[i] && part->left) {
      part->deadline = w->peer[side].now + part->left;
    }
    if (!counts || !asked[i]) part->left = 0;
  }
}

/* --- What must come of it --------------------------------------------------------------------- */

void model_expect(struct ghost *call, abp_kind kind) { call->owed |= 1u << kind; }

static void forget(struct world *w, enum side side, int i) {
  struct peer *peer = &w->peer[side];
  struct memory *memory = peer->memory + i;
  w->calls[memory->at].part[side] = (struct part){0};
  memmove(memory, memory + 1, sizeof *memory * (size_t)(--peer->remembered - i));
}

static void forget_old(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  while (peer->remembered > (int)w->bounds.remembered ||
         (peer->remembered && peer->now - peer->memory[0].since > REMEMBER_MS))
    forget(w, side, 0);
}

/* The call is over here and has said all it had to say. */
void model_remember(struct world *w, enum side side, int at) {
  struct peer *peer = &w->peer[side];
  struct part *part = &w->calls[at].part[side];
  if (!part->known) {
    part->phase = NOT_HERE;
    return;
  }
  peer->memory[peer->remembered++] = (struct memory){at, peer->now};
  forget_old(w, side);
}

static void start_next(struct world *w, enum side side);

int model_latest_child(const struct world *w, int at) {
  int latest = -1;
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    if (call->kind != NOBODY && call->parent == at &&
        (latest < 0 || call->order > w->calls[latest].order))
      latest = i;
  }
  return latest;
}

int model_has_children(const struct world *w, int at) { return model_latest_child(w, at) >= 0; }

int model_works_below(const struct world *w, int at) {
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    if (call->kind == A_LOCAL && call->made_by == at + 1 && call->part[APP].phase == RUNS) return 1;
  }
  return 0;
}

void model_end(struct world *w, enum side side, int at, abp_outcome outcome, abp_fate fate,
               abp_kind said) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  part->phase = OVER;
  if (side == APP && call->kind == A_LOCAL && call->parent >= 0 && part->answered)
    w->calls[call->parent].part[APP].below = (uint8_t)fate;
  part->prepares = part->follows = part->word = part->below = 0;
  part->outcome = (uint8_t)outcome;
  part->fate = (uint8_t)fate;
  part->deadline = 0;
  const int parent = side == APP ? call->parent : -1;
  if (side == APP) {
    call->parent = -1;
    for (int i = 0; i < w->ghosts; i++)
      w->calls[i].parent = w->calls[i].parent == at ? -1 : w->calls[i].parent;
  } else {
    call->about = 0;
    model_stop_questions(w, at, outcome > ABP_COMPLETED ? outcome : ABP_CANCELLED);
    for (int i = 0; i < w->ghosts; i++)
      w->calls[i].about = w->calls[i].about == at + 1 ? 0 : w->calls[i].about;
  }
  if (said)
    model_expect(call, said);
  else
    model_remember(w, side, at);
  if (parent < 0 || !w->calls[parent].part[APP].follows) return;
  struct part *above = &w->calls[parent].part[APP];
  /* What nobody knows of a part is not known of the whole. */
  if (fate == ABP_FATE_UNKNOWN || above->word == ABP_FATE_RUNNING) above->word = (uint8_t)fate;
  if (model_has_children(w, parent)) return;
  fate = (abp_fate)above->word;
  w->calls[parent].did = (uint8_t)fate;
  model_end(w, APP, parent, (abp_outcome)above->stopped, fate,
            above->answered ? ABP_NONE : ABP_RESULT);
  start_next(w, APP);
}

/* A caller wants its call to end. Nobody waits for the answer to what an app asks of its agent. */
static void stop_asking(struct world *w, enum side side, int at, abp_outcome why) {
  struct part *part = &w->calls[at].part[side];
  if (part->phase != WAITS) return;
  if (w->calls[at].kind != A_CALL) {
    if (w->calls[at].kind == AN_ELICITATION) model_expect(&w->calls[at], ABP_SEND);
    model_end(w, side, at, why, ABP_FATE_UNKNOWN, ABP_SETTLE);
  } else if (!part->stopped) {
    part->stopped = (uint8_t)why;
    part->deadline = w->peer[side].now + GRACE_MS;
    if (side == AGENT) model_stop_questions(w, at, why);
    model_expect(&w->calls[at], ABP_SEND);
  }
}

enum answer_when { LATER, NOW, NEVER };

void model_answer(struct ghost *call, uint8_t answer) { call->answer = call->holds ? answer : 0; }

static void stop_children(struct world *w, int parent, abp_outcome why);

/* A callee ends a call that has no outcome yet: LATER is when its handler has settled. */
static void stop_serving(struct world *w, enum side side, int at, abp_outcome why,
                         enum answer_when when) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  if (part->phase == WAITS)
    model_end(w, side, at, why, ABP_FATE_UNSTARTED, when == NEVER ? ABP_ABORT : ABP_RESULT);
  if (part->phase != RUNS) return;
  /* The handler that made a local call is there to hear of it, whoever else is gone. */
  if (when == NEVER && call->kind == A_LOCAL) when = NOW;
  if (part->prepares) {
    model_expect(call, ABP_ABORT);
    model_answer(call, ANSWER_CANCELLED);
    model_end(w, side, at, why, ABP_FATE_UNSTARTED, when == NEVER ? ABP_ABORT : ABP_RESULT);
    start_next(w, side);
    return;
  }
  if (part->asked && !part->stopped && when != LATER) {
    part->stopped = part->asked;
    model_answer(call, ANSWER_UNKNOWN);
    if (when == NEVER) call->holds = call->answer = 0;
  }
  if (w->bounds.foreign && side == APP && when == LATER && !part->stopped) {
    if (part->asked) return;
    part->asked = (uint8_t)why;
    part->deadline = w->peer[side].now + GRACE_MS;
    stop_children(w, at, why);
    model_expect(call, ABP_ABORT);
    return;
  }
  if (!part->stopped) {
    part->stopped = (uint8_t)why;
    part->deadline = w->peer[side].now + GRACE_MS;
    stop_children(w, at, why);
    model_expect(call, ABP_ABORT);
  }
  if (when != LATER && !part->answered) {
    part->answered = 1;
    part->fate = ABP_FATE_RUNNING;
    part->deadline = 0;
    if (when == NOW) model_expect(call, ABP_RESULT);
  }
}

void model_stop(struct world *w, enum side side, int at, abp_outcome why) {
  if (model_made_at(&w->calls[at], side))
    stop_asking(w, side, at, why);
  else
    stop_serving(w, side, at, why, LATER);
}

static void stop_children(struct world *w, int parent, abp_outcome why) {
  for (int i = 0; i < w->ghosts; i++) {
    struct ghost *call = &w->calls[i];
    if (call->kind == NOBODY || call->parent != parent || call->swept) continue;
    call->swept = 1;
    model_stop(w, APP, i, why);
  }
}

void model_stop_questions(struct world *w, int at, abp_outcome why) {
  for (int i = 0; i < w->ghosts; i++) {
    if (w->calls[i].about != at + 1) continue;
    w->calls[i].about = 0;
    model_stop(w, AGENT, i, why);
  }
}

void model_start(struct world *w, enum side side, int at) {
  w->calls[at].part[side].phase = RUNS;
  model_expect(&w->calls[at], ABP_START);
}

/* Calls come in the order of their numbers, and start in it. */
static void start_next(struct world *w, enum side side) {
  while (!w->ending) {
    int first = -1;
    for (int i = 0; i < w->ghosts; i++) {
      const struct ghost *call = &w->calls[i];
      if (call->part[side].phase != WAITS || model_made_at(call, side)) continue;
      if (first < 0 || call->id.number < w->calls[first].id.number) first = i;
    }
    if (first < 0 || model_handlers(w, side) >= w->bounds.max_concurrent) return;
    model_start(w, side, first);
  }
}

void model_accept(struct world *w, int at) {
  struct part *part = model_handled(&w->calls[at]);
  part->stopped = part->asked;
  part->deadline = w->peer[APP].now + GRACE_MS;
  model_answer(&w->calls[at], ANSWER_CANCELLED);
}

/* Whether a handler that ends so may have left local calls that its caller must know of. */
static int leaves_calls(const struct world *w, int at, abp_outcome outcome) {
  if (w->calls[at].part[APP].stopped || outcome == ABP_CANCELLED) return 1;
  const int latest = model_latest_child(w, at);
  return outcome == ABP_FAILED && latest >= 0 && w->calls[latest].part[APP].answered;
}

/* The call is over when those below it are. */
static int model_follows(struct world *w, int at, abp_fate word) {
  struct part *part = &w->calls[at].part[APP];
  if (!model_has_children(w, at)) return 0;
  if (!part->stopped || word == ABP_FATE_RUNNING) model_goes_on(w, APP, at);
  if (!model_has_children(w, at)) return 0;
  part->follows = 1;
  part->word = (uint8_t)word;
  return 1;
}

/* Its result is out, or this move brings it. */
static void end_handler(struct world *w, enum side side, int at, abp_outcome outcome,
                        abp_fate fate) {
  const struct ghost *call = &w->calls[at];
  const int said = call->part[side].answered && !(call->owed & 1u << ABP_RESULT);
  model_end(w, side, at, outcome, fate, said ? ABP_NONE : ABP_RESULT);
}

void model_handler_settled(struct world *w, int at, abp_outcome outcome) {
  struct ghost *call = &w->calls[at];
  const enum side side = model_handler_side(call);
  struct part *part = model_handled(call);
  const int asked = part->asked && !part->stopped;
  /* An app that is not ours says by `cancelled` nothing about its work. */
  const int mean = w->bounds.foreign && side == APP && outcome == ABP_CANCELLED;
  abp_fate fate = outcome == ABP_COMPLETED         ? ABP_FATE_FINISHED
                  : outcome == ABP_FAILED          ? ABP_FATE_FAILED
                  : outcome == ABP_UNKNOWN || mean ? ABP_FATE_UNKNOWN
                                                   : ABP_FATE_STOPPED;
  call->did = (uint8_t)(mean ? ABP_FATE_STOPPED : fate);
  if (part->prepares && outcome != ABP_COMPLETED) fate = call->did = ABP_FATE_UNSTARTED;
  if (side == APP && !w->bounds.foreign && leaves_calls(w, at, outcome) &&
      model_follows(w, at, fate))
    return;
  if (outcome == ABP_FAILED) outcome = ABP_COMPLETED;
  if (outcome == ABP_UNKNOWN && !part->stopped && !part->prepares) part->unknown = 1;
  if (outcome == ABP_UNKNOWN) outcome = ABP_CANCELLED;
  if (asked) {
    model_answer(call, part->unknown              ? ANSWER_UNKNOWN
                       : outcome == ABP_COMPLETED ? ANSWER_COMPLETED
                                                  : ANSWER_CANCELLED);
    if (outcome != ABP_COMPLETED) outcome = part->asked;
  }
  if (part->stopped) outcome = part->stopped;
  stop_children(w, at, outcome == ABP_COMPLETED ? ABP_CANCELLED : outcome);
  end_handler(w, side, at, outcome, fate);
  start_next(w, side);
}

abp_outcome model_told(const struct part *part) {
  if (part->closed) return ABP_DISCONNECTED;
  return (abp_outcome)(part->stopped ? part->stopped : part->asked);
}

int model_awaits(const struct world *w, int at, abp_call handle) {
  if (!w->calls[at].part[APP].follows) return handle == w->calls[at].part[APP].handle;
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    if (call->kind == A_LOCAL && call->parent == at && model_awaits(w, i, handle)) return 1;
  }
  return 0;
}

void model_goes_on(struct world *w, enum side side, int at) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  if (part->prepares || part->answered || (part->asked && !part->stopped)) return;
  if (!part->stopped) {
    part->stopped = ABP_CANCELLED;
    if (side == APP) stop_children(w, at, ABP_CANCELLED);
  }
  part->answered = 1;
  part->fate = ABP_FATE_RUNNING;
  part->deadline = 0;
  model_expect(call, ABP_RESULT);
}

void model_pass_on(struct world *w, int at) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[APP];
  const abp_fate fate = part->below ? (abp_fate)part->below : ABP_FATE_RUNNING;
  if (model_follows(w, at, fate)) return;
  if (!part->stopped) part->stopped = ABP_CANCELLED;
  if (part->below) call->did = part->below;
  end_handler(w, APP, at, (abp_outcome)part->stopped, fate);
  start_next(w, APP);
}

void model_set_session(struct world *w, enum side side, abp_session session) {
  w->peer[side].session = session;
  w->peer[side].resend = 0;
  w->peer[side].session_event = session == ABP_SESSION_CONNECTING ? 0 : (uint8_t)session;
}

void model_end_session(struct world *w, enum side side, abp_session how) {
  if (w->peer[side].session == ABP_SESSION_READY) {
    const int lost = how == ABP_SESSION_LOST;
    w->ending = 1;
    for (int i = 0; side == AGENT && i < w->ghosts; i++)
      w->calls[i].about = 0;
    /* What this side has made ends first: with the session, so that no cancel is sent. */
    for (int made = 1; made >= 0; made--) {
      for (int i = 0; i < w->ghosts; i++) {
        struct part *part = &w->calls[i].part[side];
        const abp_outcome why = lost            ? ABP_DISCONNECTED
                                : part->stopped ? part->stopped
                                                : ABP_CANCELLED;
        if (model_made_at(&w->calls[i], side) != made) continue;
        if (!made && !lost && model_live(part) && !part->stopped && !part->asked) part->closed = 1;
        if (!made)
          stop_serving(w, side, i, why, lost ? NEVER : NOW);
        else if (part->phase == WAITS) {
          w->calls[i].owed = 0;
          model_end(w, side, i, why, ABP_FATE_UNKNOWN, ABP_SETTLE);
        }
      }
    }
  }
  w->ending = 0;
  model_set_session(w, side, how);
}

/* A new session knows nothing of the calls of an older one, but an app what became of those that it
 * received. */
void model_new_session(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  peer->serial++;
  peer->torn = 0;
  for (int i = 0; i < w->ghosts; i++) {
    struct part *part = &w->calls[i].part[side];
    const int asked_for = side == APP && !model_made_at(&w->calls[i], side);
    part->known = asked_for && part->known ? 2 : 0;
  }
  for (int i = 0; i < peer->remembered;) {
    if (w->calls[peer->memory[i].at].part[side].known)
      i++;
    else
      forget(w, side, i);
  }
}

void model_clocks(struct world *w, enum side side, uint64_t now) {
  struct peer *peer = &w->peer[side];
  peer->now = now;
  w->ending = 1;
  for (;;) {
    int first = -1;
    for (int i = 0; i < w->ghosts; i++) {
      const uint64_t deadline = w->calls[i].part[side].deadline;
      if (deadline && deadline <= now &&
          (first < 0 || deadline < w->calls[first].part[side].deadline))
        first = i;
    }
    if (first < 0) break;
    struct ghost *call = &w->calls[first];
    struct part *part = &call->part[side];
    part->deadline = 0;
    if (part->asked && !part->stopped) {
      part->stopped = part->asked;
      part->unknown = part->answered = 1;
      part->fate = ABP_FATE_UNKNOWN;
      model_answer(call, ANSWER_UNKNOWN);
      model_expect(call, ABP_RESULT);
    } else if (!part->stopped) {
      model_stop(w, side, first, ABP_TIMED_OUT);
    } else if (model_made_at(call, side)) {
      model_end(w, side, first, part->stopped, ABP_FATE_UNKNOWN, ABP_SETTLE);
    } else {
      part->answered = 1;
      part->fate = ABP_FATE_RUNNING;
      model_expect(call, ABP_RESULT);
    }
    model_pause(w, side);
  }
  w->ending = 0;
  start_next(w, side);
  if (peer->resend && now >= peer->resend) {
    const int over = now >= peer->give_up;
    peer->sends = 1u << (over ? ABP_MSG_SHUTDOWN : ABP_MSG_INITIALIZE);
    peer->resend = peer->give_up; /* the next pause is longer than what is left */
    if (over) model_set_session(w, side, ABP_SESSION_FAILED);
  }
  forget_old(w, side);
}
