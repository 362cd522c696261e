/* What inputs cost, in steps and not in seconds: the core is compiled so that each basic block that
 * runs calls __sanitizer_cov_trace_pc. An input of 2n and of 4n parts may take about twice and four
 * times the steps, allocations and bytes of one of n parts; a heap may add its logarithm. */
#include "abp_rpc.h"
#include "abp_tasks.h"
#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static struct cost { uint64_t steps, allocations, bytes; } spent;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { spent.steps++; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size) {
  spent.allocations++;
  spent.bytes += size;
  return __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
  spent.allocations++;
  spent.bytes += count * size;
  return __real_calloc(count, size);
}
/* cJSON may be a shared library, whose calls are not wrapped. */
static void *cjson_malloc(size_t size) { return __wrap_malloc(size); }

typedef void scenario(uint32_t n, const void *with);

static struct cost cost(scenario *run, uint32_t n, const void *with) {
  const struct cost before = spent;
  run(n, with);
  return (struct cost){spent.steps - before.steps, spent.allocations - before.allocations,
                       spent.bytes - before.bytes};
}

static int is_linear(uint64_t one, uint64_t two, uint64_t four) {
  return two <= 2 * one + one * 4 / 10 + 64 && four <= 5 * one + 64;
}

static void holds(const char *what, scenario *run, uint32_t n, const void *with) {
  const struct cost one = cost(run, n, with), two = cost(run, 2 * n, with),
                    four = cost(run, 4 * n, with);
  assert_true(one.steps > 64); /* it is counted */
  if (is_linear(one.steps, two.steps, four.steps) &&
      is_linear(one.allocations, two.allocations, four.allocations) &&
      is_linear(one.bytes, two.bytes, four.bytes))
    return;
  fail_msg("%s, of n = %u, 2n and 4n: %llu, %llu, %llu steps; %llu, %llu, %llu allocations of "
           "%llu, %llu, %llu bytes",
           what, n, (unsigned long long)one.steps, (unsigned long long)two.steps,
           (unsigned long long)four.steps, (unsigned long long)one.allocations,
           (unsigned long long)two.allocations, (unsigned long long)four.allocations,
           (unsigned long long)one.bytes, (unsigned long long)two.bytes,
           (unsigned long long)four.bytes);
}

/* --- Text ------------------------------------------------------------------------------------- */

struct text {
  const char *what, *start, *part, *end;
  int status;
};

static abp_endpoint *open_app(void) {
  const abp_config config = {.role = ABP_APP,
                             .seed = {1},
                             .features = ABP_STREAMS | ABP_LIVENESS,
                             .max_text = 1 << 26,
                             .max_calls = 1 << 18,
                             .remembered = 1 << 18};
  abp_endpoint *ep = abp_new(&config, 1000);
  assert_int_equal(abp_endpoint_initialize(ep, "P", 1, 0, "0.1", 3, config.features), ABP_OK);
  abp_action action;
  while (abp_next(ep, &action))
    continue;
  return ep;
}

static void a_text(uint32_t n, const void *with) {
  const struct text *text = with;
  const size_t first = strlen(text->start), part = strlen(text->part), last = strlen(text->end);
  const size_t length = first + n * part + last;
  char *whole = malloc(length + 1);
  assert_non_null(whole);
  memcpy(whole, text->start, first);
  for (uint32_t i = 0; i < n; i++)
    memcpy(whole + first + i * part, text->part, part);
  memcpy(whole + first + n * part, text->end, last + 1);
  abp_endpoint *ep = open_app();
  assert_int_equal(abp_receive(ep, whole, length), text->status);
  if (text->status) assert_int_equal(abp_count(ep, ABP_MALFORMED), 1);
  abp_action action;
  while (abp_next(ep, &action))
    if (action.kind == ABP_REFUSE || action.kind == ABP_SEND) {
      size_t printed;
      assert_non_null(abp_print(ep, &action, NULL, 42, &printed));
    }
  abp_free(ep);
  free(whole);
}

#define CANCEL "{\"type\":\"capabilities/cancel\",\"id\":\"c\",\"payload\":{\"callId\":\"x\""
#define CALL "{\"type\":\"capabilities/call\",\"id\":\"c\",\"payload\":{\"capability\":\"x\""

static void text_costs_in_proportion_to_its_length(void **state) {
  (void)state;
  static const struct text texts[] = {
      {"line feeds", "{", "\n", "\"type\":\"shutdown\"}", ABP_OK},
      {"line feeds and nothing else", "", "\n", "", ABP_E_TEXT},
      {"line feeds after it", "{\"type\":\"shutdown\"}", "\n", "", ABP_OK},
      {"line feeds before what is too much", "{}", "\n", "x", ABP_E_TEXT},
      {"one name again and again", CANCEL, ",\"callId\":\"x\"", "}}", ABP_OK},
      {"one id again and again", "{\"type\":\"shutdown\"", ",\"id\":\"x\"", "}", ABP_OK},
      {"one type again and again", "{\"type\":\"shutdown\"", ",\"type\":\"shutdown\"", "}", ABP_OK},
      {"members that nobody reads", CANCEL, ",\"m\":[{}]", "}}", ABP_OK},
      {"a member after many", "{\"type\":\"capabilities/cancel\",\"payload\":{\"a\":1",
       ",\"m\":[1]", ",\"callId\":\"x\"},\"id\":\"c\"}", ABP_OK},
      {"brackets", "{\"a\":", "[", "}", ABP_E_TEXT},
      {"brackets that close", "{\"a\":[0", ",[]", "]}", ABP_OK},
      {"brackets that close too early", "{", "}", "", ABP_E_TEXT},
      {"objects without an end", "", "{\"a\":", "", ABP_E_TEXT},
      {"members without an end", "{", "\"1\":1,", "", ABP_E_TEXT},
      {"a string without an end", "{\"a\":\"", "x", "", ABP_E_TEXT},
      {"a long reason", CANCEL ",\"reason\":\"", "x", "\"}}", ABP_OK},
      {"escapes", CANCEL ",\"reason\":\"", "\\u00e9\\n\\\"", "\"}}", ABP_OK},
      {"escapes, the last of which is none", CANCEL ",\"reason\":\"", "\\u00e9", "\\u00G0\"}}",
       ABP_E_TEXT},
      {"an id to be sent back", "{\"type\":\"capabilities/cancel\",\"payload\":{},\"id\":\"",
       "\\\"", "\"}", ABP_OK},
      {"what is no UTF-8 at its end", CANCEL ",\"reason\":\"", "\xc3\xa9", "\xc3\"}}", ABP_E_TEXT},
      {"numbers", CANCEL ",\"a\":[1", ",-1.5e300", "]}}", ABP_OK},
      {"params", CALL ",\"params\":[1", ",{\"a\":[\"]\\\"\"]}", "]}}", ABP_OK},
      {"params after much else", CALL, ",\"m\":\"\\\"\"", ",\"params\":{\"a\":[1]}}}", ABP_OK},
      {"options again and again", CALL, ",\"options\":{\"timeout\":1}", "}}", ABP_OK},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    holds(texts[i].what, a_text, 4096, &texts[i]);
}

/* --- Calls ------------------------------------------------------------------------------------ */

static abp_endpoint *open_agent(void) {
  const abp_config config = {
      .role = ABP_AGENT, .seed = {2}, .features = ABP_STREAMS, .max_calls = 1 << 18};
  abp_endpoint *ep = abp_new(&config, 1000);
  abp_action action;
  assert_int_equal(abp_connect(ep, 0), ABP_OK);
  while (abp_next(ep, &action))
    continue;
  assert_int_equal(abp_endpoint_initialized(ep, "S", 1, 1, 0, config.features), ABP_OK);
  while (abp_next(ep, &action))
    continue;
  return ep;
}

/* Drains, and counts the actions of one kind. */
static uint32_t drained(abp_endpoint *ep, abp_kind kind) {
  abp_action action;
  uint32_t count = 0;
  while (abp_next(ep, &action))
    count += action.kind == kind;
  return count;
}

static abp_id numbered(char *text, uint32_t i) {
  return (abp_id){text, (uint32_t)snprintf(text, 32, "call %u", i), 0};
}

enum ending { BY_RESULT, BY_CANCEL, BY_LOSS, BY_CLOCK, BY_CLOSE };

static void calls_that_came(uint32_t n, const void *with) {
  const enum ending how = *(const enum ending *)with;
  abp_endpoint *ep = open_app();
  abp_call *calls = malloc(n * sizeof *calls);
  char text[32];
  for (uint32_t i = 0; i < n; i++) {
    const abp_id id = numbered(text, i);
    assert_int_equal(abp_call_received(ep, &id, how == BY_CLOCK ? 1 + i % 1000 : 0, 0, 0), ABP_OK);
    abp_action action;
    while (abp_next(ep, &action))
      if (action.kind == ABP_START) calls[i] = action.call;
  }
  assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_IN), n);
  uint32_t ended = 0;
  if (how == BY_LOSS) {
    assert_int_equal(abp_lost(ep), ABP_OK);
    ended = drained(ep, ABP_ABORT);
  } else if (how == BY_CLOSE) {
    assert_int_equal(abp_close(ep), ABP_OK);
    ended = drained(ep, ABP_ABORT);
  } else if (how == BY_CLOCK) {
    assert_int_equal(abp_advance(ep, 5000), ABP_OK);
    ended = drained(ep, ABP_ABORT);
  } else {
    for (uint32_t i = n; i-- > 0;) {
      const abp_id id = numbered(text, i);
      if (how == BY_CANCEL) {
        assert_int_equal(abp_cancel_received(ep, &id, NULL, 0), ABP_OK);
        ended += drained(ep, ABP_ABORT);
      }
      assert_int_equal(abp_finish(ep, calls[i], how == BY_CANCEL ? ABP_CANCELLED : ABP_COMPLETED),
                       ABP_OK);
      ended += drained(ep, ABP_RESULT) && how == BY_RESULT;
    }
  }
  assert_int_equal(ended, n);
  free(calls);
  abp_free(ep);
}

static void calls_that_are_made(uint32_t n, const void *with) {
  const enum ending how = *(const enum ending *)with;
  abp_endpoint *ep = open_agent();
  abp_call *calls = malloc(n * sizeof *calls);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t timeout = how == BY_CLOCK ? 1 + i % 1000 : 0;
    assert_int_equal(abp_request(ep, NULL, timeout, 0, 0, &calls[i]), ABP_OK);
    drained(ep, ABP_SEND);
  }
  uint32_t settled = 0;
  if (how == BY_LOSS || how == BY_CLOSE) {
    assert_int_equal(how == BY_LOSS ? abp_lost(ep) : abp_close(ep), ABP_OK);
    settled = drained(ep, ABP_SETTLE);
  } else if (how == BY_CLOCK) {
    assert_int_equal(abp_advance(ep, 5000), ABP_OK);
    drained(ep, ABP_SETTLE);
    assert_int_equal(abp_advance(ep, 50000), ABP_OK);
    settled = drained(ep, ABP_SETTLE);
  } else {
    for (uint32_t i = n; i-- > 0;) {
      const abp_id id = {NULL, 0, abp_number(ep, calls[i])};
      if (how == BY_CANCEL) assert_int_equal(abp_cancel(ep, calls[i], NULL, 0), ABP_OK);
      drained(ep, ABP_SEND);
      assert_int_equal(abp_result_received(ep, &id, how == BY_CANCEL), ABP_OK);
      settled += drained(ep, ABP_SETTLE);
    }
  }
  assert_int_equal(settled, n);
  free(calls);
  abp_free(ep);
}

static void calls_cost_the_same_however_many_there_are(void **state) {
  (void)state;
  static const char *const names[] = {"result", "cancel", "loss", "clock", "close"};
  for (enum ending how = BY_RESULT; how <= BY_CLOSE; how++) {
    char what[64];
    snprintf(what, sizeof what, "calls that came and end by %s", names[how]);
    holds(what, calls_that_came, 1024, &how);
    snprintf(what, sizeof what, "calls that are made and end by %s", names[how]);
    holds(what, calls_that_are_made, 1024, &how);
  }
}

/* One call at a time that is over, and cancels of it and of what nobody knows. */
static void cancels_of_nothing(uint32_t n, const void *with) {
  (void)with;
  abp_endpoint *ep = open_app();
  char text[32];
  for (uint32_t i = 0; i < n; i++) {
    const abp_id id = numbered(text, i);
    const struct cancel_text from = {"c", id.text, 1, id.length};
    assert_int_equal(abp_endpoint_cancel(ep, &id, NULL, 0, &from), ABP_OK);
    assert_int_equal(drained(ep, ABP_SEND), 1);
  }
  abp_free(ep);
}

static void answers_to_nothing(uint32_t n, const void *with) {
  (void)with;
  abp_endpoint *ep = open_agent();
  char text[32];
  for (uint32_t i = 0; i < n; i++) {
    const abp_id id = numbered(text, i), number = {NULL, 0, i + 1};
    assert_int_equal(abp_result_received(ep, &id, ABP_COMPLETED), ABP_OK);
    assert_int_equal(abp_progress_received(ep, &number), ABP_OK);
    assert_int_equal(drained(ep, ABP_SETTLE), 0);
  }
  assert_int_equal(abp_count(ep, ABP_STRAY), 2 * n);
  abp_free(ep);
}

/* A handler that has asked for n things, and is asked to stop. */
static void children(uint32_t n, const void *with) {
  (void)with;
  abp_endpoint *ep = open_app();
  const abp_id id = {"root", 4, 0};
  assert_int_equal(abp_call_received(ep, &id, 0, 0, 0), ABP_OK);
  abp_action action;
  abp_call root = 0, child;
  while (abp_next(ep, &action))
    if (action.kind == ABP_START) root = action.call;
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(abp_request(ep, NULL, 0, 0, root, &child), ABP_OK);
    drained(ep, ABP_SEND);
  }
  assert_int_equal(abp_cancel_received(ep, &id, NULL, 0), ABP_OK);
  assert_true(drained(ep, ABP_SEND) + drained(ep, ABP_SETTLE) >= 1);
  abp_free(ep);
}

static void chunks(uint32_t n, const void *with) {
  (void)with;
  abp_endpoint *ep = open_agent();
  abp_call call;
  assert_int_equal(abp_request(ep, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  drained(ep, ABP_SEND);
  const abp_id id = {NULL, 0, abp_number(ep, call)};
  for (uint32_t i = 0; i < n; i++) {
    abp_action action = {0};
    assert_int_equal(abp_chunk_received(ep, &id, 1), ABP_OK);
    assert_int_equal(abp_next(ep, &action), 1);
    assert_int_equal(action.kind, ABP_CHUNK);
    const uint64_t at = action.at;
    assert_int_equal(abp_chunk_read(ep, call, at), ABP_OK);
    drained(ep, ABP_SEND);
  }
  abp_free(ep);
}

static void what_means_nothing_costs_the_same_each_time(void **state) {
  (void)state;
  holds("cancels of what nobody knows", cancels_of_nothing, 1024, NULL);
  holds("answers to what nobody asked", answers_to_nothing, 1024, NULL);
}

static void trees_and_streams_cost_in_proportion(void **state) {
  (void)state;
  holds("the calls of one handler", children, 1024, NULL);
  holds("the chunks of a stream", chunks, 1024, NULL);
}

/* --- JSON-RPC, and tasks ---------------------------------------------------------------------- */

static void rpc_requests(uint32_t n, const void *with) {
  const enum ending how = *(const enum ending *)with;
  abp_peer_config config = {.dialect = ABP_LSP, .max_calls = 1 << 18};
  config.seed[0] = 3;
  abp_peer *peer = abp_peer_new(&config, 1000);
  abp_action action;
  abp_call call;
  uint32_t ended = 0;
  for (uint32_t i = 0; i < n; i++) {
    const abp_rpc_id id = {ABP_ID_NUMBER, NULL, 0, i};
    assert_int_equal(abp_peer_received(peer, &id, ABP_RPC_NO_ERROR, 0), ABP_OK);
    while (abp_peer_next(peer, &action))
      continue;
    assert_int_equal(abp_peer_start(peer), ABP_OK);
    while (abp_peer_next(peer, &action))
      continue;
    assert_int_equal(abp_peer_request(peer, 1 + i % 1000, 0, 0, 0, &call), ABP_OK);
    while (abp_peer_next(peer, &action))
      continue;
  }
  if (how == BY_LOSS) {
    assert_int_equal(abp_peer_lost(peer), ABP_OK);
    while (abp_peer_next(peer, &action))
      ended += action.kind == ABP_SETTLE || action.kind == ABP_ABORT;
  } else {
    for (uint32_t i = n; i-- > 0;) {
      const abp_rpc_id id = {ABP_ID_NUMBER, NULL, 0, i};
      assert_int_equal(abp_peer_cancel_received(peer, &id, NULL, 0, 1), ABP_OK);
      while (abp_peer_next(peer, &action))
        ended += action.kind == ABP_ABORT;
    }
    assert_int_equal(abp_peer_advance(peer, 5000), ABP_OK);
    while (abp_peer_next(peer, &action))
      ended += action.kind == ABP_SETTLE;
  }
  assert_true(ended >= n);
  abp_peer_free(peer);
}

static void tasks(uint32_t n, const void *with) {
  (void)with;
  const abp_tasks_config config = {.max_tasks = 1 << 18, .remembered = 64};
  abp_tasks *all = abp_tasks_new(&config, 1000);
  abp_task *each = malloc(n * sizeof *each);
  char text[32];
  for (uint32_t i = 0; i < n; i++) {
    const abp_id id = numbered(text, i);
    assert_int_equal(abp_task_add(all, id.text, id.length, ABP_TASK_SUBMITTED, &each[i]), ABP_OK);
    assert_true(abp_task_start(all, each[i]) & ABP_TASK_START);
  }
  for (uint32_t i = 0; i < n; i++) {
    abp_task due;
    const abp_id id = numbered(text, i);
    assert_int_equal(abp_task_find(all, id.text, id.length), each[i]);
    if (i % 2) abp_task_cancel(all, each[i], 100, 0);
    assert_true(abp_task_returns(all, each[i], 1, 0) & ABP_TASK_END);
    while (abp_tasks_next(all, &due))
      continue;
  }
  free(each);
  abp_tasks_free(all);
}

static void artifacts(uint32_t n, const void *with) {
  (void)with;
  const abp_tasks_config config = {.max_artifacts = 1 << 18};
  abp_tasks *all = abp_tasks_new(&config, 1000);
  abp_task task;
  assert_int_equal(abp_task_add(all, "t", 1, ABP_TASK_SUBMITTED, &task), ABP_OK);
  abp_task_start(all, task);
  char text[32];
  for (uint32_t i = 0; i < n; i++) {
    uint32_t place;
    const abp_id id = numbered(text, i);
    assert_int_equal(abp_task_artifact(all, task, 1, id.text, id.length, 0, &place),
                     ABP_ARTIFACT_CREATE);
    assert_int_equal(abp_task_artifact(all, task, 1, id.text, id.length, 0, &place),
                     ABP_ARTIFACT_REPLACE);
  }
  abp_tasks_free(all);
}

static void requests_and_tasks_cost_the_same_however_many_there_are(void **state) {
  (void)state;
  const enum ending loss = BY_LOSS, cancel = BY_CANCEL;
  holds("requests of a peer that is lost", rpc_requests, 1024, &loss);
  holds("requests that are cancelled, or whose time is up", rpc_requests, 1024, &cancel);
  holds("tasks", tasks, 1024, NULL);
  holds("artifacts of a task", artifacts, 1024, NULL);
}

/* --- The measure itself ----------------------------------------------------------------------- */

static void squared(uint32_t n, const void *with) {
  (void)with;
  spent.steps += (uint64_t)n * n / 64;
}

static void what_is_not_linear_is_found(void **state) {
  (void)state;
  const struct cost one = cost(squared, 1024, NULL), two = cost(squared, 2048, NULL),
                    four = cost(squared, 4096, NULL);
  assert_false(is_linear(one.steps, two.steps, four.steps));
  assert_true(is_linear(1024, 2048 + 200, 4096 + 800)); /* n log n, of a heap */
}

int main(void) {
  cJSON_InitHooks(&(cJSON_Hooks){cjson_malloc, free});
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_linear_is_found),
      cmocka_unit_test(text_costs_in_proportion_to_its_length),
      cmocka_unit_test(calls_cost_the_same_however_many_there_are),
      cmocka_unit_test(what_means_nothing_costs_the_same_each_time),
      cmocka_unit_test(trees_and_streams_cost_in_proportion),
      cmocka_unit_test(requests_and_tasks_cost_the_same_however_many_there_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
