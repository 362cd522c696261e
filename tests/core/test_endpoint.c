/* The endpoint by its numbers, without JSON: limits, handles, ids, trees, time. Linked without
 * cJSON. */
#include "endpoint.h"
#include "siphash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static abp_endpoint *app(abp_config config) {
  config.role = ABP_APP;
  config.features = ABP_PROGRESS | ABP_ELICITATION | ABP_LIVENESS;
  abp_endpoint *ep = abp_new(&config, 1000);
  abp_endpoint_initialize(ep, "P", 1, 0, "0.1", 3, config.features);
  abp_action action;
  while (abp_next(ep, &action)) {
  }
  return ep;
}

static abp_endpoint *agent(abp_config config) {
  config.role = ABP_AGENT;
  config.features = ABP_PROGRESS | ABP_LIVENESS;
  abp_endpoint *ep = abp_new(&config, 1000);
  abp_action action;
  assert_int_equal(abp_connect(ep, 0), ABP_OK);
  while (abp_next(ep, &action)) {
  }
  abp_endpoint_initialized(ep, "S", 1, 1, 0, config.features);
  while (abp_next(ep, &action)) {
  }
  return ep;
}

static abp_id text(const char *id) { return (abp_id){id, (uint32_t)strlen(id), 0}; }

/* Drains; returns the kinds in order as a number with one hex digit each, and the call of the last.
 */
static uint64_t drain(abp_endpoint *ep, abp_action *last) {
  uint64_t kinds = 0;
  abp_action action;
  while (abp_next(ep, &action)) {
    if (action.kind == ABP_WAKE) continue;
    kinds = kinds << 4 | (uint64_t)action.kind;
    if (last) *last = action;
  }
  return kinds;
}

/* A handler calls another of its app. */
static abp_call called_by(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms) {
  abp_action action = {0};
  assert_int_equal(abp_call_local(ep, parent, timeout_ms, ABP_NO_ERROR), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_START);
  return action.call;
}

static abp_action received(abp_endpoint *ep, abp_id id) {
  abp_action action = {0};
  assert_int_equal(abp_call_received(ep, &id, 0, 0, ABP_NO_ERROR), ABP_OK);
  drain(ep, &action);
  return action;
}

static void an_input_must_be_drained_before_the_next(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  const abp_id id = text("a");
  abp_call_received(ep, &id, 0, 0, ABP_NO_ERROR);
  abp_call call;
  assert_int_equal(abp_advance(ep, 2000), ABP_E_UNDRAINED);
  assert_int_equal(abp_connect(ep, 0), ABP_E_UNDRAINED);
  assert_int_equal(abp_close(ep), ABP_E_UNDRAINED);
  assert_int_equal(abp_lost(ep), ABP_E_UNDRAINED);
  assert_int_equal(abp_unread(ep), ABP_E_UNDRAINED);
  assert_int_equal(abp_leave(ep, 0), ABP_E_UNDRAINED);
  assert_int_equal(abp_request(ep, &id, 0, 0, 0, &call), ABP_E_UNDRAINED);
  assert_int_equal(abp_cancel(ep, 1, NULL, 0), ABP_E_UNDRAINED);
  assert_int_equal(abp_cancel_by_id(ep, &id, NULL, 0, &call), ABP_E_UNDRAINED);
  assert_int_equal(abp_result_received(ep, &id, ABP_COMPLETED), ABP_E_UNDRAINED);
  assert_int_equal(abp_send_failed(ep, 1), ABP_E_UNDRAINED);
  assert_int_equal(abp_progress_received(ep, &id), ABP_E_UNDRAINED);
  assert_int_equal(abp_call_received(ep, &id, 0, 0, ABP_NO_ERROR), ABP_E_UNDRAINED);
  assert_int_equal(abp_call_local(ep, 1, 0, ABP_NO_ERROR), ABP_E_UNDRAINED);
  assert_int_equal(abp_finish(ep, 1, ABP_COMPLETED), ABP_E_UNDRAINED);
  assert_int_equal(drain(ep, NULL), ABP_START);
  assert_int_equal(abp_advance(ep, 2000), ABP_OK);
  abp_free(ep);
}

static void a_handle_of_a_call_that_is_over_is_nobody_elses(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.remembered = 1});
  const abp_call first = received(ep, text("a")).call;
  assert_int_equal(abp_finish(ep, first, ABP_COMPLETED), ABP_OK);
  drain(ep, NULL);
  for (int i = 0; i < 600; i++) {
    const abp_call next = received(ep, text("b")).call;
    assert_int_not_equal(next, first);
    assert_int_equal(abp_finish(ep, first, ABP_COMPLETED), ABP_E_STATE);
    assert_int_equal(abp_finish(ep, next, ABP_COMPLETED), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_has_begun(ep, next), 1);
    assert_int_equal(abp_has_begun(ep, first), 0);
  }
  assert_int_equal(abp_finish(ep, 0, ABP_COMPLETED), ABP_E_STATE);
  assert_int_equal(abp_finish(ep, UINT32_MAX, ABP_COMPLETED), ABP_E_STATE);
  abp_free(ep);
}

static void a_handler_that_waits_to_begin_ends_at_once(void **state) {
  (void)state;
  for (int how = 0; how < 5; how++) {
    abp_endpoint *ep = app((abp_config){.max_concurrent = 1});
    const abp_id id = text("a");
    abp_call_received(ep, &id, 50, 0, ABP_NO_ERROR);
    abp_action last = {0};
    drain(ep, &last);
    const abp_call call = last.call;
    received(ep, text("b"));
    assert_int_equal(abp_has_begun(ep, call), 1);
    assert_int_equal(abp_postpone(ep, call), ABP_OK);
    assert_int_equal(abp_has_begun(ep, call), 0);
    assert_int_equal(abp_next(ep, &last), 0);
    assert_int_equal(abp_postpone(ep, call), ABP_OK);
    assert_int_equal(abp_call_local(ep, call, 0, ABP_NO_ERROR), ABP_E_STATE);
    assert_int_equal(abp_progress_wanted(ep, call), 0);
    switch (how) {
    case 0: abp_advance(ep, 2000); break;
    case 1: abp_close(ep); break;
    case 2: abp_lost(ep); break;
    case 3:
      abp_endpoint_cancel(ep, &id, "why", 3, &(const struct cancel_text){"1", "\"a\"", 1, 3});
      break;
    default: abp_finish(ep, call, ABP_FAILED); break;
    }
    drain(ep, NULL);
    abp_outcome outcome;
    abp_call running;
    assert_int_equal(abp_became(ep, &id, &outcome, &running), ABP_FATE_UNSTARTED);
    assert_int_equal(running, 0);
    assert_int_equal(outcome, how == 4                 ? ABP_COMPLETED
                              : how == 0               ? ABP_TIMED_OUT
                              : (how == 1 || how == 2) ? ABP_DISCONNECTED
                                                       : ABP_CANCELLED);
    assert_int_equal(abp_begin(ep, call), ABP_E_STATE);
    assert_int_equal(abp_has_begun(ep, call), 0);
    assert_int_equal(abp_postpone(ep, call), ABP_E_STATE);
    assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_E_STATE);
    /* The one that waited for its place has it, unless it has ended, too. */
    const abp_id next = text("b");
    const abp_fate fate = abp_became(ep, &next, &outcome, &running);
    assert_int_equal(fate, how == 1 || how == 2 ? ABP_FATE_UNSTARTED : ABP_FATE_RUNNING);
    if (running) assert_int_equal(abp_begin(ep, running), ABP_OK);
    abp_free(ep);
  }
}

static void that_a_repeat_never_ran_is_not_what_became_of_the_work(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_concurrent = 1});
  const abp_id id = text("a"), other = text("b"), earlier = text("earlier");
  abp_action action = {0};
  abp_outcome outcome;
  abp_call call;
  abp_call_received(ep, &other, 0, 0, ABP_NO_ERROR);
  drain(ep, &action);
  const abp_call busy = action.call;
  abp_question_received(ep, &id, 0, &earlier, ABP_NO_ERROR);
  assert_int_equal(drain(ep, NULL), ABP_QUEUED);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
  abp_cancel_received(ep, &id, NULL, 0);
  drain(ep, &action);
  assert_int_equal(action.fate, ABP_FATE_UNSTARTED); /* this one did not */
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_NONE);
  assert_int_equal(outcome, ABP_CANCELLED);
  /* Its id names another that repeats nothing; and a repeat that runs has a word of its own. */
  abp_call_received(ep, &id, 0, 0, ABP_NO_ERROR);
  drain(ep, NULL);
  abp_cancel_received(ep, &id, NULL, 0);
  drain(ep, NULL);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_UNSTARTED);
  abp_question_received(ep, &id, 0, &earlier, ABP_NO_ERROR);
  drain(ep, NULL);
  assert_int_equal(abp_finish(ep, busy, ABP_COMPLETED), ABP_OK);
  drain(ep, &action);
  abp_finish(ep, action.call, ABP_FAILED);
  drain(ep, NULL);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_FAILED);
  abp_free(ep);
}

static void what_only_asks_takes_no_place(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_concurrent = 1});
  const abp_id id = text("a");
  for (int i = 0; i < 3; i++) {
    abp_call_received(ep, &id, 0, ABP_ASIDE, ABP_NO_ERROR);
    abp_action last = {0};
    assert_int_equal(drain(ep, &last), ABP_START);
    if (i == 1) assert_int_equal(received(ep, text("b")).kind, ABP_START);
    if (i == 2) assert_int_equal(received(ep, text("c")).kind, ABP_QUEUED);
    assert_int_equal(abp_postpone(ep, last.call), ABP_OK);
    abp_endpoint_cancel(ep, &id, NULL, 0, &(const struct cancel_text){"1", "\"a\"", 1, 3});
    drain(ep, NULL);
    assert_int_equal(ep->calls.running, i > 0);
  }
  abp_free(ep);
}

static void too_many_calls_are_refused_and_one_more_fits_when_one_has_ended(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_calls = 2});
  const abp_call a = received(ep, text("a")).call;
  received(ep, text("b"));
  abp_action refused = received(ep, text("c"));
  assert_int_equal(refused.kind, ABP_REFUSE);
  assert_int_equal(refused.arg, ABP_RATE_LIMITED);
  abp_finish(ep, a, ABP_COMPLETED);
  drain(ep, NULL);
  assert_int_equal(received(ep, text("c")).kind, ABP_START);
  abp_free(ep);
}

static void ids_are_refused_when_they_are_no_ids(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_id = 8});
  const char *const bad[] = {"",          "123456789",       "\xff", "\xed\xa0\x80", "\xc0\x80",
                             "a\xe2\x82", "\xf5\x80\x80\x80"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const abp_action action = received(ep, text(bad[i]));
    assert_int_equal(action.kind, ABP_REFUSE);
    assert_int_equal(action.arg, ABP_INVALID_ID);
  }
  assert_int_equal(received(ep, (abp_id){"a\0b", 3, 0}).arg, ABP_INVALID_ID);
  assert_int_equal(received(ep, text("t\xc3\xa2"
                                     "che"))
                       .kind,
                   ABP_START);
  abp_free(ep);
}

static void a_number_and_its_text_are_one_id_and_nothing_else_is(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  assert_int_equal(received(ep, (abp_id){NULL, 0, 7}).kind, ABP_START);
  assert_int_equal(received(ep, text("P.7")).arg, ABP_DUPLICATE_CALL);
  const char *const others[] = {"P.07", "P.7 ", "P.", "7", "p.7", "P.4294967303", "Q.7"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_equal(received(ep, text(others[i])).kind, ABP_START);
  assert_int_equal(received(ep, (abp_id){NULL, 0, 0}).kind, ABP_REFUSE);
  abp_free(ep);
}

static void what_is_remembered_is_bounded_in_number_and_in_age(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.remembered = 2, .remember_ms = 100});
  const char *const ids[] = {"a", "b", "c"};
  for (int i = 0; i < 3; i++) {
    abp_finish(ep, received(ep, text(ids[i])).call, ABP_COMPLETED);
    drain(ep, NULL);
  }
  assert_int_equal(abp_count(ep, ABP_REMEMBERED), 2);
  const abp_id a = text("a"), c = text("c");
  abp_endpoint_cancel(ep, &a, NULL, 0, NULL);
  assert_int_equal(ep->answer, ANSWER_NOT_FOUND);
  drain(ep, NULL);
  abp_endpoint_cancel(ep, &c, NULL, 0, NULL);
  assert_int_equal(ep->answer, ANSWER_COMPLETED);
  drain(ep, NULL);
  abp_advance(ep, 1101);
  drain(ep, NULL);
  assert_int_equal(abp_count(ep, ABP_REMEMBERED), 0);
  abp_free(ep);
}

/* --- Clocks that stand still ------------------------------------------------------------------ */

/* A call that has 100 ms, in which a local one has 80. */
static abp_endpoint *asking(abp_call *root, abp_call *child) {
  abp_endpoint *ep = app((abp_config){.grace_ms = 10});
  const abp_id id = text("root");
  abp_action action = {0};
  abp_call_received(ep, &id, 100, 0, ABP_NO_ERROR);
  drain(ep, &action);
  *root = action.call;
  abp_call_local(ep, *root, 80, ABP_NO_ERROR);
  drain(ep, &action);
  *child = action.call;
  return ep;
}

static abp_call ask(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms) {
  abp_call question;
  assert_int_equal(abp_request(ep, NULL, timeout_ms, 0, parent, &question), ABP_OK);
  assert_int_equal(drain(ep, NULL), ABP_REQUEST);
  return question;
}

static uint64_t reach(abp_endpoint *ep, uint64_t now, abp_action *last) {
  assert_int_equal(abp_advance(ep, now), ABP_OK);
  return drain(ep, last);
}

static void while_a_person_is_asked_the_clocks_above_stand_still(void **state) {
  (void)state;
  abp_call root, child;
  abp_endpoint *ep = asking(&root, &child);
  abp_action action = {0};
  reach(ep, 1030, NULL);
  ask(ep, child, 0);
  ask(ep, root, 0);
  assert_int_equal(reach(ep, 9000, NULL), 0);
  const abp_id first = {NULL, 0, 2}, second = {NULL, 0, 3};
  abp_result_received(ep, &second, ABP_COMPLETED);
  assert_int_equal(drain(ep, NULL), ABP_SETTLE);
  assert_int_equal(reach(ep, 10000, NULL), 0); /* the other one is still asked */
  abp_result_received(ep, &first, ABP_COMPLETED);
  drain(ep, NULL);
  assert_int_equal(reach(ep, 10049, NULL), 0);
  assert_int_equal(reach(ep, 10050, &action), ABP_ABORT);
  assert_int_equal(action.call, child);
  abp_finish(ep, child, ABP_COMPLETED);
  drain(ep, NULL);
  assert_int_equal(reach(ep, 10069, NULL), 0);
  assert_int_equal(reach(ep, 10070, &action), ABP_ABORT);
  assert_int_equal(action.call, root);
  abp_free(ep);
}

static void a_question_has_a_clock_of_its_own_and_a_grace_period_never_stands_still(void **state) {
  (void)state;
  abp_call root, child;
  abp_endpoint *ep = asking(&root, &child);
  abp_action action = {0};
  const abp_call question = ask(ep, child, 500);
  assert_int_equal(reach(ep, 1499, NULL), 0);
  assert_int_equal(reach(ep, 1500, &action), ABP_SETTLE);
  assert_int_equal(action.call, question);
  assert_int_equal(action.arg, ABP_TIMED_OUT);
  assert_int_equal(reach(ep, 1579, NULL), 0);
  ask(ep, root, 0); /* the other one goes on */
  assert_int_equal(reach(ep, 1580, &action), ABP_ABORT);
  assert_int_equal(action.call, child);
  assert_int_equal(reach(ep, 1590, &action), ABP_RESULT); /* its grace period is over */
  abp_cancel(ep, root, NULL, 0);
  assert_int_equal(drain(ep, NULL), ABP_SETTLE << 4 | ABP_ABORT);
  assert_int_equal(reach(ep, 1600, &action), ABP_RESULT);
  assert_int_equal(action.call, root);
  abp_free(ep);
}

static void what_streams_to_a_handler_asks_no_person(void **state) {
  (void)state;
  abp_endpoint *ep =
      abp_new(&(abp_config){.role = ABP_APP, .features = ABP_STREAMS | ABP_ELICITATION}, 1000);
  abp_endpoint_initialize(ep, "P", 1, 0, "0.1", 3, ABP_STREAMS | ABP_ELICITATION);
  drain(ep, NULL);
  const abp_id id = text("a");
  abp_action action = {0};
  abp_call_received(ep, &id, 100, 0, ABP_NO_ERROR);
  drain(ep, &action);
  abp_call input;
  assert_int_equal(abp_request(ep, NULL, 0, ABP_WANTS_STREAM, action.call, &input), ABP_OK);
  drain(ep, NULL);
  /* Its loop ends before its signal fires, however long the source takes. */
  assert_int_equal(reach(ep, 1100, NULL), ABP_SEND << 8 | ABP_SETTLE << 4 | ABP_ABORT);
  abp_free(ep);
}

static uint64_t asked(abp_endpoint *ep, uint32_t number, const char *about, abp_error fault,
                      abp_call *question) {
  const abp_id id = {NULL, 0, number}, call = text(about);
  abp_action action = {0};
  assert_int_equal(abp_question_received(ep, &id, 0, &call, fault), ABP_OK);
  const uint64_t kinds = drain(ep, &action);
  if (question) *question = action.call;
  return kinds;
}

static void an_agent_that_is_asked_about_a_call_waits_with_it(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.grace_ms = 10});
  const abp_id mine = text("mine"), other = text("other");
  abp_call call, another, question, cancel;
  abp_action action = {0};
  abp_request(ep, &mine, 100, 0, 0, &call);
  drain(ep, NULL);
  abp_request(ep, &other, 50, 0, 0, &another);
  drain(ep, NULL);
  /* What is refused is not asked. */
  assert_int_equal(asked(ep, 1, "other", ABP_NOT_SUPPORTED, NULL), ABP_REFUSE);
  assert_int_equal(asked(ep, 2, "mine", ABP_NO_ERROR, &question), ABP_START);
  assert_int_equal(reach(ep, 1050, &action), ABP_SEND);
  assert_int_equal(action.call, another);
  /* These name nothing that waits for its result. */
  abp_cancel_by_id(ep, &mine, NULL, 0, &cancel);
  assert_int_equal(abp_next(ep, &action), 1); /* it ends with its call */
  assert_int_equal(action.kind, ABP_ABORT);
  assert_int_equal(action.call, question);
  assert_int_equal(drain(ep, NULL), ABP_SEND);
  assert_int_equal(abp_finish(ep, question, ABP_CANCELLED), ABP_OK);
  assert_int_equal(drain(ep, NULL), ABP_RESULT);
  for (uint32_t i = 0; i < 5; i++) {
    const char *const odd[] = {"mine", "other", "nobody's", "", NULL};
    char own[64] = "";
    own[abp_id_text(ep, cancel, own, sizeof own - 1)] = 0;
    assert_int_equal(asked(ep, 10 + i, odd[i] ? odd[i] : own, ABP_NO_ERROR, NULL), ABP_START);
  }
  assert_int_equal(reach(ep, 1060, NULL), ABP_SETTLE << 8 | ABP_SETTLE << 4 | ABP_SETTLE);
  abp_free(ep);
}

static void an_agent_goes_on_when_its_answer_is_out_or_not_wanted(void **state) {
  (void)state;
  for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
    abp_endpoint *ep = agent((abp_config){.grace_ms = 10, .max_concurrent = 1});
    const abp_id mine = text("mine"), second = {NULL, 0, 2};
    abp_call call, question;
    abp_action action = {0};
    abp_request(ep, &mine, 100, 0, 0, &call);
    drain(ep, NULL);
    assert_int_equal(asked(ep, 1, "mine", ABP_NO_ERROR, &question), ABP_START);
    assert_int_equal(asked(ep, 2, "mine", ABP_NO_ERROR, NULL), ABP_QUEUED); /* is asked, too */
    assert_int_equal(reach(ep, 5000, NULL), 0);
    abp_cancel_received(ep, &second, NULL, 0);
    assert_int_equal(drain(ep, NULL), ABP_RESULT);
    assert_int_equal(reach(ep, 6000, NULL), 0);
    const abp_id first = {NULL, 0, 1};
    if (withdrawn)
      abp_cancel_received(ep, &first, NULL, 0); /* and its handler does not return */
    else
      abp_finish(ep, question, ABP_COMPLETED);
    assert_int_equal(drain(ep, NULL), withdrawn ? ABP_ABORT : ABP_RESULT);
    assert_int_equal(reach(ep, 6099, NULL), withdrawn ? ABP_RESULT : 0);
    assert_int_equal(reach(ep, 6100, &action), ABP_SEND);
    assert_int_equal(action.call, call);
    abp_free(ep);
  }
}

static void an_agent_cannot_stop_the_clock_of_a_question(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  abp_call question;
  assert_int_equal(abp_request(ep, NULL, 100, 0, 0, &question), ABP_OK);
  drain(ep, NULL);
  char own[64] = "";
  own[abp_id_text(ep, question, own, sizeof own - 1)] = 0;
  assert_int_equal(asked(ep, 1, own, ABP_NO_ERROR, NULL), ABP_START);
  assert_int_equal(reach(ep, 1100, NULL), ABP_SETTLE);
  abp_free(ep);
}

static void a_tree_of_calls_stops_with_its_root_and_its_children_first(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_concurrent = 1});
  const abp_call root = received(ep, text("root")).call;
  abp_action action = {0};
  assert_int_equal(abp_call_local(ep, root, 0, ABP_NO_ERROR), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_START); /* although only one may run: its parent waits */
  const abp_call child = action.call;
  abp_call question;
  assert_int_equal(abp_request(ep, NULL, 0, 0, child, &question), ABP_OK);
  drain(ep, NULL);
  const abp_id id = text("root");
  abp_endpoint_cancel(ep, &id, "why", 3, NULL);
  abp_action actions[8];
  int count = 0;
  while (abp_next(ep, &actions[count]))
    count += actions[count].kind != ABP_WAKE;
  assert_int_equal(count, 4);
  assert_int_equal(actions[0].arg, ABP_MSG_CANCEL_RESULT);
  assert_int_equal(actions[1].kind, ABP_SETTLE);
  assert_int_equal(actions[1].call, question);
  assert_int_equal(actions[1].arg, ABP_CANCELLED);
  assert_int_equal(actions[2].kind, ABP_ABORT);
  assert_int_equal(actions[2].call, child);
  assert_memory_equal(actions[2].text, "why", 3);
  assert_int_equal(actions[3].call, root);
  assert_int_equal(abp_request(ep, NULL, 0, 0, root, &question), ABP_E_STATE);
  abp_free(ep);
}

static void calls_within_calls_go_only_so_deep(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  abp_call parent = received(ep, text("root")).call;
  for (int depth = 1;; depth++) {
    abp_action action = {0};
    assert_int_equal(abp_call_local(ep, parent, 0, ABP_NO_ERROR), ABP_OK);
    drain(ep, &action);
    if (action.kind == ABP_REFUSE) {
      assert_int_equal(depth, 33);
      break;
    }
    parent = action.call;
  }
  const abp_id id = text("root");
  abp_endpoint_cancel(ep, &id, NULL, 0, NULL);
  drain(ep, NULL);
  abp_free(ep);
}

static void deadlines_fire_in_order_and_only_once(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.grace_ms = 1000});
  enum { N = 500 };
  uint32_t seed = 1;
  for (uint32_t i = 1; i <= N; i++) {
    const abp_id id = {NULL, 0, i};
    seed = seed * 1664525 + 1013904223;
    abp_call_received(ep, &id, 1 + (seed >> 8) % 900, 0, ABP_NO_ERROR);
    drain(ep, NULL);
  }
  int aborted = 0;
  for (uint64_t now = 1001; now <= 1900; now++) {
    abp_advance(ep, now);
    abp_action action;
    while (abp_next(ep, &action))
      aborted += action.kind == ABP_ABORT;
    if (ep->calls.table.timer_count)
      assert_true(table_call(&ep->calls.table, ep->calls.table.timers[0])->deadline > now);
  }
  assert_int_equal(aborted, N);
  abp_free(ep);
}

static void a_timeout_is_clamped_to_what_a_timer_can_wait(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){0});
  abp_call call;
  assert_int_equal(abp_request(ep, NULL, UINT32_MAX, 0, 0, &call), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(ep->calls.table.timer_count, 1);
  assert_int_equal(table_call(&ep->calls.table, ep->calls.table.timers[0])->deadline,
                   1000 + 0x7fffffffull);
  abp_free(ep);
}

static void a_silent_peer_is_asked_once_and_then_given_up(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.heartbeat_ms = 100});
  abp_call call;
  abp_request(ep, NULL, 0, 0, 0, &call);
  drain(ep, NULL);
  abp_action action;
  abp_advance(ep, 1100);
  assert_int_equal(drain(ep, &action), ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_PING);
  abp_advance(ep, 1200);
  assert_int_equal(drain(ep, &action), ABP_SETTLE << 8 | ABP_SEND << 4 | ABP_SESSION);
  assert_int_equal(action.arg, ABP_SESSION_LOST);
  abp_free(ep);
}

static void a_peer_that_answers_is_asked_again_and_again(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.heartbeat_ms = 100});
  abp_action action;
  for (uint64_t now = 1100; now < 3000; now += 100) {
    abp_advance(ep, now);
    assert_int_equal(drain(ep, &action), ABP_SEND);
    assert_int_equal(action.arg, ABP_MSG_PING);
    abp_endpoint_enter(ep);
    abp_endpoint_ping(ep, 1);
    drain(ep, NULL);
  }
  assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
  abp_free(ep);
}

static void a_clock_that_stood_still_asks_again_before_it_gives_up(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.heartbeat_ms = 100});
  abp_action action;
  abp_advance(ep, 1100);
  drain(ep, NULL);
  abp_advance(ep, 90000); /* the machine slept */
  assert_int_equal(drain(ep, &action), ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_PING);
  abp_endpoint_enter(ep);
  abp_endpoint_ping(ep, 1);
  abp_advance(ep, 90100);
  drain(ep, NULL);
  assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
  abp_free(ep);
}

static void a_new_session_has_no_authority_over_the_old_ones_calls(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  const abp_call running = received(ep, text("a")).call;
  abp_endpoint_enter(ep);
  abp_endpoint_shutdown(ep);
  assert_int_equal(drain(ep, NULL), ABP_ABORT << 8 | ABP_RESULT << 4 | ABP_SESSION);
  const abp_id id = text("a");
  abp_endpoint_cancel(ep, &id, NULL, 0, NULL);
  assert_int_equal(ep->answer, ANSWER_NOT_INITIALIZED);
  drain(ep, NULL);
  abp_endpoint_initialize(ep, "Q", 1, 0, "0.1", 3, 0);
  drain(ep, NULL);
  abp_endpoint_cancel(ep, &id, NULL, 0, NULL);
  assert_int_equal(ep->answer, ANSWER_NOT_FOUND);
  drain(ep, NULL);
  /* Its handler still runs, and is counted; the id is free. */
  assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_IN), 1);
  assert_int_equal(received(ep, text("a")).kind, ABP_START);
  assert_int_equal(abp_finish(ep, running, ABP_COMPLETED), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_IN), 1);
  abp_free(ep);
}

static void a_handler_hears_of_its_local_call_when_the_peer_is_lost(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  const abp_call root = received(ep, text("root")).call;
  abp_action action = {0};
  abp_call_local(ep, root, 0, ABP_NO_ERROR);
  drain(ep, &action);
  const abp_call child = action.call;
  abp_lost(ep);
  int answers = 0;
  while (abp_next(ep, &action)) {
    answers += action.kind == ABP_RESULT;
    assert_true(action.kind != ABP_RESULT || action.call == child);
  }
  assert_int_equal(answers, 1);
  abp_free(ep);
}

static void an_app_keeps_no_session_that_its_agent_has_given_up(void **state) {
  (void)state;
  const abp_config config = {.role = ABP_AGENT};
  abp_endpoint *ep = abp_new(&config, 1000);
  abp_action action = {0};
  abp_connect(ep, 0);
  drain(ep, NULL);
  abp_close(ep);
  assert_true(abp_next(ep, &action));
  assert_int_equal(action.arg, ABP_MSG_SHUTDOWN);
  drain(ep, NULL);
  /* It says so again to a yes that comes later. */
  abp_endpoint_initialized(ep, "S", 1, 1, 0, 0);
  assert_int_equal(drain(ep, &action), ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_SHUTDOWN);
  abp_free(ep);
}

static void a_hello_that_is_refused_replaces_no_session(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.restart = 1});
  abp_action action;
  abp_endpoint_initialize(ep, "Q", 1, 0, "x", 1, 0);
  assert_int_equal(drain(ep, &action), ABP_REFUSE);
  assert_int_equal(action.arg, ABP_NOT_SUPPORTED);
  abp_endpoint_initialize(ep, "", 0, 0, "0.1", 3, 0);
  assert_int_equal(drain(ep, &action), ABP_REFUSE);
  assert_int_equal(action.arg, ABP_INVALID_ID);
  assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
  abp_endpoint_initialize(ep, "Q", 1, 0, "0.1", 3, 0);
  assert_int_equal(drain(ep, &action), ABP_SEND << 4 | ABP_SESSION);
  abp_free(ep);
}

/* A million calls: as many as there are handles. The table is full before the limit is reached. */
static void a_full_table_turns_calls_down_on_both_sides(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_calls = UINT32_MAX});
  abp_call call = 0, last = 0;
  int status = ABP_OK;
  for (uint32_t i = 1; status == ABP_OK; i++) {
    last = call;
    status = abp_request(ep, NULL, 0, 0, 0, &call);
    drain(ep, NULL);
    assert_true(i <= (1u << SLOT_BITS) + 1);
  }
  assert_int_equal(status, ABP_E_LIMIT);
  assert_int_equal(received(ep, text("one more")).arg, ABP_RATE_LIMITED);
  assert_int_equal(abp_send_failed(ep, last), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(received(ep, text("one more")).kind, ABP_START);
  abp_free(ep);
}

static void late_and_stray_answers_are_counted_and_change_nothing(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){0});
  abp_call call;
  abp_request(ep, NULL, 0, 0, 0, &call);
  drain(ep, NULL);
  const abp_id id = {NULL, 0, abp_number(ep, call)}, other = {NULL, 0, 99};
  abp_result_received(ep, &id, ABP_COMPLETED);
  assert_int_equal(drain(ep, NULL), ABP_SETTLE);
  abp_result_received(ep, &id, ABP_CANCELLED);
  abp_result_received(ep, &other, ABP_COMPLETED);
  abp_progress_received(ep, &id);
  assert_int_equal(drain(ep, NULL), 0);
  assert_int_equal(abp_count(ep, ABP_LATE), 2);
  assert_int_equal(abp_count(ep, ABP_STRAY), 1);
  abp_free(ep);
}

static void a_request_says_its_number(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){0});
  const abp_id text = {"a", 1, 0};
  abp_call call;
  abp_action action;
  assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
  assert_int_equal(abp_next(ep, &action), 1);
  assert_int_equal(action.kind, ABP_REQUEST);
  assert_int_equal(action.number, 1);
  drain(ep, NULL);
  assert_int_equal(abp_request(ep, &text, 0, 0, 0, &call), ABP_OK);
  assert_int_equal(abp_next(ep, &action), 1);
  assert_int_equal(action.number, 0);
  abp_free(ep);
}

static void numbers_never_meet_when_they_wrap(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){0});
  abp_call call;
  abp_request(ep, NULL, 0, 0, 0, &call);
  drain(ep, NULL);
  assert_int_equal(abp_number(ep, call), 1);
  ep->calls.minted = UINT32_MAX - 1;
  uint32_t numbers[3];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
    drain(ep, NULL);
    numbers[i] = abp_number(ep, call);
  }
  assert_int_equal(numbers[0], UINT32_MAX);
  assert_int_equal(numbers[1], 2); /* 0 is no number, and 1 is in flight */
  assert_int_equal(numbers[2], 3);
  abp_free(ep);
}

static void a_cancel_by_id_leaves_alone_what_has_no_cancel(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.grace_ms = 100});
  const abp_id other = text("other");
  abp_call first, second;
  assert_int_equal(abp_cancel_by_id(ep, &other, NULL, 0, &first), ABP_OK);
  drain(ep, NULL);
  char name[64];
  name[abp_id_text(ep, first, name, sizeof name - 1)] = 0;
  const abp_id itself = text(name), number = {NULL, 0, 1};
  assert_int_equal(abp_cancel_by_id(ep, &itself, NULL, 0, &second), ABP_OK);
  drain(ep, NULL);
  /* Both end with their grace period; neither waits for ever. */
  abp_advance(ep, 1100);
  assert_int_equal(drain(ep, NULL), ABP_SETTLE << 4 | ABP_SETTLE);
  assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_OUT), 0);
  assert_int_equal(abp_cancel_by_id(ep, &number, NULL, 0, &first), ABP_E_ID);
  abp_free(ep);
}

static void a_cancel_that_nobody_waits_for_is_answered_by_the_result_alone(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.remembered = 2});
  const abp_id unknown = text("unknown"), running = text("r"), none = {"", 0, 0};
  const abp_call call = received(ep, running).call;
  assert_int_equal(abp_cancel_received(ep, &unknown, NULL, 0), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  assert_int_equal(abp_cancel_received(ep, &none, NULL, 0), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  abp_action action;
  assert_int_equal(abp_cancel_received(ep, &running, "why", 3), ABP_OK);
  assert_int_equal(abp_cancel_received(ep, &running, "why", 3), ABP_E_UNDRAINED);
  assert_int_equal(abp_next(ep, &action), 1);
  assert_int_equal(action.kind, ABP_ABORT);
  assert_memory_equal(action.text, "why", action.length);
  drain(ep, NULL);
  assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_RESULT);
  assert_int_equal(action.arg, ABP_CANCELLED);
  assert_int_equal(abp_cancel_received(ep, &running, NULL, 0), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  abp_free(ep);
}

static void what_settles_at_once_is_not_cancelled_as_well(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.remembered = 1});
  /* The calls' slots come after their parent's, which is stepped first and stops them. */
  abp_call calls[3];
  abp_call question = 0;
  for (int i = 0; i < 6; i++) {
    if (i == 3) question = received(ep, text("q")).call;
    for (int j = 0; i == 3 && j < 3; j++) {
      assert_int_equal(abp_send_failed(ep, calls[j]), ABP_OK);
      drain(ep, NULL);
    }
    assert_int_equal(abp_request(ep, NULL, 0, 0, question, &calls[i % 3]), ABP_OK);
    drain(ep, NULL);
  }
  abp_lost(ep);
  abp_action action;
  int settled = 0;
  while (abp_next(ep, &action)) {
    assert_int_not_equal(action.kind, ABP_SEND);
    settled += action.kind == ABP_SETTLE;
  }
  assert_int_equal(settled, 3);
  abp_free(ep);
}

static void a_number_that_the_caller_chose_is_not_minted_again(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){0});
  const abp_id chosen = {NULL, 0, 2};
  abp_call calls[3];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(abp_request(ep, i ? NULL : &chosen, 0, 0, 0, &calls[i]), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_number(ep, calls[i]), 2 + i);
  }
  abp_free(ep);
}

static void only_a_handler_finishes_and_only_a_caller_fails_to_send(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.max_concurrent = 1});
  abp_call call;
  assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_finish(ep, call, ABP_COMPLETED), ABP_E_STATE);
  const abp_call running = received(ep, text("q")).call, waiting = received(ep, text("r")).call;
  assert_int_equal(abp_finish(ep, waiting, ABP_COMPLETED), ABP_E_STATE);
  assert_int_equal(abp_send_failed(ep, running), ABP_E_STATE);
  assert_int_equal(abp_send_failed(ep, call), ABP_OK);
  assert_int_equal(drain(ep, NULL), ABP_SETTLE);
  assert_int_equal(abp_finish(ep, running, ABP_COMPLETED), ABP_OK);
  assert_int_equal(drain(ep, NULL), ABP_RESULT << 4 | ABP_START);
  abp_free(ep);
}

static void what_goes_on_after_a_cancel_need_not_be_waited_for(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.grace_ms = 1000});
  const abp_id id = text("q");
  abp_action action = {0};
  abp_outcome outcome;
  abp_call call = received(ep, id).call;
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
  assert_int_equal(outcome, ABP_PENDING);
  abp_cancel_received(ep, &id, NULL, 0);
  assert_int_equal(drain(ep, NULL), ABP_ABORT);
  assert_int_equal(abp_goes_on(ep, call), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_RESULT);
  assert_int_equal(action.fate, ABP_FATE_RUNNING);
  assert_int_equal(abp_goes_on(ep, call), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  const abp_call running = call;
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
  assert_int_equal(outcome, ABP_CANCELLED); /* it was told to stop */
  assert_int_equal(abp_finish(ep, running, ABP_COMPLETED), ABP_OK);
  assert_int_equal(drain(ep, NULL), 0);
  assert_int_equal(abp_goes_on(ep, running), ABP_OK); /* a void handle */
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_FINISHED);
  assert_int_equal(outcome, ABP_CANCELLED);
  /* Of what nobody cancelled, too: its handler gave a part of it away. */
  const abp_call other = received(ep, text("r")).call;
  assert_int_equal(abp_goes_on(ep, other), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_RESULT);
  assert_int_equal(action.arg, ABP_CANCELLED);
  assert_int_equal(abp_finish(ep, other, ABP_CANCELLED), ABP_OK);
  abp_free(ep);
}

static void what_passes_on_that_a_call_still_runs_takes_its_word(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.grace_ms = 10});
  const abp_id id = text("q");
  abp_action action = {0};
  abp_outcome outcome;
  abp_call call, inner[2];
  const abp_call outer = received(ep, id).call;
  inner[0] = called_by(ep, outer, 5);
  inner[1] = called_by(ep, inner[0], 0);
  abp_advance(ep, 1006);
  drain(ep, NULL);
  abp_advance(ep, 1017); /* both are told to be running */
  drain(ep, NULL);
  assert_int_equal(abp_finish_with_fate(ep, inner[0], ABP_CANCELLED, ABP_FATE_RUNNING), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_finish_with_fate(ep, outer, ABP_FAILED, ABP_FATE_RUNNING), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_RESULT);
  assert_int_equal(action.fate, ABP_FATE_RUNNING);
  assert_int_equal(abp_finish(ep, outer, ABP_COMPLETED), ABP_E_STATE);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
  assert_int_equal(call, inner[1]);
  assert_int_equal(abp_finish(ep, inner[1], ABP_COMPLETED), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_FINISHED);
  assert_int_equal(call, 0);
  assert_int_equal(ep->calls.running, 0);
  /* Or it has returned before it is passed on. */
  const abp_call other = received(ep, text("r")).call;
  const abp_call soon = called_by(ep, other, 5);
  abp_advance(ep, 1022);
  drain(ep, NULL);
  abp_advance(ep, 1033);
  drain(ep, NULL);
  assert_int_equal(abp_finish(ep, soon, ABP_FAILED), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_finish_with_fate(ep, other, ABP_CANCELLED, ABP_FATE_RUNNING), ABP_OK);
  assert_int_equal(drain(ep, &action), ABP_RESULT);
  assert_int_equal(action.fate, ABP_FATE_FAILED);
  abp_free(ep);
}

static void what_was_stopped_is_over_when_what_it_called_is(void **state) {
  (void)state;
  static const abp_outcome ENDS[] = {ABP_CANCELLED, ABP_FAILED, ABP_COMPLETED, ABP_UNKNOWN};
  static const abp_fate WORDS[] = {ABP_FATE_STOPPED, ABP_FATE_FAILED, ABP_FATE_FINISHED,
                                   ABP_FATE_UNKNOWN};
  for (int i = 0; i < 16; i++) {
    const int late = i & 1, lost = i >> 1 & 1;
    abp_endpoint *ep = app((abp_config){.grace_ms = 10});
    const abp_id id = text("q");
    abp_action action = {0};
    abp_outcome outcome;
    abp_call call, inner[2];
    const abp_call outer = received(ep, id).call;
    for (int child = 0; child < 2; child++)
      inner[child] = called_by(ep, outer, 0);
    abp_cancel_received(ep, &id, NULL, 0);
    drain(ep, NULL);
    assert_int_equal(abp_finish(ep, outer, ENDS[i >> 2]), ABP_FOLLOWS);
    assert_int_equal(drain(ep, NULL), 0);
    assert_int_equal(abp_finish(ep, outer, ABP_COMPLETED), ABP_E_STATE);
    assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
    if (late) {
      abp_advance(ep, 1011);
      while (abp_next(ep, &action) && action.call != outer) {
      }
      assert_int_equal(action.kind, ABP_RESULT);
      assert_int_equal(action.fate, ABP_FATE_RUNNING);
      drain(ep, NULL);
    }
    assert_int_equal(abp_finish(ep, inner[1], lost ? ABP_UNKNOWN : ABP_FAILED), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_RUNNING);
    assert_int_equal(abp_finish(ep, inner[0], ABP_COMPLETED), ABP_OK);
    const abp_fate word = lost ? ABP_FATE_UNKNOWN : WORDS[i >> 2];
    uint32_t told = 0;
    while (abp_next(ep, &action))
      if (action.kind == ABP_RESULT && action.call == outer) told = action.fate;
    assert_int_equal(told, late ? 0 : word);
    assert_int_equal(abp_became(ep, &id, &outcome, &call), word);
    assert_int_equal(outcome, ABP_CANCELLED);
    assert_int_equal(ep->calls.running, 0);
    abp_free(ep);
  }
}

static void what_ended_with_its_session_was_wanted_by_nobody(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){0});
  const abp_id id = text("q");
  abp_action action = {0};
  abp_outcome outcome;
  abp_call call = received(ep, id).call;
  const abp_call running = call;
  abp_close(ep);
  while (abp_next(ep, &action) && action.kind != ABP_RESULT) {
  }
  assert_int_equal(action.arg, ABP_CANCELLED); /* as its agent is told */
  drain(ep, NULL);
  assert_int_equal(abp_finish(ep, running, ABP_CANCELLED), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_became(ep, &id, &outcome, &call), ABP_FATE_STOPPED);
  assert_int_equal(outcome, ABP_DISCONNECTED);
  abp_free(ep);
}

/* The table against a list: the same calls are found, whatever comes and goes. */
static void the_index_finds_what_a_list_finds(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.max_calls = 100000, .remembered = 50});
  enum { N = 400 };
  abp_call live[N] = {0};
  char ids[N][64];
  uint32_t seed = 7;
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < 63; j++)
      ids[i][j] = (char)('a' + (i * 7 + j) % 26);
    ids[i][i % 60] = 0;
    snprintf(ids[i] + strlen(ids[i]), 64 - strlen(ids[i]), "%d", i);
  }
  for (int round = 0; round < 40000; round++) {
    seed = seed * 1664525 + 1013904223;
    const int i = (int)(seed >> 8) % N;
    if (!live[i]) {
      const abp_action action = received(ep, text(ids[i]));
      assert_int_equal(action.kind, ABP_START);
      live[i] = action.call;
    } else if (seed & 0x80) {
      assert_int_equal(received(ep, text(ids[i])).arg, ABP_DUPLICATE_CALL);
    } else {
      assert_int_equal(abp_finish(ep, live[i], ABP_COMPLETED), ABP_OK);
      drain(ep, NULL);
      live[i] = 0;
    }
  }
  abp_free(ep);
}

static int by_value(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Ids that differ in pairs of bits, which a multiplication moves to known places: with the hash
 * that was here before, more than a thousand of these shared theirs, whatever the seed. */
static void ids_that_share_a_hash_cannot_be_chosen_without_the_seed(void **state) {
  (void)state;
  enum { TOGGLES = 15, IDS = 1 << TOGGLES };
  uint32_t *hashes = malloc(IDS * sizeof *hashes);
  assert_non_null(hashes);
  for (uint8_t seed = 0; seed < 4; seed++) {
    struct call_table table;
    abp_table_init(&table,
                   (const uint8_t[16]){seed, 2, 3, 4, 5, 6, 7, 8, (uint8_t)(9 * seed + 1), 10});
    for (uint32_t i = 0; i < IDS; i++) {
      char text[16 * TOGGLES + 8];
      memset(text, '!', sizeof text);
      for (int bit = 0; bit < TOGGLES; bit++) {
        if (!(i >> bit & 1)) continue;
        text[16 * bit + 7] ^= 0x40;  /* bit 62 of a word; and what it becomes, 29 bits lower, */
        text[16 * bit + 15] ^= 0x40; /* in the next */
        text[16 * bit + 12] ^= 0x02;
      }
      const abp_id id = {text, sizeof text, 0};
      hashes[i] = abp_table_hash(&table, &id, 0);
    }
    qsort(hashes, IDS, sizeof *hashes, by_value);
    uint32_t most = 0;
    for (uint32_t i = 0, alike = 1; i + 1 < IDS; i++) {
      alike = hashes[i] == hashes[i + 1] ? alike + 1 : 1;
      if (alike > most) most = alike;
    }
    assert_in_range(most, 1, 4);
    abp_table_free(&table);
  }
  free(hashes);
}

/* The values of another implementation. */
static void the_hash_is_siphash_1_3(void **state) {
  (void)state;
  static const char text[] = "a call id of 36 bytes, or not at all";
  const uint64_t zero[2] = {0, 0}, counting[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  assert_true(abp_siphash_text(zero, text, 36, 36) == 0xcba343af91bd34d5u);
  assert_true(abp_siphash_text(zero, "abp", 3, 3) == 0x3595907a5e78b540u);
  assert_true(abp_siphash_text(counting, "", 0, 0) == 0xabac0158050fc4dcu);
}

static void the_seed_is_not_in_the_ids(void **state) {
  (void)state;
  char seen[2][64];
  for (int last = 0; last < 2; last++) {
    abp_endpoint *ep = agent((abp_config){.seed = {0xa1, 0xb2, 0xc3, 0xd4, [15] = (uint8_t)last}});
    abp_call call;
    assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
    const size_t length = abp_id_text(ep, call, seen[last], sizeof seen[last] - 1);
    seen[last][length] = 0;
    assert_null(strstr(seen[last], "a1b2"));
    drain(ep, NULL);
    abp_free(ep);
  }
  /* Every byte of the seed counts. */
  int alike = 0;
  for (int i = 0; i < 20; i++)
    alike += seen[0][i] == seen[1][i];
  assert_in_range(alike, 0, 8);
}

static void an_agent_that_leaves_while_it_connects_leaves_no_session_behind(void **state) {
  (void)state;
  const abp_config config = {.role = ABP_AGENT, .features = ABP_LIVENESS};
  abp_endpoint *ep = abp_new(&config, 1000);
  assert_int_equal(abp_connect(ep, 0), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_leave(ep, 0), ABP_OK);
  abp_action action;
  assert_int_equal(abp_next(ep, &action), 1);
  assert_int_equal(action.kind, ABP_SEND);
  assert_int_equal(action.arg, ABP_MSG_SHUTDOWN); /* the app may have said yes already */
  assert_int_equal(abp_session_state(ep), ABP_SESSION_LOST);
  abp_free(ep);
}

static void a_peer_that_did_not_agree_to_liveness_hears_no_bye(void **state) {
  (void)state;
  for (int how = 0; how < 3; how++) {
    abp_endpoint *ep = app((abp_config){0});
    ep->session.agreed &= ~(uint32_t)ABP_LIVENESS;
    assert_int_equal(how == 2 ? abp_close(ep) : abp_leave(ep, how), ABP_OK);
    abp_action action;
    while (abp_next(ep, &action))
      assert_int_not_equal(action.kind, ABP_SEND);
    abp_free(ep);
  }
}

/* Says whether it sends this, and drains. */
static int sends(abp_endpoint *ep, abp_message message) {
  abp_action action;
  int sent = 0;
  while (abp_next(ep, &action))
    sent += action.kind == ABP_SEND && action.arg == message;
  return sent;
}

static void an_app_that_may_be_there_now_is_greeted_at_once(void **state) {
  (void)state;
  abp_config config = {.role = ABP_AGENT};
  abp_endpoint *ep = abp_new(&config, 1000);
  assert_int_equal(abp_connect(ep, 5000), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_INITIALIZE), 1);
  /* The pauses have become long. */
  for (uint64_t now = 1000; now < 2000; now += 10) {
    assert_int_equal(abp_advance(ep, now), ABP_OK);
    drain(ep, NULL);
  }
  assert_int_equal(abp_suspect(ep), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_INITIALIZE), 1);
  /* However often that is, the handshake ends. */
  for (uint64_t now = 2000; now <= 6000; now += 10) {
    assert_int_equal(abp_advance(ep, now), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_suspect(ep), ABP_OK);
    drain(ep, NULL);
  }
  assert_int_equal(abp_session_state(ep), ABP_SESSION_FAILED);
  assert_int_equal(abp_suspect(ep), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_INITIALIZE), 0);
  abp_free(ep);
}

static void a_frame_that_cannot_be_read_ends_the_session(void **state) {
  (void)state;
  for (int is_app = 0; is_app < 2; is_app++) {
    abp_endpoint *ep = is_app ? app((abp_config){0}) : agent((abp_config){0});
    ep->session.agreed &= ~(uint32_t)(ABP_FRAMES | ABP_LIVENESS);
    assert_int_equal(abp_unread(ep), ABP_OK);
    assert_int_equal(sends(ep, is_app ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN), 0);
    assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
    ep->session.agreed |= ABP_FRAMES;
    abp_call call;
    assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_unread(ep), ABP_OK);
    assert_int_equal(abp_advance(ep, 2000), ABP_E_UNDRAINED);
    assert_int_equal(sends(ep, is_app ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN), 1);
    assert_int_equal(abp_session_state(ep), ABP_SESSION_LOST);
    assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_OUT), 0);
    assert_int_equal(abp_count(ep, ABP_MALFORMED), 2);
    /* What comes later is counted, and ends nothing. */
    assert_int_equal(abp_unread(ep), ABP_OK);
    assert_int_equal(sends(ep, is_app ? ABP_MSG_BYE : ABP_MSG_SHUTDOWN), 0);
    abp_free(ep);
  }
}

static void a_suspected_peer_is_asked_and_what_it_answers_decides(void **state) {
  (void)state;
  /* Silent, answers, knows no session; with a heartbeat and without. */
  for (int how = 0; how < 6; how++) {
    const int plain = how % 2;
    abp_endpoint *ep = agent((abp_config){.heartbeat_ms = 100, .probe_ms = 300});
    if (plain) ep->session.agreed &= ~(uint32_t)ABP_LIVENESS;
    ep->session.due = plain ? 0 : ep->session.due;
    abp_call call;
    assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_suspect(ep), ABP_OK);
    assert_int_equal(sends(ep, plain ? ABP_MSG_PROBE : ABP_MSG_PING), 1);
    assert_int_equal(abp_suspect(ep), ABP_OK); /* once is enough */
    assert_int_equal(sends(ep, plain ? ABP_MSG_PROBE : ABP_MSG_PING), 0);
    const uint64_t patience = plain ? 300 : 100;
    assert_int_equal(abp_advance(ep, 1000 + patience - 1), ABP_OK);
    assert_int_equal(sends(ep, ABP_MSG_SHUTDOWN), 0);
    if (how / 2 == 0) {
      assert_int_equal(abp_advance(ep, 1000 + patience), ABP_OK);
    } else {
      /* What comes from the window of a plain app may come from another document. */
      const abp_id stray = text("nobody's");
      assert_int_equal(abp_progress_received(ep, &stray), ABP_OK);
      drain(ep, NULL);
      if (plain)
        abp_endpoint_probed(ep, how / 2 == 2 ? ABP_SESSION_EXPIRED : ABP_NO_ERROR);
      else if (how / 2 == 1)
        abp_endpoint_ping(ep, 1);
      else
        assert_int_equal(abp_refused(ep, "SESSION_INVALID", 15), ABP_OK);
    }
    const int lost = how / 2 != 1;
    /* It is told, so that it does not keep alone what this side has given up. */
    assert_int_equal(sends(ep, ABP_MSG_SHUTDOWN), lost);
    assert_int_equal(abp_session_state(ep), lost ? ABP_SESSION_LOST : ABP_SESSION_READY);
    assert_int_equal(abp_count(ep, ABP_IN_FLIGHT_OUT), lost ? 0 : 1);
    if (!lost && plain) {
      assert_int_equal(abp_advance(ep, 1000000), ABP_OK); /* nothing runs any more */
      drain(ep, NULL);
      assert_int_equal(abp_session_state(ep), ABP_SESSION_READY);
    }
    abp_free(ep);
  }
}

static void an_app_whose_agent_is_silent_says_goodbye(void **state) {
  (void)state;
  abp_endpoint *ep = app((abp_config){.heartbeat_ms = 100});
  assert_int_equal(abp_advance(ep, 1100), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_PING), 1);
  /* A beginning that is refused is no sign of life of the agent that has the session. */
  assert_int_equal(abp_advance(ep, 1199), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_endpoint_initialize(ep, "Q", 1, 0, "0.1", 3, ABP_LIVENESS), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_advance(ep, 1200), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_BYE), 1);
  assert_int_equal(abp_session_state(ep), ABP_SESSION_LOST);
  assert_int_equal(abp_endpoint_initialize(ep, "Q", 1, 0, "0.1", 3, ABP_LIVENESS), ABP_OK);
  assert_int_equal(sends(ep, ABP_MSG_INITIALIZE_RESULT), 1);
  abp_free(ep);
}

static void numbers_go_on_past_2_31_and_begin_again_after_2_32(void **state) {
  (void)state;
  static const uint32_t firsts[] = {0x7ffffffeu, 0xfffffffdu};
  for (size_t i = 0; i < 2; i++) {
    abp_endpoint *ep = agent((abp_config){.first_number = firsts[i]});
    abp_call held;
    assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &held), ABP_OK);
    drain(ep, NULL);
    assert_int_equal(abp_number(ep, held), firsts[i]);
    for (uint32_t n = 1; n < 8; n++) {
      abp_call call;
      assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
      drain(ep, NULL);
      const uint32_t number = abp_number(ep, call);
      const uint32_t straight = firsts[i] + n;
      assert_int_equal(number, straight >= firsts[i] ? straight : straight + 1); /* 0 is none */
      const abp_id id = {NULL, 0, number};
      assert_int_equal(abp_result_received(ep, &id, ABP_COMPLETED), ABP_OK);
      abp_action settled = {0};
      drain(ep, &settled);
      assert_int_equal(settled.kind, ABP_SETTLE);
      assert_int_equal(settled.call, call);
      char text[64];
      const size_t length = abp_id_text(ep, call, text, sizeof text);
      if (length) {
        const abp_id same = {text, (uint32_t)length, 0};
        assert_int_equal(abp_result_received(ep, &same, ABP_COMPLETED), ABP_OK);
        drain(ep, NULL);
        assert_int_equal(abp_count(ep, ABP_LATE), n); /* it is known under both */
      }
    }
    abp_free(ep);
  }
}

static void a_number_that_is_still_in_use_is_skipped_when_numbers_begin_again(void **state) {
  (void)state;
  abp_endpoint *ep = agent((abp_config){.first_number = 1});
  abp_call held, call;
  assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &held), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_number(ep, held), 1);
  calls_number_from(&ep->calls, UINT32_MAX);
  assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_number(ep, call), UINT32_MAX);
  assert_int_equal(abp_request(ep, NULL, 0, 0, 0, &call), ABP_OK);
  drain(ep, NULL);
  assert_int_equal(abp_number(ep, call), 2);
  abp_free(ep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_input_must_be_drained_before_the_next),
      cmocka_unit_test(ids_that_share_a_hash_cannot_be_chosen_without_the_seed),
      cmocka_unit_test(the_hash_is_siphash_1_3),
      cmocka_unit_test(the_seed_is_not_in_the_ids),
      cmocka_unit_test(an_agent_that_leaves_while_it_connects_leaves_no_session_behind),
      cmocka_unit_test(a_peer_that_did_not_agree_to_liveness_hears_no_bye),
      cmocka_unit_test(an_app_that_may_be_there_now_is_greeted_at_once),
      cmocka_unit_test(a_frame_that_cannot_be_read_ends_the_session),
      cmocka_unit_test(a_suspected_peer_is_asked_and_what_it_answers_decides),
      cmocka_unit_test(an_app_whose_agent_is_silent_says_goodbye),
      cmocka_unit_test(numbers_go_on_past_2_31_and_begin_again_after_2_32),
      cmocka_unit_test(a_number_that_is_still_in_use_is_skipped_when_numbers_begin_again),
      cmocka_unit_test(a_handle_of_a_call_that_is_over_is_nobody_elses),
      cmocka_unit_test(a_handler_that_waits_to_begin_ends_at_once),
      cmocka_unit_test(that_a_repeat_never_ran_is_not_what_became_of_the_work),
      cmocka_unit_test(what_only_asks_takes_no_place),
      cmocka_unit_test(too_many_calls_are_refused_and_one_more_fits_when_one_has_ended),
      cmocka_unit_test(ids_are_refused_when_they_are_no_ids),
      cmocka_unit_test(a_number_and_its_text_are_one_id_and_nothing_else_is),
      cmocka_unit_test(what_is_remembered_is_bounded_in_number_and_in_age),
      cmocka_unit_test(while_a_person_is_asked_the_clocks_above_stand_still),
      cmocka_unit_test(a_question_has_a_clock_of_its_own_and_a_grace_period_never_stands_still),
      cmocka_unit_test(what_streams_to_a_handler_asks_no_person),
      cmocka_unit_test(an_agent_that_is_asked_about_a_call_waits_with_it),
      cmocka_unit_test(an_agent_goes_on_when_its_answer_is_out_or_not_wanted),
      cmocka_unit_test(an_agent_cannot_stop_the_clock_of_a_question),
      cmocka_unit_test(a_tree_of_calls_stops_with_its_root_and_its_children_first),
      cmocka_unit_test(calls_within_calls_go_only_so_deep),
      cmocka_unit_test(deadlines_fire_in_order_and_only_once),
      cmocka_unit_test(a_timeout_is_clamped_to_what_a_timer_can_wait),
      cmocka_unit_test(a_silent_peer_is_asked_once_and_then_given_up),
      cmocka_unit_test(a_peer_that_answers_is_asked_again_and_again),
      cmocka_unit_test(a_clock_that_stood_still_asks_again_before_it_gives_up),
      cmocka_unit_test(a_new_session_has_no_authority_over_the_old_ones_calls),
      cmocka_unit_test(a_handler_hears_of_its_local_call_when_the_peer_is_lost),
      cmocka_unit_test(an_app_keeps_no_session_that_its_agent_has_given_up),
      cmocka_unit_test(a_hello_that_is_refused_replaces_no_session),
      cmocka_unit_test(a_full_table_turns_calls_down_on_both_sides),
      cmocka_unit_test(late_and_stray_answers_are_counted_and_change_nothing),
      cmocka_unit_test(a_request_says_its_number),
      cmocka_unit_test(numbers_never_meet_when_they_wrap),
      cmocka_unit_test(a_cancel_by_id_leaves_alone_what_has_no_cancel),
      cmocka_unit_test(a_cancel_that_nobody_waits_for_is_answered_by_the_result_alone),
      cmocka_unit_test(what_settles_at_once_is_not_cancelled_as_well),
      cmocka_unit_test(a_number_that_the_caller_chose_is_not_minted_again),
      cmocka_unit_test(only_a_handler_finishes_and_only_a_caller_fails_to_send),
      cmocka_unit_test(what_goes_on_after_a_cancel_need_not_be_waited_for),
      cmocka_unit_test(what_passes_on_that_a_call_still_runs_takes_its_word),
      cmocka_unit_test(what_was_stopped_is_over_when_what_it_called_is),
      cmocka_unit_test(what_ended_with_its_session_was_wanted_by_nobody),
      cmocka_unit_test(the_index_finds_what_a_list_finds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
