#include "side.h"
#include "wire_abp.h"

#include <string.h>

uint8_t take8(struct bytes *bytes) {
  if (!bytes->left) return 0;
  bytes->left--;
  return *bytes->at++;
}

uint32_t take32(struct bytes *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++)
    value = value << 8 | take8(bytes);
  return value;
}

static struct known_call *known(struct side *side, abp_call handle) {
  for (int i = 0; i < SIDE_CALLS; i++) {
    if (side->calls[i].handle == handle) return &side->calls[i];
  }
  return NULL;
}

static struct known_call *know(struct side *side, abp_call handle) {
  struct known_call *call = known(side, handle);
  if (call) return call;
  call = known(side, 0);
  REQUIRE(call); /* no peer makes this side hold more calls than it allowed */
  *call = (struct known_call){handle, 0};
  return call;
}

abp_call side_handle(const struct side *side, uint32_t nth) {
  abp_call handles[SIDE_CALLS];
  uint32_t count = 0;
  for (int i = 0; i < SIDE_CALLS; i++) {
    if (side->calls[i].handle) handles[count++] = side->calls[i].handle;
  }
  return count ? handles[nth % count] : 0;
}

void side_open(struct side *side, abp_role role, uint32_t kind, uint64_t now) {
  const abp_config config = {.role = role,
                             .features = 255,
                             .stream_chunks = 3,
                             .stream_bytes = 500,
                             .max_calls = SIDE_LIMIT,
                             .max_concurrent = SIDE_LIMIT / 2,
                             .remembered = 4,
                             .max_text = 4096,
                             .restart = kind & 1,
                             .foreign = kind >> 1 & 1};
  side->endpoint = abp_new(&config, now);
  if (role == ABP_APP) {
    REQUIRE(abp_describe(side->endpoint, "app", "{\"id\":\"a\"}", 10) == ABP_OK);
    REQUIRE(abp_describe(side->endpoint, "capabilities", "[]", 2) == ABP_OK);
  } else {
    REQUIRE(abp_describe(side->endpoint, "agent", "{}", 2) == ABP_OK);
  }
}

/* --- What must hold
 * ------------------------------------------------------------------------------- */

static void check_call(const struct call_table *table, uint32_t slot, const struct call *call) {
  const int over = call_is_over(call->state);
  REQUIRE(!call->owed);
  REQUIRE(!over || !call->timer);
  /* What is being stopped does not wait for the peer for ever. */
  REQUIRE(call->timer || (call->state != STOPPING && call->state != CANCELLING));
  if (call->timer) {
    REQUIRE(call->timer <= table->timer_count && table->timers[call->timer - 1] == slot);
    const uint32_t above = table->timers[call->timer / 2 - (call->timer > 1)];
    REQUIRE(table_call(table, above)->deadline <= call->deadline);
  }
  if (call->flags & CALL_INDEXED) {
    const uint32_t direction = call->flags & (CALL_OUT | CALL_PAST);
    abp_id id = {NULL, 0, call->number};
    if (!call->number) id = (abp_id){abp_table_id(table, slot), call->id_length, 0};
    struct call_table fresh = *table; /* hashing keeps what it found last */
    memset(fresh.latest, 0, sizeof fresh.latest);
    REQUIRE(abp_table_find(table, &id, abp_table_hash(&fresh, &id, direction), direction) == slot);
  }
  if (call->flags & CALL_STREAM && !over) {
    const struct stream *stream = table_stream(table, slot);
    REQUIRE(stream->chunks <= stream->max_chunks && stream->read_chunks <= stream->chunks);
    REQUIRE(stream->read_bytes <= stream->bytes);
  }
  if (call->parent != NO_CALL) {
    const enum call_state above = table_call(table, call->parent)->state;
    REQUIRE(!over && !call_is_over(above));
    /* What is below a call that stops is being stopped. */
    /* An app's question is below the agent's call that it is about. */
    const int goes_on = above == PREPARING || above == RUNNING || above == WAITING;
    REQUIRE(goes_on || call->state == STOPPING || call->cause > ABP_COMPLETED);
    uint32_t sibling = table_call(table, call->parent)->child;
    while (sibling != slot && sibling != NO_CALL)
      sibling = table_call(table, sibling)->sibling;
    REQUIRE(sibling == slot);
  }
}

void side_check_calls(const struct calls *calls, uint64_t session_due) {
  const struct call_table *table = &calls->table;
  uint32_t in_flight[2] = {0, 0}, running = 0, over = 0, timers = 0, queued = 0, indexed = 0;
  for (uint32_t slot = 0; slot < table->slab_count * SLAB_CALLS; slot++) {
    const struct call *call = table_call(table, slot);
    if (call->state == FREE) continue;
    check_call(table, slot, call);
    if (call_is_over(call->state))
      over++;
    else
      in_flight[call->flags & CALL_OUT]++;
    running += call_has_handler(call->state) && !(call->flags & CALL_ASIDE);
    queued += call->state == QUEUED;
    timers += call->timer != 0;
    indexed += (call->flags & CALL_INDEXED) != 0;
  }
  REQUIRE(in_flight[0] == calls->in_flight[0] && in_flight[0] <= calls->limits.max_calls);
  REQUIRE(in_flight[1] == calls->in_flight[1] && in_flight[1] <= calls->limits.max_calls);
  REQUIRE(running == calls->running && queued == table->queue.count);
  REQUIRE(over == table->memory.count && over <= calls->limits.remembered);
  REQUIRE(timers == table->timer_count && indexed == table->index.count);
  const uint64_t timer = timers ? table_call(table, table->timers[0])->deadline : UINT64_MAX;
  const uint64_t due = session_due ? session_due : UINT64_MAX;
  REQUIRE((timer == UINT64_MAX && due == UINT64_MAX) ||
          (calls->wake && calls->wake <= timer && calls->wake <= due));
}

static void check(const abp_endpoint *ep) {
  const struct calls *calls = &ep->calls;
  side_check_calls(calls, ep->session.due);
  /* Nothing waits without need. */
  REQUIRE(!calls->table.queue.count || calls->running >= calls->limits.max_concurrent);
  REQUIRE(calls->in_flight[1] == 0 || ep->session.state == ABP_SESSION_READY);
}

#define OF_STREAMS (1u << ABP_CHUNK | 1u << ABP_CREDIT | 1u << ABP_RESUME)

/* Each thing but chunks is said of a call once at most, and of a call that was aborted never that
 * it completed. */
static void hear(struct side *side, const abp_action *action) {
  const int finished = action->kind == ABP_RESULT || action->kind == ABP_SETTLE;
  if (!action->call || action->kind == ABP_SEND || action->kind == ABP_REPORT) return;
  struct known_call *call = know(side, action->call);
  const uint32_t bit = 1u << action->kind;
  REQUIRE(!(call->said & bit) || bit & OF_STREAMS);
  REQUIRE(!(action->kind == ABP_RESULT && action->arg == ABP_COMPLETED &&
            call->said & 1u << ABP_ABORT && !side->endpoint->calls.handler_decides));
  REQUIRE(!finished || (action->arg >= ABP_COMPLETED && action->arg <= ABP_DISCONNECTED));
  REQUIRE(action->kind != ABP_SETTLE || action->released);
  call->said |= bit;
  if (action->released) call->handle = 0;
}

static void say(struct side *side, const abp_action *action) {
  static const abp_body body = {
      .name = "work", .name_length = 4, .payload = "{\"success\":true}", .payload_length = 16};
  size_t length;
  const char *text = abp_print(side->endpoint, action, &body, 1, &length);
  REQUIRE(text && strlen(text) == length);
  int memory;
  json_value *printed = abp_json_parse(text, length, &memory);
  REQUIRE(printed); /* what is said can be read */
  const json_value *id = abp_json_member(printed, "id");
  REQUIRE(action->kind != ABP_REQUEST || abp_json_string(id).length > 0);
  abp_json_free(printed);
  if (side->post) side->post(side, text, length);
}

void side_drain(struct side *side, int status) {
  static abp_action actions[8 * SIDE_CALLS];
  REQUIRE(status <= ABP_OK && status >= ABP_E_UNDRAINED);
  REQUIRE(status != ABP_E_MEMORY && status != ABP_E_UNDRAINED);
  int count = 0;
  while (abp_next(side->endpoint, &actions[count])) {
    REQUIRE(actions[count].kind > ABP_NONE && actions[count].kind <= ABP_NOTIFY);
    REQUIRE(actions[count].kind != ABP_DROP);
    hear(side, &actions[count]);
    REQUIRE(++count < 8 * SIDE_CALLS);
  }
  REQUIRE(status == ABP_OK || count == 0 || (count == 1 && actions[0].kind == ABP_WAKE));
  check(side->endpoint);
  for (int i = 0; i < count; i++) {
    const abp_kind kind = actions[i].kind;
    const int chunk = kind == ABP_CHUNK && abp_stream_wanted(side->endpoint, actions[i].call);
    if (kind == ABP_REQUEST || kind == ABP_RESULT || kind == ABP_SEND || chunk ||
        kind == ABP_CREDIT || (kind == ABP_REFUSE && !side->local))
      say(side, &actions[i]);
  }
}

int side_finish(struct side *side, uint32_t nth, abp_outcome outcome) {
  const abp_call call = side_handle(side, nth);
  struct known_call *entry = known(side, call);
  if (!call || !(entry->said & 1u << ABP_START) || entry->said & FINISHED) return 0;
  const int told = (entry->said & 1u << ABP_RESULT) != 0;
  const int status = abp_finish(side->endpoint, call, outcome);
  REQUIRE(status == ABP_OK || status == ABP_FOLLOWS);
  side_drain(side, ABP_OK);
  /* Who has been told already, or is gone, is not told when the handler has unwound. Nor is one who
   * is told now that what it called works on.
   */
  struct known_call *left = known(side, call);
  REQUIRE(!left || told || left->said & (1u << ABP_ABORT | 1u << ABP_RESULT));
  if (left && status == ABP_FOLLOWS)
    left->said |= FINISHED;
  else if (left)
    left->handle = 0;
  return 1;
}

void side_answer_cancel(struct side *side, abp_call call, int accepted, size_t reason_length) {
  const struct calls *calls = &side->endpoint->calls;
  const uint32_t slot = abp_calls_live(calls, call);
  if (!accepted && slot != NO_CALL && table_call(&calls->table, slot)->state == ASKED)
    know(side, call)->said &= ~(1u << ABP_ABORT);
  side_drain(side, abp_cancel_answered(side->endpoint, call, accepted, "why", reason_length));
}

void side_call(struct side *side, const abp_id *id, uint32_t timeout_ms, abp_call parent) {
  abp_call call = 0;
  const int status =
      abp_request(side->endpoint, id, timeout_ms,
                  timeout_ms & (ABP_WANTS_PROGRESS | ABP_WANTS_STREAM), parent, &call);
  REQUIRE((status == ABP_OK) == (call != 0));
  side_drain(side, status);
  REQUIRE(status != ABP_OK || known(side, call)->said == 1u << ABP_REQUEST);
}

void side_call_local(struct side *side, abp_call parent, uint32_t timeout_ms, abp_error fault) {
  side->local = 1;
  side_drain(side, abp_call_local(side->endpoint, parent, timeout_ms, fault));
  side->local = 0;
}

/* --- The end
 * --------------------------------------------------------------------------------------- */

static void receive(struct side *side, const char *text) {
  REQUIRE(abp_receive(side->endpoint, text, strlen(text)) == ABP_OK);
  side_drain(side, ABP_OK);
}

void side_still_works(struct side *side) {
  abp_endpoint *ep = side->endpoint;
  side->post = NULL;
  side_drain(side, abp_lost(ep));
  REQUIRE(abp_count(ep, ABP_IN_FLIGHT_OUT) == 0);
  for (uint32_t nth = 0; nth < SIDE_CALLS;) /* what follows others ends with them */
    nth = side_finish(side, nth, ABP_CANCELLED) ? 0 : nth + 1;
  REQUIRE(abp_count(ep, ABP_IN_FLIGHT_IN) == 0);
  for (int i = 0; i < SIDE_CALLS; i++) /* nobody was there to be answered later */
    if (side->calls[i].said & FINISHED) side->calls[i] = (struct known_call){0};
  char text[128];
  if (ep->config.role == ABP_APP) {
    receive(side, "{\"type\":\"initialize\",\"id\":\"again\"}");
    receive(side,
            "{\"type\":\"capabilities/call\",\"id\":\"c\",\"payload\":{\"capability\":\"x\"}}");
    REQUIRE(side_handle(side, 0));
    side_finish(side, 0, ABP_COMPLETED);
  } else {
    side_drain(side, abp_connect(ep, 0));
    snprintf(text, sizeof text,
             "{\"type\":\"initialize-result\",\"id\":\"%s\",\"payload\":{\"sessionId\":\"s\"}}",
             ep->prefix);
    receive(side, text);
    side_call(side, NULL, 0, 0);
    snprintf(text, sizeof text, "{\"type\":\"capabilities/call-result\",\"id\":\"%s.%u\"}",
             ep->prefix, ep->calls.minted);
    receive(side, text);
  }
  REQUIRE(abp_session_state(ep) == ABP_SESSION_READY);
  REQUIRE(!side_handle(side, 0));
  abp_free(ep);
}
