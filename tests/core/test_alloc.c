/*
 * Every allocation fails in turn, once and from then on, in a whole conversation and in each
 * operation by itself: each failure is a status, nothing leaks, and what failed works as soon as
 * there is memory.
 */
#include "abp_rpc.h"
#include "endpoint.h"
#include "failing.h"
#include "pair.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static long until_failure, failures;
static int for_good, armed;

static int fails(void) {
  if (!armed || until_failure-- > 0) return 0;
  failures++;
  if (!for_good) armed = 0;
  return 1;
}

static void converse(struct pair *pair) {
  const char *const long_id = "an-id-that-is-longer-than-a-cell-of-the-table-can-hold";
  pair_call(pair, "a", "work", 50);
  pair_call(pair, long_id, "work", 0);
  pair_run(pair);
  const abp_id id = {long_id, (uint32_t)strlen(long_id), 0};
  abp_call request;
  if (abp_cancel_by_id(pair->agent.endpoint, &id, "why", 3, &request) == ABP_OK)
    pair_drain(&pair->agent);
  pair_run(pair);
  pair_advance(pair, 60);
  pair_advance(pair, 20000);
  const char *odd = "{\"type\":\"capabilities/cancel\",\"id\":[1],\"payload\":{\"callId\":3}}";
  abp_receive(pair->app.endpoint, odd, strlen(odd));
  pair_drain(&pair->app);
  pair_run(pair);
  abp_close(pair->agent.endpoint);
  pair_drain(&pair->agent);
  pair_run(pair);
}

/* Once there is memory again, both ends can start over. */
static void start_over(struct pair *pair) {
  armed = 0;
  abp_endpoint *agent = pair->agent.endpoint, *app = pair->app.endpoint;
  if (!agent || !app) return;
  pair_drain(&pair->agent);
  pair_drain(&pair->app);
  pair_run(pair);
  abp_lost(agent);
  pair_drain(&pair->agent);
  abp_lost(app);
  pair_drain(&pair->app);
  pair_run(pair);
  memset(pair->agent.calls, 0, sizeof pair->agent.calls);
  memset(pair->app.calls, 0, sizeof pair->app.calls);
  assert_int_equal(abp_connect(agent, 0), ABP_OK);
  pair_drain(&pair->agent);
  pair_run(pair);
  assert_int_equal(abp_session_state(agent), ABP_SESSION_READY);
  assert_int_equal(pair_call(pair, "again", "work", 0), ABP_OK);
  pair_run(pair);
  assert_int_equal(abp_finish(app, pair_handle(&pair->app, "again"), ABP_COMPLETED), ABP_OK);
  pair_drain(&pair->app);
  pair_run(pair);
  assert_int_equal(abp_count(agent, ABP_IN_FLIGHT_OUT), 0);
}

static void every_allocation_fails(int good) {
  const abp_config agent = {.role = ABP_AGENT, .seed = {1}}, app = {.role = ABP_APP, .seed = {2}};
  for (long n = 0;; n++) {
    static struct pair pair;
    memset(&pair, 0, sizeof pair);
    balance = failures = 0;
    until_failure = n;
    for_good = good;
    armed = 1;
    if (pair_open(&pair, &agent, &app)) converse(&pair);
    const long failed = failures;
    start_over(&pair);
    pair_close(&pair);
    assert_int_equal(balance, 0);
    if (!failed) {
      assert_true(n > 100); /* the conversation really allocates */
      return;
    }
  }
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  every_allocation_fails(0);
}

static void every_allocation_fails_from_then_on(void **state) {
  (void)state;
  every_allocation_fails(1);
}

/* --- Each operation by itself ----------------------------------------------------------------- */

#define LONG_ID "an-id-that-is-longer-than-a-cell-of-the-table-can-hold"
#define FEATURES                                                                                   \
  "\"features\":{\"progress\":true,\"notifications\":true,\"elicitation\":true,"                   \
  "\"bridge.liveness\":true,\"bridge.streams\":true}"
#define MESSAGE(type, id, payload) "{\"type\":\"" type "\",\"id\":" id ",\"payload\":{" payload "}}"
#define HELLO(id) MESSAGE("initialize", "\"" id "\"", "\"protocolVersion\":\"0.1\"," FEATURES)
#define PREFIX_OF_SEED_0 "e04454b7fbac018a7c5d-1"

/* How far an endpoint has come before the operation. */
enum stage { CREATED, CONNECTING_, READY_, CALLING };

static abp_call made, received;

/* Takes all actions and prints those that are sent. What cannot be printed for want of memory can
 * be when there is some. */
static void drain(abp_endpoint *ep) {
  const abp_body body = {.name = "x",
                         .name_length = 1,
                         .payload = "{}",
                         .payload_length = 2,
                         .id = "\"a\"",
                         .id_length = 3};
  abp_action action;
  size_t length;
  while (abp_next(ep, &action)) {
    if (action.kind == ABP_START) received = action.call;
    if (action.kind != ABP_SEND && action.kind != ABP_REFUSE && action.kind != ABP_REQUEST &&
        action.kind != ABP_RESULT && action.kind != ABP_CHUNK && action.kind != ABP_CREDIT)
      continue;
    if (abp_print(ep, &action, &body, 42, &length)) continue;
    const int was_armed = armed;
    assert_true(failures > 0);
    armed = 0;
    assert_non_null(abp_print(ep, &action, &body, 42, &length));
    armed = was_armed;
  }
}

static int hear(abp_endpoint *ep, const char *text) { return abp_receive(ep, text, strlen(text)); }

static int request(abp_endpoint *ep) { return abp_request(ep, NULL, 50, 1, 0, &made); }
static int request_by_id(abp_endpoint *ep) {
  const abp_id id = {LONG_ID, sizeof LONG_ID - 1, 0};
  return abp_request(ep, &id, 0, 0, 0, &made);
}
static int request_within(abp_endpoint *ep) { return abp_request(ep, NULL, 0, 0, received, &made); }
static int request_stream(abp_endpoint *ep) {
  return abp_request(ep, NULL, 0, ABP_WANTS_STREAM, 0, &made);
}
static int chunk(abp_endpoint *ep) { return abp_chunk(ep, received, 5); }
/* And the stream's cancel, which has a type of its own. */
static int cancel_stream(abp_endpoint *ep) {
  const int status = request_stream(ep);
  if (status != ABP_OK) return status;
  drain(ep);
  return abp_cancel(ep, made, "why", 3);
}
static int cancel(abp_endpoint *ep) { return abp_cancel(ep, made, "why", 3); }
static int cancel_by_id(abp_endpoint *ep) {
  static const abp_id id = {PREFIX_OF_SEED_0 ".1", sizeof PREFIX_OF_SEED_0 + 1, 0};
  return abp_cancel_by_id(ep, &id, "why", 3, &made);
}
static int unsent(abp_endpoint *ep) { return abp_send_failed(ep, made); }
static int postpone(abp_endpoint *ep) {
  const int status = abp_postpone(ep, received);
  return status == ABP_OK ? abp_begin(ep, received) : status;
}
static int finish(abp_endpoint *ep) { return abp_finish(ep, received, ABP_COMPLETED); }
static int finish_cancelled(abp_endpoint *ep) { return abp_finish(ep, received, ABP_CANCELLED); }
/* An app that is not ours is asked, and the cancel waits for its word. */
static int ask(abp_endpoint *ep) {
  ep->calls.handler_decides = 1;
  return hear(ep, MESSAGE("capabilities/cancel", "[1]", "\"callId\":\"c\""));
}
static int ask_and_finish(abp_endpoint *ep) {
  for (int i = 0; i < 2; i++) {
    const int status = ask(ep);
    if (status != ABP_OK) return status;
    drain(ep);
  }
  return finish(ep);
}
static int ask_and_lose(abp_endpoint *ep) {
  const int status = ask(ep);
  if (status != ABP_OK) return status;
  drain(ep);
  return abp_lost(ep);
}
static int call_local(abp_endpoint *ep) { return abp_call_local(ep, received, 0, ABP_NO_ERROR); }
static int describe(abp_endpoint *ep) { return abp_describe(ep, "agentCapabilities", "{}", 2); }
static int connect_(abp_endpoint *ep) { return abp_connect(ep, 0); }
static int leave(abp_endpoint *ep) { return abp_leave(ep, 0); }
static int refused(abp_endpoint *ep) { return abp_refused(ep, "SESSION_EXPIRED", 15); }
static int deadline(abp_endpoint *ep) { return abp_advance(ep, 60); }
static int silence(abp_endpoint *ep) { return abp_advance(ep, 16000); }
static int print_progress(abp_endpoint *ep) {
  size_t length;
  return abp_print_progress(ep, received, "1", 1, 42, &length) ? ABP_OK : ABP_E_MEMORY;
}
static int print_failure(abp_endpoint *ep) {
  const abp_action result = {.kind = ABP_RESULT, .arg = ABP_COMPLETED, .call = received};
  size_t length;
  return abp_print_error(ep, &result, NULL, ABP_OPERATION_FAILED, "broken", 42, &length)
             ? ABP_OK
             : ABP_E_MEMORY;
}
static int print_response(abp_endpoint *ep) {
  const abp_action result = {.kind = ABP_RESULT, .arg = ABP_CANCELLED, .call = received};
  const abp_told told = {.response = "{\"success\":false}", .response_length = 17};
  size_t length;
  return abp_print_response(ep, &result, &told, &length) ? ABP_OK : ABP_E_MEMORY;
}
static int finish_with_response(abp_endpoint *ep) {
  return abp_finish_with_response(ep, received, "{\"success\":true}", 16);
}
static int response(abp_endpoint *ep) {
  const abp_id id = {NULL, 0, 1};
  return abp_response_received(ep, &id, "{\"success\":false}", 17);
}
static int print_notification(abp_endpoint *ep) {
  const abp_body body = {.name = "e", .name_length = 1, .payload = "[]", .payload_length = 2};
  size_t length;
  return abp_print_notification(ep, &body, 42, &length) ? ABP_OK : ABP_E_MEMORY;
}

static const struct operation {
  abp_role role;
  enum stage stage;
  int (*run)(abp_endpoint *ep);
  const char *message; /* or that this comes */
} OPERATIONS[] = {
    {ABP_AGENT, CREATED, describe, NULL},
    {ABP_AGENT, CREATED, connect_, NULL},
    {ABP_AGENT, CONNECTING_, NULL,
     MESSAGE("initialize-result", "\"" PREFIX_OF_SEED_0 "\"", "\"sessionId\":\"s\"," FEATURES)},
    {ABP_AGENT, READY_, request, NULL},
    {ABP_AGENT, READY_, request_by_id, NULL},
    {ABP_AGENT, READY_, request_stream, NULL},
    {ABP_AGENT, READY_, cancel_by_id, NULL},
    {ABP_AGENT, READY_, NULL, MESSAGE("elicitation/request", "\"q\"", "\"method\":\"m\"")},
    {ABP_AGENT, READY_, NULL,
     MESSAGE("elicitation/request", "\"q\"",
             "\"method\":\"m\",\"stream\":{\"chunks\":1,\"bytes\":9}")},
    {ABP_AGENT, CALLING, NULL,
     MESSAGE("bridge/cancel", "1", "\"callId\":\"" LONG_ID "\",\"reason\":\"why\"")},
    {ABP_AGENT, READY_, NULL, MESSAGE("notification", "1", "\"event\":\"e\",\"data\":1")},
    {ABP_AGENT, READY_, print_progress, NULL},
    {ABP_AGENT, CALLING, cancel, NULL},
    {ABP_AGENT, CALLING, cancel_by_id, NULL},
    {ABP_AGENT, CALLING, unsent, NULL},
    {ABP_AGENT, CALLING, request_within, NULL},
    {ABP_AGENT, CALLING, finish, NULL},
    {ABP_AGENT, CALLING, deadline, NULL},
    {ABP_AGENT, CALLING, silence, NULL},
    {ABP_AGENT, CALLING, abp_close, NULL},
    {ABP_AGENT, CALLING, abp_lost, NULL},
    {ABP_AGENT, CALLING, abp_unread, NULL},
    {ABP_AGENT, CALLING, leave, NULL},
    {ABP_AGENT, CALLING, abp_suspect, NULL},
    {ABP_AGENT, CALLING, refused, NULL},
    {ABP_AGENT, CALLING, response, NULL},
    {ABP_AGENT, CALLING, NULL,
     MESSAGE("call-result", "\"" PREFIX_OF_SEED_0 ".1\"", "\"success\":true")},
    {ABP_AGENT, CALLING, NULL, MESSAGE("cancel-result", "1", "\"cancelled\":true")},
    {ABP_AGENT, CALLING, NULL,
     MESSAGE("progress", "1", "\"operationId\":\"" PREFIX_OF_SEED_0 ".1\"")},
    {ABP_AGENT, CALLING, NULL, MESSAGE("bridge/ping", "1", "")},
    {ABP_AGENT, CALLING, NULL, MESSAGE("bridge/bye", "1", "\"persisted\":false")},
    {ABP_APP, CREATED, NULL, HELLO("P")},
    {ABP_APP, CREATED, NULL, MESSAGE("initialize", "\"P\"", "\"protocolVersion\":1")},
    {ABP_APP, READY_, request, NULL},
    {ABP_APP, READY_, request_stream, NULL},
    {ABP_APP, CALLING, cancel_stream, NULL},
    {ABP_APP, READY_, NULL,
     MESSAGE("capabilities/call", "1", "\"capability\":\"x\",\"callId\":\"" LONG_ID "\"")},
    {ABP_APP, READY_, NULL,
     MESSAGE("capabilities/call", "\"c\"",
             "\"capability\":\"x\",\"options\":{\"stream\":{\"chunks\":1,\"bytes\":9}}")},
    {ABP_APP, READY_, print_notification, NULL},
    {ABP_APP, CALLING, chunk, NULL},
    {ABP_APP, CALLING, NULL,
     MESSAGE("bridge/credit", "1", "\"callId\":\"c\",\"chunks\":1,\"bytes\":1")},
    {ABP_APP, CALLING, NULL, HELLO("P")},
    {ABP_APP, CALLING, NULL, HELLO("Q")},
    {ABP_APP, CALLING, NULL, MESSAGE("capabilities/call", "\"c\"", "\"capability\":\"x\"")},
    {ABP_APP, CALLING, NULL, MESSAGE("capabilities/cancel", "1", "\"callId\":\"c\"")},
    {ABP_APP, CALLING, NULL, MESSAGE("capabilities/cancel", "1", "\"callId\":1")},
    {ABP_APP, CALLING, NULL, MESSAGE("elicitation/response", "\"x\"", "")},
    {ABP_APP, CALLING, NULL, MESSAGE("shutdown", "1", "")},
    {ABP_APP, CALLING, finish, NULL},
    {ABP_APP, CALLING, ask, NULL},
    {ABP_APP, CALLING, ask_and_finish, NULL},
    {ABP_APP, CALLING, ask_and_lose, NULL},
    {ABP_APP, CALLING, finish_cancelled, NULL},
    {ABP_APP, CALLING, postpone, NULL},
    {ABP_APP, CALLING, call_local, NULL},
    {ABP_APP, CALLING, request_within, NULL},
    {ABP_APP, CALLING, cancel, NULL},
    {ABP_APP, CALLING, print_progress, NULL},
    {ABP_APP, CALLING, print_failure, NULL},
    {ABP_APP, CALLING, print_response, NULL},
    {ABP_APP, CALLING, finish_with_response, NULL},
    {ABP_APP, CALLING, deadline, NULL},
    {ABP_APP, CALLING, abp_close, NULL},
    {ABP_APP, CALLING, leave, NULL},
};

static abp_endpoint *prepared(const struct operation *operation) {
  const abp_config config = {.role = operation->role, .features = 255, .restart = 1};
  abp_endpoint *ep = abp_new(&config, 0);
  assert_non_null(ep);
  made = received = 0;
  const int agent = operation->role == ABP_AGENT;
  assert_int_equal(abp_describe(ep, agent ? "agent" : "app", "{}", 2), ABP_OK);
  if (operation->stage >= CONNECTING_ && agent) assert_int_equal(abp_connect(ep, 0), ABP_OK);
  drain(ep);
  if (operation->stage >= READY_) {
    assert_int_equal(hear(ep, agent ? OPERATIONS[2].message : HELLO("P")), ABP_OK);
    drain(ep);
    assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
  }
  if (operation->stage == CALLING) {
    assert_int_equal(request(ep), ABP_OK);
    drain(ep);
    assert_int_equal(hear(ep, agent
                                  ? MESSAGE("elicitation/request", "\"c\"", "\"method\":\"m\"")
                                  : MESSAGE("capabilities/call", "\"c\"",
                                            "\"capability\":\"x\",\"options\":{\"progressToken\":1,"
                                            "\"stream\":{\"chunks\":2,\"bytes\":9}}")),
                     ABP_OK);
    drain(ep);
    assert_true(made && received);
  }
  return ep;
}

static int run(abp_endpoint *ep, const struct operation *operation) {
  return operation->run ? operation->run(ep) : hear(ep, operation->message);
}

/* After all that, it still does what it is for. */
static void still_works(abp_endpoint *ep) {
  const int agent = ep->config.role == ABP_AGENT;
  char text[128];
  assert_int_equal(abp_lost(ep), ABP_OK);
  drain(ep);
  if (agent) assert_int_equal(abp_connect(ep, 0), ABP_OK);
  drain(ep);
  snprintf(text, sizeof text, MESSAGE("initialize-result", "\"%s\"", "\"sessionId\":\"s\""),
           ep->prefix);
  assert_int_equal(hear(ep, agent ? text : HELLO("again")), ABP_OK);
  drain(ep);
  assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
  received = 0;
  assert_int_equal(hear(ep, agent ? MESSAGE("elicitation/request", "\"c\"", "\"method\":\"m\"")
                                  : MESSAGE("capabilities/call", "\"c\"", "\"capability\":\"x\"")),
                   ABP_OK);
  drain(ep);
  assert_int_equal(finish(ep), ABP_OK);
  drain(ep);
}

static void each_operation(int good) {
  for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
    long failed = 1;
    for (long n = 0; failed; n++) {
      balance = failures = armed = 0;
      abp_endpoint *ep = prepared(&OPERATIONS[i]);
      until_failure = n;
      for_good = good;
      armed = 1;
      const int status = run(ep, &OPERATIONS[i]);
      if (status != ABP_OK && status != ABP_E_MEMORY)
        print_error("operation %zu, allocation %ld\n", i, n);
      assert_true(status == ABP_OK || (status == ABP_E_MEMORY && failures > 0));
      /* What failed for want of memory has changed nothing, and can be done once there is some. */
      if (status != ABP_OK) {
        armed = 0;
        assert_false(abp_endpoint_undrained(ep));
        assert_int_equal(run(ep, &OPERATIONS[i]), ABP_OK);
      }
      drain(ep);
      armed = 0;
      failed = failures;
      still_works(ep);
      abp_free(ep);
      assert_int_equal(balance, 0);
    }
  }
}

static void every_operation_fails_once(void **state) {
  (void)state;
  each_operation(0);
}

static void every_operation_fails_from_then_on(void **state) {
  (void)state;
  each_operation(1);
}

/* --- JSON-RPC --------------------------------------------------------------------------------- */

static abp_call started[8];
static int starts;

/* Drains a peer; returns the error by which a request was refused, if one was. */
static uint32_t settled(abp_peer *peer) {
  abp_action done;
  uint32_t refused = 0;
  while (abp_peer_next(peer, &done)) {
    if (done.kind == ABP_REFUSE) refused = done.arg;
    if (done.kind == ABP_START) started[starts++] = done.call;
  }
  return refused;
}

static void exchange(abp_peer *peer) {
  const abp_rpc_id ids[] = {{ABP_ID_NUMBER, NULL, 0, 1},
                            {ABP_ID_TEXT, LONG_ID, (uint32_t)strlen(LONG_ID), 0},
                            {ABP_ID_NULL, NULL, 0, 0}};
  abp_call call;
  for (uint32_t flags = 0; flags <= ABP_RESETS; flags++) {
    const int status = abp_peer_request(peer, 10, 20, flags, 0, &call);
    assert_true(status == ABP_OK || (status == ABP_E_MEMORY && failures));
    settled(peer);
  }
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    assert_int_equal(abp_peer_received(peer, &ids[i], ABP_RPC_NO_ERROR, 0), ABP_OK);
    const uint32_t refused = settled(peer);
    assert_true(!refused || (refused == ABP_RPC_INTERNAL && failures));
  }
  /* What is in flight can always be stopped. */
  assert_int_equal(abp_peer_start(peer), ABP_OK);
  settled(peer);
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    assert_int_equal(abp_peer_cancel_received(peer, &ids[i], NULL, 0, 1), ABP_OK);
    settled(peer);
  }
  while (starts) {
    assert_int_equal(abp_peer_finish(peer, started[--starts], ABP_THREW), ABP_OK);
    settled(peer);
  }
  assert_int_equal(abp_peer_advance(peer, 1000), ABP_OK);
  settled(peer);
}

static void each_allocation_of_a_peer_fails(int good) {
  const abp_peer_config config = {.dialect = ABP_ACP};
  for (long n = 0;; n++) {
    balance = failures = 0;
    until_failure = n;
    for_good = good;
    armed = 1;
    abp_peer *peer = abp_peer_new(&config, 0);
    if (peer) exchange(peer);
    const long failed = failures;
    armed = 0;
    failures = 0;
    if (peer) exchange(peer);
    abp_peer_free(peer);
    assert_int_equal(balance, 0);
    if (!failed) {
      assert_true(n >= 8); /* the peer, index, slabs, timers, slab, id cells, a long id, patience */
      return;
    }
  }
}

static void every_allocation_of_peers_fails_once(void **state) {
  (void)state;
  each_allocation_of_a_peer_fails(0);
}

static void every_allocation_of_peers_fails_from_then_on(void **state) {
  (void)state;
  each_allocation_of_a_peer_fails(1);
}

static void a_request_that_has_ended_makes_room_while_memory_is_short(void **state) {
  (void)state;
  const abp_peer_config config = {.dialect = ABP_ACP, .remembered = 1};
  abp_peer *peer = abp_peer_new(&config, 0);
  abp_call first, call;
  assert_int_equal(abp_peer_request(peer, 10, 0, 0, 0, &first), ABP_OK);
  settled(peer);
  until_failure = 0;
  for_good = armed = 1;
  while (abp_peer_request(peer, 10, 0, 0, 0, &call) == ABP_OK)
    settled(peer);
  assert_int_not_equal(call, first); /* there was room for some */
  abp_rpc_id id = {ABP_ID_NUMBER, NULL, 0, abp_peer_number(peer, first)};
  for (int ended = 0; ended < 2; ended++, id.number++) { /* of which one is remembered */
    assert_int_equal(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), ABP_OK);
    settled(peer);
  }
  assert_int_equal(abp_peer_request(peer, 10, 0, 0, 0, &call), ABP_OK);
  settled(peer);
  armed = 0;
  abp_peer_free(peer);
}

static void an_endpoint_whose_first_message_found_no_memory_can_be_freed(void **state) {
  (void)state;
  const abp_config config = {.role = ABP_APP};
  abp_endpoint *ep = abp_new(&config, 0);
  assert_non_null(ep);
  until_failure = 0;
  for_good = armed = 1;
  assert_int_equal(abp_receive(ep, "{}", 2), ABP_E_MEMORY);
  armed = 0;
  abp_free(ep);
}

int main(void) {
  cJSON_Hooks hooks = {__wrap_malloc, __wrap_free};
  cJSON_InitHooks(&hooks);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(every_allocation_fails_from_then_on),
      cmocka_unit_test(every_operation_fails_once),
      cmocka_unit_test(every_operation_fails_from_then_on),
      cmocka_unit_test(every_allocation_of_peers_fails_once),
      cmocka_unit_test(every_allocation_of_peers_fails_from_then_on),
      cmocka_unit_test(a_request_that_has_ended_makes_room_while_memory_is_short),
      cmocka_unit_test(an_endpoint_whose_first_message_found_no_memory_can_be_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
