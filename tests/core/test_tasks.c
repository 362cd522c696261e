/* The tasks of an agent: what the table of task_state.c promises on every path, what several tasks
 * have to do with each other, and what happens when memory is short. explore_tasks.c has the rest:
 * every short history of one. */
#include "failing.h"
#include "task_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static long until_failure = -1;

static int fails(void) { return until_failure >= 0 && until_failure-- == 0; }

/* --- The table -------------------------------------------------------------------------------- */

static struct task_step step(int state, int event) {
  return task_step((enum abp_task_state)state, (enum task_event)event);
}
static int ended(int state) { return abp_task_ended((enum abp_task_state)state); }

static void a_terminal_state_is_final_and_nothing_is_told_after_it(void **state) {
  (void)state;
  for (int from = 0; from < TASK_STATES; from++) {
    if (!ended(from)) continue;
    for (int event = 0; event < TASK_EVENTS; event++) {
      assert_int_equal(step(from, event).next, from);
      assert_int_equal(step(from, event).owed & ~(ABP_TASK_ACK | ABP_TASK_NAK), 0);
    }
  }
}

static void every_way_to_an_end_tells_it_settles_and_ends_the_streams(void **state) {
  (void)state;
  const int all = ABP_TASK_TELL | ABP_TASK_SETTLE | ABP_TASK_END;
  for (int from = 0; from < TASK_STATES; from++) {
    for (int event = 0; event < TASK_EVENTS; event++) {
      const struct task_step to = step(from, event);
      if (!ended(from) && ended(to.next)) assert_int_equal(to.owed & all, all);
      if (to.next != from && to.next != TASK_CANCELING) assert_true(to.owed & ABP_TASK_TELL);
    }
  }
}

static void no_cancel_of_an_agents_task_is_left_without_an_answer(void **state) {
  (void)state;
  for (int from = ABP_TASK_SUBMITTED; from < TASK_STATES; from++) {
    assert_true(step(from, TE_CANCEL).owed & TASK_AGAIN);
    if (from != ABP_TASK_SUBMITTED)
      assert_true(step(from, TE_ASK).owed & (TASK_AGAIN | ABP_TASK_WAIT));
  }
}

static void whatever_an_executor_does_when_it_is_asked_to_stop_its_task_ends(void **state) {
  (void)state;
  const int events[] = {TE_RETURN, TE_THROW, TE_GRACE, TE_SAYS_INPUT_REQUIRED,
                        TE_SAYS_AUTH_REQUIRED};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++)
    assert_int_equal(step(TASK_CANCELING, events[i]).next, ABP_TASK_CANCELED);
}

static void an_executor_starts_only_where_a_message_is_awaited(void **state) {
  (void)state;
  for (int from = 0; from < TASK_STATES; from++) {
    const int awaits = from == ABP_TASK_SUBMITTED || from == ABP_TASK_INPUT_REQUIRED ||
                       from == ABP_TASK_AUTH_REQUIRED;
    for (int event = 0; event < TASK_EVENTS; event++)
      assert_int_equal((step(from, event).owed & ABP_TASK_START) != 0, awaits && event == TE_START);
  }
}

/* --- Several tasks ---------------------------------------------------------------------------- */

static abp_task add(abp_tasks *tasks, const char *id) {
  abp_task task = 0;
  assert_int_equal(abp_task_add(tasks, id, (uint32_t)strlen(id), ABP_TASK_SUBMITTED, &task),
                   ABP_OK);
  return task;
}

static void complete(abp_tasks *tasks, abp_task task) {
  assert_true(abp_task_start(tasks, task) & ABP_TASK_START);
  assert_true(abp_task_returns(tasks, task, 1, 0) & ABP_TASK_END);
}

static int create(abp_tasks *tasks, abp_task task, const char *id, uint32_t *place) {
  return abp_task_artifact(tasks, task, 1, id, (uint32_t)strlen(id), 0, place);
}

static void ids_are_told_apart_and_wrong_ones_refused(void **state) {
  (void)state;
  const abp_tasks_config config = {.max_id = 5000, .max_tasks = 3};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  char longest[1025];
  memset(longest, 'x', sizeof longest);
  abp_task task = 0;
  assert_int_equal(abp_task_add(tasks, "", 0, ABP_TASK_SUBMITTED, &task), ABP_E_ID);
  assert_int_equal(abp_task_add(tasks, longest, 1025, ABP_TASK_SUBMITTED, &task), ABP_E_ID);
  assert_int_equal(abp_task_find(tasks, longest, 1025), 0);
  assert_int_equal(abp_task_add(tasks, longest, 1024, ABP_TASK_SUBMITTED, &task), ABP_OK);
  assert_int_equal(abp_task_find(tasks, longest, 1024), task);
  assert_int_equal(abp_task_find(tasks, longest, 1023), 0);
  const abp_task a = add(tasks, "a");
  assert_int_equal(abp_task_add(tasks, "a", 1, ABP_TASK_SUBMITTED, &task), ABP_E_DUPLICATE);
  add(tasks, "b");
  assert_int_equal(abp_task_add(tasks, "c", 1, ABP_TASK_SUBMITTED, &task), ABP_E_LIMIT);
  uint32_t place;
  abp_task_start(tasks, a);
  assert_int_equal(abp_task_artifact(tasks, a, 1, "", 0, 0, &place), ABP_E_ID);
  assert_int_equal(abp_task_artifact(tasks, a, 1, longest, 1025, 0, &place), ABP_E_ID);
  assert_int_equal(abp_task_artifact(tasks, a, 1, longest, 1024, 0, &place), ABP_ARTIFACT_CREATE);
  complete(tasks, abp_task_find(tasks, "b", 1));
  add(tasks, "c"); /* there is room again */
  abp_tasks_free(tasks);
}

static void artifacts_belong_to_their_task_and_are_limited(void **state) {
  (void)state;
  const abp_tasks_config config = {.max_artifacts = 2};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task a = add(tasks, "a"), b = add(tasks, "b");
  uint32_t place = 9;
  abp_task_start(tasks, a);
  abp_task_start(tasks, b);
  assert_int_equal(create(tasks, a, "one", &place), ABP_ARTIFACT_CREATE);
  assert_int_equal(create(tasks, a, "two", &place), ABP_ARTIFACT_CREATE);
  assert_int_equal(place, 1);
  assert_int_equal(create(tasks, a, "three", &place), ABP_E_LIMIT);
  assert_int_equal(create(tasks, b, "two", &place), ABP_ARTIFACT_CREATE);
  assert_int_equal(place, 0);
  assert_int_equal(create(tasks, a, "two", &place), ABP_ARTIFACT_REPLACE);
  assert_int_equal(place, 1);
  /* An artifact's id is no task's. */
  assert_int_equal(abp_task_find(tasks, "one", 3), 0);
  abp_tasks_free(tasks);
}

static void the_oldest_finished_tasks_are_forgotten_first(void **state) {
  (void)state;
  const abp_tasks_config config = {.remembered = 2, .remember_ms = 100};
  abp_tasks *tasks = abp_tasks_new(&config, 1000);
  abp_task due = 0;
  const abp_task a = add(tasks, "a"), b = add(tasks, "b"), c = add(tasks, "c");
  complete(tasks, b);
  abp_tasks_advance(tasks, 1050);
  complete(tasks, a);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  complete(tasks, c);
  assert_int_equal(abp_tasks_next(tasks, &due), ABP_TASK_FORGET);
  assert_int_equal(due, b);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  assert_int_equal(abp_task_find(tasks, "b", 1), 0);
  assert_int_equal(abp_task_cancel(tasks, b, 0, 1), ABP_E_STATE);
  assert_int_equal(abp_task_state(tasks, b), ABP_TASK_UNKNOWN);
  assert_int_equal(abp_tasks_wake(tasks), 1150);
  abp_tasks_advance(tasks, 900); /* a clock that goes back */
  abp_tasks_advance(tasks, 1150);
  assert_int_equal(abp_tasks_next(tasks, &due), ABP_TASK_FORGET);
  assert_int_equal(due, a);
  assert_int_equal(abp_tasks_next(tasks, &due), ABP_TASK_FORGET);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  assert_int_equal(abp_tasks_wake(tasks), 0);
  /* Its slot is another task's now, and the old handle is nobody's. */
  const abp_task again = add(tasks, "b");
  assert_int_not_equal(again, b);
  assert_int_equal(abp_task_start(tasks, b), 0);
  assert_int_equal(abp_task_run(tasks, b), 0);
  assert_int_equal(abp_task_says(tasks, b, 0, ABP_TASK_FAILED, 1), 0);
  assert_int_equal(abp_task_returns(tasks, b, 0, 0), 0);
  abp_tasks_free(tasks);
}

static void grace_periods_end_in_their_order(void **state) {
  (void)state;
  const abp_tasks_config config = {.remembered = 8};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task a = add(tasks, "a"), b = add(tasks, "b"), done = add(tasks, "done");
  complete(tasks, done);
  abp_task_start(tasks, a);
  abp_task_start(tasks, b);
  assert_true(abp_task_cancel(tasks, a, 50, 1) & ABP_TASK_WAIT);
  assert_true(abp_task_cancel(tasks, b, 20, 1) & ABP_TASK_WAIT);
  assert_true(abp_task_cancel(tasks, b, 900, 1) & ABP_TASK_WAIT); /* no longer than the first */
  assert_int_equal(abp_tasks_wake(tasks), 20);
  abp_tasks_advance(tasks, 60);
  abp_task due = 0;
  assert_true(abp_tasks_next(tasks, &due) & ABP_TASK_SETTLE);
  assert_int_equal(due, b);
  assert_true(abp_tasks_next(tasks, &due) & ABP_TASK_SETTLE);
  assert_int_equal(due, a);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  abp_tasks_free(tasks);
}

static void a_question_that_nobody_answers_ends_its_task(void **state) {
  (void)state;
  const abp_tasks_config config = {.remember_ms = 100};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task asks = add(tasks, "asks"), answered = add(tasks, "answered");
  abp_task heard = 0, due = 0;
  assert_int_equal(abp_task_add(tasks, "heard", 5, ABP_TASK_UNKNOWN, &heard), ABP_OK);
  abp_task_says(tasks, heard, 0, ABP_TASK_INPUT_REQUIRED, 0); /* not ours to end */
  abp_task_start(tasks, asks);
  abp_task_start(tasks, answered);
  abp_task_says(tasks, asks, 1, ABP_TASK_INPUT_REQUIRED, 0);
  abp_task_says(tasks, answered, 1, ABP_TASK_AUTH_REQUIRED, 0);
  assert_int_equal(abp_tasks_wake(tasks), 0); /* their executors work on */
  abp_task_returns(tasks, asks, 1, 0);
  abp_task_returns(tasks, answered, 1, 0);
  assert_int_equal(abp_tasks_wake(tasks), 100);
  assert_true(abp_task_start(tasks, answered) & ABP_TASK_START);
  abp_tasks_advance(tasks, 100);
  assert_true(abp_tasks_next(tasks, &due) & ABP_TASK_SETTLE);
  assert_int_equal(due, asks);
  assert_int_equal(abp_task_state(tasks, asks), ABP_TASK_CANCELED);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  assert_int_equal(abp_task_state(tasks, heard), ABP_TASK_INPUT_REQUIRED);
  abp_tasks_free(tasks);
}

static void a_task_may_be_let_go_at_any_time(void **state) {
  (void)state;
  const abp_tasks_config config = {.remembered = 8};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task live = add(tasks, "live"), done = add(tasks, "done");
  uint32_t place;
  abp_task_start(tasks, live);
  create(tasks, live, "one", &place);
  create(tasks, live, "two", &place);
  complete(tasks, done);
  abp_task_forget(tasks, live);
  abp_task_forget(tasks, live);
  abp_task_forget(tasks, done);
  abp_task_forget(tasks, 0);
  abp_task_forget(tasks, UINT32_MAX);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 0);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_FINISHED), 0);
  abp_tasks_free(tasks);
  abp_tasks_free(NULL);
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* More tasks and artifacts than a slab has; returns what went wrong first. */
static int live(abp_tasks *tasks) {
  for (int i = 0; i < 40; i++) {
    char id[64];
    abp_task task;
    uint32_t place = 0;
    /* Some ids are longer than a cell of the table. */
    const int length = snprintf(id, sizeof id, i % 2 ? "%050d" : "%d", i);
    int status = abp_task_add(tasks, id, (uint32_t)length, ABP_TASK_SUBMITTED, &task);
    if (status < 0) return status;
    abp_task_start(tasks, task);
    for (int j = 0; j < 8; j++) {
      status = abp_task_artifact(tasks, task, 1, id + j % 2, (uint32_t)(length + j / 2), 0, &place);
      if (status < 0) return status;
    }
    if (i % 3 == 0) abp_task_returns(tasks, task, 1, 0);
  }
  return ABP_OK;
}

static void every_allocation_fails_and_nothing_is_lost(void **state) {
  (void)state;
  const abp_tasks_config config = {.seed = {7}};
  for (long n = 0;; n++) {
    balance = 0;
    until_failure = n;
    abp_tasks *tasks = abp_tasks_new(&config, 0);
    const int status = tasks ? live(tasks) : ABP_E_MEMORY;
    const int failed = until_failure < 0;
    until_failure = -1;
    if (failed) assert_int_equal(status, ABP_E_MEMORY);
    if (tasks) {
      /* There is memory again: what failed works. */
      const uint32_t before = abp_tasks_count(tasks, ABP_TASKS_LIVE);
      const abp_task task = add(tasks, "another");
      uint32_t place = 9;
      abp_task_start(tasks, task);
      assert_int_equal(create(tasks, task, "one", &place), ABP_ARTIFACT_CREATE);
      assert_int_equal(place, 0);
      assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), before + 1);
    }
    abp_tasks_free(tasks);
    assert_int_equal(balance, 0);
    if (!failed) {
      assert_true(n > 20); /* it really allocates */
      return;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_terminal_state_is_final_and_nothing_is_told_after_it),
      cmocka_unit_test(every_way_to_an_end_tells_it_settles_and_ends_the_streams),
      cmocka_unit_test(no_cancel_of_an_agents_task_is_left_without_an_answer),
      cmocka_unit_test(whatever_an_executor_does_when_it_is_asked_to_stop_its_task_ends),
      cmocka_unit_test(an_executor_starts_only_where_a_message_is_awaited),
      cmocka_unit_test(ids_are_told_apart_and_wrong_ones_refused),
      cmocka_unit_test(artifacts_belong_to_their_task_and_are_limited),
      cmocka_unit_test(the_oldest_finished_tasks_are_forgotten_first),
      cmocka_unit_test(grace_periods_end_in_their_order),
      cmocka_unit_test(a_question_that_nobody_answers_ends_its_task),
      cmocka_unit_test(a_task_may_be_let_go_at_any_time),
      cmocka_unit_test(every_allocation_fails_and_nothing_is_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
