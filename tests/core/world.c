#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  RESEND_MS = 50,
  CONNECT_MS = 60,
  ELICIT_MS = 15,
  LOCAL_MS = 12,
  SLEEP_MS = 500,
  NEVER_MS = 1 << 30
};

static const uint32_t FEATURES = ABP_PROGRESS | ABP_ELICITATION | ABP_LIVENESS | ABP_STREAMS;

/* How an `initialize` is answered. */
enum { REFUSED, ACCEPTED, BUSY };

static void must(struct world *w, int holds, int at, const char *what) {
  if (holds || w->violation) return;
  w->violation = what;
  w->violation_at = at;
}

static void taken(struct world *w, int status) {
  must(w, status == ABP_OK, -1, "an input is not taken in");
}

/* --- Messages --------------------------------------------------------------------------------- */

static void post(struct world *w, enum side from, struct message message) {
  struct channel *channel = &w->to[!from];
  if (!w->line) return;
  if (channel->count == WORLD_CHANNEL) {
    fprintf(stderr, "WORLD_CHANNEL is too small\n");
    exit(2);
  }
  channel->messages[channel->count++] = message;
}

/* Writes a number in decimal: printf took a third of a walk. Returns how long it is. */
static uint32_t write_number(char text[10], uint32_t number) {
  char reversed[10];
  uint32_t length = 0;
  do {
    reversed[length++] = (char)('0' + number % 10);
  } while (number /= 10);
  for (uint32_t i = 0; i < length; i++)
    text[i] = reversed[length - 1 - i];
  return length;
}

/* An id as text, as the wire reads it. */
static abp_id text_of(const struct world *w, struct id id, char text[64]) {
  const char *prefix = w->peer[id.owner].endpoint->prefix; /* 20 digits, a dash, the serial */
  const char *end = memchr(prefix, 0, 21);
  uint32_t length = end ? (uint32_t)(end - prefix) : 21;
  memcpy(text, prefix, length);
  length += write_number(text + length, id.serial);
  if (id.number) {
    text[length++] = '.';
    length += write_number(text + length, id.number);
  }
  return (abp_id){text, length, 0};
}

/* --- What comes of a move: compared with the model, and said to the other side ------------------
 */

static void pay(struct world *w, int at, abp_kind kind) {
  struct ghost *call = &w->calls[at];
  must(w, call->owed >> kind & 1, at, "an action that nothing asked for");
  /* A cancel is sent before the call settles. */
  const uint32_t before = kind == ABP_SETTLE ? ((1u << kind) - 1) | 1u << ABP_SEND
                          : kind == ABP_SEND ? ((1u << kind) - 1) & ~(1u << ABP_SETTLE)
                                             : (1u << kind) - 1;
  must(w, !(call->owed & before), at, "actions of one call in the wrong order");
  call->owed &= ~(1u << kind);
}

static int find_handle(struct world *w, enum side side, abp_call handle) {
  for (int i = 0; i < w->ghosts; i++) {
    if (w->calls[i].part[side].handle == handle && w->calls[i].part[side].phase != NOT_HERE)
      return i;
  }
  /* A call that has just come in gets its handle with its first action. */
  for (int i = 0; i < w->ghosts; i++) {
    struct part *part = &w->calls[i].part[side];
    if (!model_live(part) || part->handle || !w->calls[i].owed) continue;
    part->handle = handle;
    return i;
  }
  return -1;
}

static void observe_chunk(struct world *w, enum side side, int at) {
  struct ghost *call = &w->calls[at];
  if (side == model_handler_side(call)) {
    post(w, side, (struct message){.kind = CHUNK, .id = call->id});
    call->yielded++;
    return;
  }
  must(w, !call->settled, at, "a chunk after its call has settled");
  call->part[side].unread++;
  call->handed++;
}

/* What is said of the handler's work: as the model has it, and what the handler did. */
static void check_fate(struct world *w, int at, const abp_action *action) {
  struct ghost *call = &w->calls[at];
  const enum side side = action->kind == ABP_SETTLE ? model_caller(call) : model_handler_side(call);
  must(w, action->fate == call->part[side].fate, at, "it is said wrongly what became of the work");
  if (w->bounds.heedless) return; /* whose results say what is not so */
  switch (action->fate) {
  case ABP_FATE_UNSTARTED:
    call->told = 1;
    must(w, !call->started, at, "it ran, and it is said that it never did");
    break;
  case ABP_FATE_STOPPED:
  case ABP_FATE_FINISHED:
  case ABP_FATE_FAILED:
    must(w, call->did == action->fate, at, "what is said of the handler is not what it did");
    must(w,
         side == AGENT || w->bounds.foreign || !call->part[APP].stopped ||
             !model_works_below(w, at),
         at, "it is said that it has ended, and what it called works on");
    break;
  case ABP_FATE_RUNNING:
    must(w, call->started, at, "it never ran, and it is said that it does");
    break;
  default: break;
  }
}

/* The call that a question says it is about. */
static struct id said_about(const struct world *w, int at) {
  const struct ghost *call = &w->calls[at];
  if (call->kind != AN_ELICITATION || call->stream) return (struct id){0};
  if (w->bounds.liar) {
    for (int i = w->ghosts; i--;) {
      if (w->calls[i].kind != A_LOCAL && i != call->parent) return w->calls[i].id;
    }
  }
  while (call->kind != A_CALL && call->parent >= 0)
    call = &w->calls[call->parent];
  return call->kind == A_CALL ? call->id : (struct id){0};
}

static void observe_call(struct world *w, enum side side, const abp_action *action, int success) {
  const int at = find_handle(w, side, action->call);
  must(w, at >= 0, -1, "an action of a call that nobody knows");
  if (at < 0) return;
  struct ghost *call = &w->calls[at];
  struct part *part = &call->part[side];
  const uint32_t outcome = part->outcome ? part->outcome : part->stopped;
  success = success && outcome == ABP_COMPLETED;
  pay(w, at, action->kind);
  switch (action->kind) {
  case ABP_START:
    must(w, !call->started++, at, "a handler starts twice");
    must(w, !call->told, at, "a handler starts of which it was said that it never ran");
    must(w, !call->said_true, at, "a handler starts after a cancel was answered `true`");
    break;
  case ABP_REQUEST: {
    const uint64_t left = part->deadline ? part->deadline - w->peer[side].now : 0;
    must(w, (action->chunks != 0) == call->stream, at, "a stream or not, wrongly");
    if (part->known)
      post(w, side,
           (struct message){.kind = REQUEST,
                            .arg = call->progress,
                            .timeout = (uint32_t)left,
                            .chunks = action->chunks,
                            .bytes = (uint32_t)action->at,
                            .id = call->id,
                            .about = said_about(w, at)});
    break;
  }
  case ABP_SEND: {
    struct id id = call->id;
    if (call->kind != A_CANCEL) id.number = 0; /* nobody waits for its answer */
    post(w, side,
         (struct message){
             .kind = CANCEL, .id = id, .about = call->kind == A_CANCEL ? w->asked : call->id});
    break;
  }
  case ABP_RESULT:
    must(w, action->arg == outcome, at, "a result says what did not happen");
    check_fate(w, at, action);
    must(w, !call->holds, at, "a result before the answers to the cancels of its call");
    must(w, !call->results++, at, "a second result");
    must(w, !success || !call->said_true, at, "a success after a cancel was answered `true`");
    call->succeeded |= (uint8_t)success;
    if (w->bounds.heedless && call->said_true)
      post(w, side,
           (struct message){.kind = RESULT,
                            .arg = ABP_COMPLETED,
                            .success = call->did != ABP_FATE_FAILED,
                            .id = call->id});
    else if (call->kind != A_LOCAL)
      post(w, side,
           (struct message){.kind = RESULT,
                            .arg = (uint8_t)outcome,
                            .success = (uint8_t)success,
                            .fate = (uint8_t)(w->bounds.mute ? 0 : action->fate),
                            .id = call->id});
    break;
  case ABP_SETTLE:
    must(w, action->arg == outcome, at, "a call settles as what did not happen");
    must(w, !call->settled++, at, "a call settles twice");
    if (call->kind != A_CANCEL) check_fate(w, at, action);
    must(w, !success || !call->said_true, at, "a success settles what a cancel had stopped");
    must(w, !success || call->handed == call->yielded, at, "a success overtakes a chunk");
    break;
  case ABP_CHUNK:
    must(w, action->at == CHUNK_SIZE, at, "a chunk of another size");
    observe_chunk(w, side, at);
    break;
  case ABP_CREDIT:
    must(w, action->chunks == part->unreported && action->at == part->unreported * CHUNK_SIZE, at,
         "a grant of what was not read");
    post(w, side,
         (struct message){.kind = CREDIT,
                          .chunks = action->chunks,
                          .bytes = (uint32_t)action->at,
                          .id = call->id});
    part->under_way -= part->unreported;
    part->unreported = 0;
    break;
  default: break;
  }
  must(w, action->released == (part->phase == OVER && !call->owed), at,
       "a call is let go too early or too late");
  if (action->released) model_remember(w, side, at);
}

static void note_answer(struct world *w, int at, uint8_t answer) {
  struct ghost *call = &w->calls[at];
  call->said_true |= answer == ANSWER_CANCELLED;
  call->said_false |= answer == ANSWER_COMPLETED;
  call->said_unknown |= answer == ANSWER_UNKNOWN;
  must(w, call->said_true + call->said_false + call->said_unknown < 2, at,
       "two cancels, two answers");
  must(w, !(call->said_true && call->succeeded), at, "a cancel is answered `true` after a success");
}

static void observe_cancel_result(struct world *w, enum side side) {
  const uint8_t answer = w->peer[side].endpoint->answer;
  const int at = model_find_known(w, side, w->received.about);
  must(w, answer == w->peer[side].answer, at, "a cancel is answered wrongly");
  if (at >= 0) note_answer(w, at, answer);
}

/* The answer to a cancel that has waited. */
static void observe_held(struct world *w, enum side side, const abp_action *action) {
  const int at = find_handle(w, side, action->call);
  must(w, at >= 0, -1, "the answer to the cancel of a call that nobody knows");
  if (at < 0) return;
  struct ghost *call = &w->calls[at];
  struct id said[2];
  must(w, action->length == sizeof said && action->chunks == sizeof *said, at,
       "an answer does not say to what");
  memcpy(said, action->text, sizeof said);
  must(w, call->holds && memcmp(&said[0], &call->held[0], sizeof *said) == 0, at,
       "an answer to another cancel, or out of turn");
  must(w, memcmp(&said[1], &call->id, sizeof *said) == 0, at, "an answer about another call");
  must(w, call->answer && action->at == call->answer, at,
       "a cancel that waited is answered wrongly");
  if (w->violation) return;
  memmove(call->held, call->held + 1, sizeof *call->held * --call->holds);
  call->held[call->holds] = (struct id){0};
  note_answer(w, at, call->answer);
  post(w, side,
       (struct message){.kind = CANCEL_RESULT,
                        .arg = call->answer == ANSWER_CANCELLED,
                        .id = said[0],
                        .about = call->id});
  if (!call->holds) call->answer = 0;
}

static void observe_message(struct world *w, enum side side, uint32_t kind) {
  struct peer *peer = &w->peer[side];
  const struct id id = w->received.id, own = {side, peer->serial, 0};
  must(w, peer->sends >> kind & 1, -1, "a message that nothing asked for");
  peer->sends &= ~(1u << kind);
  switch (kind) {
  case ABP_MSG_INITIALIZE:
    post(w, side, (struct message){.kind = INITIALIZE, .arg = w->unreadable, .id = own});
    break;
  case ABP_MSG_INITIALIZE_RESULT:
    post(w, side,
         (struct message){.kind = INITIALIZE_RESULT, .arg = ACCEPTED, .id = id, .about = own});
    break;
  case ABP_MSG_CANCEL_RESULT:
    observe_cancel_result(w, side);
    post(w, side,
         (struct message){.kind = CANCEL_RESULT,
                          .arg = peer->answer == ANSWER_CANCELLED,
                          .id = id,
                          .about = w->received.about});
    break;
  case ABP_MSG_SHUTDOWN: post(w, side, (struct message){.kind = SHUTDOWN}); break;
  case ABP_MSG_BYE: post(w, side, (struct message){.kind = BYE}); break;
  default: break;
  }
}

static void observe_refusal(struct world *w, enum side side, uint32_t error) {
  struct peer *peer = &w->peer[side];
  const struct id id = w->received.id;
  must(w, peer->refuse && error == peer->refuse, -1, "a refusal that nothing asked for");
  peer->refuse = 0;
  if (w->received.kind == INITIALIZE)
    post(w, side,
         (struct message){.kind = INITIALIZE_RESULT,
                          .arg = error == ABP_ALREADY_INITIALIZED ? BUSY : REFUSED,
                          .id = id});
  else if (id.number) /* else it is a local call's */
    post(w, side,
         (struct message){.kind = RESULT,
                          .arg = ABP_COMPLETED,
                          .fate = (uint8_t)(w->bounds.mute ? 0 : ABP_FATE_UNSTARTED),
                          .id = id});
}

static void observe(struct world *w, enum side side, const abp_action *action, int success) {
  struct peer *peer = &w->peer[side];
  switch (action->kind) {
  case ABP_WAKE:
  case ABP_DROP: return;
  case ABP_REPORT: {
    const int at = action->call ? find_handle(w, side, action->call) : -1;
    must(w, peer->report && at == model_find_known(w, side, w->received.id), at,
         "progress of another call");
    peer->report = 0;
    return;
  }
  case ABP_REFUSE: observe_refusal(w, side, action->arg); return;
  case ABP_SESSION:
    must(w, action->arg == peer->session_event, -1, "another session than it should be");
    peer->session_event = 0;
    return;
  default: break;
  }
  if (action->kind == ABP_SEND && action->arg == ABP_MSG_CANCEL_RESULT && action->text)
    observe_held(w, side, action);
  else if (action->kind == ABP_SEND && action->arg != ABP_MSG_CANCEL)
    observe_message(w, side, action->arg);
  else
    observe_call(w, side, action, success);
}

static void drain(struct world *w, enum side side, int success) {
  struct peer *peer = &w->peer[side];
  abp_action action;
  model_pause(w, side);
  while (!w->violation && abp_next(peer->endpoint, &action))
    observe(w, side, &action, success);
  for (int i = 0; i < w->ghosts; i++) {
    must(w, !w->calls[i].owed, i, "an action is missing");
    must(w, !w->calls[i].answer, i, "a cancel is not answered");
  }
  must(w, !peer->sends, -1, "a message is missing");
  must(w, !(peer->refuse | peer->session_event | peer->report), -1, "an action is missing");
}

/* --- Making calls and ending them ------------------------------------------------------------- */

static uint64_t deadline(const struct world *w, enum side side, uint32_t timeout) {
  return timeout ? w->peer[side].now + timeout : 0;
}

/* Checks the limit and the status; returns 1 if the call was made. */
static int made(struct world *w, enum side side, int status) {
  const int fits = model_in_flight(w, side, 1) < w->bounds.max_calls;
  must(w, status == (fits ? ABP_OK : ABP_E_LIMIT), -1, "a call is made or not, against the limit");
  return status == ABP_OK;
}

static int add_made(struct world *w, enum side side, struct ghost call, abp_call handle,
                    abp_kind owed, uint32_t timeout, int known) {
  const struct peer *peer = &w->peer[side];
  call.id = (struct id){side, peer->serial, abp_number(peer->endpoint, handle)};
  call.owed = 1u << owed;
  call.part[side] = (struct part){.phase = WAITS,
                                  .known = (uint8_t)known,
                                  .handle = handle,
                                  .deadline = deadline(w, side, timeout)};
  return model_add(w, call);
}

static void make(struct world *w, enum side side, struct ghost call, uint32_t timeout, int unsent) {
  abp_endpoint *ep = w->peer[side].endpoint;
  const uint32_t flags =
      (call.progress ? ABP_WANTS_PROGRESS : 0u) | (call.stream ? ABP_WANTS_STREAM : 0u);
  const abp_call parent = call.parent < 0 ? 0 : model_handled(&w->calls[call.parent])->handle;
  abp_call handle;
  if (!made(w, side, abp_request(ep, NULL, timeout, flags, parent, &handle))) return;
  const int at = add_made(w, side, call, handle, ABP_REQUEST, timeout, !unsent);
  if (!unsent) return;
  drain(w, side, 0);
  if (unsent > 1) {
    taken(w, abp_cancel(ep, handle, NULL, 0));
    model_stop(w, side, at, ABP_CANCELLED);
    drain(w, side, 0);
  }
  taken(w, abp_send_failed(ep, handle));
  model_end(w, side, at, ABP_COMPLETED, ABP_FATE_UNSTARTED, ABP_SETTLE);
}

static void ask(struct world *w, int target) {
  struct ghost *call = &w->calls[target];
  struct part *part = &call->part[AGENT];
  char text[64];
  const abp_id id = text_of(w, call->id, text);
  abp_call handle;
  if (!made(w, AGENT, abp_cancel_by_id(w->peer[AGENT].endpoint, &id, NULL, 0, &handle))) return;
  /* It is the target's cancel, so that the signal need not send another. */
  if (part->phase == WAITS && part->known && !part->stopped) {
    part->stopped = ABP_CANCELLED;
    part->deadline = deadline(w, AGENT, GRACE_MS);
    model_stop_questions(w, target, ABP_CANCELLED);
  }
  w->asked = call->id;
  const struct ghost cancel = {.kind = A_CANCEL, .parent = -1};
  add_made(w, AGENT, cancel, handle, ABP_SEND, GRACE_MS, 1);
}

static void settle_handler(struct world *w, int at, abp_outcome outcome, int success) {
  const enum side side = model_handler_side(&w->calls[at]);
  const abp_call handle = model_handled(&w->calls[at])->handle;
  abp_endpoint *ep = w->peer[side].endpoint;
  const int status = abp_finish(ep, handle, outcome);
  model_handler_settled(w, at, outcome);
  const struct part *part = model_handled(&w->calls[at]);
  taken(w, part->follows && !part->answered && status == ABP_FOLLOWS ? ABP_OK : status);
  drain(w, side, success);
  must(w, abp_finish(ep, handle, ABP_COMPLETED) == ABP_E_STATE, at, "a handler ends twice");
}

/* --- Streams ---------------------------------------------------------------------------------- */

static void yield(struct world *w, int at) {
  struct ghost *call = &w->calls[at];
  const enum side side = model_handler_side(call);
  struct part *part = &call->part[side];
  const int status = abp_chunk(w->peer[side].endpoint, part->handle, CHUNK_SIZE);
  if (part->stopped || part->prepares) {
    must(w, status == ABP_E_STATE, at, "a chunk for nobody");
  } else if (model_full(w, side, call)) {
    must(w, status == ABP_E_LIMIT, at, "a chunk for which there is no room");
    if (!w->bounds.greedy) return;
    post(w, side, (struct message){.kind = CHUNK, .id = call->id});
    call->yielded++;
  } else {
    taken(w, status);
    part->under_way++;
    model_expect(call, ABP_CHUNK);
  }
}

static void read(struct world *w, int at) {
  struct ghost *call = &w->calls[at];
  const enum side side = model_caller(call);
  struct part *part = &call->part[side];
  abp_endpoint *ep = w->peer[side].endpoint;
  taken(w, abp_chunk_read(ep, part->handle, CHUNK_SIZE));
  part->unread--;
  part->unreported++;
  if (!part->stopped && model_grants(w, call)) model_expect(call, ABP_CREDIT);
  drain(w, side, 0);
  if (!part->unread)
    must(w, abp_chunk_read(ep, part->handle, CHUNK_SIZE) == ABP_E_STATE, at,
         "a chunk is read twice");
}

static void receive_chunk(struct world *w, enum side side, struct id id) {
  struct peer *peer = &w->peer[side];
  const int at = model_find_known(w, side, id);
  struct part *part = at < 0 ? NULL : &w->calls[at].part[side];
  if (!part) {
    peer->stray++;
  } else if (part->phase == OVER || part->accepted) {
    peer->late++;
  } else if (model_full(w, side, &w->calls[at])) {
    peer->overrun++;
    if (!part->stopped) model_expect(&w->calls[at], ABP_SEND);
    model_end(w, side, at, part->stopped ? part->stopped : ABP_COMPLETED, ABP_FATE_UNKNOWN,
              ABP_SETTLE);
  } else {
    part->under_way++;
    model_expect(&w->calls[at], ABP_CHUNK);
  }
}

static void receive_credit(struct world *w, enum side side, const struct message *message) {
  struct peer *peer = &w->peer[side];
  const int at = model_find_known(w, side, message->id);
  struct part *part = at < 0 ? NULL : &w->calls[at].part[side];
  if (!part)
    peer->stray++;
  else if (part->phase != OVER && message->chunks > part->under_way)
    peer->overrun++;
  else if (part->phase != OVER) {
    const int crowded = model_crowded(w, part);
    part->under_way -= (uint8_t)message->chunks;
    if (crowded && !model_crowded(w, part) && !part->stopped)
      model_expect(&w->calls[at], ABP_RESUME);
  }
}

/* Takes a call in, or refuses it. */
static int admitted(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  if (peer->session != ABP_SESSION_READY)
    peer->refuse = ABP_NOT_INITIALIZED;
  else if (model_in_flight(w, side, 0) >= w->bounds.max_calls)
    peer->refuse = ABP_RATE_LIMITED;
  peer->refused += peer->refuse != 0;
  return !peer->refuse;
}

static void call_local(struct world *w, int parent) {
  const abp_call handle = model_handled(&w->calls[parent])->handle;
  taken(w, abp_call_local(w->peer[APP].endpoint, handle, LOCAL_MS, ABP_NO_ERROR));
  if (!admitted(w, APP)) return;
  struct ghost call = {.kind = A_LOCAL,
                       .parent = parent,
                       .made_by = parent + 1,
                       .depth = w->calls[parent].depth + 1};
  call.part[APP].deadline = deadline(w, APP, LOCAL_MS);
  model_start(w, APP, model_add(w, call));
}

/* --- Receiving -------------------------------------------------------------------------------- */

static void receive_call(struct world *w, enum side side, const struct message *message) {
  if (!admitted(w, side)) return;
  int at = model_find(w, message->id);
  if (at < 0) /* its caller has forgotten it */
    at = model_add(w, (struct ghost){.kind = message->id.owner == AGENT ? A_CALL : AN_ELICITATION,
                                     .id = message->id,
                                     .progress = message->arg,
                                     .stream = message->chunks != 0,
                                     .parent = -1});
  w->calls[at].part[side] =
      (struct part){.phase = WAITS, .known = 1, .deadline = deadline(w, side, message->timeout)};
  const int about = side == AGENT ? model_find_known(w, side, message->about) : -1;
  if (about >= 0 && w->calls[about].kind == A_CALL) {
    const struct part *asking = &w->calls[about].part[AGENT];
    if (asking->phase == WAITS && !asking->stopped) w->calls[at].about = about + 1;
  }
  if (model_handlers(w, side) < w->bounds.max_concurrent)
    model_start(w, side, at);
  else
    model_expect(&w->calls[at], ABP_QUEUED);
}

static void receive_cancel(struct world *w, struct id id, struct id about) {
  struct peer *app = &w->peer[APP];
  const int at = model_find_known(w, APP, about);
  app->sends = 1u << ABP_MSG_CANCEL_RESULT;
  app->answer = ANSWER_CANCELLED;
  if (app->session != ABP_SESSION_READY)
    app->answer = ANSWER_NOT_INITIALIZED;
  else if (at < 0)
    app->answer = ANSWER_NOT_FOUND;
  else if (w->calls[at].part[APP].outcome == ABP_COMPLETED)
    app->answer = ANSWER_COMPLETED;
  else if (w->calls[at].part[APP].unknown)
    app->answer = ANSWER_UNKNOWN;
  else if (w->bounds.foreign && w->calls[at].part[APP].phase == RUNS &&
           !w->calls[at].part[APP].stopped && !w->calls[at].part[APP].prepares) {
    struct ghost *call = &w->calls[at];
    if (call->holds == MAX_HELD) {
      fprintf(stderr, "MAX_HELD is too small\n");
      exit(2);
    }
    app->sends = 0;
    call->held[call->holds++] = id;
    model_stop(w, APP, at, ABP_CANCELLED);
  } else
    model_stop(w, APP, at, ABP_CANCELLED);
}

/* Of a stream of the agent's, whose result is the answer. */
static void receive_stream_cancel(struct world *w, struct id about) {
  const struct peer *agent = &w->peer[AGENT];
  const int at = model_find_known(w, AGENT, about);
  if (agent->session == ABP_SESSION_READY && at >= 0 && model_live(&w->calls[at].part[AGENT]))
    model_stop(w, AGENT, at, ABP_CANCELLED);
}

/* A result, or a cancel's answer. */
static void receive_answer(struct world *w, enum side side, struct id id, abp_outcome outcome,
                           abp_fate said) {
  struct peer *peer = &w->peer[side];
  const int at = model_find_known(w, side, id);
  if (at < 0) {
    peer->stray++;
    return;
  }
  const struct part *part = &w->calls[at].part[side];
  if (part->phase == OVER) {
    peer->late++;
    return;
  }
  const abp_fate fate = said                       ? said
                        : outcome == ABP_FAILED    ? ABP_FATE_FAILED
                        : outcome != ABP_COMPLETED ? ABP_FATE_UNKNOWN
                        : part->accepted           ? ABP_FATE_FINISHED
                                                   : ABP_FATE_NONE;
  if (outcome == ABP_FAILED) outcome = ABP_COMPLETED;
  if (part->stopped && (outcome == ABP_CANCELLED || (part->accepted && outcome == ABP_COMPLETED)))
    outcome = (abp_outcome)part->stopped;
  model_end(w, side, at, outcome, fate, ABP_SETTLE);
}

/* Feeds the endpoint a cancel's answer, and the model. A signal's has the handle of its call. */
static void receive_cancel_result(struct world *w, enum side side, const abp_id *id,
                                  const struct message *message) {
  struct peer *peer = &w->peer[side];
  const int at = model_find(w, message->about), ours = message->id.serial == peer->serial;
  struct part *part = at < 0 ? NULL : &w->calls[at].part[side];
  abp_call call = 0;
  if (!message->id.number && ours)
    call = part && part->phase != NOT_HERE ? part->handle : UINT32_MAX; /* which no call has */
  abp_endpoint_cancel_result(peer->endpoint, id, call, message->arg);
  if (ours && message->arg && part && part->phase == WAITS && part->stopped) part->accepted = 1;
  if (!call)
    receive_answer(w, side, message->id, message->arg ? ABP_CANCELLED : ABP_COMPLETED,
                   ABP_FATE_NONE);
}

static void receive_progress(struct world *w, enum side side, struct id id) {
  struct peer *peer = &w->peer[side];
  const int at = model_find_known(w, side, id);
  if (at >= 0 && w->calls[at].part[side].phase == OVER)
    peer->late++;
  else if (peer->session != ABP_SESSION_READY)
    peer->stray++;
  else
    peer->report = 1;
}

static void receive_initialize(struct world *w, const struct message *message) {
  struct peer *app = &w->peer[APP];
  const int ready = app->session == ABP_SESSION_READY;
  const int again = ready && message->id.serial == app->peer_serial;
  if (ready && !again && !w->bounds.restart) {
    app->refuse = ABP_ALREADY_INITIALIZED;
    return;
  }
  if (!again && message->arg) {
    app->refuse = ABP_NOT_SUPPORTED;
    return;
  }
  app->sends = 1u << ABP_MSG_INITIALIZE_RESULT;
  if (again) return;
  if (ready) model_end_session(w, APP, ABP_SESSION_CLOSED);
  model_new_session(w, APP);
  app->peer_serial = message->id.serial;
  model_set_session(w, APP, ABP_SESSION_READY);
}

static void receive_initialize_result(struct world *w, const struct message *message) {
  struct peer *agent = &w->peer[AGENT];
  if (agent->session != ABP_SESSION_CONNECTING) {
    agent->late++;
    if (message->arg == ACCEPTED && agent->session != ABP_SESSION_READY)
      agent->sends = 1u << ABP_MSG_SHUTDOWN;
  } else if (message->arg == ACCEPTED) {
    agent->peer_serial = message->about.serial;
    model_set_session(w, AGENT, ABP_SESSION_READY);
  } else if (message->arg == REFUSED) {
    model_set_session(w, AGENT, ABP_SESSION_FAILED);
  }
}

/* Feeds the endpoint as the wire does, and the model. Returns what the message says of success. */
static int deliver(struct world *w, enum side side) {
  struct peer *peer = &w->peer[side];
  struct channel *channel = &w->to[side];
  const struct message message = w->received = channel->messages[0];
  memmove(channel->messages, channel->messages + 1, sizeof message * (size_t)--channel->count);
  channel->messages[channel->count] = (struct message){0};
  abp_endpoint *ep = peer->endpoint;
  char text[64], more[64];
  const abp_id id = text_of(w, message.id, text);
  const abp_id about = text_of(w, message.about, more);
  abp_endpoint_enter(ep);
  if (w->bounds.told) ep->session.announced = w->peer[!side].window;
  switch (message.kind) {
  case INITIALIZE:
    abp_endpoint_initialize(ep, id.text, id.length, 0, message.arg ? "x" : "0.1",
                            message.arg ? 1 : 3, FEATURES);
    receive_initialize(w, &message);
    break;
  case INITIALIZE_RESULT:
    if (message.id.serial != peer->serial) break; /* the wire drops it */
    abp_endpoint_initialized(ep, about.text, about.length, message.arg == ACCEPTED,
                             message.arg == BUSY, FEATURES);
    receive_initialize_result(w, &message);
    break;
  case REQUEST:
    taken(w,
          message.about.number
              ? abp_question_received(ep, &id, message.timeout, &about, ABP_NO_ERROR)
              : abp_stream_received(ep, &id, message.timeout, message.arg ? ABP_WANTS_PROGRESS : 0,
                                    message.chunks, message.bytes, ABP_NO_ERROR));
    receive_call(w, side, &message);
    break;
  case RESULT: {
    const int failed = message.arg == ABP_COMPLETED && !message.success;
    const abp_outcome outcome = failed ? ABP_FAILED : (abp_outcome)message.arg;
    taken(w, abp_result_with_fate(ep, &id, outcome, (abp_fate)message.fate));
    receive_answer(w, side, message.id, outcome, (abp_fate)message.fate);
    break;
  }
  case REPORT:
    taken(w, abp_progress_received(ep, &id));
    receive_progress(w, side, message.id);
    break;
  case CHUNK:
    taken(w, abp_chunk_received(ep, &id, CHUNK_SIZE));
    receive_chunk(w, side, message.id);
    break;
  case CREDIT:
    taken(w, abp_credit_received(ep, &id, message.chunks, message.bytes));
    receive_credit(w, side, &message);
    break;
  case CANCEL:
    if (side == APP) {
      const struct id said[2] = {message.id, message.about};
      const struct cancel_text from = {(const char *)&said[0], (const char *)&said[1], sizeof *said,
                                       sizeof *said};
      abp_endpoint_cancel(ep, &about, NULL, 0, &from);
      receive_cancel(w, message.id, message.about);
    } else {
      taken(w, abp_cancel_received(ep, &about, NULL, 0));
      receive_stream_cancel(w, message.about);
    }
    break;
  case CANCEL_RESULT: receive_cancel_result(w, side, &id, &message); break;
  case SHUTDOWN:
    abp_endpoint_shutdown(ep);
    if (peer->session == ABP_SESSION_READY) model_end_session(w, side, ABP_SESSION_CLOSED);
    break;
  case BYE:
    abp_endpoint_bye(ep, 0);
    if (peer->session == ABP_SESSION_READY) model_end_session(w, side, ABP_SESSION_LOST);
    break;
  }
  return message.success;
}

/* --- Moves ------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  enum { OF_ALL, OF_A_CALL, OF_A_SIDE } of;
} MOVES[MOVE_KINDS] = {
    [CONNECT] = {"connect", OF_ALL},
    [CONNECT_UNREADABLE] = {"connect-unreadable", OF_ALL},
    [CALL] = {"call", OF_ALL},
    [CALL_TIMED] = {"call-timed", OF_ALL},
    [CALL_UNSENT] = {"call-unsent", OF_ALL},
    [CALL_WITHDRAWN] = {"call-withdrawn", OF_ALL},
    [SIGNAL] = {"signal", OF_A_CALL},
    [ASK] = {"ask", OF_A_CALL},
    [POSTPONE] = {"postpone", OF_A_CALL},
    [BEGIN] = {"begin", OF_A_CALL},
    [COMPLETE] = {"complete", OF_A_CALL},
    [FAIL] = {"fail", OF_A_CALL},
    [THROW_ABORT] = {"abort", OF_A_CALL},
    [LOSE_TRACK] = {"lose-track", OF_A_CALL},
    [ACCEPT] = {"accept", OF_A_CALL},
    [DECLINE] = {"decline", OF_A_CALL},
    [GO_ON] = {"go-on", OF_A_CALL},
    [PASS_ON] = {"pass-on", OF_A_CALL},
    [PROGRESS] = {"progress", OF_A_CALL},
    [STREAM] = {"stream", OF_ALL},
    [YIELD] = {"yield", OF_A_CALL},
    [READ] = {"read", OF_A_CALL},
    [GRANT] = {"grant", OF_A_CALL},
    [ELICIT] = {"elicit", OF_A_CALL},
    [INPUT] = {"input", OF_A_CALL},
    [LOCAL] = {"local", OF_A_CALL},
    [DELIVER] = {"deliver", OF_A_SIDE},
    [TICK] = {"tick", OF_A_SIDE},
    [SLEEP] = {"sleep", OF_A_SIDE},
    [CLOSE] = {"close", OF_A_SIDE},
    [LEAVE] = {"leave", OF_A_SIDE},
    [CUT] = {"cut", OF_ALL},
    [LEARN] = {"learn", OF_A_SIDE},
};

int move_places(const struct world *w, enum move_kind kind) {
  return MOVES[kind].of == OF_A_CALL ? w->ghosts : MOVES[kind].of == OF_A_SIDE ? 2 : 1;
}

const char *move_text(struct move move) {
  static char text[40];
  const char *name = MOVES[move.kind].name;
  switch (MOVES[move.kind].of) {
  case OF_ALL: return name;
  case OF_A_CALL: snprintf(text, sizeof text, "%s:%d", name, move.at); break;
  case OF_A_SIDE: snprintf(text, sizeof text, "%s:%s", name, move.at ? "app" : "agent"); break;
  }
  return text;
}

int move_parse(const char *text, struct move *move) {
  const size_t length = strcspn(text, ":");
  for (int kind = 0; kind < MOVE_KINDS; kind++) {
    if (strlen(MOVES[kind].name) != length || memcmp(MOVES[kind].name, text, length) != 0) continue;
    const char *at = text[length] ? text + length + 1 : "0";
    *move = (struct move){(enum move_kind)kind, strcmp(at, "app") == 0 ? 1 : atoi(at)};
    return 1;
  }
  return 0;
}

/* Where a call's signal is: with its caller; a local call's is in the handler that made it. */
static enum side signal_side(const struct ghost *call) {
  return call->kind == A_LOCAL ? APP : model_caller(call);
}

static int has_session(const struct world *w, enum side side) {
  const abp_session session = w->peer[side].session;
  return session == ABP_SESSION_READY || session == ABP_SESSION_CONNECTING;
}

int world_can(const struct world *w, struct move move) {
  if (!w->bounds.moves[move.kind] || move.at >= move_places(w, move.kind)) return 0;
  const enum side side = move.at ? APP : AGENT;
  const int ready = w->peer[AGENT].session == ABP_SESSION_READY;
  const struct ghost *call = &w->calls[move.at];
  const struct part *part = &call->part[model_handler_side(call)];
  const struct part *made = &call->part[model_caller(call)];
  const int works = part->phase == RUNS && !part->stopped && !part->asked && !part->prepares;
  switch (move.kind) {
  case CONNECT:
  case CONNECT_UNREADABLE: return !has_session(w, AGENT);
  case CALL:
  case CALL_TIMED:
  case CALL_UNSENT:
  case CALL_WITHDRAWN:
  case STREAM: return w->bounds.calls > 0 && ready;
  case SIGNAL:
    return call->kind != NOBODY && call->kind != A_CANCEL &&
           call->part[signal_side(call)].phase != NOT_HERE;
  case ASK: return call->kind == A_CALL && ready;
  /* What has done something does not wait to begin. */
  case POSTPONE: return works && !call->yielded && !part->below && !model_has_children(w, move.at);
  case BEGIN: return part->prepares;
  case COMPLETE:
  case FAIL:
  case THROW_ABORT:
  case LOSE_TRACK: return part->phase == RUNS && !part->follows;
  case PASS_ON:
    return part->phase == RUNS && !part->follows && !w->bounds.foreign &&
           (part->below || model_has_children(w, move.at));
  /* An app may say so at any time: what it was not asked, or said before, changes nothing. */
  case ACCEPT:
  case DECLINE: return part->phase == RUNS && w->bounds.foreign && call->kind != AN_ELICITATION;
  /* It may say so at any time: of a call that was not cancelled, it changes nothing. */
  case GO_ON: return part->phase == RUNS;
  case PROGRESS: return works && call->progress;
  case YIELD: return part->phase == RUNS && call->stream;
  case READ: return made->phase == WAITS && made->unread;
  case GRANT: return made->phase == WAITS && call->stream;
  case ELICIT:
  case INPUT: return works && call->kind != AN_ELICITATION;
  case LOCAL: return works && call->kind != AN_ELICITATION && call->depth < 4;
  case DELIVER: return w->to[side].count > 0;
  case TICK: return model_earliest(w, side) != 0;
  case SLEEP: return 1;
  case CLOSE:
  case LEAVE: return has_session(w, side);
  case CUT: return w->line;
  case LEARN: return w->peer[side].torn;
  default: return 0;
  }
}

static void begin_session(struct world *w, int unreadable) {
  struct peer *agent = &w->peer[AGENT];
  w->unreadable = (uint8_t)unreadable;
  w->line = 1;
  taken(w, abp_connect(agent->endpoint, CONNECT_MS));
  model_new_session(w, AGENT);
  model_set_session(w, AGENT, ABP_SESSION_CONNECTING);
  agent->sends = 1u << ABP_MSG_INITIALIZE;
  agent->resend = deadline(w, AGENT, RESEND_MS);
  agent->give_up = deadline(w, AGENT, CONNECT_MS);
}

static void perform(struct world *w, struct move move) {
  enum side side = move.at ? APP : AGENT;
  int success = 0;
  struct ghost *call = &w->calls[move.at];
  struct peer *peer = &w->peer[side];
  switch (move.kind) {
  case CONNECT:
  case CONNECT_UNREADABLE: begin_session(w, move.kind == CONNECT_UNREADABLE); break;
  case CALL:
  case CALL_TIMED:
  case CALL_UNSENT:
  case CALL_WITHDRAWN:
  case STREAM: {
    static const uint32_t TIMEOUTS[] = {30, 20, 10}; /* a later call may have to end earlier */
    /* By its deadline an app that is not ours is asked to stop, and the reader still grants. */
    const int timed = move.kind == CALL_TIMED || (move.kind == STREAM && w->bounds.foreign);
    const uint32_t timeout = timed ? TIMEOUTS[w->bounds.calls % 3] : 0;
    w->bounds.calls--;
    make(w, AGENT,
         (struct ghost){.kind = A_CALL, .parent = -1, .progress = 1, .stream = move.kind == STREAM},
         timeout, move.kind == CALL_WITHDRAWN ? 2 : move.kind == CALL_UNSENT);
    break;
  }
  case SIGNAL:
    side = signal_side(call);
    taken(w, abp_cancel(w->peer[side].endpoint, call->part[side].handle, NULL, 0));
    model_stop(w, side, move.at, ABP_CANCELLED);
    break;
  case ASK:
    side = AGENT;
    ask(w, move.at);
    break;
  case POSTPONE:
    side = model_handler_side(call);
    taken(w, abp_postpone(w->peer[side].endpoint, model_handled(call)->handle));
    model_handled(call)->prepares = 1;
    call->started = 0;
    break;
  case BEGIN:
    side = model_handler_side(call);
    taken(w, abp_begin(w->peer[side].endpoint, model_handled(call)->handle));
    model_handled(call)->prepares = 0;
    call->started = 1;
    break;
  case COMPLETE: settle_handler(w, move.at, ABP_COMPLETED, 1); return;
  case FAIL: settle_handler(w, move.at, ABP_FAILED, 0); return;
  case THROW_ABORT: settle_handler(w, move.at, ABP_CANCELLED, 0); return;
  case LOSE_TRACK: settle_handler(w, move.at, ABP_UNKNOWN, 0); return;
  case PASS_ON:
    side = APP;
    success = abp_finish_with_fate(w->peer[APP].endpoint, model_handled(call)->handle,
                                   ABP_CANCELLED, ABP_FATE_RUNNING);
    model_pass_on(w, move.at);
    taken(w,
          model_handled(call)->follows && !model_handled(call)->answered && success == ABP_FOLLOWS
              ? ABP_OK
              : success);
    drain(w, side, 0);
    if (model_handled(call)->phase == RUNS)
      must(w,
           abp_finish(w->peer[APP].endpoint, model_handled(call)->handle, ABP_COMPLETED) ==
               ABP_E_STATE,
           move.at, "a handler that passed its call on ends twice");
    return;
  case ACCEPT:
  case DECLINE: {
    struct part *part = model_handled(call);
    side = APP;
    taken(w,
          abp_cancel_answered(w->peer[APP].endpoint, part->handle, move.kind == ACCEPT, NULL, 0));
    if (!part->asked || part->stopped) break;
    if (move.kind == ACCEPT) {
      model_accept(w, move.at);
      break;
    }
    model_answer(call, ANSWER_DECLINED);
    part->asked = 0;
    part->deadline = 0;
    break;
  }
  case GO_ON: {
    side = model_handler_side(call);
    taken(w, abp_goes_on(w->peer[side].endpoint, model_handled(call)->handle));
    model_goes_on(w, side, move.at);
    break;
  }
  case PROGRESS:
    post(w, model_handler_side(call), (struct message){.kind = REPORT, .id = call->id});
    return;
  case YIELD:
    side = model_handler_side(call);
    yield(w, move.at);
    break;
  case READ: read(w, move.at); return;
  case GRANT:
    post(w, model_caller(call),
         (struct message){
             .kind = CREDIT, .chunks = TOO_MANY, .bytes = TOO_MANY * CHUNK_SIZE, .id = call->id});
    return;
  case ELICIT:
    side = APP;
    make(w, APP, (struct ghost){.kind = AN_ELICITATION, .parent = move.at}, ELICIT_MS, 0);
    break;
  case INPUT:
    side = APP;
    make(w, APP, (struct ghost){.kind = AN_ELICITATION, .parent = move.at, .stream = 1}, 0, 0);
    break;
  case LOCAL:
    side = APP;
    call_local(w, move.at);
    break;
  case DELIVER: success = deliver(w, side); break;
  case TICK:
  case SLEEP: {
    const uint64_t now = move.kind == TICK ? model_earliest(w, side) : peer->now + SLEEP_MS;
    taken(w, abp_advance(peer->endpoint, now));
    model_clocks(w, side, now);
    break;
  }
  case CLOSE:
    taken(w, abp_close(peer->endpoint));
    peer->sends = 1u << (side == APP ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN);
    model_end_session(w, side, ABP_SESSION_CLOSED);
    break;
  case LEAVE:
    taken(w, abp_leave(peer->endpoint, 0));
    peer->sends = 1u << (peer->session == ABP_SESSION_READY ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN);
    model_end_session(w, side, ABP_SESSION_LOST);
    break;
  case CUT:
    w->line = 0;
    w->peer[AGENT].torn = w->peer[APP].torn = 1;
    memset(w->to, 0, sizeof w->to);
    return;
  case LEARN:
    taken(w, abp_lost(peer->endpoint));
    peer->torn = 0;
    if (has_session(w, side)) model_end_session(w, side, ABP_SESSION_LOST);
    break;
  default: break;
  }
  drain(w, side, success);
}

/* --- What holds in every state ---------------------------------------------------------------- */

static void check(struct world *w, enum side side) {
  const struct peer *peer = &w->peer[side], *other = &w->peer[!side];
  const abp_endpoint *ep = peer->endpoint;
  const int quiet = !w->to[AGENT].count && !w->to[APP].count && !peer->torn && !other->torn;
  uint32_t known = 0, timers = 0, queued = 0;
  uint8_t asked[WORLD_CALLS];
  model_asked(w, side, asked);
  for (int i = 0; i < w->ghosts; i++) {
    const struct ghost *call = &w->calls[i];
    const struct part *part = &call->part[side], *beyond = &call->part[!side];
    const int waits = part->phase == WAITS, caller = model_made_at(call, side);
    const struct call *kept =
        part->phase == NOT_HERE
            ? NULL
            : table_call(&ep->calls.table, part->handle & ((1u << SLOT_BITS) - 1));
    known += part->known != 0;
    timers += part->deadline != 0;
    queued += waits && !caller;
    must(w,
         !(waits && caller && quiet) || part->deadline || (model_live(beyond) && !beyond->answered),
         i, "a call waits for ever");
    must(w,
         caller || part->phase != OVER ||
             kept->state == (part->unknown                    ? UNKNOWN
                             : part->outcome == ABP_COMPLETED ? COMPLETED
                                                              : CANCELLED),
         i, "it remembers what did not happen");
    must(w, caller || part->phase == NOT_HERE || !part->handle || kept->fate == part->fate, i,
         "it remembers wrongly what became of the work");
    if (part->known && !caller) {
      char text[64];
      const abp_id id = text_of(w, call->id, text);
      abp_outcome outcome;
      abp_call handle;
      const int over = part->phase == OVER;
      must(w,
           abp_became(peer->endpoint, &id, &outcome, &handle) ==
                   (over ? part->fate : ABP_FATE_RUNNING) &&
               outcome == (!over                                            ? model_told(part)
                           : part->closed && part->outcome != ABP_COMPLETED ? ABP_DISCONNECTED
                                                                            : part->outcome) &&
               (over          ? !handle
                : side == APP ? model_awaits(w, i, handle)
                              : handle == part->handle),
           i, "who asks is told wrongly what became of the work");
    }
    must(w, part->phase != RUNS || abp_has_begun(ep, part->handle) == !part->prepares, i,
         "it has begun or not, wrongly");
    must(w,
         part->phase != OVER || !part->known || caller ||
             abp_has_begun(ep, part->handle) == (part->fate != ABP_FATE_UNSTARTED),
         i, "it had begun or not, wrongly");
    must(w,
         part->phase != RUNS ||
             abp_progress_wanted(ep, part->handle) ==
                 (call->progress && !part->stopped && !part->asked && !part->prepares),
         i, "progress is wanted or not, wrongly");
    must(w, part->phase != RUNS || abp_stream_wanted(ep, part->handle) == call->stream, i,
         "a stream is wanted or not, wrongly");
    if (model_live(part)) {
      const int paused = (kept->flags & CALL_PAUSED) != 0;
      must(w, paused == asked[i], i, "a clock stands still or runs, and a person is asked or not");
      must(w, kept->timer || kept->deadline == part->left, i, "another time is left of a deadline");
    }
    must(w, part->unread <= model_window(w, model_caller(call)), i,
         "more than the window waits for a reader");
    must(w,
         !(waits && caller && quiet && model_live(beyond) && !part->stopped && !beyond->stopped) ||
             !call->stream || part->unread || !model_full(w, (enum side) !side, call),
         i, "a handler waits for room though everything was read");
  }
  must(w, !quiet || has_session(w, AGENT) || !has_session(w, APP), -1,
       "a session that only the app still has");
  must(w, abp_session_state(ep) == peer->session, -1, "the session is in another state");
  must(w, abp_count(ep, ABP_IN_FLIGHT_IN) == model_in_flight(w, side, 0), -1,
       "calls received are miscounted");
  must(w, abp_count(ep, ABP_IN_FLIGHT_OUT) == model_in_flight(w, side, 1), -1,
       "calls made are miscounted");
  must(w, abp_count(ep, ABP_REMEMBERED) == (uint32_t)peer->remembered, -1, "memory is miscounted");
  must(w, abp_count(ep, ABP_LATE) == peer->late, -1, "late answers are miscounted");
  must(w, abp_count(ep, ABP_STRAY) == peer->stray, -1, "stray answers are miscounted");
  must(w, abp_count(ep, ABP_REFUSED) == peer->refused, -1, "refusals are miscounted");
  must(w, abp_count(ep, ABP_OVERRUN) == peer->overrun, -1, "overruns are miscounted");
  must(w, ep->calls.running == model_handlers(w, side), -1, "handlers are miscounted");
  must(w, ep->calls.table.queue.count == queued, -1, "the queue holds what it should not");
  must(w, ep->calls.table.timer_count == timers, -1, "a timer is left or missing");
  must(w, ep->calls.table.index.count == known, -1, "the index holds what it should not");
  const uint64_t first = model_earliest(w, side);
  must(w, !first || (ep->calls.wake && ep->calls.wake <= first), -1, "nobody will wake it in time");
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
    for (int below = 0; below < w->ghosts; below++)
      if (w->calls[below].made_by == i + 1) w->calls[below].made_by = 0;
  }
  while (w->ghosts && w->calls[w->ghosts - 1].kind == NOBODY)
    w->ghosts--;
}

int world_do(struct world *w, struct move move) {
  if (w->bounds.moves[move.kind] != ANY) w->bounds.moves[move.kind]--;
  perform(w, move);
  w->received = (struct message){0};
  w->asked = (struct id){0};
  if (!w->violation) sweep(w);
  for (int side = 0; side < 2 && !w->violation; side++)
    check(w, (enum side)side);
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
                               .restart = bounds->restart,
                               .foreign = side == APP && bounds->foreign,
                               .stream_chunks = bounds->chunks[side],
                               .stream_bytes = bounds->bytes[side]};
    w->peer[side].now = 1000;
    w->peer[side].endpoint = abp_new(&config, 1000);
    w->peer[side].window = (struct window){bounds->chunks[side], ABP_DEFAULT_STREAM_BYTES};
  }
  /* Then both know the smaller one. */
  if (bounds->told)
    for (int side = 0; side < 2; side++)
      if (bounds->chunks[!side] < bounds->chunks[side])
        w->bounds.chunks[side] = bounds->chunks[!side];
}

void world_close(struct world *w) {
  abp_free(w->peer[AGENT].endpoint);
  abp_free(w->peer[APP].endpoint);
}
