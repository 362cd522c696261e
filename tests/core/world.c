#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CONNECT_MS = 60, /* `initialize` is sent again after 50 */
  GRACE_MS = 7,
  REMEMBER_MS = 100,
  SLEEP_MS = 500,
  NEVER_MS = 1 << 30
};

static const uint32_t FEATURES = ABP_PROGRESS | ABP_ELICITATION | ABP_LIVENESS;

static void violated(struct world *w, int at, const char *what) {
  if (w->violation) return;
  w->violation = what;
  w->violation_at = at;
}

static void must(struct world *w, int holds, int at, const char *what) {
  if (!holds) violated(w, at, what);
}

/* --- Facts ------------------------------------------------------------------------------------ */

static enum side caller_of(const struct ghost *call) {
  return call->kind == AN_ELICITATION ? APP : AGENT;
}

static int made_at(const struct ghost *call, enum side side) {
  return call->kind != A_LOCAL && caller_of(call) == side;
}

static enum side handler_side(const struct ghost *call) {
  return call->kind == AN_ELICITATION ? AGENT : APP;
}

static struct part *handled(struct ghost *call) { return &call->part[handler_side(call)]; }

static int is_live(const struct part *part) { return part->phase == WAITS || part->phase == RUNS; }

static uint32_t handlers(const struct world *w, enum side side) {
  uint32_t count = 0;
  for (int i = 0; i < w->ghosts; i++)
    count += w->calls[i].part[side].phase == RUNS;
  return count;
}

static uint32_t in_flight(const struct world *w, enum side side, int made) {
  uint32_t count = 0;
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    count += is_live(&call->part[side]) && made_at(call, side) == made;
  }
  return count;
}

static int find(const struct world *w, enum side owner, uint32_t serial, uint32_t number) {
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    if (call->kind != NOBODY && call->kind != A_LOCAL && caller_of(call) == owner &&
        call->serial == serial && call->number == number)
      return i;
  }
  return -1;
}

/* The same, as far as that side can know it. */
static int find_known(const struct world *w, enum side side, enum side owner, uint32_t serial,
                      uint32_t number) {
  const int at = find(w, owner, serial, number);
  if (at < 0) return -1;
  const struct part *part = &w->calls[at].part[side];
  return part->phase != NOT_HERE && part->known ? at : -1;
}

static int add(struct world *w, struct ghost call) {
  int at = 0;
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

static uint64_t earliest(const struct world *w, enum side side) {
  uint64_t first = w->peer[side].resend;
  for (int i = 0; i < w->ghosts; i++) {
    const uint64_t deadline = w->calls[i].part[side].deadline;
    if (deadline && (!first || deadline < first)) first = deadline;
  }
  return first;
}

/* --- What must come of it --------------------------------------------------------------------- */

static void expect(struct ghost *call, abp_kind kind) { call->owed |= 1u << kind; }

static void forget_first(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  w->calls[peer->memory[0].at].part[side].phase = NOT_HERE;
  memmove(peer->memory, peer->memory + 1, sizeof *peer->memory * (size_t)--peer->remembered);
}

static void forget_old(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  while (peer->remembered > (int)w->bounds.remembered ||
         (peer->remembered && peer->now - peer->memory[0].since > REMEMBER_MS))
    forget_first(w, side);
}

/* The call is over here and has said all it had to say. */
static void remember(struct world *w, enum side side, int at) {
  struct peer *peer = &w->peer[side];
  struct part *part = &w->calls[at].part[side];
  if (!part->known) {
    part->phase = NOT_HERE;
    return;
  }
  peer->memory[peer->remembered++] = (struct memory){at, peer->now};
  forget_old(w, side);
}

static void end(struct world *w, enum side side, int at, abp_outcome outcome, abp_kind said) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  part->phase = OVER;
  part->outcome = (uint8_t)outcome;
  part->deadline = 0;
  if (side == APP) call->parent = -1; /* which only the app's calls have */
  if (said)
    expect(call, said);
  else
    remember(w, side, at);
}

/* A caller wants its call to end. Only calls to the app have a message for that. */
static void stop_asking(struct world *w, enum side side, int at, abp_outcome why) {
  struct part *part = &w->calls[at].part[side];
  if (part->phase != WAITS) return;
  if (w->calls[at].kind != A_CALL) {
    end(w, side, at, why, ABP_SETTLE);
  } else if (!part->stopped) {
    part->stopped = (uint8_t)why;
    part->deadline = w->peer[side].now + GRACE_MS;
    expect(&w->calls[at], ABP_SEND);
  }
}

enum answer_when { LATER, NOW, NEVER };

static void stop_children(struct world *w, int parent, abp_outcome why);

/* A callee ends a call that has no outcome yet: LATER is when its handler has settled. */
static void stop_serving(struct world *w, enum side side, int at, abp_outcome why,
                         enum answer_when when) {
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  if (part->phase == WAITS) end(w, side, at, why, when == NEVER ? ABP_ABORT : ABP_RESULT);
  if (part->phase != RUNS) return;
  /* The handler that made a local call is there to hear of it, whoever else is gone. */
  if (when == NEVER && call->kind == A_LOCAL) when = NOW;
  if (!part->stopped) {
    part->stopped = (uint8_t)why;
    part->deadline = w->peer[side].now + GRACE_MS;
    stop_children(w, at, why);
    expect(call, ABP_ABORT);
  }
  if (when != LATER && !part->answered) {
    part->answered = 1;
    part->deadline = 0;
    if (when == NOW) expect(call, ABP_RESULT);
  }
}

static void stop(struct world *w, enum side side, int at, abp_outcome why) {
  if (made_at(&w->calls[at], side))
    stop_asking(w, side, at, why);
  else
    stop_serving(w, side, at, why, LATER);
}

static void stop_children(struct world *w, int parent, abp_outcome why) {
  for (int i = 0; i < w->ghosts; i++) {
    if (w->calls[i].kind == NOBODY || w->calls[i].parent != parent) continue;
    w->calls[i].parent = -1;
    stop(w, APP, i, why);
  }
}

static void start(struct world *w, enum side side, int at) {
  w->calls[at].part[side].phase = RUNS;
  expect(&w->calls[at], ABP_START);
}

/* Calls come in the order of their numbers, and start in it. */
static void start_next(struct world *w, enum side side) {
  for (;;) {
    int first = -1;
    for (int i = 0; i < w->ghosts; i++) {
      const struct ghost *call = &w->calls[i];
      if (call->part[side].phase != WAITS || made_at(call, side)) continue;
      if (first < 0 || call->number < w->calls[first].number) first = i;
    }
    if (first < 0 || handlers(w, side) >= w->bounds.max_concurrent) return;
    start(w, side, first);
  }
}

static void handler_settled(struct world *w, int at, abp_outcome outcome) {
  struct ghost *call = &w->calls[at];
  const enum side side = handler_side(call);
  struct part *part = handled(call);
  if (part->stopped) outcome = part->stopped;
  stop_children(w, at, outcome == ABP_COMPLETED ? ABP_CANCELLED : outcome);
  end(w, side, at, outcome, part->answered ? ABP_NONE : ABP_RESULT);
  start_next(w, side);
}

static void set_session(struct world *w, enum side side, abp_session session) {
  w->peer[side].session = session;
  w->peer[side].resend = 0;
  w->peer[side].session_event = session == ABP_SESSION_CONNECTING ? 0 : (uint8_t)session;
}

static void end_session(struct world *w, enum side side, abp_session how) {
  if (w->peer[side].session == ABP_SESSION_READY) {
    const int lost = how == ABP_SESSION_LOST;
    for (int i = 0; i < w->ghosts; i++) {
      struct part *part = &w->calls[i].part[side];
      const abp_outcome why = lost            ? ABP_DISCONNECTED
                              : part->stopped ? part->stopped
                                              : ABP_CANCELLED;
      if (!made_at(&w->calls[i], side))
        stop_serving(w, side, i, why, lost ? NEVER : NOW);
      else if (part->phase == WAITS)
        end(w, side, i, why, ABP_SETTLE);
    }
  }
  set_session(w, side, how);
}

/* A new session knows nothing of the calls of an older one. */
static void new_session(struct world *w, enum side side) {
  w->peer[side].serial++;
  w->peer[side].torn = 0;
  for (int i = 0; i < w->ghosts; i++)
    w->calls[i].part[side].known = 0;
  while (w->peer[side].remembered)
    forget_first(w, side);
}

static void clocks(struct world *w, enum side side, uint64_t now) {
  struct peer *peer = &w->peer[side];
  peer->now = now;
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
    if (!part->stopped) {
      stop(w, side, first, ABP_TIMED_OUT);
    } else if (made_at(call, side)) {
      end(w, side, first, part->stopped, ABP_SETTLE);
    } else {
      part->answered = 1;
      expect(call, ABP_RESULT);
    }
  }
  if (peer->resend && now >= peer->resend) {
    peer->pause *= 2;
    peer->resend = now + peer->pause < peer->give_up ? now + peer->pause : peer->give_up;
    const int over = now >= peer->give_up;
    peer->sends |= 1u << (over ? ABP_MSG_SHUTDOWN : ABP_MSG_INITIALIZE);
    if (over) set_session(w, side, ABP_SESSION_FAILED);
  }
  forget_old(w, side);
}

/* --- What comes of it ------------------------------------------------------------------------- */

static void post(struct world *w, enum side from, struct message message) {
  struct channel *channel = &w->to[from == AGENT ? APP : AGENT];
  if (!w->line) return;
  if (channel->count == WORLD_CHANNEL) {
    fprintf(stderr, "WORLD_CHANNEL is too small\n");
    exit(2);
  }
  channel->messages[channel->count++] = message;
}

static void pay(struct world *w, int at, abp_kind kind) {
  struct ghost *call = &w->calls[at];
  must(w, call->owed >> kind & 1, at, "an action that nothing asked for");
  must(w, !(call->owed & ((1u << kind) - 1)), at, "actions of one call in the wrong order");
  call->owed &= ~(1u << kind);
}

static int find_handle(struct world *w, enum side side, abp_call handle) {
  for (int i = 0; i < w->ghosts; i++) {
    if (w->calls[i].part[side].handle == handle && w->calls[i].part[side].phase != NOT_HERE)
      return i;
  }
  /* A call that has just come in gets its handle with its first action. */
  for (int i = 0; i < w->ghosts; i++) {
    struct ghost *call = &w->calls[i];
    struct part *part = &call->part[side];
    if (!is_live(part) || made_at(call, side) || part->handle || !call->owed) continue;
    part->handle = handle;
    return i;
  }
  return -1;
}

static void observe_result(struct world *w, enum side side, int at, int success) {
  struct ghost *call = &w->calls[at];
  const uint8_t outcome =
      call->part[side].outcome ? call->part[side].outcome : call->part[side].stopped;
  must(w, !call->results++, at, "a second result");
  if (outcome != ABP_COMPLETED) success = 0;
  must(w, !success || !call->said_true, at, "a success after a cancel was answered `true`");
  call->succeeded |= (uint8_t)success;
  if (call->kind != A_LOCAL)
    post(w, side,
         (struct message){.kind = RESULT,
                          .owner = (uint8_t)caller_of(call),
                          .serial = call->serial,
                          .number = call->number,
                          .arg = outcome,
                          .success = (uint8_t)success});
}

/* What a call's action is, and what it says: to the other side, and to the laws. */
static void observe_call(struct world *w, enum side side, const abp_action *action, int success) {
  const int at = find_handle(w, side, action->call);
  if (at < 0) {
    violated(w, -1, "an action of a call that nobody knows");
    return;
  }
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  struct message message = {
      .owner = (uint8_t)caller_of(call), .serial = call->serial, .number = call->number};
  pay(w, at, action->kind);
  switch (action->kind) {
  case ABP_START:
    must(w, !call->started++, at, "a handler starts twice");
    must(w, !call->said_true, at, "a handler starts after a cancel was answered `true`");
    break;
  case ABP_REQUEST:
    message.kind = REQUEST;
    message.arg = call->progress;
    message.timeout = part->deadline ? (uint32_t)(part->deadline - w->peer[side].now) : 0;
    if (part->known) post(w, side, message);
    break;
  case ABP_SEND:
    message.kind = CANCEL;
    message.other_serial = call->serial;
    message.other_number = call->number;
    message.number = 0;
    if (call->kind == A_CANCEL) {
      message.number = call->number;
      message.other_serial = w->received.other_serial;
      message.other_number = w->received.other_number;
    }
    post(w, side, message);
    break;
  case ABP_RESULT:
    must(w, action->arg == (part->outcome ? part->outcome : part->stopped), at,
         "a result that says what did not happen");
    observe_result(w, side, at, success);
    break;
  case ABP_SETTLE:
    must(w, action->arg == part->outcome, at, "a call settles as what did not happen");
    must(w, !call->settled++, at, "a call settles twice");
    must(w, action->arg != ABP_COMPLETED || !success || !call->said_true, at,
         "a call succeeds after its cancel was answered `true`");
    break;
  default: break;
  }
  must(w, action->released == (part->phase == OVER && !call->owed), at,
       "a call is let go too early or too late");
  if (action->released) remember(w, side, at);
}

static void observe(struct world *w, enum side side, const abp_action *action, int success) {
  struct peer *peer = &w->peer[side];
  const struct message *received = &w->received;
  struct message reply = {
      .owner = received->owner, .serial = received->serial, .number = received->number};
  switch (action->kind) {
  case ABP_REPORT:
    must(w, peer->report == 1 + (action->call != 0), -1, "progress of no or another call");
    if (action->call) {
      const int at = find_handle(w, side, action->call);
      must(w,
           at >= 0 &&
               at == find_known(w, side, received->owner, received->serial, received->number),
           at, "progress of another call");
    }
    peer->report = 0;
    return;
  case ABP_REFUSE:
    must(w, peer->refuse && action->arg == peer->refuse, -1, "a refusal that nothing asked for");
    reply.kind = received->kind == INITIALIZE ? INITIALIZE_RESULT : RESULT;
    reply.arg = received->kind != INITIALIZE              ? ABP_COMPLETED
                : peer->refuse == ABP_ALREADY_INITIALIZED ? 2
                                                          : 0;
    peer->refuse = 0;
    if (received->number || received->kind == INITIALIZE) post(w, side, reply);
    return;
  case ABP_SESSION:
    must(w, action->arg == peer->session_event, -1, "another session than it should be");
    peer->session_event = 0;
    return;
  case ABP_WAKE: return;
  case ABP_SEND:
    if (action->arg == ABP_MSG_CANCEL) break;
    must(w, peer->sends >> action->arg & 1, -1, "a message that nothing asked for");
    peer->sends &= ~(1u << action->arg);
    switch (action->arg) {
    case ABP_MSG_INITIALIZE:
      post(w, side,
           (struct message){
               .kind = INITIALIZE, .serial = peer->serial, .arg = (uint8_t)w->unreadable});
      break;
    case ABP_MSG_INITIALIZE_RESULT:
      reply.kind = INITIALIZE_RESULT;
      reply.arg = 1;
      reply.other_serial = peer->serial;
      post(w, side, reply);
      break;
    case ABP_MSG_CANCEL_RESULT: {
      const uint8_t answer = peer->endpoint->answered;
      const int at = find_known(w, side, AGENT, received->other_serial, received->other_number);
      must(w, answer == peer->answer, at, "a cancel is answered wrongly");
      if (at >= 0) {
        struct ghost *call = &w->calls[at];
        if (answer == ANSWER_CANCELLED) call->said_true = 1;
        if (answer == ANSWER_COMPLETED) call->said_false = 1;
        must(w, !(call->said_true && call->said_false), at, "two cancels, two answers");
        must(w, !(call->said_true && call->succeeded), at,
             "a cancel is answered `true` after a success");
      }
      reply.kind = CANCEL_RESULT;
      reply.arg = answer;
      post(w, side, reply);
      break;
    }
    case ABP_MSG_SHUTDOWN: post(w, side, (struct message){.kind = SHUTDOWN}); break;
    case ABP_MSG_BYE: post(w, side, (struct message){.kind = BYE}); break;
    default: break;
    }
    return;
  default: break;
  }
  observe_call(w, side, action, success);
}

static void drain(struct world *w, enum side side, int success) {
  struct peer *peer = &w->peer[side];
  abp_action action;
  while (!w->violation && abp_next(peer->endpoint, &action))
    observe(w, side, &action, success);
  for (int i = 0; i < w->ghosts; i++)
    must(w, !w->calls[i].owed, i, "an action is missing");
  must(w, !peer->sends, -1, "a message is missing");
  must(w, !(peer->refuse | peer->session_event | peer->report), -1, "an action is missing");
  peer->answer = 0;
}

/* --- Moves ------------------------------------------------------------------------------------ */

static size_t id_text(const struct world *w, enum side owner, uint32_t serial, uint32_t number,
                      char buffer[64]) {
  const uint8_t *seed = w->peer[owner].endpoint->config.seed;
  char *p = buffer;
  for (int i = 0; i < 10; i++) {
    *p++ = "0123456789abcdef"[seed[i] >> 4];
    *p++ = "0123456789abcdef"[seed[i] & 15];
  }
  *p++ = '-';
  for (int pass = 0; pass < 2; pass++) {
    char digits[10];
    int count = 0;
    uint32_t rest = pass ? number : serial;
    do
      digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (count)
      *p++ = digits[--count];
    if (pass) break;
    if (number == 0) break;
    *p++ = '.';
  }
  return (size_t)(p - buffer);
}

static void connect_(struct world *w, int unreadable) {
  struct peer *agent = &w->peer[AGENT];
  w->unreadable = unreadable;
  w->line = 1;
  must(w, abp_connect(agent->endpoint, CONNECT_MS) == ABP_OK, -1, "connecting is refused");
  new_session(w, AGENT);
  set_session(w, AGENT, ABP_SESSION_CONNECTING);
  agent->sends = 1u << ABP_MSG_INITIALIZE;
  agent->pause = 50;
  agent->resend = agent->now + 50;
  agent->give_up = agent->now + CONNECT_MS;
}

static void make(struct world *w, enum side side, struct ghost call, uint32_t timeout, int unsent) {
  struct peer *peer = &w->peer[side];
  abp_endpoint *ep = peer->endpoint;
  abp_call handle = 0, parent = 0;
  if (call.parent >= 0) parent = handled(&w->calls[call.parent])->handle;
  const int fits = in_flight(w, side, 1) < w->bounds.max_calls;
  const int status =
      abp_request(ep, NULL, timeout, call.progress ? ABP_WANTS_PROGRESS : 0, parent, &handle);
  must(w, status == (fits ? ABP_OK : ABP_E_LIMIT), -1, "a call is made or not, against the limit");
  if (status != ABP_OK) return;
  call.serial = peer->serial;
  call.number = abp_number(ep, handle);
  call.owed = 1u << ABP_REQUEST;
  call.part[side] = (struct part){.phase = WAITS,
                                  .known = (uint8_t)!unsent,
                                  .handle = handle,
                                  .deadline = timeout ? peer->now + timeout : 0};
  const int at = add(w, call);
  drain(w, side, 0);
  if (!unsent || w->violation) return;
  must(w, abp_unsent(ep, handle) == ABP_OK, at, "a call that could not be sent is unknown");
  end(w, side, at, ABP_COMPLETED, ABP_SETTLE);
}

static void ask(struct world *w, int target) {
  struct peer *agent = &w->peer[AGENT];
  struct ghost *call = &w->calls[target];
  char text[64];
  const size_t length = id_text(w, AGENT, call->serial, call->number, text);
  const abp_id id = {text, (uint32_t)length, 0};
  abp_call handle;
  const int fits = in_flight(w, AGENT, 1) < w->bounds.max_calls;
  const int status = abp_cancel_by_id(agent->endpoint, &id, NULL, 0, &handle);
  must(w, status == (fits ? ABP_OK : ABP_E_LIMIT), -1,
       "a cancel is made or not, against the limit");
  if (status != ABP_OK) return;
  /* What it says is the target's cancel, so that the signal need not send another. */
  struct part *part = &call->part[AGENT];
  if (part->phase == WAITS && part->known && !part->stopped) {
    part->stopped = ABP_CANCELLED;
    part->deadline = agent->now + GRACE_MS;
  }
  w->received.other_serial = call->serial;
  w->received.other_number = call->number;
  struct ghost cancel = {.kind = A_CANCEL,
                         .serial = agent->serial,
                         .number = abp_number(agent->endpoint, handle),
                         .parent = -1,
                         .owed = 1u << ABP_SEND};
  cancel.part[AGENT] = (struct part){
      .phase = WAITS, .known = 1, .handle = handle, .deadline = agent->now + GRACE_MS};
  add(w, cancel);
}

static void receive_call(struct world *w, enum side side, const struct message *message,
                         const abp_id *id) {
  struct peer *peer = &w->peer[side];
  must(w,
       abp_call_received(peer->endpoint, id, message->timeout,
                         message->arg ? ABP_WANTS_PROGRESS : 0, ABP_NO_ERROR) == ABP_OK,
       -1, "a call is not taken in");
  const int full = in_flight(w, side, 0) >= w->bounds.max_calls;
  if (peer->session != ABP_SESSION_READY || full) {
    peer->refuse =
        full && peer->session == ABP_SESSION_READY ? ABP_RATE_LIMITED : ABP_NOT_INITIALIZED;
    peer->refused++;
    return;
  }
  int at = find(w, message->owner, message->serial, message->number);
  if (at < 0)
    at = add(w, (struct ghost){.kind = message->owner == AGENT ? A_CALL : AN_ELICITATION,
                               .serial = message->serial,
                               .number = message->number,
                               .progress = message->arg,
                               .parent = -1});
  w->calls[at].part[side] = (struct part){
      .phase = WAITS, .known = 1, .deadline = message->timeout ? peer->now + message->timeout : 0};
  if (handlers(w, side) < w->bounds.max_concurrent)
    start(w, side, at);
  else
    expect(&w->calls[at], ABP_QUEUED);
}

static void receive_cancel(struct world *w, const struct message *message) {
  struct peer *app = &w->peer[APP];
  char text[64];
  const size_t length = id_text(w, AGENT, message->other_serial, message->other_number, text);
  const abp_id id = {text, (uint32_t)length, 0};
  endpoint_enter(app->endpoint);
  endpoint_cancel(app->endpoint, &id, NULL, 0);
  app->sends = 1u << ABP_MSG_CANCEL_RESULT;
  const int at = find_known(w, APP, AGENT, message->other_serial, message->other_number);
  if (app->session != ABP_SESSION_READY) {
    app->answer = ANSWER_NOT_INITIALIZED;
  } else if (at < 0) {
    app->answer = ANSWER_NOT_FOUND;
  } else {
    const struct part *part = &w->calls[at].part[APP];
    app->answer =
        part->phase == OVER && part->outcome == ABP_COMPLETED ? ANSWER_COMPLETED : ANSWER_CANCELLED;
    stop(w, APP, at, ABP_CANCELLED);
  }
}

/* A result or a cancel's answer finds its call, or is counted. */
static void answered(struct world *w, enum side side, const struct message *message,
                     abp_outcome outcome) {
  struct peer *peer = &w->peer[side];
  const int at = find_known(w, side, message->owner, message->serial, message->number);
  if (at < 0) {
    peer->stray++;
    return;
  }
  struct part *part = &w->calls[at].part[side];
  if (part->phase == OVER) {
    peer->late++;
    return;
  }
  if (outcome == ABP_CANCELLED && part->stopped) outcome = part->stopped;
  end(w, side, at, outcome, ABP_SETTLE);
}

static void receive_progress(struct world *w, enum side side, const struct message *message,
                             const abp_id *id) {
  struct peer *peer = &w->peer[side];
  abp_progress_received(peer->endpoint, id);
  const int at = find_known(w, side, message->owner, message->serial, message->number);
  if (at >= 0 && w->calls[at].part[side].phase == OVER)
    peer->late++;
  else if (peer->session != ABP_SESSION_READY)
    peer->stray++;
  else
    peer->report = at < 0 ? 1 : 2;
}

static void receive_initialize(struct world *w, const struct message *message) {
  struct peer *app = &w->peer[APP];
  char text[64];
  const size_t length = id_text(w, AGENT, message->serial, 0, text);
  endpoint_enter(app->endpoint);
  endpoint_initialize(app->endpoint, text, length, 0, message->arg ? "x" : "0.1",
                      message->arg ? 1 : 3, FEATURES);
  const int ready = app->session == ABP_SESSION_READY;
  const int again = ready && message->serial == app->peer_serial;
  if (again) {
    app->sends |= 1u << ABP_MSG_INITIALIZE_RESULT;
  } else if (ready && !w->bounds.restart) {
    app->refuse = ABP_ALREADY_INITIALIZED;
  } else if (message->arg) {
    app->refuse = ABP_NOT_SUPPORTED;
  } else {
    if (ready) end_session(w, APP, ABP_SESSION_CLOSED);
    new_session(w, APP);
    app->peer_serial = message->serial;
    app->sends |= 1u << ABP_MSG_INITIALIZE_RESULT;
    set_session(w, APP, ABP_SESSION_READY);
  }
}

static void receive_initialize_result(struct world *w, const struct message *message) {
  struct peer *agent = &w->peer[AGENT];
  if (message->serial != agent->serial) return; /* the wire drops it */
  char text[64];
  const size_t length = id_text(w, APP, message->other_serial, 0, text);
  endpoint_enter(agent->endpoint);
  endpoint_initialized(agent->endpoint, text, length, message->arg == 1, message->arg == 2,
                       FEATURES);
  if (agent->session != ABP_SESSION_CONNECTING) {
    agent->late++;
    if (message->arg == 1 && agent->session != ABP_SESSION_READY)
      agent->sends = 1u << ABP_MSG_SHUTDOWN;
  } else if (message->arg == 1) {
    agent->peer_serial = message->other_serial;
    set_session(w, AGENT, ABP_SESSION_READY);
  } else if (message->arg == 0) {
    set_session(w, AGENT, ABP_SESSION_FAILED);
  }
}

static int deliver(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  struct channel *channel = &w->to[side];
  w->received = channel->messages[0];
  memmove(channel->messages, channel->messages + 1,
          sizeof *channel->messages * (size_t)--channel->count);
  memset(&channel->messages[channel->count], 0, sizeof *channel->messages);
  const struct message *message = &w->received;
  char text[64];
  const size_t length = id_text(w, message->owner, message->serial, message->number, text);
  const abp_id id = {text, (uint32_t)length, 0};
  switch (message->kind) {
  case INITIALIZE: receive_initialize(w, message); break;
  case INITIALIZE_RESULT: receive_initialize_result(w, message); break;
  case REQUEST: receive_call(w, side, message, &id); break;
  case RESULT:
    abp_result_received(peer->endpoint, &id, (abp_outcome)message->arg);
    answered(w, side, message, (abp_outcome)message->arg);
    return message->success;
  case REPORT: receive_progress(w, side, message, &id); break;
  case CANCEL: receive_cancel(w, message); break;
  case CANCEL_RESULT: {
    endpoint_enter(peer->endpoint);
    const int cancelled = message->arg == ANSWER_CANCELLED;
    if (message->number) {
      endpoint_cancel_result(peer->endpoint, &id, cancelled);
      answered(w, side, message, cancelled ? ABP_CANCELLED : ABP_COMPLETED);
    } else { /* of a signal: its call waits for the result instead */
      memcpy(text + length, ".c0", 4);
      const abp_id own = {text, (uint32_t)length + 3, 0};
      endpoint_cancel_result(peer->endpoint, &own, cancelled);
      peer->stray += message->serial != peer->serial;
    }
    break;
  }
  case SHUTDOWN:
    endpoint_enter(peer->endpoint);
    endpoint_shutdown(peer->endpoint);
    if (peer->session == ABP_SESSION_READY) end_session(w, side, ABP_SESSION_CLOSED);
    break;
  case BYE:
    endpoint_enter(peer->endpoint);
    endpoint_bye(peer->endpoint, 0);
    if (peer->session == ABP_SESSION_READY) end_session(w, side, ABP_SESSION_LOST);
    break;
  }
  return 0;
}

static void settle_handler(struct world *w, int at, int throws, int success) {
  struct ghost *call = &w->calls[at];
  const enum side side = handler_side(call);
  abp_endpoint *ep = w->peer[side].endpoint;
  const abp_call handle = handled(call)->handle;
  const abp_outcome outcome = throws ? ABP_CANCELLED : ABP_COMPLETED;
  must(w, abp_finish(ep, handle, outcome) == ABP_OK, at, "a handler's end is not taken in");
  handler_settled(w, at, outcome);
  drain(w, side, success);
  must(w, abp_finish(ep, handle, ABP_COMPLETED) == ABP_E_STATE, at, "a handler ends twice");
}

static void call_local(struct world *w, int parent) {
  abp_endpoint *ep = w->peer[APP].endpoint;
  const uint32_t depth = w->calls[parent].depth + 1, timeout = 12;
  must(w, abp_call_local(ep, handled(&w->calls[parent])->handle, timeout, ABP_NO_ERROR) == ABP_OK,
       parent, "a running call cannot call");
  if (in_flight(w, APP, 0) >= w->bounds.max_calls) {
    w->peer[APP].refuse = ABP_RATE_LIMITED;
    w->peer[APP].refused++;
    w->received = (struct message){.kind = REQUEST};
    return;
  }
  const int at = add(w, (struct ghost){.kind = A_LOCAL, .parent = parent, .depth = depth});
  w->calls[at].part[APP].deadline = w->peer[APP].now + timeout;
  start(w, APP, at);
}

/* Its caller's signal fires; a local call's is its handler's own. */
static enum side signal_side(const struct ghost *call) {
  return call->kind == A_LOCAL ? APP : caller_of(call);
}

int move_places(const struct world *w, enum move_kind kind) {
  switch (kind) {
  case SIGNAL:
  case ASK:
  case COMPLETE:
  case FAIL:
  case THROW_ABORT:
  case PROGRESS:
  case ELICIT:
  case LOCAL: return w->ghosts;
  case DELIVER:
  case TICK:
  case SLEEP:
  case CLOSE:
  case LEARN: return 2;
  default: return 1;
  }
}

int world_can(const struct world *w, struct move move) {
  if (!w->bounds.moves[move.kind] || move.at >= move_places(w, move.kind)) return 0;
  const enum side side = move.at ? APP : AGENT;
  const abp_session agent = w->peer[AGENT].session, app = w->peer[APP].session;
  const struct ghost *call = &w->calls[move.at];
  if (move_places(w, move.kind) == w->ghosts && call->kind == NOBODY && move.kind >= SIGNAL &&
      move.kind <= LOCAL)
    return 0;
  const struct part *part = &call->part[handler_side(call)];
  switch (move.kind) {
  case CONNECT:
  case CONNECT_UNREADABLE: return agent != ABP_SESSION_CONNECTING && agent != ABP_SESSION_READY;
  case CALL:
  case CALL_TIMED:
  case CALL_UNSENT: return w->bounds.calls > 0 && agent == ABP_SESSION_READY;
  case SIGNAL: {
    const struct part *own = &call->part[signal_side(call)];
    return call->kind != A_CANCEL && own->phase != NOT_HERE && own->handle;
  }
  case ASK: return call->kind == A_CALL && agent == ABP_SESSION_READY;
  case COMPLETE:
  case FAIL:
  case THROW_ABORT: return part->phase == RUNS;
  case PROGRESS: return part->phase == RUNS && !part->stopped && call->progress;
  case ELICIT:
  case LOCAL:
    return call->kind != AN_ELICITATION && part->phase == RUNS && !part->stopped &&
           (move.kind == ELICIT || call->depth < 4);
  case DELIVER: return w->to[side].count > 0;
  case TICK: return earliest(w, side) != 0;
  case SLEEP: return 1;
  case CLOSE:
    return w->peer[side].session == ABP_SESSION_READY ||
           w->peer[side].session == ABP_SESSION_CONNECTING;
  case LEAVE: return app == ABP_SESSION_READY;
  case CUT: return w->line;
  case LEARN: return w->peer[side].torn;
  default: return 0;
  }
}

static void perform(struct world *w, struct move move) {
  enum side side = move.at ? APP : AGENT;
  struct ghost *call = &w->calls[move.at];
  abp_endpoint *agent = w->peer[AGENT].endpoint, *app = w->peer[APP].endpoint;
  const struct ghost fresh = {.kind = A_CALL, .parent = -1, .progress = 1};
  int success = 0;
  switch (move.kind) {
  case CONNECT:
  case CONNECT_UNREADABLE:
    connect_(w, move.kind == CONNECT_UNREADABLE);
    side = AGENT;
    break;
  case CALL:
  case CALL_TIMED:
  case CALL_UNSENT: {
    /* Later calls may have earlier deadlines. */
    const uint32_t timeout = w->bounds.calls % 3 == 1 ? 20 : 10 * (w->bounds.calls % 3 + 1);
    w->bounds.calls--;
    make(w, AGENT, fresh, move.kind == CALL_TIMED ? timeout : 0, move.kind == CALL_UNSENT);
    side = AGENT;
    break;
  }
  case SIGNAL:
    side = signal_side(call);
    must(w, abp_cancel(w->peer[side].endpoint, call->part[side].handle, NULL, 0) == ABP_OK, move.at,
         "a cancel is refused");
    stop(w, side, move.at, ABP_CANCELLED);
    break;
  case ASK:
    ask(w, move.at);
    side = AGENT;
    break;
  case COMPLETE:
  case FAIL:
  case THROW_ABORT:
    settle_handler(w, move.at, move.kind == THROW_ABORT, move.kind == COMPLETE);
    return;
  case PROGRESS:
    post(w, handler_side(call),
         (struct message){.kind = REPORT,
                          .owner = (uint8_t)caller_of(call),
                          .serial = call->serial,
                          .number = call->number});
    return;
  case ELICIT:
    make(w, APP, (struct ghost){.kind = AN_ELICITATION, .parent = move.at}, 15, 0);
    side = APP;
    break;
  case LOCAL:
    call_local(w, move.at);
    side = APP;
    break;
  case DELIVER: success = deliver(w, side); break;
  case TICK:
  case SLEEP: {
    const uint64_t now = move.kind == TICK ? earliest(w, side) : w->peer[side].now + SLEEP_MS;
    abp_advance(w->peer[side].endpoint, now);
    clocks(w, side, now);
    break;
  }
  case CLOSE:
    abp_close(w->peer[side].endpoint);
    if (side == AGENT || w->peer[side].session == ABP_SESSION_READY)
      w->peer[side].sends = 1u << (side == APP ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN);
    end_session(w, side, ABP_SESSION_CLOSED);
    break;
  case LEAVE:
    side = APP;
    abp_leave(app, 0);
    w->peer[APP].sends = 1u << ABP_MSG_BYE;
    end_session(w, APP, ABP_SESSION_LOST);
    break;
  case CUT:
    w->line = 0;
    w->peer[AGENT].torn = w->peer[APP].torn = 1;
    memset(w->to, 0, sizeof w->to);
    return;
  case LEARN:
    w->peer[side].torn = 0;
    must(w, abp_lost(side == AGENT ? agent : app) == ABP_OK, -1, "a loss is not taken in");
    if (w->peer[side].session == ABP_SESSION_READY ||
        w->peer[side].session == ABP_SESSION_CONNECTING)
      end_session(w, side, ABP_SESSION_LOST);
    break;
  default: return;
  }
  drain(w, side, success);
}

/* --- What holds in every state ---------------------------------------------------------------- */

static void check(struct world *w, enum side side) {
  const struct peer *peer = &w->peer[side];
  const abp_endpoint *ep = peer->endpoint;
  uint32_t live[2] = {0, 0}, known = 0, timers = 0, queued = 0, running = 0;
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    const struct part *part = &call->part[side];
    if (part->phase == NOT_HERE) continue;
    const int made = made_at(call, side);
    live[made] += (uint32_t)is_live(part);
    known += part->known;
    timers += part->deadline != 0;
    queued += !made && part->phase == WAITS;
    running += part->phase == RUNS;
    if (part->phase == RUNS)
      must(w,
           abp_progress_wanted(ep, part->handle) ==
               (call->progress && !part->stopped && peer->session == ABP_SESSION_READY),
           i, "progress is wanted or not, wrongly");
    if (made && part->phase == WAITS && !part->deadline && !w->peer[!side].torn && !peer->torn &&
        !w->to[0].count && !w->to[1].count) {
      const struct part *other = &call->part[!side];
      must(w, is_live(other) && !other->answered, i, "a call waits for ever");
    }
  }
  must(w, abp_session_state(ep) == peer->session, -1, "the session is in another state");
  must(w, abp_count(ep, ABP_IN_FLIGHT_IN) == live[0], -1, "calls received are miscounted");
  must(w, abp_count(ep, ABP_IN_FLIGHT_OUT) == live[1], -1, "calls made are miscounted");
  must(w, abp_count(ep, ABP_REMEMBERED) == (uint32_t)peer->remembered, -1, "memory is miscounted");
  must(w, abp_count(ep, ABP_LATE) == peer->late, -1, "late answers are miscounted");
  must(w, abp_count(ep, ABP_STRAY) == peer->stray, -1, "stray answers are miscounted");
  must(w, abp_count(ep, ABP_REFUSED) == peer->refused, -1, "refusals are miscounted");
  must(w, ep->running == running, -1, "handlers are miscounted");
  must(w, ep->table.queue.count == queued, -1, "the queue holds what it should not");
  must(w, ep->table.timer_count == timers, -1, "a timer is left or missing");
  must(w, ep->table.indexed == known, -1, "the index holds what it should not");
  must(w, ep->debts == NO_CALL, -1, "a debt is left");
  must(w,
       w->peer[APP].session != ABP_SESSION_READY || w->peer[AGENT].session == ABP_SESSION_READY ||
           w->peer[AGENT].session == ABP_SESSION_CONNECTING || w->peer[AGENT].torn ||
           w->peer[APP].torn || w->to[APP].count || w->to[AGENT].count,
       -1, "a session that only the app still has");
  const uint64_t first = earliest(w, side);
  must(w, !first || (ep->wake && ep->wake <= first), -1, "nobody will wake it in time");
}

/* What neither side remembers is gone. */
static void sweep(struct world *w) {
  for (int i = 0; i < w->ghosts; i++) {
    struct ghost *call = &w->calls[i];
    int here = 0;
    for (int side = 0; side < 2; side++) {
      here |= call->part[side].phase != NOT_HERE;
      if (call->part[side].phase == NOT_HERE) call->part[side] = (struct part){0};
    }
    if (here) continue;
    must(w, call->kind != A_LOCAL || call->results, i, "a local call is never answered");
    *call = (struct ghost){0};
  }
  while (w->ghosts && w->calls[w->ghosts - 1].kind == NOBODY)
    w->ghosts--;
}

int world_do(struct world *w, struct move move) {
  if (w->bounds.moves[move.kind] != ANY) w->bounds.moves[move.kind]--;
  perform(w, move);
  memset(&w->received, 0, sizeof w->received);
  if (!w->violation) check(w, AGENT);
  if (!w->violation) check(w, APP);
  if (!w->violation) sweep(w);
  return !w->violation;
}

void world_open(struct world *w, const struct bounds *bounds) {
  memset(w, 0, sizeof *w);
  w->bounds = *bounds;
  if (!bounds->max_calls) w->bounds.max_calls = WORLD_CALLS;
  for (int side = 0; side < 2; side++) {
    const abp_config config = {.role = side == AGENT ? ABP_AGENT : ABP_APP,
                               .seed = {(uint8_t)side, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
                               .features = FEATURES,
                               .max_calls = w->bounds.max_calls,
                               .max_concurrent = bounds->max_concurrent,
                               .remembered = bounds->remembered,
                               .remember_ms = REMEMBER_MS,
                               .grace_ms = GRACE_MS,
                               .heartbeat_ms = NEVER_MS,
                               .restart = bounds->restart};
    w->peer[side].now = 1000;
    w->peer[side].endpoint = abp_new(&config, 1000);
  }
}

void world_close(struct world *w) {
  abp_free(w->peer[AGENT].endpoint);
  abp_free(w->peer[APP].endpoint);
}

static const char *const NAMES[MOVE_KINDS] = {
    [CONNECT] = "connect",
    [CONNECT_UNREADABLE] = "connect-unreadable",
    [CALL] = "call",
    [CALL_TIMED] = "call-timed",
    [CALL_UNSENT] = "call-unsent",
    [SIGNAL] = "signal",
    [ASK] = "ask",
    [COMPLETE] = "complete",
    [FAIL] = "fail",
    [THROW_ABORT] = "abort",
    [PROGRESS] = "progress",
    [ELICIT] = "elicit",
    [LOCAL] = "local",
    [DELIVER] = "deliver",
    [TICK] = "tick",
    [SLEEP] = "sleep",
    [CLOSE] = "close",
    [LEAVE] = "leave",
    [CUT] = "cut",
    [LEARN] = "learn",
};

const char *move_text(struct move move) {
  static char text[40];
  if (move.kind == DELIVER || move.kind == TICK || move.kind == SLEEP || move.kind == CLOSE ||
      move.kind == LEARN)
    snprintf(text, sizeof text, "%s:%s", NAMES[move.kind], move.at ? "app" : "agent");
  else if (move.kind >= SIGNAL && move.kind <= LOCAL)
    snprintf(text, sizeof text, "%s:%d", NAMES[move.kind], move.at);
  else
    snprintf(text, sizeof text, "%s", NAMES[move.kind]);
  return text;
}

int move_parse(const char *text, struct move *move) {
  const size_t length = strcspn(text, ":");
  for (int kind = 0; kind < MOVE_KINDS; kind++) {
    if (strlen(NAMES[kind]) != length || memcmp(NAMES[kind], text, length) != 0) continue;
    const char *at = text[length] ? text + length + 1 : "0";
    *move = (struct move){(enum move_kind)kind, strcmp(at, "app") == 0 ? 1 : atoi(at)};
    return 1;
  }
  return 0;
}
