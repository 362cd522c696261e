/* JSON text in: what is admitted, what it means, and that a hostile text costs nobody anything. */
#include "endpoint.h"
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pair pair;

#define MESSAGE(type, id, payload) "{\"type\":\"" type "\",\"id\":" id ",\"payload\":{" payload "}}"

static int open_pair(void **state) {
  (void)state;
  const abp_config agent = {.role = ABP_AGENT, .seed = {1}, .features = ABP_PROGRESS};
  const abp_config app = {.role = ABP_APP, .seed = {2}, .features = ABP_PROGRESS};
  memset(&pair, 0, sizeof pair);
  return !pair_open(&pair, &agent, &app);
}

static int close_pair(void **state) {
  (void)state;
  pair_close(&pair);
  return 0;
}

static int tell(const char *text) { return abp_receive(pair.app.endpoint, text, strlen(text)); }

/* Gives the app a message and returns its answer's text. */
static const char *answer(const char *text) {
  static char copy[4096];
  copy[0] = 0;
  assert_int_equal(tell(text), ABP_OK);
  abp_action action;
  while (abp_next(pair.app.endpoint, &action)) {
    size_t length;
    if (action.kind == ABP_SEND || action.kind == ABP_REFUSE)
      snprintf(copy, sizeof copy, "%s", abp_print(pair.app.endpoint, &action, NULL, 42, &length));
  }
  return copy;
}

static void text_that_is_no_message_is_refused_and_counted(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    " ",
                                    "[]",
                                    "1",
                                    "null",
                                    "{",
                                    "{}}",
                                    "{\"type\":}",
                                    "{\"type\":\"x\"} x",
                                    "\xef\xbb\xbf{}",
                                    "{\"type\":\x16\"shutdown\",\"id\":\"x\"}",
                                    "{\"type\":\"a\\u0000b\"}",
                                    "{\"type\":\"\\ud800\"}",
                                    "{\"type\":\"\xff\"}",
                                    "{\"type\":\"\n\"}",
                                    "{\"a\":\"\\u00G0\"}",
                                    "{\"1\":1,",
                                    "{'a':1}",
                                    "\"\\uD8\""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(tell(bad[i]), ABP_E_TEXT);
  assert_int_equal(abp_count(pair.app.endpoint, ABP_MALFORMED), sizeof bad / sizeof *bad);
  assert_int_equal(tell("{}"), ABP_OK);
  assert_int_equal(tell("{\"type\":\"nonsense\"}"), ABP_OK);
  assert_int_equal(abp_count(pair.app.endpoint, ABP_UNKNOWN_TYPE), 1);
}

static void depth_and_length_are_limited(void **state) {
  (void)state;
  enum { DEEP = 10000 };
  char *text = malloc(2 * DEEP + 32);
  memset(text, '[', DEEP);
  memset(text + DEEP, ']', DEEP);
  text[2 * DEEP] = 0;
  char *message = malloc(2 * DEEP + 64);
  snprintf(message, 2 * DEEP + 64, "{\"type\":\"shutdown\",\"payload\":%s}", text);
  assert_int_equal(tell(message), ABP_E_TEXT);
  free(message);
  free(text);
  const size_t long_length = 10 << 20;
  char *longer = malloc(long_length);
  memset(longer, ' ', long_length);
  assert_int_equal(abp_receive(pair.app.endpoint, longer, long_length), ABP_E_TEXT);
  free(longer);
  assert_int_equal(abp_session_state(pair.app.endpoint), ABP_SESSION_READY);
}

static void every_prefix_of_a_message_is_refused_alone(void **state) {
  (void)state;
  static const char text[] =
      "{\"type\":\"capabilities/cancel\",\"id\":\"x\",\"timestamp\":1.5e3,\"payload\":{\"callId\":"
      "\"\\u00e9\\\"\",\"reason\":null,\"more\":[1,-0,true,{\"a\":[]}]}}";
  for (size_t length = 0; length < sizeof text - 1; length++) {
    char *copy = malloc(length ? length : 1); /* exactly as long, so that a read beyond is seen */
    memcpy(copy, text, length);
    assert_int_equal(abp_receive(pair.app.endpoint, copy, length), ABP_E_TEXT);
    free(copy);
  }
  assert_non_null(strstr(answer(text), "Operation not found"));
}

static void a_cancel_is_answered_to_its_own_id_verbatim(void **state) {
  (void)state;
  const char *text =
      answer("{\"type\":\"capabilities/cancel\",\"id\":1.50,\"payload\":{\"callId\":\"n\"}}");
  assert_non_null(strstr(text, "\"id\":1.50,"));
  assert_non_null(strstr(text, "\"callId\":\"n\""));
  assert_non_null(strstr(text, "\"cancelled\":false"));
  assert_non_null(strstr(text, "\"type\":\"capabilities/cancel-result\""));
  assert_non_null(strstr(text, "\"timestamp\":42"));
}

static void a_cancel_without_a_string_to_name_its_call_is_invalid(void **state) {
  (void)state;
  static const char *const ids[] = {"1", "null", "[1]", "{}", "true"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    char text[128];
    snprintf(text, sizeof text,
             "{\"type\":\"capabilities/cancel\",\"id\":\"c\",\"payload\":{\"callId\":%s}}", ids[i]);
    assert_non_null(strstr(answer(text), "INVALID_PARAMS"));
  }
  assert_non_null(
      strstr(answer("{\"type\":\"capabilities/cancel\",\"id\":\"c\"}"), "INVALID_PARAMS"));
}

static void names_are_read_exactly_and_once(void **state) {
  (void)state;
  assert_int_equal(pair_call(&pair, "known", "work", 0), ABP_OK);
  pair_run(&pair);
  const char *const names[] = {
      "\"CALLID\":\"known\"", "\"callid\":\"known\"", "\"callId\":\"known\",\"callId\":\"other\"",
      "\"callId\":\"other\",\"callId\":\"known\"", "\"__proto__\":{\"callId\":\"known\"}"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[160];
    snprintf(text, sizeof text, "{\"type\":\"capabilities/cancel\",\"id\":\"c\",\"payload\":{%s}}",
             names[i]);
    assert_non_null(strstr(answer(text), "\"cancelled\":false"));
  }
  assert_int_equal(abp_count(pair.app.endpoint, ABP_IN_FLIGHT_IN), 1);
}

static void an_echo_of_what_this_side_says_does_nothing(void **state) {
  (void)state;
  abp_endpoint *agent = pair.agent.endpoint;
  const char *const own[] = {
      "{\"type\":\"capabilities/call\",\"id\":\"a\",\"payload\":{\"capability\":\"x\"}}",
      "{\"type\":\"capabilities/cancel\",\"id\":\"a\",\"payload\":{\"callId\":\"x\"}}",
      "{\"type\":\"initialize\",\"id\":\"a\",\"payload\":{\"protocolVersion\":\"0.1\"}}",
      "{\"type\":\"shutdown\"}"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
    assert_int_equal(abp_receive(agent, own[i], strlen(own[i])), ABP_OK);
    abp_action action;
    assert_false(abp_next(agent, &action));
  }
  assert_int_equal(abp_session_state(agent), ABP_SESSION_READY);
  assert_int_equal(abp_count(agent, ABP_UNKNOWN_TYPE), 4);
}

static void the_same_hello_gets_the_same_answer_and_another_is_refused(void **state) {
  (void)state;
  abp_action action;
  assert_int_equal(tell("{\"type\":\"shutdown\"}"), ABP_OK);
  while (abp_next(pair.app.endpoint, &action)) {
  }
  char first[4096];
  const char *hello = "{\"type\":\"initialize\",\"id\":\"h1\",\"payload\":{\"protocolVersion\":\"0."
                      "1\",\"features\":{\"progress\":true}}}";
  snprintf(first, sizeof first, "%s", answer(hello));
  assert_non_null(strstr(first, "\"sessionId\""));
  assert_non_null(strstr(first, "\"progress\":true"));
  assert_string_equal(answer(hello), first);
  assert_non_null(strstr(
      answer("{\"type\":\"initialize\",\"id\":\"h2\",\"payload\":{\"protocolVersion\":\"0.1\"}}"),
      "ALREADY_INITIALIZED"));
}

static void a_version_that_cannot_be_read_is_refused_and_any_other_is_taken(void **state) {
  (void)state;
  abp_action action;
  static const struct {
    const char *version;
    int ok;
  } versions[] = {{"\"0.1\"", 1}, {"\"1.0\"", 1}, {"\"12.34\"", 1}, {"\"1\"", 0}, {"\"x.y\"", 0},
                  {"\".1\"", 0},  {"\"1.\"", 0},  {"1.0", 0},       {"null", 0},  {"\"0.1.2\"", 0}};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    assert_int_equal(tell("{\"type\":\"shutdown\"}"), ABP_OK);
    while (abp_next(pair.app.endpoint, &action)) {
    }
    char text[128];
    snprintf(text, sizeof text,
             "{\"type\":\"initialize\",\"id\":\"v%zu\",\"payload\":{\"protocolVersion\":%s}}", i,
             versions[i].version);
    assert_int_equal(strstr(answer(text), "NOT_SUPPORTED") == NULL, versions[i].ok);
  }
}

static void a_side_that_came_back_and_closes_says_bye_for_good(void **state) {
  (void)state;
  const abp_config config = {.role = ABP_APP, .seed = {3}, .features = ABP_LIVENESS};
  abp_endpoint *app = abp_new(&config, 0);
  const char *hello = "{\"type\":\"initialize\",\"id\":\"h\",\"payload\":{\"features\":{"
                      "\"bridge.liveness\":true}}}";
  abp_action action;
  size_t length;
  assert_int_equal(abp_receive(app, hello, strlen(hello)), ABP_OK);
  while (abp_next(app, &action)) {
  }
  const char *const said[] = {"\"persisted\":true", "\"persisted\":false"};
  for (int i = 0; i < 2; i++) {
    int byes = 0;
    assert_int_equal(i ? abp_close(app) : abp_leave(app, 1), ABP_OK);
    while (abp_next(app, &action)) {
      if (action.kind != ABP_SEND) continue;
      byes++;
      assert_non_null(strstr(abp_print(app, &action, NULL, 0, &length), said[i]));
    }
    assert_int_equal(byes, 1);
  }
  abp_free(app);
}

/* The text of the only message that the last input sends; its other actions are taken, too. */
static const char *said(abp_endpoint *ep, const abp_body *body) {
  static char copy[1024];
  copy[0] = 0;
  abp_action action;
  while (abp_next(ep, &action)) {
    size_t length;
    if (action.kind == ABP_WAKE || action.kind == ABP_START || action.kind == ABP_SESSION ||
        action.kind == ABP_SETTLE)
      continue;
    assert_int_equal(copy[0], 0);
    snprintf(copy, sizeof copy, "%s", abp_print(ep, &action, body, 42, &length));
  }
  return copy;
}

static void a_stream_is_text_as_well(void **state) {
  (void)state;
  const abp_config config = {.features = ABP_STREAMS, .stream_chunks = 3, .stream_bytes = 99};
  abp_config agent_config = config, app_config = config;
  agent_config.seed[0] = 1;
  app_config.role = ABP_APP;
  app_config.stream_chunks = 2; /* the agent knows, and asks for no more */
  static struct pair streams;
  memset(&streams, 0, sizeof streams);
  assert_true(pair_open(&streams, &agent_config, &app_config));
  abp_endpoint *agent = streams.agent.endpoint, *app = streams.app.endpoint;
  const abp_id id = {"a", 1, 0};
  const abp_body call = {.name = "rows", .name_length = 4, .payload = "{}", .payload_length = 2};
  abp_call made;
  assert_int_equal(abp_request(agent, &id, 0, ABP_WANTS_STREAM, 0, &made), ABP_OK);
  const char *text = said(agent, &call);
  assert_non_null(strstr(text, "\"stream\":{\"chunks\":2,\"bytes\":99}"));
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
  abp_action action;
  abp_call received = 0;
  while (abp_next(app, &action))
    if (action.kind == ABP_START) received = action.call;
  const abp_body row = {.payload = "[1]", .payload_length = 3};
  assert_int_equal(abp_chunk(app, received, 7), ABP_OK);
  text = said(app, &row);
  assert_non_null(strstr(text, "\"type\":\"bridge/chunk\""));
  assert_non_null(strstr(text, "\"payload\":{\"callId\":\"a\",\"size\":7,\"chunk\":[1]}"));
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  const abp_body *came = abp_received(agent);
  assert_int_equal(came->payload_length, 3);
  assert_memory_equal(came->payload, "[1]", 3);
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.kind, ABP_CHUNK);
  assert_int_equal(action.call, made);
  assert_int_equal(abp_chunk_read(agent, made, action.at), ABP_OK);
  text = said(agent, NULL);
  assert_non_null(strstr(text, "\"type\":\"bridge/credit\""));
  assert_non_null(strstr(text, "\"payload\":{\"callId\":\"a\",\"chunks\":1,\"bytes\":7}"));
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
  assert_int_equal(abp_next(app, &action), 0);
  assert_int_equal(abp_count(app, ABP_OVERRUN), 0);
  /* A second time, and what is no number. */
  static const char *const odd[] = {"1", "-1", "1.5", "9007199254740994", "1e300", "\"1\"", "null"};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    char hostile[256];
    snprintf(hostile, sizeof hostile,
             "{\"type\":\"bridge/credit\",\"id\":\"x\",\"payload\":{\"callId\":\"a\","
             "\"chunks\":%s,\"bytes\":0}}",
             odd[i]);
    assert_int_equal(abp_receive(app, hostile, strlen(hostile)), ABP_OK);
    assert_int_equal(abp_next(app, &action), 0);
    assert_int_equal(abp_count(app, ABP_OVERRUN), i + 1);
  }
  pair_close(&streams);
}

static void a_call_says_which_one_it_repeats(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  static const char *const repeats[] = {"null", "1", "\"earlier\"", "\"a\""};
  for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"type\":\"capabilities/call\",\"id\":\"m\",\"payload\":{\"capability\":\"work\","
             "\"options\":{\"callId\":\"a\",\"repeats\":%s}}}",
             repeats[i]);
    assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
    abp_action action = {0};
    while (abp_next(app, &action)) {
      if (action.kind == ABP_START) break;
    }
    const abp_call call = action.call;
    while (abp_next(app, &action)) {
    }
    assert_int_equal(abp_postpone(app, call), ABP_OK);
    assert_int_equal(abp_finish(app, call, ABP_CANCELLED), ABP_OK);
    while (abp_next(app, &action)) {
    }
    abp_outcome outcome;
    abp_call running;
    assert_int_equal(abp_became(app, &(const abp_id){.text = "a", .length = 1}, &outcome, &running),
                     i < 2 ? ABP_FATE_UNSTARTED : ABP_FATE_NONE);
  }
}

static void a_question_says_which_call_of_its_agent_it_is_about(void **state) {
  (void)state;
  abp_endpoint *agent = pair.agent.endpoint, *app = pair.app.endpoint;
  assert_int_equal(pair_call(&pair, "mine", "work", 100), ABP_OK);
  pair_run(&pair);
  const abp_body ask = {.name = "elicitation/confirm", .name_length = 19};
  const abp_call root = pair_handle(&pair.app, "mine");
  abp_action action;
  abp_call child = 0, question;
  assert_int_equal(abp_call_local(app, root, 0, ABP_NO_ERROR), ABP_OK);
  while (abp_next(app, &action))
    if (action.kind == ABP_START) child = action.call;
  assert_int_equal(abp_request(app, NULL, 0, 0, 0, &question), ABP_OK);
  assert_null(strstr(said(app, &ask), "callId")); /* it is about none */
  assert_int_equal(abp_request(app, NULL, 0, 0, child, &question), ABP_OK);
  const char *text = said(app, &ask);
  assert_non_null(strstr(text, "\"payload\":{\"method\":\"elicitation/confirm\","
                               "\"callId\":\"mine\"}"));
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  abp_call asked = 0;
  while (abp_next(agent, &action))
    if (action.kind == ABP_START) asked = action.call;
  assert_int_equal(abp_advance(agent, pair.now + 5000), ABP_OK);
  assert_int_equal(abp_next(agent, &action), 0);
  assert_int_equal(abp_finish(agent, asked, ABP_COMPLETED), ABP_OK);
  const abp_body answer = {.payload = "{\"success\":true}", .payload_length = 16};
  assert_non_null(strstr(said(agent, &answer), "\"type\":\"elicitation/response\""));
  /* Those of other peers say nothing, or anything. */
  static const char *const odd[] = {"1", "null", "\"\"", "\"other\"", "{\"a\":1}"};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    char message[256];
    snprintf(message, sizeof message,
             "{\"type\":\"elicitation/request\",\"id\":\"q%zu\",\"payload\":{\"method\":\"x\","
             "\"callId\":%s}}",
             i, odd[i]);
    assert_int_equal(abp_receive(agent, message, strlen(message)), ABP_OK);
    assert_int_equal(abp_next(agent, &action), 1);
    assert_int_equal(action.kind, ABP_START);
    while (abp_next(agent, &action)) {
    }
  }
  assert_int_equal(abp_advance(agent, pair.now + 5100), ABP_OK);
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.arg, ABP_MSG_CANCEL);
}

static void an_input_is_an_elicitation_that_streams(void **state) {
  (void)state;
  const abp_config config = {
      .features = ABP_STREAMS | ABP_ELICITATION, .stream_chunks = 3, .stream_bytes = 99};
  abp_config agent_config = config, app_config = config;
  agent_config.seed[0] = 1;
  app_config.role = ABP_APP;
  agent_config.stream_chunks = 2; /* the app knows, and asks for no more */
  static struct pair streams;
  memset(&streams, 0, sizeof streams);
  assert_true(pair_open(&streams, &agent_config, &app_config));
  abp_endpoint *agent = streams.agent.endpoint, *app = streams.app.endpoint;
  const abp_body ask = {.name = "bridge/input",
                        .name_length = 12,
                        .payload = "{\"callId\":\"c\"}",
                        .payload_length = 14};
  abp_call reading;
  assert_int_equal(abp_request(app, NULL, 0, ABP_WANTS_STREAM, 0, &reading), ABP_OK);
  const char *text = said(app, &ask);
  assert_non_null(strstr(text, "\"type\":\"elicitation/request\""));
  assert_non_null(strstr(text,
                         "\"payload\":{\"method\":\"bridge/input\",\"params\":{\"callId\":\"c\"},"
                         "\"stream\":{\"chunks\":2,\"bytes\":99}}"));
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  assert_memory_equal(abp_received(agent)->name, "bridge/input", 12);
  abp_action action;
  abp_call source = 0;
  while (abp_next(agent, &action))
    if (action.kind == ABP_START) source = action.call;
  assert_int_equal(abp_stream_wanted(agent, source), 1);
  const abp_body row = {.payload = "[1]", .payload_length = 3};
  assert_int_equal(abp_chunk(agent, source, 7), ABP_OK);
  text = said(agent, &row);
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
  assert_memory_equal(abp_received(app)->payload, "[1]", 3);
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_CHUNK);
  assert_int_equal(action.call, reading);
  assert_int_equal(abp_chunk_read(app, reading, action.at), ABP_OK);
  text = said(app, NULL);
  assert_non_null(strstr(text, "\"type\":\"bridge/credit\""));
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  assert_int_equal(abp_next(agent, &action), 0);
  /* An app that wants no more says so in a message of its own, and waits for no answer. */
  assert_int_equal(abp_cancel(app, reading, "enough", 6), ABP_OK);
  text = said(app, NULL);
  assert_non_null(strstr(text, "\"type\":\"bridge/cancel\""));
  assert_non_null(strstr(text, "\"reason\":\"enough\""));
  assert_null(strstr(text, "\"id\""));
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK); /* an echo */
  assert_int_equal(abp_count(app, ABP_UNKNOWN_TYPE), 1);
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.kind, ABP_ABORT);
  assert_int_equal(action.call, source);
  assert_int_equal(action.length, 6);
  while (abp_next(agent, &action)) {
  }
  assert_int_equal(abp_finish(agent, source, ABP_CANCELLED), ABP_OK);
  text = said(agent, NULL);
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
  assert_int_equal(abp_next(app, &action), 0);
  assert_int_equal(abp_count(app, ABP_LATE), 1);
  pair_close(&streams);
}

/* What the agent is told became of the work of a call, by a result with this payload. */
static abp_fate told(const char *payload) {
  static int calls;
  char id[12], text[256];
  abp_endpoint *agent = pair.agent.endpoint;
  abp_call call;
  abp_action action;
  snprintf(id, sizeof id, "w%d", ++calls);
  const abp_id key = {id, (uint32_t)strlen(id), 0};
  assert_int_equal(abp_request(agent, &key, 0, 0, 0, &call), ABP_OK);
  while (abp_next(agent, &action)) {
  }
  snprintf(text, sizeof text,
           "{\"type\":\"capabilities/call-result\",\"id\":\"%s\",\"payload\":%s}", id, payload);
  assert_int_equal(abp_receive(agent, text, strlen(text)), ABP_OK);
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.kind, ABP_SETTLE);
  while (abp_next(agent, &(abp_action){0})) {
  }
  return action.fate;
}

static void what_became_of_the_work_is_what_the_result_says(void **state) {
  (void)state;
  char payload[160];
  for (int fate = ABP_FATE_UNSTARTED; fate <= ABP_FATE_FAILED; fate++) {
    snprintf(payload, sizeof payload,
             "{\"success\":false,\"cancelled\":true,\"metadata\":{\"outcome\":\"%s\"}}",
             abp_fate_name(fate));
    assert_int_equal(told(payload), fate);
  }
  /* Who does not say it is not guessed at. */
  assert_int_equal(told("{\"success\":false,\"cancelled\":true}"), ABP_FATE_UNKNOWN);
  assert_int_equal(
      told("{\"success\":false,\"cancelled\":true,\"metadata\":{\"outcome\":\"gone\"}}"),
      ABP_FATE_UNKNOWN);
  assert_int_equal(told("{\"success\":false,\"cancelled\":true,\"metadata\":{\"outcome\":\"\"}}"),
                   ABP_FATE_UNKNOWN);
  assert_int_equal(told("{\"success\":false,\"error\":{\"code\":\"OWN\"}}"), ABP_FATE_FAILED);
  assert_int_equal(told("{\"success\":true}"), ABP_FATE_NONE);
  assert_string_equal(abp_fate_name(-1), "");
  assert_string_equal(abp_fate_name(ABP_FATE_FAILED + 1), "");
}

static void a_payload_passes_through_untouched(void **state) {
  (void)state;
  const char *params = "{ \"a\" : 9007199254740993, \"b\":[0.30000000000000004, 1e400], "
                       "\"c\\u0065\":\"\\ud83d\\ude00\" }";
  char text[512];
  snprintf(text, sizeof text,
           "{\"id\":\"x\",\"payload\":{\"capability\":\"we\\\"ird\",\"params\":%s,\"options\":{"
           "\"callId\":\"y\"}},\"type\":\"capabilities/call\"}",
           params);
  assert_int_equal(tell(text), ABP_OK);
  const abp_body *body = abp_received(pair.app.endpoint);
  assert_int_equal(body->payload_length, strlen(params));
  assert_memory_equal(body->payload, params, strlen(params));
  assert_int_equal(body->name_length, strlen("we\"ird"));
  assert_memory_equal(body->id, "\"x\"", 3);
  pair_drain(&pair.app);
  assert_int_not_equal(pair_handle(&pair.app, "y"), 0);
}

/* What the app under test says of a call that its handler could not do. */
static void says_error(const abp_action *action, abp_error error, const char *message,
                       const char *expected) {
  const abp_body body = {.id = "\"m\"", .id_length = 3};
  size_t length;
  const char *text = abp_print_error(pair.app.endpoint, action, &body, error, message, 42, &length);
  assert_non_null(text);
  assert_int_equal(strlen(text), length);
  assert_non_null(strstr(text, "\"type\":\"capabilities/call-result\""));
  assert_non_null(strstr(text, "\"id\":\"m\""));
  if (!strstr(text, expected)) fail_msg("%s is not in %s", expected, text);
}

static void a_handlers_error_is_said_with_its_message_or_that_of_its_code(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  assert_int_equal(pair_call(&pair, "c", "work", 0), ABP_OK);
  pair_run(&pair);
  assert_int_equal(abp_finish(app, pair_handle(&pair.app, "c"), ABP_COMPLETED), ABP_OK);
  abp_action action;
  assert_true(abp_next(app, &action));
  assert_int_equal(action.kind, ABP_RESULT);
  says_error(
      &action, ABP_INVALID_PARAMS, "\"limit\" is missing",
      "\"payload\":{\"success\":false,\"error\":{\"code\":\"INVALID_PARAMS\",\"message\":"
      "\"\\\"limit\\\" is missing\",\"retryable\":false},\"metadata\":{\"outcome\":\"failed\"}}");
  const char *of_code = abp_error_message(ABP_RATE_LIMITED);
  says_error(&action, ABP_RATE_LIMITED, NULL, of_code);
  says_error(&action, ABP_RATE_LIMITED, "\xff", of_code);
  assert_false(abp_next(app, &action));
}

static void a_cancelled_call_says_so_whatever_error_its_handler_has(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  assert_int_equal(pair_call(&pair, "c", "work", 0), ABP_OK);
  pair_run(&pair);
  assert_int_equal(abp_cancel(pair.agent.endpoint, pair_handle(&pair.agent, "c"), NULL, 0), ABP_OK);
  pair_drain(&pair.agent);
  pair_run(&pair);
  assert_int_equal(abp_finish(app, pair_handle(&pair.app, "c"), ABP_COMPLETED), ABP_OK);
  abp_action action;
  assert_true(abp_next(app, &action));
  assert_int_equal(action.kind, ABP_RESULT);
  says_error(&action, ABP_OPERATION_FAILED, "broken",
             "\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\"");
  assert_false(abp_next(app, &action));
}

static void progress_may_have_a_total_and_a_stage(void **state) {
  (void)state;
  static const char *const said[][2] = {
      {"{\"progress\":3,\"total\":10}", "{\"operationId\":\"c\",\"progress\":3,\"total\":10}"},
      {"{ \"stage\":\"x\" }", "{\"operationId\":\"c\",\"stage\":\"x\" }"},
      {"{ }", "{\"operationId\":\"c\"}"},
      {"{}", "{\"operationId\":\"c\"}"},
  };
  abp_endpoint *app = pair.app.endpoint;
  assert_int_equal(pair_call(&pair, "c", "work", 0), ABP_OK);
  pair_run(&pair);
  const abp_call running = pair_handle(&pair.app, "c");
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    size_t length;
    const char *text =
        abp_print_progress(app, running, said[i][0], strlen(said[i][0]), 42, &length);
    if (!strstr(text, said[i][1])) fail_msg("%s is not in %s", said[i][1], text);
    assert_int_equal(abp_receive(pair.agent.endpoint, text, length), ABP_OK);
    pair_drain(&pair.agent);
  }
}

/* What one side prints, the other reads. */
static void progress_and_notifications_arrive_as_they_were_said(void **state) {
  (void)state;
  abp_endpoint *agent = pair.agent.endpoint, *app = pair.app.endpoint;
  size_t length;
  assert_int_equal(pair_call(&pair, "c", "work", 0), ABP_OK);
  pair_run(&pair);
  const abp_call running = pair_handle(&pair.app, "c");
  assert_true(abp_progress_wanted(app, running));
  const char *text = abp_print_progress(app, running, "0.50", 4, 42, &length);
  assert_int_equal(abp_receive(agent, text, length), ABP_OK);
  const abp_body *body = abp_received(agent);
  assert_non_null(strstr(body->payload, "\"progress\":0.50"));
  abp_action action;
  assert_true(abp_next(agent, &action));
  assert_int_equal(action.kind, ABP_REPORT);
  assert_int_equal(action.call, pair_handle(&pair.agent, "c"));
  assert_false(abp_next(agent, &action));

  const abp_body news = {.name = "e\"", .name_length = 2, .payload = "[1.0]", .payload_length = 5};
  text = abp_print_notification(app, &news, 42, &length);
  assert_int_equal(abp_receive(agent, text, length), ABP_OK);
  body = abp_received(agent);
  assert_int_equal(body->name_length, 2);
  assert_memory_equal(body->name, "e\"", 2);
  assert_int_equal(body->payload_length, 5);
  assert_memory_equal(body->payload, "[1.0]", 5);
  assert_false(abp_next(agent, &action));
}

static void progress_names_the_token_that_the_caller_chose(void **state) {
  (void)state;
  static const char *const tokens[] = {"\"to\\\"ken\"", "7", NULL};
  abp_endpoint *app = pair.app.endpoint;
  for (int i = 0; i < 3; i++) {
    char text[256], kept[16], expected[64];
    snprintf(text, sizeof text,
             "{\"type\":\"capabilities/call\",\"id\":\"m%d\",\"payload\":{\"capability\":\"work\","
             "\"callId\":\"c%d\",\"options\":{%s%s}}}",
             i, i, tokens[i] ? "\"progressToken\":" : "", tokens[i] ? tokens[i] : "");
    assert_int_equal(tell(text), ABP_OK);
    abp_body body = *abp_received(app);
    assert_int_equal(body.token_length, tokens[i] ? strlen(tokens[i]) : 0);
    if (body.token) {
      memcpy(kept, body.token, body.token_length);
      body.token = kept; /* as one keeps it with the call */
    }
    pair_drain(&pair.app);
    body.payload = "0.5";
    body.payload_length = 3;
    size_t length;
    char id[8];
    snprintf(id, sizeof id, "c%d", i);
    const abp_call call = pair_handle(&pair.app, id);
    assert_int_equal(abp_progress_wanted(app, call), tokens[i] != NULL);
    const char *printed = abp_print_progress_token(app, call, &body, 42, &length);
    assert_non_null(printed);
    snprintf(expected, sizeof expected, "\"operationId\":%s,\"progress\":0.5",
             tokens[i] ? tokens[i] : "\"c2\"");
    assert_non_null(strstr(printed, expected));
  }
}

static void a_notification_may_be_wrapped_as_method_and_params(void **state) {
  (void)state;
  static const char text[] =
      "{\"type\":\"notification\",\"payload\":{\"method\":\"m\",\"params\":[1]}}";
  assert_int_equal(abp_receive(pair.agent.endpoint, text, sizeof text - 1), ABP_OK);
  const abp_body *body = abp_received(pair.agent.endpoint);
  assert_int_equal(body->name_length, 1);
  assert_memory_equal(body->name, "m", 1);
  assert_int_equal(body->payload_length, 3);
  assert_memory_equal(body->payload, "[1]", 3);
}

static void options_that_are_null_are_absent(void **state) {
  (void)state;
  assert_int_equal(tell("{\"type\":\"capabilities/call\",\"id\":\"x\",\"payload\":{\"capability\":"
                        "\"work\",\"callId\":null,\"options\":{\"callId\":null,\"timeout\":null,"
                        "\"progressToken\":null}}}"),
                   ABP_OK);
  pair_drain(&pair.app);
  const abp_call call = pair_handle(&pair.app, "x");
  assert_int_not_equal(call, 0);
  assert_false(abp_progress_wanted(pair.app.endpoint, call));
}

static void an_endpoint_that_has_heard_nothing_has_received_nothing(void **state) {
  (void)state;
  const abp_config config = {.role = ABP_APP};
  abp_endpoint *ep = abp_new(&config, 0);
  assert_null(abp_received(ep)->id);
  assert_int_equal(abp_session_state(ep), ABP_SESSION_NONE);
  abp_free(ep);
  abp_free(NULL);
}

static void a_side_says_at_most_four_things_of_itself_and_each_anew(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  assert_int_equal(abp_describe(app, "app", "{\"id\":\"new\"}", 12), ABP_OK);
  assert_int_equal(abp_describe(app, "third", "3", 1), ABP_OK);
  assert_int_equal(abp_describe(app, "a-name-that-is-far-too-long", "0", 1), ABP_E_LIMIT);
  assert_int_equal(abp_describe(app, "fourth", "4", 1), ABP_OK);
  assert_int_equal(abp_describe(app, "fifth", "5", 1), ABP_E_LIMIT);
  abp_lost(app);
  pair_drain(&pair.app);
  const char *text = answer("{\"type\":\"initialize\",\"id\":\"i\"}");
  assert_non_null(strstr(text, "{\"id\":\"new\"}"));
  assert_non_null(strstr(text, "\"fourth\":4"));
  assert_null(strstr(text, "fifth"));
}

/* Under AddressSanitizer: memory that has been freed must not be read. */
static void an_id_struct_may_be_gone_when_its_cancel_is_printed(void **state) {
  (void)state;
  abp_id *id = malloc(sizeof *id);
  assert_non_null(id);
  *id = (abp_id){"somebody's", 10, 0};
  abp_call request;
  assert_int_equal(abp_cancel_by_id(pair.agent.endpoint, id, NULL, 0, &request), ABP_OK);
  free(id);
  abp_action action;
  assert_int_equal(abp_next(pair.agent.endpoint, &action), 1);
  size_t length;
  const char *text = abp_print(pair.agent.endpoint, &action, NULL, 42, &length);
  assert_non_null(text);
  assert_non_null(strstr(text, "\"callId\":\"somebody's\""));
}

/* Under AddressSanitizer, as above. */
static void a_message_that_is_gone_is_not_printed_from(void **state) {
  (void)state;
  char *text = malloc(64);
  assert_non_null(text);
  strcpy(text, "{\"type\":\"notification\",\"id\":\"gone\",\"payload\":{}}");
  assert_int_equal(abp_receive(pair.app.endpoint, text, strlen(text)), ABP_OK);
  free(text);
  const abp_id id = {"call", 4, 0};
  abp_action action;
  assert_int_equal(abp_call_received(pair.app.endpoint, &id, 0, 0, ABP_UNKNOWN_CAPABILITY), ABP_OK);
  assert_null(abp_received(pair.app.endpoint)->id);
  assert_int_equal(abp_next(pair.app.endpoint, &action), 1);
  assert_int_equal(action.kind, ABP_REFUSE);
  size_t length;
  const char *refusal = abp_print(pair.app.endpoint, &action, NULL, 42, &length);
  assert_non_null(strstr(refusal, "UNKNOWN_CAPABILITY"));
  assert_null(strstr(refusal, "gone"));
}

/* --- What an acknowledged cancel decides at its caller -----------------------------------------
 */

static char last_line[128];

static void on_log(struct pair *at, const char *line) {
  (void)at;
  snprintf(last_line, sizeof last_line, "%s", line);
}

/* The agent hears a message of an app's that keeps its own counsel. */
static void agent_hears(const char *type, const char *id, const char *payload) {
  char text[256];
  snprintf(text, sizeof text, "{\"type\":\"%s\",\"id\":\"%s\",\"payload\":%s}", type, id, payload);
  assert_int_equal(abp_receive(pair.agent.endpoint, text, strlen(text)), ABP_OK);
  pair_drain(&pair.agent);
}

/* Calls A, lets the agent cancel it, and returns the cancel's id: the app is told of neither. */
static const char *cancelled_call(uint32_t timeout_ms) {
  static char ids[2][80];
  static int turn;
  char *id = ids[turn ^= 1];
  pair.log = on_log;
  last_line[0] = 0;
  assert_int_equal(pair_call(&pair, "A", "work", timeout_ms), ABP_OK);
  if (timeout_ms)
    abp_advance(pair.agent.endpoint, pair.now += timeout_ms);
  else
    abp_cancel(pair.agent.endpoint, pair_handle(&pair.agent, "A"), NULL, 0);
  pair_drain(&pair.agent);
  for (id[0] = 0; pair.app.first < pair.app.last;) {
    char *text = pair.app.inbox[pair.app.first++];
    const char *at = strstr(text, "},\"id\":\"");
    if (strstr(text, "capabilities/cancel") && at) sscanf(at + 8, "%79[^\"]", id);
    free(text);
  }
  pair.app.first = pair.app.last = 0;
  assert_int_not_equal(id[0], 0);
  return id;
}

#define ACK "capabilities/cancel-result"
#define RESULT "capabilities/call-result"
#define SUCCESS "{\"success\":true,\"data\":1}"
#define FAILURE "{\"success\":false,\"error\":{\"code\":\"OPERATION_FAILED\"}}"

static void a_result_after_an_acknowledged_cancel_settles_as_cancelled(void **state) {
  (void)state;
  for (int fails = 0; fails < 2; fails++) {
    agent_hears(ACK, cancelled_call(0), "{\"callId\":\"A\",\"cancelled\":true}");
    assert_string_equal(last_line, "");
    agent_hears(RESULT, "A", fails ? FAILURE : SUCCESS);
    assert_string_equal(last_line, "agent: A cancelled");
  }
}

static void a_result_after_the_acknowledged_cancel_of_a_clock_settles_as_timed_out(void **state) {
  (void)state;
  agent_hears(ACK, cancelled_call(10), "{\"callId\":\"A\",\"cancelled\":true}");
  agent_hears(RESULT, "A", FAILURE);
  assert_string_equal(last_line, "agent: A timed out");
}

static void
an_acknowledged_cancel_waits_for_its_result_no_longer_than_the_grace_period(void **state) {
  (void)state;
  const char *id = cancelled_call(0);
  abp_advance(pair.agent.endpoint, pair.now += ABP_DEFAULT_AGENT_GRACE_MS - 1);
  pair_drain(&pair.agent);
  agent_hears(ACK, id, "{\"callId\":\"A\",\"cancelled\":true}");
  assert_string_equal(last_line, "");
  abp_advance(pair.agent.endpoint, pair.now += 1);
  pair_drain(&pair.agent);
  assert_string_equal(last_line, "agent: A cancelled");
}

static void a_cancel_that_was_not_accepted_leaves_the_decision_to_the_result(void **state) {
  (void)state;
  agent_hears(ACK, cancelled_call(0), "{\"callId\":\"A\",\"cancelled\":false}");
  agent_hears(RESULT, "A", SUCCESS);
  assert_string_equal(last_line, "agent: A completed");
}

static void
a_late_acknowledgement_is_not_taken_for_that_of_a_later_call_of_the_same_id(void **state) {
  (void)state;
  const char *first = cancelled_call(0);
  agent_hears(RESULT, "A", SUCCESS);
  assert_string_equal(last_line, "agent: A completed");
  cancelled_call(0);
  agent_hears(ACK, first, "{\"callId\":\"A\",\"cancelled\":true}");
  agent_hears(RESULT, "A", SUCCESS);
  assert_string_equal(last_line, "agent: A completed");
}

static void an_id_that_is_nearly_a_cancel_s_acknowledges_nothing(void **state) {
  (void)state;
  char id[96];
  for (int odd = 0; odd < 3; odd++) {
    snprintf(id, sizeof id, "%s", cancelled_call(0));
    char *last = id + strlen(id) - 1;
    if (odd == 0)
      *last = 0;
    else if (odd == 1)
      *last = 'g';
    else
      strcat(id, "0");
    agent_hears(ACK, id, "{\"callId\":\"A\",\"cancelled\":true}");
    agent_hears(RESULT, "A", SUCCESS);
    assert_string_equal(last_line, "agent: A completed");
  }
  assert_int_equal(abp_count(pair.agent.endpoint, ABP_STRAY), 3);
}

/* --- An app that is not ours ------------------------------------------------------------------ */

static int open_foreign(void **state) {
  (void)state;
  const abp_config agent = {.role = ABP_AGENT, .seed = {1}};
  const abp_config app = {
      .role = ABP_APP, .seed = {2}, .foreign = 1, .grace_ms = 50, .max_text = 2048};
  memset(&pair, 0, sizeof pair);
  return !pair_open(&pair, &agent, &app);
}

/* What the app says next, all of it, line by line; printed when all was taken. */
static const char *app_says(void) {
  static char lines[8192];
  abp_action actions[64];
  int count = 0;
  size_t used = 0, length;
  lines[0] = 0;
  while (abp_next(pair.app.endpoint, &actions[count]))
    count++;
  for (int i = 0; i < count; i++) {
    const abp_body body = {
        .payload = "{\"success\":true}", .payload_length = 16, .id = "1", .id_length = 1};
    if (actions[i].kind != ABP_SEND && actions[i].kind != ABP_RESULT) continue;
    const char *text = abp_print(pair.app.endpoint, &actions[i], &body, 42, &length);
    assert_non_null(text);
    used += (size_t)snprintf(lines + used, sizeof lines - used, "%s\n", text);
  }
  return lines;
}

#define CANCEL(id, call)                                                                           \
  "{\"type\":\"capabilities/cancel\",\"id\":" id ",\"payload\":{\"callId\":" call "}}"
#define CANCEL_SAYS(id, call, says)                                                                \
  "{\"payload\":{\"callId\":" call ",\"cancelled\":" says "},\"id\":" id                           \
  ",\"type\":\"capabilities/cancel-result\",\"timestamp\":42}\n"
#define FALSE(reason) "false,\"reason\":\"" reason "\""
#define RESULT_SAYS(payload)                                                                       \
  "{\"id\":1,\"payload\":" payload ",\"type\":\"capabilities/call-result\",\"timestamp\":42}\n"

/* A call `a` runs and is asked to stop, twice. */
static abp_call asked(void) {
  assert_int_equal(tell("{\"type\":\"capabilities/call\",\"id\":1,\"payload\":{\"capability\":"
                        "\"work\",\"options\":{\"callId\":\"a\"}}}"),
                   ABP_OK);
  abp_action action = {0};
  abp_call call = 0;
  while (abp_next(pair.app.endpoint, &action))
    if (action.kind == ABP_START) call = action.call;
  assert_true(call);
  assert_int_equal(tell(CANCEL("\"x\"", "\"a\"")), ABP_OK);
  assert_string_equal(app_says(), "");
  assert_int_equal(tell(CANCEL("[7]", "\"\\u0061\"")), ABP_OK);
  assert_string_equal(app_says(), "");
  return call;
}

static void a_foreign_apps_cancels_are_answered_to_their_ids_when_its_word_comes(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  assert_int_equal(abp_finish(ep, asked(), ABP_COMPLETED), ABP_OK);
  assert_string_equal(app_says(),
                      CANCEL_SAYS("\"x\"", "\"a\"", FALSE("Operation already completed"))
                          CANCEL_SAYS("[7]", "\"\\u0061\"", FALSE("Operation already completed"))
                              RESULT_SAYS("{\"success\":true}"));
  assert_int_equal(tell(CANCEL("3", "\"a\"")), ABP_OK);
  assert_string_equal(app_says(), CANCEL_SAYS("3", "\"a\"", FALSE("Operation already completed")));
}

#define CANCELLED_IS(more)                                                                         \
  RESULT_SAYS("{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\","           \
              "\"message\":\"The operation was cancelled\",\"retryable\":false}" more "}")

static void a_foreign_app_that_says_cancelled_is_believed(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  assert_int_equal(abp_finish(ep, asked(), ABP_CANCELLED), ABP_OK);
  assert_string_equal(app_says(), CANCEL_SAYS("\"x\"", "\"a\"", "true")
                                      CANCEL_SAYS("[7]", "\"\\u0061\"", "true")
                                          CANCELLED_IS(",\"metadata\":{\"outcome\":\"unknown\"}"));
}

static void a_foreign_app_that_accepts_a_cancel_is_held_to_it(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  const abp_call call = asked();
  assert_int_equal(abp_cancel_answered(ep, call, 1, NULL, 0), ABP_OK);
  assert_string_equal(app_says(), CANCEL_SAYS("\"x\"", "\"a\"", "true")
                                      CANCEL_SAYS("[7]", "\"\\u0061\"", "true"));
  assert_int_equal(abp_cancel_answered(ep, call, 0, "no", 2), ABP_OK); /* too late */
  assert_string_equal(app_says(), "");
  assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_OK);
  assert_string_equal(app_says(), CANCELLED_IS(",\"metadata\":{\"outcome\":\"finished\"}"));
  assert_int_equal(abp_cancel_answered(ep, call, 0, "no", 2), ABP_OK); /* and void */
  assert_string_equal(app_says(), "");
}

static void a_foreign_app_that_declines_says_why_and_its_result_decides(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  const abp_call call = asked();
  assert_int_equal(abp_cancel_answered(ep, call, 0, "too late", 8), ABP_OK);
  assert_string_equal(app_says(), CANCEL_SAYS("\"x\"", "\"a\"", FALSE("too late"))
                                      CANCEL_SAYS("[7]", "\"\\u0061\"", FALSE("too late")));
  /* It goes on, and another cancel asks again. */
  assert_int_equal(abp_advance(ep, 50), ABP_OK);
  assert_string_equal(app_says(), "");
  assert_int_equal(tell(CANCEL("3", "\"a\"")), ABP_OK);
  abp_action action;
  assert_true(abp_next(ep, &action));
  assert_int_equal(action.kind, ABP_ABORT);
  assert_string_equal(app_says(), "");
  assert_int_equal(abp_cancel_answered(ep, call, 0, "\xff", 1), ABP_OK);
  assert_string_equal(app_says(), CANCEL_SAYS("3", "\"a\"", FALSE("The app declined the cancel")));
  assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_OK);
  assert_string_equal(app_says(), RESULT_SAYS("{\"success\":true}"));
}

static void a_foreign_app_that_says_nothing_leaves_it_unknown(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  for (int by_itself = 0; by_itself < 2; by_itself++) {
    const abp_call call = asked();
    if (by_itself)
      assert_int_equal(abp_finish(ep, call, ABP_UNKNOWN), ABP_OK);
    else
      assert_int_equal(abp_advance(ep, 50), ABP_OK);
    assert_string_equal(
        app_says(),
        CANCEL_SAYS("\"x\"", "\"a\"", FALSE("It is not known whether the operation has stopped"))
            CANCEL_SAYS("[7]", "\"\\u0061\"",
                        FALSE("It is not known whether the operation has stopped"))
                CANCELLED_IS(",\"metadata\":{\"outcome\":\"unknown\"}"));
    /* What it says later changes nothing. */
    if (!by_itself) assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_OK);
    assert_string_equal(app_says(), "");
    assert_int_equal(tell(CANCEL("3", "\"a\"")), ABP_OK);
    assert_string_equal(
        app_says(),
        CANCEL_SAYS("3", "\"a\"", FALSE("It is not known whether the operation has stopped")));
  }
}

static void a_deadline_asks_a_foreign_app_too(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  assert_int_equal(tell("{\"type\":\"capabilities/call\",\"id\":1,\"payload\":{\"capability\":"
                        "\"work\",\"options\":{\"callId\":\"a\",\"timeout\":20}}}"),
                   ABP_OK);
  app_says();
  assert_int_equal(abp_advance(ep, 20), ABP_OK);
  abp_action action;
  assert_true(abp_next(ep, &action));
  assert_int_equal(action.kind, ABP_ABORT);
  assert_memory_equal(action.text, "Timeout", 7);
  assert_string_equal(app_says(), "");
  assert_int_equal(abp_advance(ep, 70), ABP_OK);
  assert_non_null(strstr(app_says(), "\"code\":\"TIMEOUT\""));
}

static void cancels_that_wait_are_bounded_and_end_with_the_session(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  asked();
  int held = 0;
  for (; held < 100; held++) {
    assert_int_equal(tell(CANCEL("\"an id of some length\"", "\"a\"")), ABP_OK);
    const char *text = app_says();
    if (!*text) continue;
    assert_non_null(strstr(text, "RATE_LIMITED"));
    assert_non_null(strstr(text, "\"cancelled\":false"));
    break;
  }
  assert_in_range(held, 10, 90);
  assert_in_range(ep->held_bytes, 1, 2048);
  assert_int_equal(tell("{\"type\":\"shutdown\"}"), ABP_OK);
  const char *text = app_says();
  int answers = 0;
  for (const char *at = text; (at = strstr(at, "It is not known")); at++)
    answers++;
  assert_int_equal(answers, held + 2);
  assert_int_equal(abp_advance(ep, 1), ABP_OK);
  assert_int_equal(ep->held_bytes, 0);
}

static void a_peer_that_is_gone_is_not_answered(void **state) {
  (void)state;
  abp_endpoint *ep = pair.app.endpoint;
  asked();
  assert_int_equal(abp_lost(ep), ABP_OK);
  assert_string_equal(app_says(), "");
  assert_int_equal(ep->held_bytes, 0);
}

/* Numbers that no integer holds, of a call that came: what a timer can wait, or no timeout. */
static void a_timeout_in_text_is_what_a_timer_can_wait(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t ms; /* 0: none */
  } timeouts[] = {
      {"20", 20},
      {"20.9", 21},
      {"2147483647", 0x7fffffffu},
      {"2147483648", 0x7fffffffu},
      {"4294967297", 0x7fffffffu},
      {"99999999999999999999", 0x7fffffffu},
      {"1e400", 0x7fffffffu},
      {"-1e400", 0},
      {"-1", 0},
      {"-0", 0},
      {"0", 0},
      {"0.9", 1},
      {"1e-400", 0},
      {"\"20\"", 0},
      {"[20]", 0},
      {"true", 0},
  };
  abp_endpoint *ep = pair.app.endpoint;
  for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
    char text[160];
    snprintf(text, sizeof text,
             "{\"type\":\"capabilities/call\",\"id\":\"%zu\",\"payload\":{\"capability\":"
             "\"work\",\"options\":{\"timeout\":%s}}}",
             i, timeouts[i].text);
    assert_int_equal(tell(text), ABP_OK);
    abp_action action;
    abp_call call = 0;
    while (abp_next(ep, &action))
      if (action.kind == ABP_START) call = action.call;
    assert_int_not_equal(call, 0);
    assert_int_equal(ep->calls.table.timer_count, timeouts[i].ms ? 1 : 0);
    if (timeouts[i].ms) {
      const struct call *at = table_call(&ep->calls.table, ep->calls.table.timers[0]);
      assert_int_equal(at->deadline, pair.now + timeouts[i].ms);
    }
    assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_OK);
    while (abp_next(ep, &action))
      continue;
  }
}

static void what_else_a_call_has_arrives_as_it_was_said(void **state) {
  (void)state;
  abp_endpoint *agent = pair.agent.endpoint, *app = pair.app.endpoint;
  const abp_body call = {.name = "work",
                         .name_length = 4,
                         .token = "[\"t\",1]",
                         .token_length = 7,
                         .key = "\"k\"",
                         .key_length = 3,
                         .repeats = "\"earlier\"",
                         .repeats_length = 9,
                         .input = 1};
  abp_call made;
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_PROGRESS, 0, &made), ABP_OK);
  char text[1024];
  snprintf(text, sizeof text, "%s", said(agent, &call));
  assert_non_null(strstr(text,
                         "\"progressToken\":[\"t\",1],\"input\":true,\"idempotencyKey\":\"k\","
                         "\"repeats\":\"earlier\"}"));
  assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
  const abp_body *came = abp_received(app);
  assert_memory_equal(came->token, call.token, call.token_length);
  assert_memory_equal(came->key, call.key, call.key_length);
  assert_memory_equal(came->repeats, call.repeats, call.repeats_length);
  assert_int_equal(came->input, 1);
  pair_drain(&pair.app);
}

static void a_call_may_be_looked_at_before_it_is_taken_in(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  static const char call[] = MESSAGE("capabilities/call", "\"c\"", "\"capability\":\"x\"");
  static const char other[] = MESSAGE("capabilities/cancel", "1", "\"callId\":\"c\"");
  abp_action action;
  assert_int_equal(abp_take(app, 0, ABP_NO_ERROR), ABP_E_STATE);
  assert_int_equal(abp_read(app, other, sizeof other - 1), ABP_OK);
  assert_int_equal(abp_read(app, call, sizeof call - 1), 1);
  assert_memory_equal(abp_received(app)->name, "x", 1);
  assert_false(abp_next(app, &action));
  /* Another input came between. */
  assert_int_equal(abp_advance(app, pair.now), ABP_OK);
  assert_int_equal(abp_take(app, 0, ABP_NO_ERROR), ABP_E_STATE);
  assert_int_equal(abp_read(app, call, sizeof call - 1), 1);
  assert_int_equal(abp_take(app, 0, ABP_UNKNOWN_CAPABILITY), ABP_OK);
  assert_int_equal(abp_take(app, 0, ABP_NO_ERROR), ABP_E_UNDRAINED);
  size_t length;
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_REFUSE);
  assert_non_null(strstr(abp_print(app, &action, NULL, 42, &length), "UNKNOWN_CAPABILITY"));
  assert_int_equal(abp_next(app, &action), 0);
  assert_int_equal(abp_read(app, call, sizeof call - 1), 1);
  assert_int_equal(abp_take(app, 0, ABP_NO_ERROR), ABP_OK);
  pair_drain(&pair.app);
  assert_true(pair_handle(&pair.app, "c"));
}

static void the_text_of_a_message_may_be_written_over_before_it_is_taken_in(void **state) {
  (void)state;
  abp_endpoint *app = pair.app.endpoint;
  char call[] = MESSAGE("capabilities/call", "7", "\"capability\":\"x\",\"params\":[1]");
  assert_int_equal(abp_read(app, call, sizeof call - 1), 1);
  memset(call, '\\', sizeof call);
  assert_memory_equal(abp_received(app)->payload, "[1]", 3);
  assert_int_equal(abp_take(app, 0, ABP_NO_ERROR), ABP_OK);
  pair_drain(&pair.app);
  assert_true(pair_handle(&pair.app, "7"));
}

/* How a call that its peer has answered so is said to have ended, and what became of its work. */
static void a_response_by_itself_is_read_as_in_its_message(void **state) {
  (void)state;
  static const struct {
    const char *json;
    abp_outcome outcome;
    abp_fate fate;
  } cases[] = {
      {"{\"success\":true}", ABP_COMPLETED, ABP_FATE_NONE},
      {"{\"success\":false,\"error\":{\"code\":\"X\"}}", ABP_COMPLETED, ABP_FATE_FAILED},
      {"{\"success\":false,\"error\":{\"code\":\"X\"},\"metadata\":{\"outcome\":\"finished\"}}",
       ABP_COMPLETED, ABP_FATE_FINISHED},
      {"{\"success\":false,\"cancelled\":true,\"metadata\":{\"outcome\":\"stopped\"}}",
       ABP_CANCELLED, ABP_FATE_STOPPED},
      {"{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"TIMEOUT\"}}", ABP_TIMED_OUT,
       ABP_FATE_UNKNOWN},
      {"{}", ABP_COMPLETED, ABP_FATE_FAILED},
      {"[", ABP_COMPLETED, ABP_FATE_FAILED},
      {"", ABP_COMPLETED, ABP_FATE_FAILED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    abp_endpoint *agent = pair.agent.endpoint;
    abp_call made;
    abp_action action;
    assert_int_equal(abp_request(agent, NULL, 0, 0, 0, &made), ABP_OK);
    assert_int_equal(abp_next(agent, &action), 1);
    const abp_id id = {NULL, 0, abp_number(agent, made)};
    while (abp_next(agent, &action)) {
    }
    assert_int_equal(abp_response_received(agent, &id, cases[i].json, strlen(cases[i].json)),
                     ABP_OK);
    assert_int_equal(abp_next(agent, &action), 1);
    assert_int_equal(action.kind, ABP_SETTLE);
    assert_int_equal(action.arg, cases[i].outcome);
    assert_int_equal(action.fate, cases[i].fate);
  }
}

static void a_handler_may_settle_with_a_response(void **state) {
  (void)state;
  enum { SAID = ABP_RESPONSE_GIVEN | ABP_RESPONSE_FORMED };
  static const struct {
    const char *json;
    abp_response number;
    abp_outcome outcome;
    abp_fate fate;
  } cases[] = {
      {"{\"success\":true}", SAID | ABP_RESPONSE_SUCCEEDS, ABP_COMPLETED, ABP_FATE_FINISHED},
      {"{\"success\":false,\"error\":{\"code\":\"X\"}}", ABP_RESPONSE_PACKED, ABP_COMPLETED,
       ABP_FATE_FAILED},
      {"{\"success\":false,\"error\":{\"code\":\"CANCELLED\"}}",
       ABP_RESPONSE_PACKED | ABP_CANCELLED_ERROR, ABP_CANCELLED, ABP_FATE_STOPPED},
      {"{\"success\":false,\"cancelled\":true}", SAID | ABP_FAILURE_CANCELLED, ABP_CANCELLED,
       ABP_FATE_STOPPED},
      {"{\"success\":false,\"cancelled\":true,\"metadata\":{\"outcome\":\"unknown\"}}",
       SAID | ABP_FAILURE_CANCELLED | ABP_FATE_UNKNOWN << ABP_FAILURE_FATE_SHIFT, ABP_UNKNOWN,
       ABP_FATE_UNKNOWN},
      {"{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"TIMEOUT\"}}",
       ABP_RESPONSE_PACKED | ABP_FAILURE_CANCELLED | ABP_TIMEOUT_ERROR, ABP_COMPLETED,
       ABP_FATE_STOPPED},
      {"{\"success\":false,\"metadata\":{\"outcome\":\"running\"}}",
       SAID | ABP_FATE_RUNNING << ABP_FAILURE_FATE_SHIFT, ABP_CANCELLED, ABP_FATE_RUNNING},
      {"", 0, ABP_COMPLETED, ABP_FATE_FAILED},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    abp_endpoint *app = pair.app.endpoint;
    char text[256];
    snprintf(text, sizeof text,
             "{\"type\":\"capabilities/call\",\"id\":\"c%zu\",\"payload\":{\"capability\":\"x\"}}",
             i);
    assert_int_equal(abp_receive(app, text, strlen(text)), ABP_OK);
    abp_action action;
    abp_call call = 0;
    while (abp_next(app, &action))
      if (action.kind == ABP_START) call = action.call;
    const char *json = cases[i / 2].json;
    assert_int_equal(i & 1 ? abp_finish_with_outcome(app, call, cases[i / 2].number)
                           : abp_finish_with_response(app, call, json, strlen(json)),
                     ABP_OK);
    assert_int_equal(abp_next(app, &action), 1);
    assert_int_equal(action.kind, ABP_RESULT);
    assert_int_equal(action.arg,
                     cases[i / 2].outcome == ABP_UNKNOWN ? ABP_CANCELLED : cases[i / 2].outcome);
    assert_int_equal(action.fate, cases[i / 2].fate);
    while (abp_next(app, &action)) {
    }
  }
}

#define ERROR_X "{\"code\":\"X\",\"message\":\"m\",\"retryable\":true}"
#define SAID(error) "{\"success\":false,\"error\":" error "}"

static void what_a_call_without_success_is_told_is_composed_in_one_place(void **state) {
  (void)state;
  static const struct {
    int agent;
    abp_kind kind;
    uint32_t arg;
    abp_fate fate;
    const char *response, *reason;
    int expired, repeatable;
    const char *said;
  } cases[] = {
      /* The error of who ran it stands. */
      {1, ABP_SETTLE, ABP_COMPLETED, ABP_FATE_FAILED, SAID(ERROR_X), NULL, 0, 0,
       SAID(ERROR_X) "\"failed\""},
      {1, ABP_SETTLE, ABP_COMPLETED, ABP_FATE_FAILED, "{\"success\":false,\"error\":\"words\"}",
       NULL, 0, 0,
       SAID("{\"code\":\"OPERATION_FAILED\",\"message\":\"words\",\"retryable\":false}") "\"failed"
                                                                                         "\""},
      {1, ABP_SETTLE, ABP_COMPLETED, ABP_FATE_FAILED, "{\"success\":false}", NULL, 0, 0,
       SAID("{\"code\":\"OPERATION_FAILED\",\"message\":\"The operation failed, and no reason was "
            "given\",\"retryable\":false}") "\"failed\""},
      {1, ABP_SETTLE, ABP_COMPLETED, ABP_FATE_FAILED, "{}", NULL, 0, 0,
       SAID("{\"code\":\"OPERATION_FAILED\",\"message\":\"The other side's answer is not an ABP "
            "response: { success, data, error }\",\"retryable\":false}") "\"failed\""},
      {0, ABP_RESULT, ABP_COMPLETED, ABP_FATE_FAILED, SAID(ERROR_X), NULL, 0, 0,
       SAID(ERROR_X) "\"failed\""},
      /* Who cancelled it says why. */
      {1, ABP_SETTLE, ABP_CANCELLED, ABP_FATE_STOPPED, NULL, "why", 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\",\"message\":"
       "\"why\","
       "\"retryable\":false}}\"stopped\""},
      {1, ABP_SETTLE, ABP_CANCELLED, ABP_FATE_STOPPED, SAID(ERROR_X), "", 1, 1,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"TIMEOUT\",\"message\":\"The "
       "operation took longer than its timeout\",\"retryable\":true}}\"stopped\""},
      {1, ABP_SETTLE, ABP_TIMED_OUT, ABP_FATE_UNKNOWN, NULL, "why", 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"TIMEOUT\",\"message\":\"The "
       "operation took longer than its timeout\",\"retryable\":false}}\"unknown\""},
      {1, ABP_SETTLE, ABP_DISCONNECTED, ABP_FATE_UNSTARTED, NULL, "the socket closed", 0, 0,
       SAID(
           "{\"code\":\"DISCONNECTED\",\"message\":\"the socket closed\",\"retryable\":true}") "\"u"
                                                                                               "nst"
                                                                                               "art"
                                                                                               "ed"
                                                                                               "\""},
      /* If the app did by itself, its error stands; what it says after that is no more than words.
       */
      {1, ABP_SETTLE, ABP_CANCELLED, ABP_FATE_STOPPED,
       "{\"success\":false,\"cancelled\":true,\"error\":" ERROR_X
       ",\"metadata\":{\"outcome\":\"finished\"}}",
       NULL, 0, 0, "{\"success\":false,\"cancelled\":true,\"error\":" ERROR_X "}\"finished\""},
      {1, ABP_SETTLE, ABP_CANCELLED, ABP_FATE_STOPPED, SAID(ERROR_X), NULL, 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\",\"message\":\"m\","
       "\"retryable\":false}}\"stopped\""},
      {0, ABP_RESULT, ABP_CANCELLED, ABP_FATE_STOPPED, SAID(ERROR_X), NULL, 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":" ERROR_X "}\"stopped\""},
      {0, ABP_RESULT, ABP_CANCELLED, ABP_FATE_STOPPED, SAID(ERROR_X), "why", 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\",\"message\":"
       "\"why\","
       "\"retryable\":false}}\"stopped\""},
      /* What never began may be repeated. */
      {0, ABP_REFUSE, ABP_RATE_LIMITED, ABP_FATE_NONE, NULL, NULL, 0, 0,
       SAID("{\"code\":\"RATE_LIMITED\",\"message\":\"Too many calls are in flight: retry "
            "later\",\"retryable\":true}") "\"unstarted\""},
      {0, ABP_REFUSE, ABP_NOT_SUPPORTED, ABP_FATE_NONE, NULL, "not here", 0, 0,
       SAID("{\"code\":\"NOT_SUPPORTED\",\"message\":\"not here\",\"retryable\":false}") "\"unstart"
                                                                                         "ed\""},
      /* Of a question nobody asks what became of it. */
      {1, ABP_RESULT, ABP_COMPLETED, ABP_FATE_FAILED, SAID(ERROR_X), NULL, 0, 0, SAID(ERROR_X)},
      {0, ABP_SETTLE, ABP_CANCELLED, ABP_FATE_STOPPED, NULL, "why", 0, 0,
       "{\"success\":false,\"cancelled\":true,\"error\":{\"code\":\"CANCELLED\",\"message\":"
       "\"why\","
       "\"retryable\":false}}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const abp_action action = {.kind = cases[i].kind, .arg = cases[i].arg, .fate = cases[i].fate};
    const char *response = cases[i].response, *reason = cases[i].reason;
    const abp_told told = {response,         response ? strlen(response) : 0,
                           reason,           reason ? strlen(reason) : 0,
                           cases[i].expired, cases[i].repeatable};
    size_t length;
    const char *text = abp_print_response(cases[i].agent ? pair.agent.endpoint : pair.app.endpoint,
                                          &action, &told, &length);
    /* The outcome stands behind the response here. */
    char wanted[512];
    const char *outcome = strrchr(cases[i].said, '}') + 1;
    snprintf(wanted, sizeof wanted, *outcome ? "%.*s,\"metadata\":{\"outcome\":%s}}" : "%.*s}",
             (int)(outcome - cases[i].said - 1), cases[i].said, outcome);
    assert_string_equal(text, wanted);
    assert_int_equal(length, strlen(wanted));
  }
}

/* What abp_print_response() prints of such a number, if the texts of others are these. */
static void worded(abp_failure failure, const char *theirs, const char *reason, char *text,
                   size_t size) {
  const int error = (int)(failure & ABP_FAILURE_ERROR);
  const uint32_t fate = failure >> ABP_FAILURE_FATE_SHIFT & 15;
  const int length = snprintf(
      text, size,
      "{\"success\":false,%s\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"retryable\":%s}",
      failure & ABP_FAILURE_CANCELLED ? "\"cancelled\":true," : "", abp_error_name(error),
      failure & ABP_FAILURE_THEIRS   ? theirs
      : failure & ABP_FAILURE_REASON ? reason
                                     : abp_error_message(error),
      failure & ABP_FAILURE_RETRYABLE ? "true" : "false");
  snprintf(text + length, size - (size_t)length, fate ? ",\"metadata\":{\"outcome\":\"%s\"}}" : "}",
           abp_fate_name((int)fate));
}

/* Each number that says what became of a call, by error, `retryable`, `cancelled` and fate. */
enum { NUMBERS = (ABP_ERROR_COUNT - 1) * 4 * (ABP_FATE_FAILED + 1) };
static abp_response nth_number(uint32_t n) {
  const uint32_t fate = n % (ABP_FATE_FAILED + 1), flags = n / (ABP_FATE_FAILED + 1);
  return (1 + flags / 4) | (flags & 1 ? ABP_FAILURE_RETRYABLE : 0) |
         (flags & 2 ? ABP_FAILURE_CANCELLED : 0) | fate << ABP_FAILURE_FATE_SHIFT |
         ABP_RESPONSE_PACKED;
}

static void says_the_same(abp_endpoint *ep, const abp_action *action, abp_response theirs) {
  static const char *const reasons[] = {NULL, "", "why"};
  char response[256], wanted[256];
  worded(theirs | ABP_FAILURE_THEIRS, "theirs", NULL, response, sizeof response);
  for (uint32_t i = 0; i < 12; i++) {
    const char *reason = reasons[i / 4];
    const abp_told told = {theirs ? response : NULL,
                           theirs ? strlen(response) : 0,
                           reason,
                           reason ? strlen(reason) : 0,
                           i & 1,
                           i >> 1 & 1};
    const abp_failure failure = abp_failure_told(ep, action, &told, theirs);
    size_t length;
    const char *text = abp_print_response(ep, action, &told, &length);
    const char *message = theirs ? "theirs" : abp_response_message(0);
    worded(failure, message, reason, wanted, sizeof wanted);
    assert_string_equal(text, wanted);
  }
}

static void what_a_call_is_told_is_the_same_as_a_number_and_as_text(void **state) {
  (void)state;
  static const abp_kind KINDS[] = {ABP_RESULT, ABP_SETTLE};
  abp_endpoint *const roles[] = {pair.agent.endpoint, pair.app.endpoint};
  for (uint32_t role = 0; role < 2; role++) {
    abp_action action = {.kind = ABP_REFUSE};
    for (action.arg = 1; action.arg < ABP_ERROR_COUNT; action.arg++) {
      says_the_same(roles[role], &action, 0);
      says_the_same(roles[role], &(const abp_action){.kind = ABP_REQUEST, .arg = action.arg}, 0);
    }
    /* Each number meets each kind and outcome; the fates that are known here take turns. */
    for (uint32_t kind = 0; kind < 2; kind++) {
      for (uint32_t arg = ABP_PENDING; arg <= ABP_FAILED; arg++) {
        action = (abp_action){.kind = KINDS[kind], .arg = arg};
        for (uint32_t fate = ABP_FATE_NONE; fate <= ABP_FATE_FAILED; fate++) {
          action.fate = (abp_fate)fate;
          says_the_same(roles[role], &action, 0);
        }
        for (uint32_t n = 0; n < NUMBERS; n++) {
          action.fate = (abp_fate)(n / (ABP_FATE_FAILED + 1) % (ABP_FATE_FAILED + 1));
          says_the_same(roles[role], &action, nth_number(n));
        }
      }
    }
  }
}

/* Answers a call of the agent's, and returns what comes of it: each action, and what is counted. */
static uint64_t comes_of(const char *json, abp_response number) {
  close_pair(NULL);
  assert_int_equal(open_pair(NULL), 0);
  abp_endpoint *agent = pair.agent.endpoint;
  abp_call made;
  abp_action action;
  assert_int_equal(abp_request(agent, NULL, 0, 0, 0, &made), ABP_OK);
  const abp_id id = {NULL, 0, abp_number(agent, made)};
  if (!json) assert_int_equal(abp_outcome_received(agent, &id, number), ABP_E_UNDRAINED);
  while (abp_next(agent, &action)) {
  }
  assert_int_equal(json ? abp_response_received(agent, &id, json, strlen(json))
                        : abp_outcome_received(agent, &id, number),
                   ABP_OK);
  uint64_t came = abp_count(agent, ABP_MALFORMED);
  while (abp_next(agent, &action))
    came = came * 1000003 + ((uint32_t)action.kind | action.arg << 8 | (uint32_t)action.fate << 16 |
                             (uint32_t)action.released << 24);
  return came;
}

static void an_outcome_that_comes_as_a_number_is_read_as_its_response_is(void **state) {
  (void)state;
  char response[256];
  for (uint32_t n = 0; n < NUMBERS; n++) {
    const abp_response number = nth_number(n);
    worded(number, NULL, NULL, response, sizeof response);
    const uint64_t wanted = comes_of(response, 0);
    assert_true(comes_of(NULL, number) == wanted);
    /* Where its message is makes no difference. */
    assert_true(comes_of(NULL, number | (n & 1 ? ABP_FAILURE_THEIRS : ABP_FAILURE_REASON)) ==
                wanted);
  }
}

static void a_number_that_is_no_outcome_counts_as_a_response_that_cannot_be_read(void **state) {
  (void)state;
  static const abp_response NONE[] = {
      0,
      ABP_FAILURE_CANCELLED,
      ABP_CANCELLED_ERROR,
      ABP_CANCELLED_ERROR | 1u << 31,
      ABP_RESPONSE_PACKED | ABP_ERROR_COUNT,
      ABP_RESPONSE_PACKED | ABP_FAILURE_ERROR,
      ABP_RESPONSE_PACKED | ABP_CANCELLED_ERROR | (ABP_FATE_FAILED + 1) << ABP_FAILURE_FATE_SHIFT,
      ABP_RESPONSE_PACKED | ABP_CANCELLED_ERROR | 8 << ABP_FAILURE_FATE_SHIFT,
      UINT32_MAX,
  };
  const abp_action action = {.kind = ABP_SETTLE, .arg = ABP_CANCELLED, .fate = ABP_FATE_STOPPED};
  const uint64_t wanted = comes_of("[", 0);
  for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
    assert_true(comes_of(NULL, NONE[i]) == wanted);
    assert_int_equal(abp_count(pair.agent.endpoint, ABP_MALFORMED), 1);
    const abp_failure failure =
        abp_failure_told(pair.agent.endpoint, &action, &(const abp_told){0}, NONE[i]);
    assert_int_equal(failure, ABP_CANCELLED_ERROR | ABP_FAILURE_CANCELLED |
                                  ABP_FATE_STOPPED << ABP_FAILURE_FATE_SHIFT);
  }
}

static void an_input_that_was_rejected_has_an_error(void **state) {
  (void)state;
  abp_endpoint *agent = pair.agent.endpoint;
  assert_int_equal(abp_status_error(agent, ABP_E_LIMIT, 0), ABP_RATE_LIMITED);
  assert_int_equal(abp_status_error(agent, ABP_E_ID, 0), ABP_INVALID_ID);
  assert_int_equal(abp_status_error(agent, ABP_E_DUPLICATE, 0), ABP_DUPLICATE_CALL);
  assert_int_equal(abp_status_error(agent, ABP_E_MEMORY, 0), ABP_INTERNAL_ERROR);
  assert_int_equal(abp_status_error(agent, ABP_E_STATE, 0), ABP_NOT_INITIALIZED);
  assert_int_equal(abp_status_error(agent, ABP_E_STATE, 1), ABP_CANCELLED_ERROR);
  assert_int_equal(abp_lost(agent), ABP_OK);
  pair_drain(&pair.agent);
  assert_int_equal(abp_status_error(agent, ABP_E_STATE, 0), ABP_DISCONNECTED_ERROR);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)
  const struct CMUnitTest tests[] = {
      TEST(text_that_is_no_message_is_refused_and_counted),
      TEST(progress_names_the_token_that_the_caller_chose),
      TEST(an_id_struct_may_be_gone_when_its_cancel_is_printed),
      TEST(a_result_after_an_acknowledged_cancel_settles_as_cancelled),
      TEST(a_result_after_the_acknowledged_cancel_of_a_clock_settles_as_timed_out),
      TEST(an_acknowledged_cancel_waits_for_its_result_no_longer_than_the_grace_period),
      TEST(a_cancel_that_was_not_accepted_leaves_the_decision_to_the_result),
      TEST(a_late_acknowledgement_is_not_taken_for_that_of_a_later_call_of_the_same_id),
      TEST(an_id_that_is_nearly_a_cancel_s_acknowledges_nothing),
      TEST(a_message_that_is_gone_is_not_printed_from),
      TEST(depth_and_length_are_limited),
      TEST(every_prefix_of_a_message_is_refused_alone),
      TEST(a_cancel_is_answered_to_its_own_id_verbatim),
      TEST(a_cancel_without_a_string_to_name_its_call_is_invalid),
      TEST(names_are_read_exactly_and_once),
      TEST(an_echo_of_what_this_side_says_does_nothing),
      TEST(the_same_hello_gets_the_same_answer_and_another_is_refused),
      TEST(a_version_that_cannot_be_read_is_refused_and_any_other_is_taken),
      TEST(a_side_that_came_back_and_closes_says_bye_for_good),
      TEST(a_handlers_error_is_said_with_its_message_or_that_of_its_code),
      TEST(a_cancelled_call_says_so_whatever_error_its_handler_has),
      TEST(progress_may_have_a_total_and_a_stage),
      TEST(progress_and_notifications_arrive_as_they_were_said),
      TEST(a_notification_may_be_wrapped_as_method_and_params),
      TEST(options_that_are_null_are_absent),
      TEST(a_timeout_in_text_is_what_a_timer_can_wait),
      TEST(what_else_a_call_has_arrives_as_it_was_said),
      TEST(a_call_may_be_looked_at_before_it_is_taken_in),
      TEST(the_text_of_a_message_may_be_written_over_before_it_is_taken_in),
      TEST(a_response_by_itself_is_read_as_in_its_message),
      TEST(a_handler_may_settle_with_a_response),
      TEST(what_a_call_without_success_is_told_is_composed_in_one_place),
      TEST(what_a_call_is_told_is_the_same_as_a_number_and_as_text),
      TEST(an_outcome_that_comes_as_a_number_is_read_as_its_response_is),
      TEST(a_number_that_is_no_outcome_counts_as_a_response_that_cannot_be_read),
      TEST(an_input_that_was_rejected_has_an_error),
      TEST(an_endpoint_that_has_heard_nothing_has_received_nothing),
      TEST(a_side_says_at_most_four_things_of_itself_and_each_anew),
      cmocka_unit_test(a_stream_is_text_as_well),
      TEST(a_call_says_which_one_it_repeats),
      TEST(a_question_says_which_call_of_its_agent_it_is_about),
      cmocka_unit_test(an_input_is_an_elicitation_that_streams),
      TEST(what_became_of_the_work_is_what_the_result_says),
      TEST(a_payload_passes_through_untouched),
      cmocka_unit_test_setup_teardown(
          a_foreign_apps_cancels_are_answered_to_their_ids_when_its_word_comes, open_foreign,
          close_pair),
      cmocka_unit_test_setup_teardown(a_foreign_app_that_says_cancelled_is_believed, open_foreign,
                                      close_pair),
      cmocka_unit_test_setup_teardown(a_foreign_app_that_accepts_a_cancel_is_held_to_it,
                                      open_foreign, close_pair),
      cmocka_unit_test_setup_teardown(a_foreign_app_that_declines_says_why_and_its_result_decides,
                                      open_foreign, close_pair),
      cmocka_unit_test_setup_teardown(a_foreign_app_that_says_nothing_leaves_it_unknown,
                                      open_foreign, close_pair),
      cmocka_unit_test_setup_teardown(a_deadline_asks_a_foreign_app_too, open_foreign, close_pair),
      cmocka_unit_test_setup_teardown(cancels_that_wait_are_bounded_and_end_with_the_session,
                                      open_foreign, close_pair),
      cmocka_unit_test_setup_teardown(a_peer_that_is_gone_is_not_answered, open_foreign,
                                      close_pair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
