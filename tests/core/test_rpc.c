/* A peer by itself: what each input comes to, dialect by dialect. Orders are rpc_explore.c's. */
#include "abp_rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static abp_peer *open_with(abp_peer_config config) {
  config.seed[0] = 1;
  return abp_peer_new(&config, 1000);
}

static abp_peer *open_peer(abp_dialect dialect) {
  return open_with((abp_peer_config){.dialect = dialect});
}

static abp_rpc_id text(const char *value) {
  return (abp_rpc_id){ABP_ID_TEXT, value, (uint32_t)strlen(value), 0};
}
static abp_rpc_id number(double value) { return (abp_rpc_id){ABP_ID_NUMBER, NULL, 0, value}; }
static const abp_rpc_id null_id = {ABP_ID_NULL, NULL, 0, 0};

/* Drains the peer; what it did, in short, is in `done`, and the call of the last action returned.
 */
static char done[512];
static abp_action last;
static abp_call drain(abp_peer *peer, int status) {
  static const char *const names[] = {
      [ABP_QUEUED] = "queued", [ABP_START] = "start",   [ABP_ABORT] = "abort",
      [ABP_RESULT] = "result", [ABP_REFUSE] = "refuse", [ABP_REQUEST] = "request",
      [ABP_SETTLE] = "settle", [ABP_REPORT] = "report", [ABP_SEND] = "cancel",
      [ABP_WAKE] = NULL,       [ABP_DROP] = "drop",     [ABP_SESSION] = "session"};
  assert_int_equal(status, ABP_OK);
  abp_action action;
  done[0] = 0;
  while (abp_peer_next(peer, &action)) {
    if (!names[action.kind]) continue;
    const size_t at = strlen(done);
    const int says =
        action.kind == ABP_RESULT || action.kind == ABP_SETTLE || action.kind == ABP_REFUSE;
    snprintf(done + at, sizeof done - at, says ? "%s%s %u" : "%s%s", at ? ", " : "",
             names[action.kind], action.arg);
    last = action;
  }
  assert_false(abp_peer_undrained(peer));
  return last.call;
}
#define COMES_TO(status, expected)                                                                 \
  do {                                                                                             \
    drain(peer, status);                                                                           \
    assert_string_equal(done, expected);                                                           \
  } while (0)

static abp_call receive(abp_peer *peer, abp_rpc_id id) {
  const abp_call call = drain(peer, abp_peer_received(peer, &id, ABP_RPC_NO_ERROR, 0));
  assert_string_equal(done, "queued");
  return call;
}

static void start(abp_peer *peer) { drain(peer, abp_peer_start(peer)); }

static abp_call make(abp_peer *peer, uint32_t timeout, uint32_t longest, uint32_t flags) {
  abp_call call = 0;
  drain(peer, abp_peer_request(peer, timeout, longest, flags, 0, &call));
  assert_string_equal(done, "request");
  return call;
}

static int cancel(abp_peer *peer, abp_rpc_id id) {
  return abp_peer_cancel_received(peer, &id, "why", 3, 1);
}

static void ids_are_told_apart_by_type_and_value(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  const abp_rpc_id ids[] = {number(7),
                            text("7"),
                            number(0),
                            text(""),
                            text("0"),
                            number(-7),
                            number(1.5),
                            null_id,
                            text("null"),
                            number(4294967296.),
                            number(9007199254740991.)};
  const size_t count = sizeof ids / sizeof *ids;
  for (size_t i = 0; i < count; i++)
    receive(peer, ids[i]);
  start(peer);
  assert_int_equal(abp_peer_count(peer, ABP_IN_FLIGHT_IN), count);
  for (size_t i = 0; i < count; i++) {
    COMES_TO(abp_peer_received(peer, &ids[i], ABP_RPC_NO_ERROR, 0), "refuse 6");
    COMES_TO(cancel(peer, ids[i]), "abort");
    COMES_TO(cancel(peer, ids[i]), "");
  }
  const abp_rpc_id minus_zero = number(-0.0);
  COMES_TO(abp_peer_received(peer, &minus_zero, ABP_RPC_NO_ERROR, 0), "refuse 6");
  abp_peer_free(peer);
}

static void ids_are_judged_by_the_dialect(void **state) {
  (void)state;
  static const char *const null_ids[] = {"queued", "drop", "drop"};
  static const char *const fractions[] = {"queued", "queued", "drop"};
  static const char *const others[] = {"refuse 2", "drop", "drop"};
  for (int dialect = ABP_ACP; dialect < ABP_DIALECTS; dialect++) {
    abp_peer *peer = open_peer((abp_dialect)dialect);
    const abp_rpc_id fraction = number(0.5), other = {ABP_ID_OTHER, NULL, 0, 0};
    COMES_TO(abp_peer_received(peer, &null_id, ABP_RPC_NO_ERROR, 0), null_ids[dialect]);
    COMES_TO(abp_peer_received(peer, &fraction, ABP_RPC_NO_ERROR, 0), fractions[dialect]);
    COMES_TO(abp_peer_received(peer, &other, ABP_RPC_NO_ERROR, 0), others[dialect]);
    const double beyond[] = {9007199254740992., -9007199254740992., 1e300 * 1e300, -1e300 * 1e300,
                             0 * (1e300 * 1e300)};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
      const abp_rpc_id id = number(beyond[i]);
      COMES_TO(abp_peer_received(peer, &id, ABP_RPC_NO_ERROR, 0), "refuse 4");
      COMES_TO(cancel(peer, id), "drop");
    }
    const abp_rpc_id ill = text("\xff"), nul = {ABP_ID_TEXT, "a\0b", 3, 0},
                     too_long = {ABP_ID_TEXT, "x", UINT32_MAX, 0};
    COMES_TO(abp_peer_received(peer, &ill, ABP_RPC_NO_ERROR, 0), "refuse 5");
    COMES_TO(abp_peer_received(peer, &nul, ABP_RPC_NO_ERROR, 0), "refuse 5");
    COMES_TO(abp_peer_received(peer, &too_long, ABP_RPC_NO_ERROR, 0), "refuse 5");
    abp_peer_free(peer);
  }
}

static void what_is_no_message_is_answered_where_the_dialect_does(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  COMES_TO(abp_peer_malformed(peer, ABP_RPC_PARSE), "refuse 1");
  COMES_TO(abp_peer_malformed(peer, ABP_RPC_BATCH), "refuse 3");
  assert_int_equal(abp_peer_count(peer, ABP_REFUSED), 2);
  drain(peer, abp_peer_lost(peer));
  COMES_TO(abp_peer_malformed(peer, ABP_RPC_PARSE), "");
  abp_peer_free(peer);
  peer = open_peer(ABP_MCP);
  COMES_TO(abp_peer_malformed(peer, ABP_RPC_PARSE), "drop");
  assert_int_equal(last.arg, ABP_MALFORMED);
  assert_int_equal(abp_peer_count(peer, ABP_MALFORMED), 1);
  /* Whoever sends a batch waits for its answers. */
  COMES_TO(abp_peer_malformed(peer, ABP_RPC_BATCH), "refuse 3");
  abp_peer_free(peer);
}

static void a_cancel_before_the_start_is_the_end(void **state) {
  (void)state;
  static const char *const ends[] = {"result 2", "result 2", "abort"};
  for (int dialect = ABP_ACP; dialect < ABP_DIALECTS; dialect++) {
    abp_peer *peer = open_peer((abp_dialect)dialect);
    receive(peer, number(1));
    COMES_TO(cancel(peer, number(1)), ends[dialect]);
    assert_int_equal(last.released, 1);
    COMES_TO(abp_peer_start(peer), "");
    abp_peer_free(peer);
  }
}

static void the_reason_comes_where_the_dialect_has_one(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  receive(peer, number(1));
  receive(peer, number(2));
  start(peer);
  COMES_TO(cancel(peer, number(1)), "abort");
  assert_memory_equal(last.text, "why", 3);
  const abp_rpc_id second = number(2), other = {ABP_ID_OTHER, NULL, 0, 0};
  COMES_TO(abp_peer_cancel_received(peer, &second, NULL, 0, 0), "drop");
  COMES_TO(abp_peer_cancel_received(peer, &other, NULL, 0, 1), "drop");
  assert_int_equal(abp_peer_count(peer, ABP_MALFORMED), 2);
  const abp_call call = make(peer, 0, 0, 0);
  COMES_TO(abp_peer_cancel(peer, call, "stop", 4), "cancel, settle 2");
  abp_peer_free(peer);
  peer = open_peer(ABP_LSP);
  receive(peer, number(1));
  start(peer);
  const abp_rpc_id first = number(1);
  COMES_TO(abp_peer_cancel_received(peer, &first, NULL, 0, 0), "abort");
  const abp_call made = make(peer, 0, 0, 0);
  COMES_TO(abp_peer_cancel(peer, made, "stop", 4), "cancel");
  assert_null(last.text);
  abp_peer_free(peer);
}

static void a_timeout_says_so(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  make(peer, 10, 0, ABP_WAITS);
  abp_action action;
  assert_int_equal(abp_peer_advance(peer, 1010), ABP_OK);
  assert_int_equal(abp_peer_next(peer, &action), 1);
  assert_int_equal(action.kind, ABP_SEND);
  assert_non_null(strstr(action.text, "timed out"));
  drain(peer, ABP_OK);
  const abp_rpc_id id = number(1);
  COMES_TO(abp_peer_response(peer, &id, ABP_ANSWER_ERROR), "settle 3");
  abp_peer_free(peer);
}

static void progress_puts_off_the_timeout_but_not_the_longest(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  make(peer, 0, 0, 0); /* there is a slot with no patience */
  make(peer, 10, 25, ABP_RESETS | ABP_REPORTS);
  const abp_rpc_id first = number(1), second = number(2), other = number(3), wrong = text("2");
  COMES_TO(abp_peer_advance(peer, 1009), "");
  COMES_TO(abp_peer_progress(peer, &second), "report");
  assert_int_equal(abp_peer_progress(peer, &first), ABP_E_STATE); /* it did not ask */
  assert_int_equal(abp_peer_progress(peer, &other), ABP_E_STATE);
  assert_int_equal(abp_peer_progress(peer, &wrong), ABP_E_STATE);
  COMES_TO(abp_peer_advance(peer, 1018), "");
  COMES_TO(abp_peer_progress(peer, &second), "report");
  COMES_TO(abp_peer_advance(peer, 1024), "");
  COMES_TO(abp_peer_advance(peer, 1025), "cancel");
  COMES_TO(abp_peer_progress(peer, &second), "report"); /* it may be unwinding */
  COMES_TO(abp_peer_advance(peer, 1025 + 4999), "");
  COMES_TO(abp_peer_advance(peer, 1025 + 5000), "settle 3");
  assert_int_equal(last.at, 25);
  COMES_TO(abp_peer_progress(peer, &second), "drop");
  COMES_TO(abp_peer_response(peer, &second, ABP_ANSWER_RESULT), "drop");
  assert_int_equal(last.arg, ABP_LATE);
  COMES_TO(abp_peer_response(peer, &other, ABP_ANSWER_RESULT), "drop");
  assert_int_equal(last.arg, ABP_STRAY);
  assert_int_equal(abp_peer_count(peer, ABP_LATE), 2);
  assert_int_equal(abp_peer_count(peer, ABP_STRAY), 1);
  abp_peer_free(peer);
}

static void a_timeout_that_progress_does_not_put_off(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  const abp_rpc_id first = number(1);
  make(peer, 10, 0, ABP_REPORTS);
  make(peer, 0, 20, ABP_RESETS);
  make(peer, 30, 0, ABP_RESETS);
  COMES_TO(abp_peer_progress(peer, &first), "report");
  COMES_TO(abp_peer_advance(peer, 1010), "cancel");
  COMES_TO(abp_peer_advance(peer, 1020), "cancel");
  COMES_TO(abp_peer_advance(peer, 1030), "cancel");
  abp_peer_free(peer);
}

static void the_handshake_is_not_cancelled_on_the_wire(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  assert_string_equal(abp_peer_handshake(peer), "initialize");
  abp_call call = make(peer, 0, 0, ABP_HANDSHAKE);
  COMES_TO(abp_peer_cancel(peer, call, NULL, 0), "settle 2");
  make(peer, 5, 0, ABP_HANDSHAKE);
  COMES_TO(abp_peer_advance(peer, 1005), "settle 3");
  make(peer, 0, 0, ABP_HANDSHAKE);
  COMES_TO(abp_peer_close(peer), "settle 4");
  abp_peer_free(peer);
}

static void a_value_does_not_help_whose_time_has_run_out(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  const abp_rpc_id first = number(1), second = number(2);
  make(peer, 10, 20, 0);
  const abp_call cancelled = make(peer, 0, 20, 0);
  COMES_TO(abp_peer_advance(peer, 1010), "cancel");
  COMES_TO(abp_peer_cancel(peer, cancelled, NULL, 0), "cancel");
  COMES_TO(abp_peer_response(peer, &first, ABP_ANSWER_RESULT), "settle 3");
  assert_int_equal(last.at, 10);
  COMES_TO(abp_peer_response(peer, &second, ABP_ANSWER_RESULT), "settle 1");
  make(peer, 0, 20, 0);
  COMES_TO(abp_peer_advance(peer, 1030), "cancel");
  COMES_TO(abp_peer_advance(peer, 9999), "settle 3");
  assert_int_equal(last.at, 20);
  /* Nor does one that says that the work was stopped: but that is what became of it. */
  const abp_rpc_id third = number(4), fourth = number(5);
  make(peer, 10, 20, 0);
  const abp_call wished = make(peer, 0, 0, 0);
  COMES_TO(abp_peer_cancel(peer, wished, NULL, 0), "cancel");
  COMES_TO(abp_peer_response(peer, &fourth, ABP_ANSWER_STOPPED), "settle 1");
  COMES_TO(abp_peer_advance(peer, 10009), "cancel");
  COMES_TO(abp_peer_response(peer, &third, ABP_ANSWER_STOPPED), "settle 3");
  assert_int_equal(last.fate, ABP_FATE_STOPPED);
  abp_peer_free(peer);
}

static void a_handler_whose_time_ran_out_is_cancelled_where_the_dialect_says_so(void **state) {
  (void)state;
  static const char *const answers[] = {"result 2", "result 1", "result 1"};
  for (int dialect = ABP_ACP; dialect < ABP_DIALECTS; dialect++) {
    abp_peer *peer = open_peer((abp_dialect)dialect);
    const abp_call call = receive(peer, number(1));
    start(peer);
    drain(peer, abp_peer_finish(peer, call, ABP_RAN_OUT));
    assert_non_null(strstr(done, answers[dialect]));
    abp_peer_free(peer);
  }
}

static void a_handler_that_came_to_its_end_without_an_answer_has_finished(void **state) {
  (void)state;
  for (int dialect = ABP_ACP; dialect <= ABP_LSP; dialect++) {
    abp_peer *peer = open_peer((abp_dialect)dialect);
    const abp_call call = receive(peer, number(1));
    start(peer);
    COMES_TO(cancel(peer, number(1)), "abort");
    COMES_TO(abp_peer_finish(peer, call, ABP_ENDED), "result 2");
    assert_int_equal(last.fate, ABP_FATE_FINISHED);
    abp_peer_free(peer);
  }
}

static void a_subscription_is_ended_by_its_receiver_too(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  assert_string_equal(abp_peer_subscription(peer), "subscriptions/listen");
  assert_string_equal(abp_peer_batch_version(peer), "2025-03-26");
  make(peer, 0, 0, 0);
  make(peer, 0, 0, ABP_SUBSCRIPTION);
  COMES_TO(cancel(peer, number(1)), "drop");
  assert_int_equal(last.arg, ABP_STRAY);
  COMES_TO(cancel(peer, number(2)), "settle 2");
  COMES_TO(cancel(peer, number(2)), "drop");
  /* One of the same id that has ended is not in its way. */
  make(peer, 0, 0, ABP_SUBSCRIPTION);
  const abp_call theirs = receive(peer, number(3));
  start(peer);
  COMES_TO(abp_peer_finish(peer, theirs, ABP_RETURNED), "result 1");
  COMES_TO(cancel(peer, number(3)), "settle 2");
  abp_peer_free(peer);
}

static void inputs_that_are_mistakes_change_nothing(void **state) {
  (void)state;
  abp_peer *peer = open_with((abp_peer_config){.dialect = ABP_ACP, .max_calls = 1});
  abp_call call;
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 0, &call), ABP_OK);
  const abp_rpc_id id = number(1);
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 0, &call), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_cancel(peer, call, NULL, 0), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_send_failed(peer, call), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_progress(peer, &id), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_received(peer, &id, ABP_RPC_NO_ERROR, 0), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_start(peer), ABP_E_UNDRAINED);
  assert_int_equal(cancel(peer, id), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_finish(peer, call, ABP_RETURNED), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_malformed(peer, ABP_RPC_PARSE), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_advance(peer, 2000), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_close(peer), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_lost(peer), ABP_E_UNDRAINED);
  assert_int_equal(abp_peer_half_closed(peer), ABP_E_UNDRAINED);
  COMES_TO(ABP_OK, "request");
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 0, &call), ABP_E_LIMIT);
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 77, &call), ABP_E_STATE);
  assert_int_equal(abp_peer_finish(peer, call, ABP_RETURNED), ABP_E_STATE);
  assert_int_equal(abp_peer_finish(peer, 77, ABP_RETURNED), ABP_E_STATE);
  const abp_call in = receive(peer, number(1));
  assert_int_equal(abp_peer_finish(peer, in, ABP_RETURNED), ABP_E_STATE);
  assert_int_equal(abp_peer_cancel(peer, in, NULL, 0), ABP_E_STATE);
  assert_int_equal(abp_peer_send_failed(peer, in), ABP_E_STATE);
  assert_int_equal(abp_peer_number(peer, in), 0);
  assert_int_equal(abp_peer_number(peer, 77), 0);
  const abp_rpc_id second = number(2);
  COMES_TO(abp_peer_received(peer, &second, ABP_RPC_NO_ERROR, 0), "refuse 9");
  COMES_TO(abp_peer_received(peer, &second, ABP_RPC_METHOD_NOT_FOUND, 0), "refuse 7");
  COMES_TO(abp_peer_send_failed(peer, call), "settle 1");
  COMES_TO(abp_peer_send_failed(peer, call), "");
  COMES_TO(abp_peer_cancel(peer, call, NULL, 0), "");
  COMES_TO(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), "drop");
  assert_int_equal(abp_peer_count(peer, ABP_STRAY), 1); /* what was never sent is not remembered */
  COMES_TO(abp_peer_lost(peer), "abort");
  COMES_TO(abp_peer_received(peer, &second, ABP_RPC_NO_ERROR, 0), "");
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 0, &call), ABP_E_STATE);
  abp_peer_free(peer);
  abp_peer_free(NULL);
}

static void a_peer_that_only_listens_is_answered(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_LSP);
  const abp_rpc_id first = number(1), second = number(2), third = number(3);
  COMES_TO(abp_peer_received(peer, &first, ABP_RPC_NO_ERROR, 0), "queued");
  const abp_call runs = last.call;
  COMES_TO(abp_peer_start(peer), "start");
  COMES_TO(abp_peer_received(peer, &second, ABP_RPC_NO_ERROR, 0), "queued");
  const abp_call waits = last.call;
  abp_call call;
  COMES_TO(abp_peer_request(peer, 0, 0, 0, runs, &call), "request");
  assert_int_equal(abp_peer_closed(peer), 0);
  COMES_TO(abp_peer_half_closed(peer), "settle 4");
  assert_int_equal(abp_peer_closed(peer), 1);
  COMES_TO(abp_peer_received(peer, &third, ABP_RPC_NO_ERROR, 0), "");
  assert_int_equal(abp_peer_request(peer, 0, 0, 0, 0, &call), ABP_E_STATE);
  COMES_TO(abp_peer_finish(peer, runs, ABP_RETURNED), "result 1, start");
  COMES_TO(abp_peer_finish(peer, waits, ABP_RETURNED), "result 1, session");
  assert_int_equal(abp_peer_count(peer, ABP_IN_FLIGHT_IN), 0);
  abp_peer_free(peer);
}

static void what_a_stopped_request_asked_for_is_late(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_LSP);
  const abp_call first = receive(peer, number(1));
  start(peer);
  abp_call child;
  drain(peer, abp_peer_request(peer, 0, 0, ABP_REPORTS, first, &child));
  COMES_TO(cancel(peer, number(1)), "cancel, settle 2, abort");
  const abp_rpc_id id = number(1);
  COMES_TO(abp_peer_progress(peer, &id), "drop");
  COMES_TO(abp_peer_cancel(peer, child, NULL, 0), "");
  assert_int_equal(abp_peer_running(peer, child), 0);
  /* It is waited for no longer than the grace period. */
  COMES_TO(abp_peer_finish(peer, first, ABP_GAVE_UP), "");
  COMES_TO(abp_peer_advance(peer, 1000 + ABP_PEER_DEFAULT_GRACE_MS), "result 2");
  COMES_TO(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), "drop");
  assert_int_equal(abp_peer_count(peer, ABP_LATE), 2);
  abp_peer_free(peer);
}

static void what_belongs_to_a_name_is_stopped_by_it(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_METHOD), "session/cancel");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_KEY), "sessionId");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_REQUESTS), "session/prompt");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_MEMBER), "sessionId");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_CREATES), "");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_WITHDRAWS), "session/request_permission");
  assert_string_equal(abp_peer_stop_word(peer, ABP_STOP_WORDS), "");
  const abp_call runs = receive(peer, number(1)), returns = receive(peer, number(2));
  start(peer);
  COMES_TO(abp_peer_stop_received(peer, runs), "abort");
  COMES_TO(cancel(peer, number(1)), ""); /* who says both is answered once */
  COMES_TO(abp_peer_stop_received(peer, runs), "");
  COMES_TO(abp_peer_finish(peer, runs, ABP_THREW), "result 7");
  COMES_TO(abp_peer_stop_received(peer, runs), "");
  COMES_TO(abp_peer_stop_received(peer, 0), "");
  COMES_TO(abp_peer_stop_received(peer, returns), "abort");
  COMES_TO(abp_peer_finish(peer, returns, ABP_RETURNED), "result 1");
  const abp_call waits = receive(peer, number(3));
  COMES_TO(abp_peer_stop_received(peer, waits), "result 7");
  COMES_TO(abp_peer_start(peer), "");
  const abp_call made = make(peer, 0, 0, 0);
  assert_int_equal(abp_peer_running(peer, made), 1);
  assert_int_equal(abp_peer_stop_received(peer, made), ABP_E_STATE);
  assert_int_equal(abp_peer_withdraw(peer, made), ABP_E_STATE);
  COMES_TO(abp_peer_cancel(peer, made, NULL, 0), "cancel");
  assert_int_equal(abp_peer_running(peer, made), 0);
  abp_peer_free(peer);
}

static void an_answer_that_was_taken_back_waits_for_no_handler(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP);
  const abp_call runs = receive(peer, number(1));
  start(peer);
  const abp_call waits = receive(peer, number(2));
  COMES_TO(abp_peer_withdraw(peer, runs), "abort, result 7");
  COMES_TO(abp_peer_withdraw(peer, waits), "result 7");
  COMES_TO(abp_peer_finish(peer, runs, ABP_RETURNED), "");
  assert_int_equal(abp_peer_count(peer, ABP_IN_FLIGHT_IN), 0);
  abp_peer_free(peer);
}

static void requests_wait_for_their_turn(void **state) {
  (void)state;
  abp_peer *peer = open_with((abp_peer_config){.dialect = ABP_ACP, .max_concurrent = 1});
  const abp_call first = receive(peer, number(1));
  const abp_call second = receive(peer, number(2));
  COMES_TO(abp_peer_start(peer), "start");
  assert_int_equal(abp_peer_running(peer, first), 1);
  assert_int_equal(abp_peer_running(peer, second), 0);
  abp_call child;
  drain(peer, abp_peer_request(peer, 0, 0, 0, first, &child));
  /* Whoever waits for its child is told at once. */
  COMES_TO(cancel(peer, number(1)), "cancel, settle 2, abort");
  /* Its handler has ended, so that there is room; its answer waits for its child's. */
  COMES_TO(abp_peer_finish(peer, first, ABP_RETURNED), "start");
  assert_int_equal(last.call, second);
  assert_int_equal(abp_peer_pending(peer, first), 1);
  const abp_rpc_id id = number(1);
  COMES_TO(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), "drop, result 1");
  assert_int_equal(abp_peer_pending(peer, first), 0);
  COMES_TO(abp_peer_finish(peer, second, ABP_THREW), "result 1");
  abp_peer_free(peer);
}

static int answer(abp_peer *peer, double id, abp_answer what) {
  const abp_rpc_id named = number(id);
  return abp_peer_response(peer, &named, what);
}

static void a_request_is_asked_again_once_its_peer_has_what_it_needs(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  const abp_call call = make(peer, 50, 0, ABP_ROUNDS | ABP_REPORTS);
  assert_int_equal(abp_peer_retry(peer, call), ABP_E_STATE);
  COMES_TO(answer(peer, 1, ABP_INPUT_REQUIRED), "report");
  assert_true(last.call == call);
  /* Its first id is over, and so is the progress that it asked for. */
  COMES_TO(answer(peer, 1, ABP_ANSWER_RESULT), "drop");
  const abp_rpc_id first = number(1);
  assert_int_equal(abp_peer_progress(peer, &first), ABP_E_STATE);
  COMES_TO(abp_peer_retry(peer, call), "request");
  assert_true(last.call == call && abp_peer_number(peer, call) == 2);
  assert_int_equal(abp_peer_retry(peer, call), ABP_E_STATE);
  COMES_TO(answer(peer, 1, ABP_ANSWER_RESULT), "drop");
  COMES_TO(answer(peer, 2, ABP_ANSWER_RESULT), "settle 1");
  assert_int_equal(abp_peer_retry(peer, call), ABP_E_STATE);
  assert_int_equal(abp_peer_count(peer, ABP_IN_FLIGHT_OUT), 0);
  /* One that has no rounds is answered. */
  make(peer, 0, 0, 0);
  COMES_TO(answer(peer, 3, ABP_INPUT_REQUIRED), "settle 1");
  abp_peer_free(peer);
}

static void a_request_whose_peer_needs_something_ends_without_a_word(void **state) {
  (void)state;
  static const char *const outcomes[] = {"settle 2", "settle 3", "settle 1",
                                         "settle 4", "settle 4", "settle 4"};
  for (int end = 0; end < 6; end++) {
    abp_peer *peer = open_peer(ABP_MCP);
    const abp_call call = make(peer, 50, 0, ABP_ROUNDS);
    COMES_TO(answer(peer, 1, ABP_INPUT_REQUIRED), "report");
    switch (end) {
    case 0: drain(peer, abp_peer_cancel(peer, call, "why", 3)); break;
    case 1: drain(peer, abp_peer_advance(peer, 1050)); break;
    case 2: drain(peer, abp_peer_send_failed(peer, call)); break;
    case 3: drain(peer, abp_peer_close(peer)); break;
    case 4: drain(peer, abp_peer_lost(peer)); break;
    default: drain(peer, abp_peer_half_closed(peer)); break;
    }
    assert_memory_equal(done, outcomes[end], strlen(outcomes[end]));
    assert_int_equal(abp_peer_retry(peer, call), ABP_E_STATE);
    assert_int_equal(abp_peer_count(peer, ABP_IN_FLIGHT_OUT), 0);
    abp_peer_free(peer);
  }
  /* One that waits for its answer although it was cancelled is not asked for more. */
  abp_peer *peer = open_peer(ABP_MCP);
  const abp_call call = make(peer, 0, 0, ABP_ROUNDS | ABP_WAITS);
  COMES_TO(abp_peer_cancel(peer, call, NULL, 0), "cancel");
  COMES_TO(answer(peer, 1, ABP_INPUT_REQUIRED), "settle 2");
  abp_peer_free(peer);
}

static void a_subscription_ends_with_its_connection(void **state) {
  (void)state;
  const abp_rpc_id one = number(1), two = number(2);
  for (int closes = 0; closes < 2; closes++) {
    abp_peer *peer = open_peer(ABP_MCP);
    COMES_TO(abp_peer_received(peer, &one, ABP_RPC_NO_ERROR, ABP_SUBSCRIPTION), "queued");
    const abp_call subscription = last.call;
    COMES_TO(abp_peer_received(peer, &two, ABP_RPC_NO_ERROR, 0), "queued");
    const abp_call other = last.call;
    start(peer);
    if (closes) {
      /* This side ends it in good order, and any other request with an error. */
      COMES_TO(abp_peer_close(peer), "abort, result 4, abort, result 1");
    } else {
      /* Its client has left it; another request is still answered, and then it is over. */
      COMES_TO(abp_peer_half_closed(peer), "abort");
      assert_true(last.call == subscription);
      COMES_TO(abp_peer_finish(peer, subscription, ABP_THREW), "");
      COMES_TO(abp_peer_finish(peer, other, ABP_RETURNED), "result 1, session");
      assert_int_equal(last.arg, ABP_SESSION_LOST);
    }
    abp_peer_free(peer);
  }
  abp_peer *peer = open_peer(ABP_MCP);
  COMES_TO(abp_peer_half_closed(peer), "session");
  COMES_TO(abp_peer_half_closed(peer), "");
  abp_peer_free(peer);
}

static void what_is_in_hand_is_read_before_the_clock(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  make(peer, 50, 0, 0);
  make(peer, 50, 0, ABP_REPORTS | ABP_RESETS);
  const abp_rpc_id one = number(1), two = number(2);
  COMES_TO(abp_peer_now(peer, 1060), "");
  COMES_TO(abp_peer_response(peer, &one, ABP_ANSWER_RESULT), "settle 1");
  COMES_TO(abp_peer_progress(peer, &two), "report");
  COMES_TO(abp_peer_advance(peer, 1060), "");
  COMES_TO(abp_peer_advance(peer, 1109), "");
  COMES_TO(abp_peer_advance(peer, 1110), "cancel, settle 3");
  /* It does not go back. */
  COMES_TO(abp_peer_now(peer, 5), "");
  make(peer, 50, 0, 0);
  COMES_TO(abp_peer_advance(peer, 1159), "");
  COMES_TO(abp_peer_advance(peer, 1160), "cancel, settle 3");
  abp_peer_free(peer);
}

/* What a side that asks is told; *outcome and *call are those of the last question. */
static abp_outcome outcome;
static abp_call running;
static abp_fate became(abp_peer *peer, abp_rpc_id id) {
  return abp_peer_became(peer, &id, &outcome, &running);
}
#define BECAME(id, fate, expected)                                                                 \
  do {                                                                                             \
    assert_int_equal(became(peer, id), fate);                                                      \
    assert_int_equal(outcome, expected);                                                           \
    assert_int_equal(running, 0);                                                                  \
  } while (0)

static void who_asks_is_told_what_became_of_a_request(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_MCP);
  BECAME(number(1), ABP_FATE_NONE, ABP_PENDING);
  /* Before it has begun, while it runs, and while it unwinds. */
  const abp_call call = receive(peer, number(1));
  assert_int_equal(became(peer, number(1)), ABP_FATE_RUNNING);
  assert_int_equal(running, call);
  start(peer);
  assert_int_equal(became(peer, number(1)), ABP_FATE_RUNNING);
  assert_int_equal(outcome, ABP_PENDING);
  COMES_TO(cancel(peer, number(1)), "abort");
  assert_int_equal(became(peer, number(1)), ABP_FATE_RUNNING);
  assert_int_equal(running, call);
  assert_int_equal(outcome, ABP_CANCELLED); /* it was told to stop */
  /* MCP answers none of these, and each is known all the same, by its id as it stands there. */
  COMES_TO(abp_peer_finish(peer, call, ABP_GAVE_UP), "");
  BECAME(number(1), ABP_FATE_STOPPED, ABP_CANCELLED);
  BECAME(text("1"), ABP_FATE_NONE, ABP_PENDING);
  static const struct {
    abp_ending ending;
    abp_fate fate;
  } ends[] = {{ABP_RETURNED, ABP_FATE_FINISHED},
              {ABP_THREW, ABP_FATE_FAILED},
              {ABP_ENDED, ABP_FATE_FINISHED}};
  for (size_t i = 0; i < 3; i++) {
    const abp_call stopped = receive(peer, text("stopped"));
    start(peer);
    COMES_TO(cancel(peer, text("stopped")), "abort");
    COMES_TO(abp_peer_finish(peer, stopped, ends[i].ending), "");
    BECAME(text("stopped"), ends[i].fate, ABP_CANCELLED);
    /* One that nobody has stopped. Its id is used again: it names the newest. */
    const abp_call ended = receive(peer, text("ended"));
    start(peer);
    COMES_TO(abp_peer_finish(peer, ended, ends[i].ending), "result 1");
    BECAME(text("ended"), ends[i].fate, ABP_COMPLETED);
  }
  receive(peer, number(2));
  COMES_TO(cancel(peer, number(2)), "abort");
  BECAME(number(2), ABP_FATE_UNSTARTED, ABP_CANCELLED);
  /* What this side has asked for is no request that was received. */
  make(peer, 0, 0, 0);
  BECAME(number(2), ABP_FATE_UNSTARTED, ABP_CANCELLED);
  const abp_rpc_id odd = {ABP_ID_OTHER, NULL, 0, 0};
  BECAME(odd, ABP_FATE_NONE, ABP_PENDING);
  abp_peer_free(peer);
}

static void what_became_of_requests_is_known_after_the_end_of_their_connection(void **state) {
  (void)state;
  for (int lost = 0; lost < 2; lost++) {
    abp_peer *peer = open_peer(ABP_MCP);
    const abp_call call = receive(peer, number(1));
    start(peer);
    receive(peer, number(2));
    drain(peer, lost ? abp_peer_lost(peer) : abp_peer_close(peer));
    assert_int_equal(became(peer, number(1)), ABP_FATE_RUNNING);
    assert_int_equal(running, call);
    BECAME(number(2), ABP_FATE_UNSTARTED, ABP_DISCONNECTED);
    COMES_TO(abp_peer_finish(peer, call, ABP_RETURNED), "");
    BECAME(number(1), ABP_FATE_FINISHED, ABP_DISCONNECTED);
    abp_peer_free(peer);
  }
}

static void what_became_of_requests_is_forgotten(void **state) {
  (void)state;
  abp_peer *peer =
      open_with((abp_peer_config){.dialect = ABP_MCP, .remembered = 2, .remember_ms = 100});
  for (int i = 1; i <= 3; i++) {
    const abp_call call = receive(peer, number(i));
    start(peer);
    drain(peer, cancel(peer, number(i)));
    drain(peer, abp_peer_finish(peer, call, ABP_GAVE_UP));
  }
  /* The oldest has made room. */
  BECAME(number(1), ABP_FATE_NONE, ABP_PENDING);
  BECAME(number(2), ABP_FATE_STOPPED, ABP_CANCELLED);
  drain(peer, abp_peer_now(peer, 1100));
  BECAME(number(3), ABP_FATE_STOPPED, ABP_CANCELLED);
  drain(peer, abp_peer_now(peer, 1101));
  BECAME(number(3), ABP_FATE_NONE, ABP_PENDING);
  abp_peer_free(peer);
}

static void errors_have_the_protocols_codes(void **state) {
  (void)state;
  abp_peer *peer = open_peer(ABP_ACP), *mcp = open_peer(ABP_MCP);
  static const int32_t codes[] = {0,      -32700, -32600, -32600, -32600, -32600, -32600,
                                  -32601, -32603, -32005, -32800, -32001, -32097};
  for (int error = 0; error < ABP_RPC_ERRORS; error++) {
    assert_int_equal(abp_rpc_error_code(ABP_ACP, error), codes[error]);
    assert_int_equal(error == 0, abp_rpc_error_message(error)[0] == 0);
    assert_int_equal(abp_rpc_error_has_no_id(error),
                     error >= ABP_RPC_PARSE && error <= ABP_RPC_NUMBER_ID);
  }
  assert_int_equal(abp_rpc_error_code(ABP_MCP, ABP_RPC_CLOSED), -32000);
  assert_int_equal(abp_rpc_error_code(ABP_LSP, -1), 0);
  assert_string_equal(abp_rpc_error_message(99), "");
  assert_string_equal(abp_peer_cancel_method(peer), "$/cancel_request");
  assert_string_equal(abp_peer_cancel_key(mcp), "requestId");
  assert_int_equal(abp_peer_unversioned(peer), 0);
  abp_peer_free(peer);
  abp_peer_free(mcp);
  peer = open_with((abp_peer_config){.dialect = (abp_dialect)99, .max_id = 1 << 20});
  assert_string_equal(abp_peer_cancel_method(peer), "$/cancel_request");
  abp_peer_free(peer);
}

static void ids_go_on_past_2_31_and_begin_again_after_2_32(void **state) {
  (void)state;
  static const uint32_t firsts[] = {0x7ffffffeu, 0xfffffffeu};
  for (int i = 0; i < 2; i++) {
    abp_peer *peer = open_with((abp_peer_config){.first_number = firsts[i]});
    for (uint32_t n = 0; n < 4; n++) {
      abp_call call;
      drain(peer, abp_peer_request(peer, 0, 0, 0, 0, &call));
      const uint32_t straight = firsts[i] + n;
      const uint32_t expected = straight >= firsts[i] ? straight : straight + 1; /* 0 is none */
      assert_int_equal(abp_peer_number(peer, call), expected);
      const abp_rpc_id id = number(expected);
      COMES_TO(abp_peer_response(peer, &id, ABP_ANSWER_RESULT), "settle 1");
      assert_int_equal(last.call, call);
    }
    abp_peer_free(peer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ids_go_on_past_2_31_and_begin_again_after_2_32),
      cmocka_unit_test(ids_are_told_apart_by_type_and_value),
      cmocka_unit_test(ids_are_judged_by_the_dialect),
      cmocka_unit_test(what_is_no_message_is_answered_where_the_dialect_does),
      cmocka_unit_test(a_cancel_before_the_start_is_the_end),
      cmocka_unit_test(the_reason_comes_where_the_dialect_has_one),
      cmocka_unit_test(a_timeout_says_so),
      cmocka_unit_test(progress_puts_off_the_timeout_but_not_the_longest),
      cmocka_unit_test(a_timeout_that_progress_does_not_put_off),
      cmocka_unit_test(the_handshake_is_not_cancelled_on_the_wire),
      cmocka_unit_test(a_value_does_not_help_whose_time_has_run_out),
      cmocka_unit_test(a_handler_whose_time_ran_out_is_cancelled_where_the_dialect_says_so),
      cmocka_unit_test(a_handler_that_came_to_its_end_without_an_answer_has_finished),
      cmocka_unit_test(a_subscription_is_ended_by_its_receiver_too),
      cmocka_unit_test(inputs_that_are_mistakes_change_nothing),
      cmocka_unit_test(a_peer_that_only_listens_is_answered),
      cmocka_unit_test(what_a_stopped_request_asked_for_is_late),
      cmocka_unit_test(what_belongs_to_a_name_is_stopped_by_it),
      cmocka_unit_test(an_answer_that_was_taken_back_waits_for_no_handler),
      cmocka_unit_test(requests_wait_for_their_turn),
      cmocka_unit_test(a_request_is_asked_again_once_its_peer_has_what_it_needs),
      cmocka_unit_test(a_request_whose_peer_needs_something_ends_without_a_word),
      cmocka_unit_test(a_subscription_ends_with_its_connection),
      cmocka_unit_test(what_is_in_hand_is_read_before_the_clock),
      cmocka_unit_test(who_asks_is_told_what_became_of_a_request),
      cmocka_unit_test(what_became_of_requests_is_known_after_the_end_of_their_connection),
      cmocka_unit_test(what_became_of_requests_is_forgotten),
      cmocka_unit_test(errors_have_the_protocols_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
