/* Streams by their numbers: who may send, what is granted, and what a peer gets that counts
 * otherwise. Linked without cJSON. */
#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint32_t FEATURES = ABP_PROGRESS | ABP_ELICITATION | ABP_STREAMS;
static const abp_id ONE = {NULL, 0, 1}, TWO = {NULL, 0, 2}, ODD = {"odd", 3, 0};

static abp_endpoint *open_as(abp_role role, abp_config config, uint32_t agreed) {
  config.role = role;
  config.features = FEATURES;
  abp_endpoint *ep = abp_new(&config, 1000);
  abp_action action;
  if (role == ABP_APP) {
    abp_endpoint_initialize(ep, "P", 1, 0, "0.1", 3, agreed);
  } else {
    assert_int_equal(abp_connect(ep, 0), ABP_OK);
    while (abp_next(ep, &action)) {
    }
    abp_endpoint_initialized(ep, "S", 1, 1, 0, agreed);
  }
  while (abp_next(ep, &action)) {
  }
  return ep;
}

/* The only action of the last input but timers, or ABP_NONE. */
static abp_action only(abp_endpoint *ep) {
  abp_action action, found = {0};
  while (abp_next(ep, &action)) {
    if (action.kind == ABP_WAKE) continue;
    assert_int_equal(found.kind, ABP_NONE);
    found = action;
  }
  return found;
}

static abp_call streamed(abp_endpoint *app, abp_id id, uint32_t chunks, uint32_t bytes) {
  assert_int_equal(abp_stream_received(app, &id, 0, 0, chunks, bytes, ABP_NO_ERROR), ABP_OK);
  const abp_action action = only(app);
  assert_int_equal(action.kind, ABP_START);
  return action.call;
}

static abp_call requested(abp_endpoint *agent) {
  abp_call call;
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_REQUEST);
  return call;
}

static void sends(abp_endpoint *app, abp_call call, uint64_t size) {
  assert_int_equal(abp_chunk(app, call, size), ABP_OK);
  const abp_action action = only(app);
  assert_int_equal(action.kind, ABP_CHUNK);
  assert_int_equal(action.call, call);
  assert_true(action.at == size);
}

static abp_kind hears(abp_endpoint *agent, abp_id id, uint64_t size) {
  assert_int_equal(abp_chunk_received(agent, &id, size), ABP_OK);
  return only(agent).kind;
}

static abp_kind granted(abp_endpoint *app, abp_id id, uint64_t chunks, uint64_t bytes) {
  assert_int_equal(abp_credit_received(app, &id, chunks, bytes), ABP_OK);
  return only(app).kind;
}

static void a_request_says_how_much_its_reader_takes(void **state) {
  (void)state;
  abp_endpoint *agent =
      open_as(ABP_AGENT, (abp_config){.stream_chunks = 7, .stream_bytes = 100}, FEATURES);
  abp_call call;
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  abp_action action = only(agent);
  assert_int_equal(action.chunks, 7);
  assert_int_equal(action.at, 100);
  assert_int_equal(abp_request(agent, NULL, 0, 0, 0, &call), ABP_OK);
  action = only(agent);
  assert_int_equal(action.chunks, 0);
  assert_int_equal(action.at, 0);
  abp_free(agent);
  agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  action = only(agent);
  assert_int_equal(action.chunks, ABP_DEFAULT_STREAM_CHUNKS);
  assert_int_equal(action.at, ABP_DEFAULT_STREAM_BYTES);
  abp_free(agent);
}

static void only_what_was_agreed_on_is_a_stream(void **state) {
  (void)state;
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES & ~(uint32_t)ABP_STREAMS);
  abp_call call;
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  assert_int_equal(only(agent).chunks, 0);
  assert_int_equal(hears(agent, ONE, 1), ABP_NONE);
  assert_int_equal(abp_count(agent, ABP_STRAY), 1);
  assert_int_equal(abp_chunk_read(agent, call, 0), ABP_E_STATE);
  abp_free(agent);
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES & ~(uint32_t)ABP_STREAMS);
  assert_int_equal(abp_stream_wanted(app, streamed(app, ONE, 1, 1)), 0);
  abp_free(app);
  app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  assert_int_equal(abp_stream_wanted(app, streamed(app, ODD, 0, 1)), 0);
  call = streamed(app, ONE, 1, 0);
  assert_int_equal(abp_stream_wanted(app, call), 0);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_STATE);
  assert_int_equal(abp_stream_wanted(app, streamed(app, TWO, 1, 1)), 1);
  assert_int_equal(abp_stream_wanted(app, 0), 0);
  abp_free(app);
}

/* Of a peer that has said how large its windows are, the smaller ones are asked for, and what was
 * read is granted by halves. */
static void a_known_window_is_granted_by_halves(void **state) {
  (void)state;
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){.stream_chunks = 7}, FEATURES);
  agent->session.peer = (struct window){4, 100};
  abp_call call;
  assert_int_equal(abp_request(agent, NULL, 0, ABP_WANTS_STREAM, 0, &call), ABP_OK);
  const abp_action asked = only(agent);
  assert_int_equal(asked.chunks, 4);
  assert_int_equal(asked.at, 100);
  for (int chunk = 0; chunk < 4; chunk++) {
    assert_int_equal(hears(agent, ONE, 5), ABP_CHUNK);
    assert_int_equal(abp_chunk_read(agent, call, 5), ABP_OK);
    assert_int_equal(only(agent).kind, chunk % 2 ? ABP_CREDIT : ABP_NONE);
  }
  assert_int_equal(hears(agent, ONE, 50), ABP_CHUNK);
  assert_int_equal(abp_chunk_read(agent, call, 50), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_CREDIT);
  abp_free(agent);
}

static void a_request_may_ask_for_less_than_the_limits(void **state) {
  (void)state;
  static const struct {
    uint32_t own, peer, wanted, asked;
  } ROWS[] = {{100, 0, 0, 100}, {100, 0, 9, 9},    {100, 0, 101, 100}, {100, 50, 0, 50},
              {100, 50, 9, 9},  {100, 50, 60, 50}, {40, 50, 45, 40}};
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){.stream_bytes = ROWS[i].own}, FEATURES);
    if (ROWS[i].peer) agent->session.peer = (struct window){1, ROWS[i].peer};
    abp_call call;
    assert_int_equal(abp_stream_request(agent, NULL, 0, ABP_WANTS_STREAM, ROWS[i].wanted, 0, &call),
                     ABP_OK);
    assert_int_equal(only(agent).at, ROWS[i].asked);
    abp_free(agent);
  }
}

/* What an app reads of its agent is a stream like any: the same windows, and a cancel. */
static void an_app_reads_what_its_agent_streams(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){.stream_chunks = 2}, FEATURES);
  const abp_call handler = streamed(app, ODD, 0, 0);
  abp_call call;
  assert_int_equal(abp_request(app, NULL, 0, ABP_WANTS_STREAM, handler, &call), ABP_OK);
  assert_int_equal(only(app).chunks, 2);
  assert_int_equal(abp_stream_wanted(app, call), 0);
  assert_int_equal(hears(app, ONE, 5), ABP_CHUNK);
  assert_int_equal(abp_chunk_read(app, call, 5), ABP_OK);
  const abp_action grant = only(app);
  assert_int_equal(grant.kind, ABP_CREDIT);
  assert_int_equal(grant.at, 5);
  /* The handler's end is its end, and the agent hears of it first. */
  assert_int_equal(abp_finish(app, handler, ABP_COMPLETED), ABP_OK);
  abp_action action;
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_CANCEL);
  assert_int_equal(action.call, call);
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_SETTLE);
  assert_int_equal(abp_count(app, ABP_IN_FLIGHT_OUT), 0);
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_RESULT);
  assert_int_equal(only(app).kind, ABP_NONE);
  /* Nobody waits for the answer, nor for a chunk that is under way. */
  assert_int_equal(hears(app, ONE, 5), ABP_NONE);
  assert_int_equal(abp_result_received(app, &ONE, ABP_CANCELLED), ABP_OK);
  assert_int_equal(only(app).kind, ABP_NONE);
  assert_int_equal(abp_count(app, ABP_LATE), 2);
  /* A question that is no stream is withdrawn in the same way. */
  assert_int_equal(abp_request(app, NULL, 0, 0, 0, &call), ABP_OK);
  assert_int_equal(only(app).chunks, 0);
  assert_int_equal(abp_cancel(app, call, NULL, 0), ABP_OK);
  assert_int_equal(abp_next(app, &action), 1);
  assert_int_equal(action.kind, ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_CANCEL);
  assert_int_equal(only(app).kind, ABP_SETTLE);
  abp_free(app);
  /* A plain agent knows no message that does it. */
  app = open_as(ABP_APP, (abp_config){0}, FEATURES & ~(uint32_t)ABP_STREAMS);
  assert_int_equal(abp_request(app, NULL, 0, 0, 0, &call), ABP_OK);
  assert_int_equal(only(app).kind, ABP_REQUEST);
  assert_int_equal(abp_cancel(app, call, NULL, 0), ABP_OK);
  assert_int_equal(only(app).kind, ABP_SETTLE);
  abp_free(app);

  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  call = streamed(agent, ONE, 1, 9);
  assert_int_equal(abp_stream_wanted(agent, call), 1);
  sends(agent, call, 3);
  assert_int_equal(abp_chunk(agent, call, 3), ABP_E_LIMIT);
  assert_int_equal(granted(agent, ONE, 1, 4), ABP_NONE);
  assert_int_equal(abp_count(agent, ABP_OVERRUN), 1);
  assert_int_equal(granted(agent, ONE, 1, 3), ABP_RESUME);
  assert_int_equal(abp_cancel_received(agent, &ONE, NULL, 0), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_ABORT);
  assert_int_equal(abp_chunk(agent, call, 3), ABP_E_STATE);
  assert_int_equal(abp_finish(agent, call, ABP_COMPLETED), ABP_OK);
  const abp_action result = only(agent);
  assert_int_equal(result.kind, ABP_RESULT);
  assert_int_equal(result.arg, ABP_CANCELLED);
  abp_free(agent);
}

static void a_handler_waits_while_the_window_is_full_of_chunks(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  const abp_call call = streamed(app, ONE, 2, 1000);
  sends(app, call, 3);
  sends(app, call, 0);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_LIMIT);
  assert_int_equal(only(app).kind, ABP_NONE);
  assert_int_equal(granted(app, ONE, 1, 3), ABP_RESUME);
  sends(app, call, 1);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_LIMIT);
  assert_int_equal(abp_finish(app, call, ABP_COMPLETED), ABP_OK);
  assert_int_equal(only(app).kind, ABP_RESULT);
  abp_free(app);
}

static void a_handler_waits_while_the_window_is_full_of_bytes(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  const abp_call call = streamed(app, ONE, 1000, 10);
  sends(app, call, 9);
  sends(app, call, (uint64_t)1 << 53); /* one chunk may exceed it */
  assert_int_equal(abp_chunk(app, call, 0), ABP_E_LIMIT);
  assert_int_equal(granted(app, ONE, 1, 9), ABP_NONE); /* still full */
  assert_int_equal(abp_chunk(app, call, 0), ABP_E_LIMIT);
  assert_int_equal(granted(app, ONE, 1, (uint64_t)1 << 53), ABP_RESUME);
  assert_int_equal(abp_chunk(app, call, UINT64_MAX), ABP_OK);
  assert_true(only(app).at == (uint64_t)1 << 53);
  abp_free(app);
}

static void a_handler_goes_on_when_half_of_the_window_is_free(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  const abp_call call = streamed(app, ONE, 5, 1000);
  for (int i = 0; i < 5; i++)
    sends(app, call, 100);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_LIMIT);
  assert_int_equal(granted(app, ONE, 2, 200), ABP_NONE);
  assert_int_equal(granted(app, ONE, 1, 100), ABP_RESUME);
  assert_int_equal(granted(app, ONE, 1, 100), ABP_NONE); /* once */
  sends(app, call, 401);                                 /* more than half of the bytes */
  assert_int_equal(granted(app, ONE, 1, 0), ABP_NONE);
  assert_int_equal(granted(app, ONE, 1, 1), ABP_RESUME);
  abp_free(app);
}

static void the_smaller_window_of_the_two_sides_counts(void **state) {
  (void)state;
  const abp_config small = {.stream_chunks = 1, .stream_bytes = 5};
  abp_endpoint *app = open_as(ABP_APP, small, FEATURES);
  abp_call call = streamed(app, ONE, UINT32_MAX, UINT32_MAX);
  sends(app, call, 0);
  assert_int_equal(abp_chunk(app, call, 0), ABP_E_LIMIT);
  abp_free(app);
  /* Its reader, whose window is larger, grants what it can once it has read all. */
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  call = requested(agent);
  assert_int_equal(hears(agent, ONE, 4), ABP_CHUNK);
  assert_int_equal(abp_chunk_read(agent, call, 4), ABP_OK);
  const abp_action action = only(agent);
  assert_int_equal(action.kind, ABP_CREDIT);
  assert_int_equal(action.chunks, 1);
  assert_int_equal(action.at, 4);
  abp_free(agent);
}

static void what_is_read_is_granted_by_the_half_window(void **state) {
  (void)state;
  const abp_config config = {.stream_chunks = 4, .stream_bytes = 100};
  abp_endpoint *agent = open_as(ABP_AGENT, config, FEATURES);
  const abp_call call = requested(agent);
  for (int i = 0; i < 4; i++)
    assert_int_equal(hears(agent, ONE, i == 2 ? 50 : 1), ABP_CHUNK);
  assert_int_equal(abp_chunk_read(agent, call, 1), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_NONE);
  assert_int_equal(abp_chunk_read(agent, call, 1), ABP_OK); /* half of the chunks */
  abp_action action = only(agent);
  assert_int_equal(action.kind, ABP_CREDIT);
  assert_int_equal(action.chunks, 2);
  assert_int_equal(action.at, 2);
  assert_int_equal(abp_chunk_read(agent, call, 50), ABP_OK); /* half of the bytes */
  action = only(agent);
  assert_int_equal(action.chunks, 1);
  assert_int_equal(action.at, 50);
  assert_int_equal(abp_chunk_read(agent, call, 1), ABP_OK); /* all of it */
  assert_int_equal(only(agent).chunks, 1);
  assert_int_equal(abp_chunk_read(agent, call, 0), ABP_E_STATE);
  assert_int_equal(hears(agent, ONE, 1), ABP_CHUNK);
  assert_int_equal(abp_chunk_read(agent, call, 2), ABP_E_STATE);
  abp_free(agent);
}

static void a_chunk_without_room_ends_its_call_and_no_other(void **state) {
  (void)state;
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){.stream_chunks = 1}, FEATURES);
  requested(agent);
  requested(agent);
  assert_int_equal(hears(agent, ONE, 1), ABP_CHUNK);
  assert_int_equal(hears(agent, TWO, 1), ABP_CHUNK);
  assert_int_equal(abp_chunk_received(agent, &ONE, 1), ABP_OK);
  abp_action action;
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.kind, ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_CANCEL);
  assert_non_null(action.text);
  assert_int_equal(abp_next(agent, &action), 1);
  assert_int_equal(action.kind, ABP_SETTLE);
  assert_int_equal(action.arg, ABP_COMPLETED); /* nobody has cancelled it */
  assert_int_equal(action.released, 1);
  assert_int_equal(only(agent).kind, ABP_NONE);
  assert_int_equal(abp_count(agent, ABP_OVERRUN), 1);
  assert_int_equal(abp_count(agent, ABP_IN_FLIGHT_OUT), 1);
  assert_int_equal(hears(agent, ONE, 1), ABP_NONE); /* it has ended */
  assert_int_equal(abp_count(agent, ABP_LATE), 1);
  abp_free(agent);
}

static void a_size_that_is_none_is_as_good_as_a_gap(void **state) {
  (void)state;
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  requested(agent);
  assert_int_equal(hears(agent, ONE, (uint64_t)1 << 53), ABP_CHUNK);
  abp_free(agent);
  agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  requested(agent);
  assert_int_equal(abp_chunk_received(agent, &ONE, ((uint64_t)1 << 53) + 1), ABP_OK);
  abp_action action;
  while (abp_next(agent, &action)) {
  }
  assert_int_equal(abp_count(agent, ABP_OVERRUN), 1);
  assert_int_equal(abp_count(agent, ABP_IN_FLIGHT_OUT), 0);
  abp_free(agent);
}

static void credit_that_nobody_owes_changes_nothing(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  const abp_call call = streamed(app, ONE, 2, 1000);
  const abp_call plain = streamed(app, ODD, 0, 0);
  const uint64_t beyond = ((uint64_t)1 << 53) + 1;
  assert_int_equal(granted(app, ONE, 1, 0), ABP_NONE); /* nothing was sent */
  sends(app, call, 5);
  sends(app, call, 5);
  assert_int_equal(granted(app, ONE, 3, 10), ABP_NONE);
  assert_int_equal(granted(app, ONE, 2, 11), ABP_NONE);
  assert_int_equal(granted(app, ONE, 0, 5), ABP_NONE);
  assert_int_equal(granted(app, ONE, beyond, 0), ABP_NONE);
  assert_int_equal(granted(app, ONE, UINT64_MAX, UINT64_MAX), ABP_NONE);
  assert_int_equal(granted(app, ONE, (uint64_t)1 << 32 | 1, 5), ABP_NONE);
  assert_int_equal(abp_count(app, ABP_OVERRUN), 7);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_LIMIT);
  assert_int_equal(granted(app, TWO, 1, 1), ABP_NONE); /* a call that nobody made */
  assert_int_equal(granted(app, ODD, 1, 1), ABP_NONE); /* and one that is no stream */
  assert_int_equal(abp_count(app, ABP_STRAY), 2);
  assert_int_equal(granted(app, ONE, 2, 10), ABP_RESUME);
  assert_int_equal(abp_finish(app, call, ABP_COMPLETED), ABP_OK);
  assert_int_equal(only(app).kind, ABP_RESULT);
  assert_int_equal(granted(app, ONE, 1, 1), ABP_NONE); /* it has ended, which its reader learns */
  assert_int_equal(abp_count(app, ABP_OVERRUN), 7);
  assert_int_equal(abp_finish(app, plain, ABP_COMPLETED), ABP_OK);
  assert_int_equal(only(app).kind, ABP_RESULT);
  abp_free(app);
}

static void chunks_of_calls_that_take_none_are_counted(void **state) {
  (void)state;
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){0}, FEATURES);
  abp_call call;
  assert_int_equal(abp_request(agent, NULL, 0, 0, 0, &call), ABP_OK);
  only(agent);
  assert_int_equal(hears(agent, ONE, 1), ABP_NONE); /* it is no stream */
  assert_int_equal(hears(agent, TWO, 1), ABP_NONE); /* nobody made it */
  assert_int_equal(hears(agent, ODD, 1), ABP_NONE);
  assert_int_equal(abp_count(agent, ABP_STRAY), 3);
  call = requested(agent);
  assert_int_equal(hears(agent, TWO, 1), ABP_CHUNK);
  assert_int_equal(abp_result_received(agent, &TWO, ABP_COMPLETED), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_SETTLE);
  assert_int_equal(hears(agent, TWO, 1), ABP_NONE); /* it has ended */
  assert_int_equal(abp_count(agent, ABP_LATE), 1);
  assert_int_equal(abp_chunk_read(agent, call, 1), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_NONE);
  assert_int_equal(abp_count(agent, ABP_OVERRUN), 0);
  abp_free(agent);
}

static void a_cancelled_stream_sends_and_grants_no_more(void **state) {
  (void)state;
  abp_endpoint *app = open_as(ABP_APP, (abp_config){0}, FEATURES);
  abp_call call = streamed(app, ONE, 1, 9);
  sends(app, call, 1);
  assert_int_equal(abp_cancel_received(app, &ONE, NULL, 0), ABP_OK);
  assert_int_equal(only(app).kind, ABP_ABORT);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_STATE);
  assert_int_equal(granted(app, ONE, 1, 1), ABP_NONE);
  assert_int_equal(abp_chunk(app, call, 1), ABP_E_STATE);
  abp_free(app);
  abp_endpoint *agent = open_as(ABP_AGENT, (abp_config){.stream_chunks = 2}, FEATURES);
  call = requested(agent);
  assert_int_equal(abp_cancel(agent, call, NULL, 0), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_SEND);
  assert_int_equal(hears(agent, ONE, 1), ABP_CHUNK); /* it was sent before */
  assert_int_equal(abp_chunk_read(agent, call, 1), ABP_OK);
  assert_int_equal(only(agent).kind, ABP_NONE);
  abp_free(agent);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_request_says_how_much_its_reader_takes),
      cmocka_unit_test(only_what_was_agreed_on_is_a_stream),
      cmocka_unit_test(a_known_window_is_granted_by_halves),
      cmocka_unit_test(a_request_may_ask_for_less_than_the_limits),
      cmocka_unit_test(an_app_reads_what_its_agent_streams),
      cmocka_unit_test(a_handler_waits_while_the_window_is_full_of_chunks),
      cmocka_unit_test(a_handler_waits_while_the_window_is_full_of_bytes),
      cmocka_unit_test(a_handler_goes_on_when_half_of_the_window_is_free),
      cmocka_unit_test(the_smaller_window_of_the_two_sides_counts),
      cmocka_unit_test(what_is_read_is_granted_by_the_half_window),
      cmocka_unit_test(a_chunk_without_room_ends_its_call_and_no_other),
      cmocka_unit_test(a_size_that_is_none_is_as_good_as_a_gap),
      cmocka_unit_test(credit_that_nobody_owes_changes_nothing),
      cmocka_unit_test(chunks_of_calls_that_take_none_are_counted),
      cmocka_unit_test(a_cancelled_stream_sends_and_grants_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
