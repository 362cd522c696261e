#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(struct pair *pair, const char *format, const char *a, const char *b) {
  char line[256];
  snprintf(line, sizeof line, format, a, b);
  if (pair->log) pair->log(pair, line);
}

static void post(struct side *from, const char *text, size_t length) {
  struct side *to = from == &from->pair->agent ? &from->pair->app : &from->pair->agent;
  if (!text || to->last == 256) {
    from->failed = 1;
    return;
  }
  char *copy = malloc(length + 1);
  if (!copy) {
    from->failed = 1;
    return;
  }
  memcpy(copy, text, length + 1);
  to->inbox[to->last++] = copy;
}

abp_call pair_handle(const struct side *side, const char *id) {
  for (int i = PAIR_CALLS - 1; i >= 0; i--) {
    if (side->calls[i].handle && strcmp(side->calls[i].id, id) == 0) return side->calls[i].handle;
  }
  return 0;
}

static int entry(struct side *side, abp_call call) {
  for (int i = 0; i < PAIR_CALLS; i++) {
    if (side->calls[i].handle == call) return i;
  }
  return -1;
}

static void start(struct side *side, const abp_action *action) {
  if (entry(side, action->call) < 0) {
    const int i = entry(side, 0);
    if (i < 0) {
      side->failed = 1;
      return;
    }
    const abp_body *body = abp_received(side->endpoint);
    side->calls[i].handle = action->call;
    snprintf(side->calls[i].name, sizeof side->calls[i].name, "%.*s", (int)body->name_length,
             body->name ? body->name : "");
    const size_t length =
        abp_id_text(side->endpoint, action->call, side->calls[i].id, sizeof side->calls[i].id - 1);
    side->calls[i].id[length < sizeof side->calls[i].id ? length : 0] = 0;
  }
}

static const char *how(uint32_t outcome) {
  static const char *const WORDS[] = {"", "completed", "cancelled", "timed out", "disconnected"};
  return WORDS[outcome];
}

/* The result of a completed call: what the handler of this pair says of a capability. */
static const char *response(const char *name) {
  if (strcmp(name, "fail") == 0)
    return "{\"success\":false,\"error\":{\"code\":\"OPERATION_FAILED\",\"message\":\"broken\","
           "\"retryable\":false}}";
  if (strcmp(name, "unknown") == 0)
    return "{\"success\":false,\"error\":{\"code\":\"UNKNOWN_CAPABILITY\",\"message\":\"\","
           "\"retryable\":false}}";
  return "{\"success\":true,\"data\":\"done\"}";
}

static void settled(struct side *side, const abp_action *action) {
  const int i = entry(side, action->call);
  const char *id = i < 0 ? "?" : side->calls[i].id;
  const abp_body *body = abp_received(side->endpoint);
  char failure[64] = "";
  if (i >= 0 && strncmp(id, "cancel ", 7) == 0) {
    const char *reason = strstr(side->text, "\"reason\":\"");
    snprintf(failure, sizeof failure, "%s%.*s", reason ? "false " : "true",
             reason ? (int)strcspn(reason + 10, "\"") : 0, reason ? reason + 10 : "");
    say(side->pair, "agent: %s %s", id, failure);
  } else {
    const char *code =
        action->arg == ABP_COMPLETED && body->payload ? strstr(body->payload, "\"code\":\"") : NULL;
    if (code)
      snprintf(failure, sizeof failure, "failed %.*s", (int)strcspn(code + 8, "\""), code + 8);
    say(side->pair, "agent: %s %s", id, code ? failure : how(action->arg));
  }
  if (i >= 0) side->calls[i].handle = 0;
}

static void act(struct side *side, const abp_action *action) {
  abp_endpoint *ep = side->endpoint;
  size_t length;
  const char *text;
  int i = entry(side, action->call);
  switch (action->kind) {
  case ABP_QUEUED: start(side, action); break;
  case ABP_START:
    start(side, action);
    i = entry(side, action->call);
    if (strcmp(side->calls[i].name, "work") == 0)
      say(side->pair, "app: start %s%s", side->calls[i].id, "");
    break;
  case ABP_ABORT: {
    char reason[64];
    snprintf(reason, sizeof reason, "%s%.*s", action->length ? " " : "", (int)action->length,
             action->text ? action->text : "");
    say(side->pair, "app: abort %s%s", side->calls[i].id, reason);
    break;
  }
  case ABP_RESULT: {
    const char *json = response(i < 0 ? "" : side->calls[i].name);
    const abp_body body = {.payload = json, .payload_length = strlen(json)};
    text = abp_print(ep, action, &body, 0, &length);
    post(side, text, length);
    if (i >= 0 && action->released) side->calls[i].handle = 0;
    break;
  }
  case ABP_SETTLE: settled(side, action); break;
  case ABP_REPORT: {
    const abp_body *body = abp_received(ep);
    const char *progress = strstr(body->payload, "\"progress\":");
    say(side->pair, "agent: progress %s %s", side->calls[i].id, progress ? "1/4 25%" : "?");
    break;
  }
  case ABP_SEND:
  case ABP_REFUSE:
    text = abp_print(ep, action, NULL, 0, &length);
    post(side, text, length);
    break;
  case ABP_REQUEST: /* printed by pair_call, which knows the name */
  case ABP_SESSION:
  case ABP_WAKE:
  case ABP_CHUNK:
  case ABP_CREDIT:
  case ABP_NOTIFY:
  case ABP_RESUME:
  case ABP_DROP:
  case ABP_NONE: break;
  }
}

void pair_drain(struct side *side) {
  abp_action action;
  while (abp_next(side->endpoint, &action))
    act(side, &action);
}

static void receive(struct side *side) {
  char *text = side->inbox[side->first++];
  if (side->first == side->last) side->first = side->last = 0;
  free(side->text);
  side->text = text;
  if (abp_receive(side->endpoint, text, strlen(text)) == ABP_E_MEMORY) side->failed = 1;
  pair_drain(side);
}

void pair_run(struct pair *pair) {
  while (pair->agent.last || pair->app.last) {
    if (pair->app.last) receive(&pair->app);
    if (pair->agent.last) receive(&pair->agent);
  }
}

void pair_advance(struct pair *pair, uint64_t ms) {
  pair->now += ms;
  if (abp_advance(pair->agent.endpoint, pair->now) != ABP_OK) pair->agent.failed = 1;
  pair_drain(&pair->agent);
  if (abp_advance(pair->app.endpoint, pair->now) != ABP_OK) pair->app.failed = 1;
  pair_drain(&pair->app);
  pair_run(pair);
}

int pair_call(struct pair *pair, const char *id, const char *capability, uint32_t timeout_ms) {
  struct side *agent = &pair->agent;
  const abp_id key = {id, (uint32_t)strlen(id), 0};
  abp_call call;
  const int status = abp_request(agent->endpoint, &key, timeout_ms, ABP_WANTS_PROGRESS, 0, &call);
  if (status != ABP_OK) return status;
  const int i = entry(agent, 0);
  if (i >= 0) {
    agent->calls[i].handle = call;
    snprintf(agent->calls[i].id, sizeof agent->calls[i].id, "%s", id);
  }
  abp_action action;
  const abp_body body = {
      .name = capability, .name_length = strlen(capability), .payload = "{}", .payload_length = 2};
  while (abp_next(agent->endpoint, &action)) {
    if (action.kind == ABP_REQUEST) {
      size_t length;
      const char *text = abp_print(agent->endpoint, &action, &body, 0, &length);
      post(agent, text, length);
    } else {
      act(agent, &action);
    }
  }
  return ABP_OK;
}

int pair_open(struct pair *pair, const abp_config *agent, const abp_config *app) {
  pair->agent.pair = pair->app.pair = pair;
  pair->agent.endpoint = abp_new(agent, pair->now);
  pair->app.endpoint = abp_new(app, pair->now);
  if (!pair->agent.endpoint || !pair->app.endpoint) return 0;
  if (abp_describe(pair->agent.endpoint, "agent", "{\"name\":\"a\",\"version\":\"1\"}", 26) ||
      abp_describe(pair->app.endpoint, "app", "{\"id\":\"x.y\"}", 12) ||
      abp_describe(pair->app.endpoint, "capabilities", "[]", 2))
    return 0;
  if (abp_connect(pair->agent.endpoint, 0) != ABP_OK) return 0;
  pair_drain(&pair->agent);
  pair_run(pair);
  return abp_session_state(pair->agent.endpoint) == ABP_SESSION_READY;
}

static void close_side(struct side *side) {
  abp_free(side->endpoint);
  for (int i = side->first; i < side->last; i++)
    free(side->inbox[i]);
  free(side->text);
}

void pair_close(struct pair *pair) {
  close_side(&pair->agent);
  close_side(&pair->app);
}
