/* The tasks of an agent: what the table of task_state.c promises on every path, what several tasks
 * have to do with each other, and what happens when memory is short. explore_tasks.c has the rest:
 * every short history of one. */
#include "call_table.h"
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
static int for_good;

static int fails(void) {
  if (until_failure) {
    until_failure -= until_failure > 0;
    return 0;
  }
  if (!for_good) until_failure = -1;
  return 1;
}

/* --- The table -------------------------------------------------------------------------------- */

static struct task_step step(int state, int event) {
  return abp_task_step((enum abp_task_state)state, (enum task_event)event);
}
static int ended(int state) { return abp_task_ended((enum abp_task_state)state); }

static void a_terminal_state_is_final_and_nothing_is_told_after_it(void **state) {
  (void)state;
  for (int from = 0; from < TASK_STATES; from++) {
    if (!ended(from)) continue;
    for (int event = 0; event < TASK_EVENTS; event++) {
      assert_int_equal(step(from, event).next, from);
      const int quiet = ABP_TASK_ACK | ABP_TASK_NAK | ABP_TASK_LEARN;
      assert_int_equal(step(from, event).owed & ~quiet, 0);
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
    assert_true(step(from, TE_CANCEL).owed & (TASK_AGAIN | ABP_TASK_WAIT));
    if (from != ABP_TASK_SUBMITTED)
      assert_true(step(from, TE_ASK).owed & (TASK_AGAIN | ABP_TASK_WAIT));
  }
}

static void whatever_an_executor_does_when_it_is_asked_to_stop_its_task_ends(void **state) {
  (void)state;
  const int events[] = {TE_RETURN,
                        TE_THROW,
                        TE_STOP,
                        TE_UNSURE,
                        TE_GRACE,
                        TE_SAYS_INPUT_REQUIRED,
                        TE_SAYS_AUTH_REQUIRED};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++)
    assert_int_equal(step(TASK_CANCELING, events[i]).next, ABP_TASK_CANCELED);
}

static void every_end_of_an_agents_task_says_what_became_of_the_work(void **state) {
  (void)state;
  for (int from = ABP_TASK_SUBMITTED; from < (int)TASK_COMMITTING; from++) {
    for (int event = 0; event < TASK_EVENTS; event++) {
      const struct task_step to = step(from, event);
      assert_int_equal(to.fate != ABP_FATE_NONE,
                       (!ended(from) && ended(to.next)) || (to.owed & ABP_TASK_LEARN) != 0);
    }
  }
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

static void what_is_stored_first_is_told_by_nothing_else(void **state) {
  (void)state;
  const int promises =
      ABP_TASK_TELL | ABP_TASK_SETTLE | ABP_TASK_END | ABP_TASK_START | ABP_TASK_ACK;
  for (int from = 0; from < TASK_STATES; from++) {
    for (int event = 0; event < TASK_EVENTS; event++) {
      const struct task_step now = step(from, event), deferred = abp_task_defer(now);
      assert_int_equal(deferred.owed & promises, 0);
      assert_true(deferred.owed & ABP_TASK_COMMIT);
      assert_int_equal(deferred.owed & ABP_TASK_ABORT, now.owed & ABP_TASK_ABORT);
      assert_int_equal((deferred.owed & ABP_TASK_WAIT) != 0, (now.owed & ABP_TASK_ACK) != 0);
      assert_int_equal(deferred.next, ended(now.next) ? TASK_COMMITTING : now.next);
    }
  }
}

static void only_its_log_ends_a_task_that_is_being_stored(void **state) {
  (void)state;
  for (int event = TE_START; event < TASK_EVENTS; event++) {
    const struct task_step to = step(TASK_COMMITTING, event);
    const int replaces = ABP_TASK_REPLACE | ABP_TASK_COMMIT;
    assert_int_equal(to.next, TASK_COMMITTING);
    assert_int_equal(to.owed & ~(ABP_TASK_WAIT | ABP_TASK_LEARN | replaces), 0);
    /* One end is stored: a second one is in the place of the first. */
    assert_true((to.owed & replaces) == 0 || (to.owed & replaces) == replaces);
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
  assert_int_equal(abp_task_add(tasks, "a", 1, ABP_TASK_COMPLETED, &task), ABP_E_STATE);
  assert_int_equal(abp_task_add(tasks, "a", 1, ABP_TASK_REJECTED, &task), ABP_E_STATE);
  assert_int_equal(abp_task_add(tasks, "a", 1, (enum abp_task_state)9, &task), ABP_E_STATE);
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

static void a_task_that_nobody_asks_for_is_cancelled(void **state) {
  (void)state;
  const abp_tasks_config config = {.grace_ms = 30};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task a = add(tasks, "a"), b = add(tasks, "b"), asks = add(tasks, "asks");
  abp_task due = 0;
  abp_task_start(tasks, a);
  abp_task_start(tasks, b);
  abp_task_start(tasks, asks);
  abp_task_lease(tasks, a, 100);
  abp_task_lease(tasks, b, 100);
  abp_task_lease(tasks, asks, 120);
  assert_int_equal(abp_tasks_wake(tasks), 100);
  abp_tasks_advance(tasks, 60);
  abp_task_lease(tasks, a, 100);                          /* somebody asks */
  abp_task_lease(tasks, b, 0);                            /* and waits */
  abp_task_says(tasks, a, 1, ABP_TASK_INPUT_REQUIRED, 0); /* a step keeps the lease */
  abp_task_says(tasks, a, 1, ABP_TASK_WORKING, 0);
  abp_task_says(tasks, asks, 1, ABP_TASK_INPUT_REQUIRED, 0);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  abp_tasks_advance(tasks, 120);
  /* Its executor runs, but waits for whoever is gone. */
  const int all = ABP_TASK_TELL | ABP_TASK_ABORT | ABP_TASK_SETTLE | ABP_TASK_END;
  const int ends = all | ABP_TASK_CANCELED << ABP_TASK_STATE_SHIFT;
  assert_int_equal(abp_tasks_next(tasks, &due), ends);
  assert_int_equal(due, asks);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  assert_int_equal(abp_tasks_wake(tasks), 160);
  abp_tasks_advance(tasks, 170);
  const int stops = ABP_TASK_ABORT | ABP_TASK_WORKING << ABP_TASK_STATE_SHIFT;
  assert_int_equal(abp_tasks_next(tasks, &due), stops);
  assert_int_equal(due, a);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  abp_task_lease(tasks, a, 1); /* too late: the executor has its grace period */
  assert_int_equal(abp_tasks_wake(tasks), 200);
  abp_tasks_advance(tasks, 200);
  assert_true(abp_tasks_next(tasks, &due) & ABP_TASK_SETTLE);
  assert_int_equal(abp_task_state(tasks, a), ABP_TASK_CANCELED);
  /* A cancel ends the lease, and has a grace period of its own. */
  abp_task_lease(tasks, b, 100);
  assert_true(abp_task_cancel(tasks, b, 500, 1) & ABP_TASK_WAIT);
  assert_int_equal(abp_tasks_wake(tasks), 700);
  abp_task_says(tasks, b, 1, ABP_TASK_COMPLETED, 0);
  abp_task_returns(tasks, b, 1, 0);
  abp_task_lease(tasks, b, 5); /* of a task that has ended */
  abp_tasks_advance(tasks, 210);
  assert_int_equal(abp_tasks_next(tasks, &due), 0);
  assert_int_equal(abp_task_state(tasks, b), ABP_TASK_COMPLETED);
  abp_task_forget(tasks, b);
  abp_task_lease(tasks, b, 5); /* a void handle */
  abp_tasks_free(tasks);
}

/* --- A log outside ---------------------------------------------------------------------------- */

static int bits(int verdict) { return verdict & ((1 << ABP_TASK_STATE_SHIFT) - 1); }
static int about(int verdict) { return verdict >> ABP_TASK_STATE_SHIFT; }

static abp_tasks *with_log(void) {
  const abp_tasks_config config = {.commits = 1};
  return abp_tasks_new(&config, 0);
}

/* A task whose executor runs. */
static abp_task run(abp_tasks *tasks, const char *id) {
  const abp_task task = add(tasks, id);
  assert_int_equal(bits(abp_task_start(tasks, task)), ABP_TASK_COMMIT);
  const int verdict = abp_task_committed(tasks, task, ABP_TASK_WORKING);
  assert_int_equal(bits(verdict), ABP_TASK_TELL | ABP_TASK_START);
  return task;
}

static void a_state_is_told_when_it_is_stored(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task task = run(tasks, "task");
  assert_int_equal(bits(abp_task_says(tasks, task, 1, ABP_TASK_WORKING, 1)), ABP_TASK_COMMIT);
  const int returned = abp_task_returns(tasks, task, 1, 0);
  assert_int_equal(bits(returned), ABP_TASK_COMMIT);
  assert_int_equal(about(returned), ABP_TASK_COMPLETED);
  assert_int_equal(abp_task_state(tasks, task), ABP_TASK_WORKING);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 1);
  /* In the order in which they were said. */
  assert_int_equal(abp_task_committed(tasks, task, ABP_TASK_COMPLETED), ABP_E_STATE);
  assert_int_equal(bits(abp_task_committed(tasks, task, ABP_TASK_WORKING)), ABP_TASK_TELL);
  const int stored = abp_task_committed(tasks, task, ABP_TASK_COMPLETED);
  assert_int_equal(bits(stored), ABP_TASK_TELL | ABP_TASK_SETTLE | ABP_TASK_END);
  assert_int_equal(abp_task_state(tasks, task), ABP_TASK_COMPLETED);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_FINISHED), 1);
  assert_int_equal(abp_task_committed(tasks, task, ABP_TASK_COMPLETED), ABP_E_STATE);
  abp_tasks_free(tasks);
}

static void a_cancel_waits_for_what_is_being_stored_and_gets_its_truth(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task done = run(tasks, "done"), stopped = run(tasks, "stopped");
  abp_task_returns(tasks, done, 1, 0);
  assert_int_equal(bits(abp_task_cancel(tasks, done, 0, 1)), ABP_TASK_WAIT);
  assert_int_equal(bits(abp_task_cancel(tasks, done, 50, 1)), ABP_TASK_WAIT);
  assert_int_equal(abp_tasks_wake(tasks), 0); /* nobody has a grace period */
  assert_true(abp_task_committed(tasks, done, ABP_TASK_COMPLETED) & ABP_TASK_SETTLE);
  assert_int_equal(bits(abp_task_cancel(tasks, done, 0, 1)), ABP_TASK_NAK);

  const int cancel = abp_task_cancel(tasks, stopped, 0, 0);
  assert_int_equal(bits(cancel), ABP_TASK_COMMIT | ABP_TASK_ABORT | ABP_TASK_WAIT);
  assert_int_equal(about(cancel), ABP_TASK_CANCELED);
  assert_int_equal(abp_task_says(tasks, stopped, 1, ABP_TASK_COMPLETED, 1), 0);
  assert_int_equal(abp_task_fate(tasks, stopped), ABP_FATE_RUNNING);
  assert_int_equal(bits(abp_task_returns(tasks, stopped, 1, ABP_TASK_STOPPED)), ABP_TASK_LEARN);
  assert_int_equal(abp_task_fate(tasks, stopped), ABP_FATE_STOPPED);
  assert_true(abp_task_committed(tasks, stopped, ABP_TASK_CANCELED) & ABP_TASK_SETTLE);
  assert_int_equal(bits(abp_task_cancel(tasks, stopped, 0, 1)), ABP_TASK_ACK);
  abp_tasks_free(tasks);
}

static void of_a_task_that_was_another_processs_nothing_is_known(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task gone = add(tasks, "gone"), again = add(tasks, "again"), none = 0;
  abp_task_own(tasks, gone, 2, 1);
  abp_task_own(tasks, again, 2, 1);
  abp_task_own(tasks, none, 2, 1);
  abp_task_says(tasks, gone, 0, ABP_TASK_FAILED, 0);
  assert_int_equal(abp_task_fate(tasks, gone), ABP_FATE_UNKNOWN);
  abp_task_start(tasks, again);
  abp_task_committed(tasks, again, ABP_TASK_WORKING);
  abp_task_returns(tasks, again, 1, ABP_TASK_THREW);
  assert_int_equal(abp_task_fate(tasks, again), ABP_FATE_FAILED);
  assert_int_equal(abp_task_fate(tasks, none), ABP_FATE_NONE);
  abp_tasks_free(tasks);
}

static abp_fate became(const abp_tasks *tasks, const char *id) {
  return abp_task_became(tasks, id, (uint32_t)strlen(id));
}

static void what_became_of_a_task_is_known_by_its_id_as_long_as_it_is_remembered(void **state) {
  (void)state;
  const abp_tasks_config config = {.remembered = 2, .commits = 1};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task done = run(tasks, "done"), stops = run(tasks, "stops"), waits = add(tasks, "new");
  abp_task ignored;
  assert_int_equal(abp_task_add(tasks, "heard", 5, ABP_TASK_UNKNOWN, &ignored), ABP_OK);
  assert_int_equal(became(tasks, "done"), ABP_FATE_RUNNING);
  assert_int_equal(became(tasks, "heard"), ABP_FATE_UNKNOWN);
  assert_int_equal(became(tasks, "none"), ABP_FATE_NONE);
  abp_task_returns(tasks, done, 1, ABP_TASK_RETURNED);
  assert_int_equal(became(tasks, "done"), ABP_FATE_FINISHED);
  abp_task_committed(tasks, done, ABP_TASK_COMPLETED);
  abp_task_cancel(tasks, stops, 0, 1);
  abp_task_committed(tasks, stops, ABP_TASK_CANCELED);
  assert_int_equal(became(tasks, "stops"), ABP_FATE_RUNNING);
  abp_task_returns(tasks, stops, 1, ABP_TASK_STOPPED);
  assert_int_equal(became(tasks, "stops"), ABP_FATE_STOPPED);
  abp_task_cancel(tasks, waits, 0, 1);
  abp_task_committed(tasks, waits, ABP_TASK_CANCELED);
  assert_int_equal(became(tasks, "new"), ABP_FATE_UNSTARTED);
  assert_int_equal(abp_tasks_next(tasks, &ignored), ABP_TASK_FORGET);
  assert_int_equal(became(tasks, "done"), ABP_FATE_NONE);
  abp_tasks_free(tasks);
}

/* The same, where nothing may be stored, either. */
static abp_task begun(abp_tasks *tasks, const char *id) {
  const abp_task task = add(tasks, id);
  if (bits(abp_task_start(tasks, task)) & ABP_TASK_COMMIT)
    abp_task_committed(tasks, task, ABP_TASK_WORKING);
  return task;
}

static void a_run_that_waits_to_begin_ends_at_once(void **state) {
  (void)state;
  for (int commits = 0; commits < 2; commits++) {
    for (int grace = 0; grace < 100; grace += 50) {
      const abp_tasks_config config = {.commits = (uint32_t)commits};
      abp_tasks *tasks = abp_tasks_new(&config, 0);
      const abp_task waits = begun(tasks, "waits"), works = begun(tasks, "works");
      abp_task_postpone(tasks, waits, 1);
      abp_task_postpone(tasks, works, 1);
      abp_task_postpone(tasks, 0, 1);
      assert_int_equal(abp_task_begin(tasks, works), ABP_OK);
      assert_int_equal(abp_task_begin(tasks, 0), ABP_E_STATE);
      const int both = commits ? ABP_TASK_COMMIT : ABP_TASK_END;
      assert_int_equal(abp_task_cancel(tasks, waits, (uint32_t)grace, 1) & (both | ABP_TASK_ABORT),
                       both | ABP_TASK_ABORT);
      assert_int_equal(abp_task_cancel(tasks, works, (uint32_t)grace, 1) & (both | ABP_TASK_ABORT),
                       (grace ? 0 : both) | ABP_TASK_ABORT);
      assert_int_equal(abp_task_begin(tasks, waits), ABP_E_STATE);
      assert_int_equal(abp_task_begin(tasks, works), ABP_E_STATE);
      if (commits) abp_task_committed(tasks, waits, ABP_TASK_CANCELED);
      assert_int_equal(became(tasks, "waits"), ABP_FATE_UNSTARTED);
      assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 2);
      assert_int_equal(abp_task_returns(tasks, waits, 1, ABP_TASK_STOPPED), 0);
      assert_int_equal(became(tasks, "waits"), ABP_FATE_UNSTARTED);
      assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 1);
      abp_task_returns(tasks, works, 1, ABP_TASK_STOPPED);
      assert_int_equal(became(tasks, "works"), ABP_FATE_STOPPED);
      abp_tasks_free(tasks);
    }
  }
}

static void what_a_run_that_waits_to_begin_needs_may_fail(void **state) {
  (void)state;
  abp_tasks *tasks = abp_tasks_new(&(abp_tasks_config){0}, 0);
  const abp_task first = begun(tasks, "first"), next = begun(tasks, "next");
  abp_task_postpone(tasks, first, 1);
  assert_true(abp_task_returns(tasks, first, 1, ABP_TASK_THREW) & ABP_TASK_END);
  assert_int_equal(abp_task_state(tasks, first), ABP_TASK_FAILED);
  assert_int_equal(became(tasks, "first"), ABP_FATE_UNSTARTED);
  /* An earlier run has worked. */
  abp_task_says(tasks, next, 1, ABP_TASK_INPUT_REQUIRED, 0);
  abp_task_returns(tasks, next, 1, ABP_TASK_RETURNED);
  assert_true(abp_task_start(tasks, next) & ABP_TASK_START);
  abp_task_postpone(tasks, next, 1); /* which is over */
  abp_task_postpone(tasks, next, 2);
  assert_true(abp_task_cancel(tasks, next, 50, 1) & ABP_TASK_END);
  assert_int_equal(became(tasks, "next"), ABP_FATE_STOPPED);
  abp_tasks_free(tasks);
}

static void another_processs_work_is_not_forgotten_where_a_run_waits_to_begin(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task taken = add(tasks, "taken");
  abp_task_own(tasks, taken, 2, 1);
  abp_task_start(tasks, taken);
  abp_task_committed(tasks, taken, ABP_TASK_WORKING);
  abp_task_postpone(tasks, taken, 1);
  abp_task_cancel(tasks, taken, 50, 1);
  assert_int_equal(became(tasks, "taken"), ABP_FATE_UNKNOWN);
  abp_tasks_free(tasks);
}

/* --- Whoever began it ------------------------------------------------------------------------- */

static void whoever_left_a_task_is_told_once_what_became_of_it(void **state) {
  (void)state;
  const abp_tasks_config config = {.grace_ms = 30};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  const abp_task stopped = add(tasks, "stopped"), kept = add(tasks, "kept"), late = add(tasks, "l");
  const abp_task on = add(tasks, "on");
  abp_task due;
  abp_task_start(tasks, stopped);
  abp_task_start(tasks, kept);
  abp_task_start(tasks, late);
  abp_task_cancel(tasks, stopped, 30, 1);
  abp_task_leave(tasks, stopped);
  abp_task_learn(tasks, stopped, ABP_FATE_FINISHED); /* nothing comes of it before the end */
  assert_int_equal(abp_task_news(tasks, stopped), ABP_FATE_NONE);
  abp_task_says(tasks, stopped, 1, ABP_TASK_CANCELED, 0);
  abp_task_returns(tasks, stopped, 1, ABP_TASK_RETURNED);
  abp_task_learn(tasks, stopped, ABP_FATE_NONE);
  abp_task_learn(tasks, stopped, (abp_fate)(ABP_FATE_FAILED + 1));
  assert_int_equal(became(tasks, "stopped"), ABP_FATE_STOPPED);
  abp_task_learn(tasks, stopped, ABP_FATE_UNKNOWN); /* by the word of whoever did the work */
  assert_int_equal(abp_task_news(tasks, stopped), ABP_FATE_UNKNOWN);
  assert_int_equal(abp_task_news(tasks, stopped), ABP_FATE_NONE);
  abp_task_learn(tasks, stopped, ABP_FATE_FINISHED); /* known by now */
  abp_task_learn(tasks, stopped, ABP_FATE_STOPPED);  /* and decided once */
  assert_int_equal(abp_task_news(tasks, stopped), ABP_FATE_FINISHED);
  assert_int_equal(abp_task_news(tasks, stopped), ABP_FATE_NONE);
  /* Of one whose answer came there is no news. */
  assert_int_equal(abp_task_hear(tasks, kept), 0); /* not yet */
  abp_task_returns(tasks, kept, 1, ABP_TASK_RETURNED);
  assert_int_equal(abp_task_hear(tasks, kept), ABP_TASK_FORGET);
  assert_int_equal(abp_task_news(tasks, kept), ABP_FATE_NONE);
  /* Unless it was lost, or what told the news was. */
  for (int lost = 0; lost < 2; lost++) {
    abp_task_leave(tasks, kept);
    assert_int_equal(abp_task_news(tasks, kept), ABP_FATE_FINISHED);
    assert_int_equal(abp_task_news(tasks, kept), ABP_FATE_NONE);
  }
  /* One that goes on, since nobody has cancelled it, can be asked for. */
  abp_task_start(tasks, on);
  assert_int_equal(abp_task_news(tasks, on), ABP_FATE_NONE);
  abp_task_leave(tasks, on);
  assert_int_equal(abp_task_news(tasks, on), ABP_FATE_RUNNING);
  assert_int_equal(abp_task_news(tasks, on), ABP_FATE_NONE);
  abp_task_returns(tasks, on, 1, ABP_TASK_RETURNED);
  assert_int_equal(abp_task_news(tasks, on), ABP_FATE_FINISHED);
  /* Who lets a lease run out has left. */
  abp_task_lease(tasks, late, 10);
  abp_tasks_advance(tasks, 10);
  assert_true(abp_tasks_next(tasks, &due) & ABP_TASK_ABORT);
  abp_tasks_advance(tasks, 40);
  abp_tasks_next(tasks, &due);
  assert_int_equal(abp_task_news(tasks, late), ABP_FATE_RUNNING);
  abp_task_returns(tasks, late, 1, ABP_TASK_RETURNED);
  assert_int_equal(abp_task_news(tasks, late), ABP_FATE_FINISHED);
  abp_task_forget(tasks, late);
  abp_task_leave(tasks, late); /* void handles */
  abp_task_learn(tasks, late, ABP_FATE_FAILED);
  assert_int_equal(abp_task_hear(tasks, late), 0);
  assert_int_equal(abp_task_news(tasks, late), ABP_FATE_NONE);
  assert_int_equal(abp_task_doubt(tasks, late), ABP_FATE_NONE);
  abp_tasks_free(tasks);
}

static void work_that_may_be_done_is_in_doubt_until_its_result_is_heard(void **state) {
  (void)state;
  const abp_tasks_config config = {.grace_ms = 30};
  static const struct {
    abp_fate said; /* with FAILED; NONE: the task is completed */
    abp_fate before, after;
  } rows[] = {{ABP_FATE_NONE, ABP_FATE_FINISHED, ABP_FATE_NONE},
              {ABP_FATE_FINISHED, ABP_FATE_FINISHED, ABP_FATE_FINISHED},
              {ABP_FATE_RUNNING, ABP_FATE_RUNNING, ABP_FATE_RUNNING},
              {ABP_FATE_UNKNOWN, ABP_FATE_UNKNOWN, ABP_FATE_UNKNOWN},
              {ABP_FATE_STOPPED, ABP_FATE_NONE, ABP_FATE_NONE},
              {ABP_FATE_UNSTARTED, ABP_FATE_NONE, ABP_FATE_NONE},
              {ABP_FATE_FAILED, ABP_FATE_NONE, ABP_FATE_NONE}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    abp_tasks *tasks = abp_tasks_new(&config, 0);
    const abp_task task = add(tasks, "a");
    abp_task_start(tasks, task);
    assert_int_equal(abp_task_doubt(tasks, task), ABP_FATE_RUNNING);
    if (rows[i].said) abp_task_says(tasks, task, 1, ABP_TASK_FAILED, 0);
    abp_task_returns(tasks, task, 1, ABP_TASK_RETURNED);
    abp_task_learn(tasks, task, rows[i].said);
    assert_int_equal(abp_task_doubt(tasks, task), rows[i].before);
    const int forget = rows[i].after ? 0 : ABP_TASK_FORGET;
    assert_int_equal(abp_task_hear(tasks, task), forget);
    assert_int_equal(abp_task_doubt(tasks, task), rows[i].after);
    abp_tasks_free(tasks);
  }
}

static void a_record_says_who_owns_the_task_and_who_does_no_longer(void **state) {
  (void)state;
  const int gone = ABP_TASK_ABORT | ABP_TASK_FORGET;
  abp_tasks *tasks = with_log();
  const abp_task task = run(tasks, "task"), ends = run(tasks, "ends");
  abp_task_own(tasks, task, 2, 0);
  abp_task_own(tasks, ends, 2, 0);
  assert_int_equal(abp_task_read(tasks, task, 1, 2, ABP_RECORD_OWN), ABP_TASK_TAKEN);
  assert_int_equal(abp_task_read(tasks, task, 2, 2, ABP_RECORD_OWN), 0);
  /* Of who owned it before, and of what anybody may write. */
  assert_int_equal(abp_task_read(tasks, task, 2, 1, 0), 0);
  assert_int_equal(abp_task_read(tasks, task, 2, 0, 0), 0);
  assert_int_equal(abp_task_read(tasks, ends, 2, 0, ABP_RECORD_OWN | ABP_RECORD_OUTCOME), 0);
  assert_int_equal(abp_task_read(tasks, ends, 2, 0, ABP_RECORD_OUTCOME), gone);
  /* Another took it at the same time, and was first; or has taken it since. */
  assert_int_equal(abp_task_read(tasks, task, 1, 2, 0), ABP_TASK_TAKEN | gone);
  assert_int_equal(abp_task_read(tasks, task, 2, 3, 0), ABP_TASK_TAKEN);
  abp_tasks_free(tasks);
}

static void a_cancel_that_is_stored_first_decides(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task now = run(tasks, "now"), asked = run(tasks, "asked"), works = run(tasks, "works");
  abp_task_returns(tasks, now, 1, 0);
  abp_task_returns(tasks, asked, 1, 0);
  const int wish = abp_task_wish(tasks, now, 0);
  assert_int_equal(bits(wish), ABP_TASK_REPLACE | ABP_TASK_COMMIT | ABP_TASK_WAIT);
  assert_int_equal(about(wish), ABP_TASK_CANCELED);
  assert_int_equal(abp_task_committed(tasks, now, ABP_TASK_COMPLETED), ABP_E_STATE);
  assert_true(abp_task_committed(tasks, now, ABP_TASK_CANCELED) & ABP_TASK_SETTLE);
  /* Its executor may say how it ended, and has. */
  assert_int_equal(bits(abp_task_wish(tasks, asked, 50)), ABP_TASK_WAIT);
  assert_true(abp_task_committed(tasks, asked, ABP_TASK_COMPLETED) & ABP_TASK_SETTLE);
  assert_int_equal(bits(abp_task_wish(tasks, works, 50)), ABP_TASK_ABORT | ABP_TASK_WAIT);
  assert_int_equal(bits(abp_task_returns(tasks, works, 1, 0)), ABP_TASK_COMMIT);
  assert_true(abp_task_committed(tasks, works, ABP_TASK_CANCELED) & ABP_TASK_SETTLE);
  abp_tasks_free(tasks);
}

static void a_task_that_is_cancelled_before_its_run_is_stored_does_not_run(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task task = add(tasks, "task");
  abp_task_start(tasks, task);
  assert_int_equal(bits(abp_task_wish(tasks, task, 50)), ABP_TASK_COMMIT | ABP_TASK_WAIT);
  assert_int_equal(bits(abp_task_committed(tasks, task, ABP_TASK_WORKING)), ABP_TASK_TELL);
  assert_true(abp_task_committed(tasks, task, ABP_TASK_CANCELED) & ABP_TASK_END);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 0);
  /* Nor does it when an earlier run still stops: that one cannot say how the task ends. */
  const abp_task second = run(tasks, "second");
  abp_task_says(tasks, second, 1, ABP_TASK_AUTH_REQUIRED, 0);
  abp_task_committed(tasks, second, ABP_TASK_AUTH_REQUIRED);
  assert_int_equal(bits(abp_task_start(tasks, second)), ABP_TASK_COMMIT | ABP_TASK_ABORT);
  assert_true(abp_task_wish(tasks, second, 50) & ABP_TASK_COMMIT);
  assert_int_equal(bits(abp_task_committed(tasks, second, ABP_TASK_WORKING)), ABP_TASK_TELL);
  abp_tasks_free(tasks);
}

static void a_question_is_answered_when_it_has_been_told(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task task = run(tasks, "task");
  abp_task_says(tasks, task, 1, ABP_TASK_INPUT_REQUIRED, 0);
  abp_task_returns(tasks, task, 1, 0);
  assert_int_equal(abp_task_start(tasks, task), 0);
  assert_true(abp_task_committed(tasks, task, ABP_TASK_INPUT_REQUIRED) & ABP_TASK_SETTLE);
  assert_int_equal(bits(abp_task_start(tasks, task)), ABP_TASK_COMMIT);
  assert_true(abp_task_committed(tasks, task, ABP_TASK_WORKING) & ABP_TASK_START);
  assert_int_equal(abp_task_run(tasks, task), 2);
  abp_tasks_free(tasks);
}

static void a_task_that_somebody_else_owns_is_let_go(void **state) {
  (void)state;
  abp_tasks *tasks = with_log();
  const abp_task runs = run(tasks, "runs"), ends = run(tasks, "ends");
  assert_int_equal(abp_task_lost(tasks, runs), ABP_TASK_ABORT | ABP_TASK_FORGET);
  assert_int_equal(abp_task_says(tasks, runs, 1, ABP_TASK_COMPLETED, 1), 0);
  assert_int_equal(abp_task_returns(tasks, runs, 1, 0), 0);
  assert_int_equal(abp_task_committed(tasks, runs, ABP_TASK_WORKING), ABP_E_STATE);
  assert_int_equal(abp_task_wish(tasks, runs, 0), ABP_E_STATE);
  assert_int_equal(abp_task_lost(tasks, runs), 0);
  abp_task_returns(tasks, ends, 1, 0);
  assert_int_equal(abp_task_lost(tasks, ends), ABP_TASK_FORGET);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 0);
  add(tasks, "runs"); /* it may come back */
  abp_tasks_free(tasks);
}

static void a_subscription_is_told_whether_there_is_something_to_wait_for(void **state) {
  (void)state;
  const struct {
    enum abp_task_state state;
    int lasting, verdict;
  } rows[] = {
      {ABP_TASK_WORKING, 0, ABP_TASK_TELL},
      {ABP_TASK_INPUT_REQUIRED, 0, ABP_TASK_TELL | ABP_TASK_SETTLE | ABP_TASK_END},
      {ABP_TASK_INPUT_REQUIRED, 1, ABP_TASK_TELL | ABP_TASK_SETTLE},
      {ABP_TASK_AUTH_REQUIRED, 0, ABP_TASK_TELL | ABP_TASK_SETTLE},
      {ABP_TASK_COMPLETED, 1, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const abp_tasks_config config = {.seed = {1}};
    abp_tasks *tasks = abp_tasks_new(&config, 0);
    const abp_task task = add(tasks, "task");
    abp_task_start(tasks, task);
    abp_task_says(tasks, task, 1, rows[i].state, 0);
    assert_int_equal(abp_task_subscribe(tasks, task, rows[i].lasting), rows[i].verdict);
    abp_tasks_free(tasks);
  }
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

/* A client watches a task, as far as there is memory. */
static int watch(abp_tasks *tasks, int number) {
  char id[64];
  abp_task task;
  const int length = snprintf(id, sizeof id, "watched %d", number);
  const int status = abp_task_add(tasks, id, (uint32_t)length, ABP_TASK_UNKNOWN, &task);
  if (status < 0) return status;
  const int verdict = abp_watch(tasks, task, ABP_WATCH_TASK);
  if (verdict > 0) assert_int_equal(abp_watch_cancel(tasks, task), ABP_WATCH_CANCEL);
  return verdict;
}

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
    status = watch(tasks, i);
    if (status < 0) return status;
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
      assert_true(watch(tasks, -1) > 0);
      assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), before + 2);
    }
    abp_tasks_free(tasks);
    assert_int_equal(balance, 0);
    if (!failed) {
      assert_true(n > 20); /* it really allocates */
      return;
    }
  }
}

static void a_task_that_is_forgotten_makes_room_while_memory_is_short(void **state) {
  (void)state;
  const abp_tasks_config config = {.seed = {7}};
  for (long n = 0;; n++) {
    abp_tasks *tasks = abp_tasks_new(&config, 0);
    abp_task task = add(tasks, "first");
    until_failure = n;
    for_good = 1;
    int status = ABP_OK;
    for (int i = 0; i < SLAB_CALLS && status == ABP_OK; i++) {
      char id[16];
      status = abp_task_add(tasks, id, (uint32_t)snprintf(id, sizeof id, "%d", i),
                            ABP_TASK_SUBMITTED, &task);
    }
    if (status != ABP_OK) {
      assert_int_equal(status, ABP_E_MEMORY);
      abp_task_forget(tasks, abp_task_find(tasks, "first", 5));
      task = add(tasks, "another");
      assert_true(abp_task_start(tasks, task) & ABP_TASK_START);
    }
    until_failure = -1;
    for_good = 0;
    abp_tasks_free(tasks);
    if (status == ABP_OK) {
      assert_true(n > 3); /* the index, a slab, ids, and what the tasks have beside */
      return;
    }
  }
}

/* --- Watching --------------------------------------------------------------------------------- */

enum { BEGIN = 1000 };

/* The step of a verdict. */
static int next_step(int verdict) { return verdict >> ABP_WATCH_STEP_SHIFT & ABP_WATCH_STEPS; }

static abp_tasks *watched_task(abp_task *task, int kind) {
  const abp_tasks_config config = {
      .grace_ms = 100, .linger_ms = 50, .retry_ms = 10, .outage_ms = 1000};
  abp_tasks *tasks = abp_tasks_new(&config, BEGIN);
  assert_int_equal(abp_task_add(tasks, "1", 1, ABP_TASK_UNKNOWN, task), ABP_OK);
  assert_int_equal(next_step(abp_watch(tasks, *task, (enum abp_watch_kind)kind)), ABP_WATCH_OPEN);
  return tasks;
}

/* What is due at a time. */
static int due_at(abp_tasks *tasks, uint64_t now) {
  abp_task task;
  abp_tasks_advance(tasks, now);
  return abp_tasks_next(tasks, &task);
}

static void an_outage_is_waited_for_longer_and_longer_up_to_a_limit(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_TASK);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, ABP_WATCH_BROKEN, 0)), ABP_WATCH_ASK);
  uint64_t now = BEGIN;
  for (uint64_t ms = 10; ms <= 320; ms *= 2) {
    assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_BROKEN, 0)), ABP_WATCH_PAUSE);
    assert_int_equal(abp_tasks_wake(tasks), now + ms);
    assert_int_equal(due_at(tasks, now + ms - 1), 0);
    assert_int_equal(next_step(due_at(tasks, now += ms)), ABP_WATCH_ASK);
  }
  assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_BROKEN, 0)), ABP_WATCH_LOST);
  assert_int_equal(abp_tasks_wake(tasks), 0);
  abp_tasks_free(tasks);
}

static void a_stream_with_numbers_goes_on_where_it_was_unless_it_brought_nothing(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  const enum abp_watch_end how = ABP_WATCH_NUMBERED;
  abp_watch_named(tasks, task);
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, how, 0)), ABP_WATCH_OPEN);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, how, 0)), ABP_WATCH_ASK);
  assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_PAUSE);
  assert_int_equal(next_step(due_at(tasks, BEGIN + 10)), ABP_WATCH_OPEN);
  /* The first event may be the task as it stands, which is no news: an agent that ends each stream
   * after it is left alone for longer and longer. */
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, how, 0)), ABP_WATCH_ASK);
  assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_PAUSE);
  assert_int_equal(next_step(due_at(tasks, BEGIN + 30)), ABP_WATCH_OPEN);
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, how, 0)), ABP_WATCH_OPEN);
  /* What should have ended by now is asked for. */
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  abp_task_says(tasks, task, 0, ABP_TASK_WORKING, ABP_TASK_NEWS);
  abp_watch_cancel(tasks, task);
  abp_watch_cancel_answered(tasks, task, ABP_WATCH_FAILED, 0, 0);
  assert_int_equal(due_at(tasks, BEGIN + 1000), ABP_WATCH_CLOSE);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, how, 0)), ABP_WATCH_ASK);
  abp_tasks_free(tasks);
}

static void the_time_that_an_agent_asks_for_is_given_to_it(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, ABP_WATCH_UNSENT, 500)), ABP_WATCH_PAUSE);
  assert_int_equal(abp_tasks_wake(tasks), BEGIN + 500);
  assert_int_equal(next_step(due_at(tasks, BEGIN + 500)), ABP_WATCH_OPEN);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, ABP_WATCH_UNSENT, 501)), ABP_WATCH_FAIL);
  abp_tasks_free(tasks);
}

static void a_message_is_sent_again_only_where_that_does_no_harm(void **state) {
  (void)state;
  const struct {
    int kind, how, step;
  } rows[] = {
      {ABP_WATCH_MESSAGE, ABP_WATCH_UNSENT, ABP_WATCH_PAUSE},
      {ABP_WATCH_MESSAGE, ABP_WATCH_BROKEN, ABP_WATCH_FAIL},
      {ABP_WATCH_MESSAGE, ABP_WATCH_ENDED, ABP_WATCH_LOST},
      {ABP_WATCH_MESSAGE, ABP_WATCH_FAILED, ABP_WATCH_FAIL},
      {ABP_WATCH_MESSAGE | ABP_WATCH_REPEATS, ABP_WATCH_BROKEN, ABP_WATCH_PAUSE},
      {ABP_WATCH_MESSAGE | ABP_WATCH_REPEATS, ABP_WATCH_ENDED, ABP_WATCH_PAUSE},
      {ABP_WATCH_MESSAGE | ABP_WATCH_REPEATS, ABP_WATCH_FAILED, ABP_WATCH_FAIL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    abp_task task;
    abp_tasks *tasks = watched_task(&task, rows[i].kind);
    const int verdict = abp_watch_ended(tasks, task, (enum abp_watch_end)rows[i].how, 0);
    assert_int_equal(next_step(verdict), rows[i].step);
    abp_tasks_free(tasks);
  }
}

static void a_cancel_is_sent_once_and_again_only_while_the_agent_is_out_of_reach(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  assert_int_equal(abp_watch_cancel(tasks, task), 0);
  assert_int_equal(abp_watch_named(tasks, task), ABP_WATCH_CANCEL);
  assert_int_equal(abp_watch_cancel(tasks, task), 0);
  assert_int_equal(abp_watch_named(tasks, task), 0);
  assert_int_equal(abp_watch_cancel_answered(tasks, task, ABP_WATCH_UNSENT, 0, 0), 0);
  assert_int_equal(due_at(tasks, BEGIN + 9), 0);
  assert_int_equal(due_at(tasks, BEGIN + 10), ABP_WATCH_CANCEL);
  assert_int_equal(abp_watch_cancel_answered(tasks, task, ABP_WATCH_FAILED, 0, 0), 0);
  /* The stream is not waited for much longer, and the task is asked for. */
  assert_int_equal(due_at(tasks, BEGIN + 59), 0);
  assert_int_equal(due_at(tasks, BEGIN + 60), ABP_WATCH_CLOSE);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_ASK);
  assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_LATE);
  abp_tasks_free(tasks);
}

static void a_cancel_ends_the_wait_for_an_agent(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  abp_watch_ended(tasks, task, ABP_WATCH_UNSENT, 0);
  assert_int_equal(next_step(abp_watch_cancel(tasks, task)), ABP_WATCH_STOPPED);
  abp_tasks_free(tasks);
  /* A message that may have arrived is sent once more: only its answer names the task. */
  tasks = watched_task(&task, ABP_WATCH_MESSAGE | ABP_WATCH_REPEATS);
  abp_watch_ended(tasks, task, ABP_WATCH_BROKEN, 0);
  assert_int_equal(next_step(abp_watch_cancel(tasks, task)), ABP_WATCH_OPEN);
  assert_int_equal(abp_watch_named(tasks, task), ABP_WATCH_CANCEL);
  abp_tasks_free(tasks);
  /* One that comes while the task is asked for skips the pause that follows. */
  tasks = watched_task(&task, ABP_WATCH_TASK);
  abp_watch_ended(tasks, task, ABP_WATCH_ENDED, 0);
  assert_int_equal(abp_watch_cancel(tasks, task), ABP_WATCH_CANCEL);
  assert_int_equal(next_step(abp_watch_asked(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_OPEN);
  abp_tasks_free(tasks);
}

static void a_reader_that_leaves_closes_the_stream_unless_a_cancel_waits_for_the_id(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  assert_int_equal(abp_watch_leave(tasks, task), ABP_WATCH_CLOSE);
  assert_int_equal(next_step(abp_watch_ended(tasks, task, ABP_WATCH_ENDED, 0)), ABP_WATCH_DONE);
  abp_tasks_free(tasks);
  tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  abp_watch_cancel(tasks, task);
  assert_int_equal(abp_watch_leave(tasks, task), 0);
  assert_int_equal(abp_watch_named(tasks, task), ABP_WATCH_CANCEL | ABP_WATCH_CLOSE);
  abp_tasks_free(tasks);
}

static void only_a_task_that_is_new_to_a_client_is_watched(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_TASK);
  assert_int_equal(abp_watch(tasks, task, ABP_WATCH_TASK), 0);
  const abp_task own = add(tasks, "own");
  assert_int_equal(abp_watch(tasks, own, ABP_WATCH_TASK), 0);
  assert_int_equal(abp_watch(tasks, 0, ABP_WATCH_TASK), 0);
  abp_tasks_free(tasks);
}

static void a_watch_ends_with_its_task_and_lingers(void **state) {
  (void)state;
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  const int verdict = abp_task_says(tasks, task, 0, ABP_TASK_COMPLETED, 0);
  assert_true(verdict & ABP_TASK_END);
  assert_int_equal(next_step(verdict), ABP_WATCH_DONE);
  assert_int_equal(abp_watch_stop(tasks, task), 0);
  assert_int_equal(abp_task_says(tasks, task, 0, ABP_TASK_FAILED, ABP_TASK_NEWS), 0);
  assert_int_equal(due_at(tasks, BEGIN + 50), ABP_WATCH_CLOSE);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 1);
  abp_task_forget(tasks, task);
  assert_int_equal(abp_tasks_count(tasks, ABP_TASKS_LIVE), 0);
  assert_int_equal(abp_watch_cancel(tasks, task), 0);
  abp_tasks_free(tasks);
}

static void one_that_asks_for_input_ends_a_message_and_no_lasting_subscription(void **state) {
  (void)state;
  const int kinds[] = {ABP_WATCH_MESSAGE, ABP_WATCH_TASK, ABP_WATCH_TASK | ABP_WATCH_LASTING};
  for (int i = 0; i < 3; i++) {
    abp_task task;
    abp_tasks *tasks = watched_task(&task, kinds[i]);
    abp_task_says(tasks, task, 0, ABP_TASK_WORKING, 0);
    const int verdict = abp_task_says(tasks, task, 0, ABP_TASK_INPUT_REQUIRED, 0);
    assert_int_equal((verdict & ABP_TASK_END) != 0, i < 2);
    abp_tasks_free(tasks);
  }
  /* A message's stream may begin with the task that still waits for it. */
  abp_task task;
  abp_tasks *tasks = watched_task(&task, ABP_WATCH_MESSAGE);
  const int what = ABP_TASK_NEWS | ABP_TASK_SNAPSHOT;
  assert_false(abp_task_says(tasks, task, 0, ABP_TASK_INPUT_REQUIRED, what) & ABP_TASK_END);
  abp_tasks_free(tasks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_terminal_state_is_final_and_nothing_is_told_after_it),
      cmocka_unit_test(every_way_to_an_end_tells_it_settles_and_ends_the_streams),
      cmocka_unit_test(no_cancel_of_an_agents_task_is_left_without_an_answer),
      cmocka_unit_test(whatever_an_executor_does_when_it_is_asked_to_stop_its_task_ends),
      cmocka_unit_test(every_end_of_an_agents_task_says_what_became_of_the_work),
      cmocka_unit_test(an_executor_starts_only_where_a_message_is_awaited),
      cmocka_unit_test(what_is_stored_first_is_told_by_nothing_else),
      cmocka_unit_test(only_its_log_ends_a_task_that_is_being_stored),
      cmocka_unit_test(ids_are_told_apart_and_wrong_ones_refused),
      cmocka_unit_test(artifacts_belong_to_their_task_and_are_limited),
      cmocka_unit_test(the_oldest_finished_tasks_are_forgotten_first),
      cmocka_unit_test(grace_periods_end_in_their_order),
      cmocka_unit_test(a_question_that_nobody_answers_ends_its_task),
      cmocka_unit_test(a_task_that_nobody_asks_for_is_cancelled),
      cmocka_unit_test(a_state_is_told_when_it_is_stored),
      cmocka_unit_test(a_cancel_waits_for_what_is_being_stored_and_gets_its_truth),
      cmocka_unit_test(of_a_task_that_was_another_processs_nothing_is_known),
      cmocka_unit_test(what_became_of_a_task_is_known_by_its_id_as_long_as_it_is_remembered),
      cmocka_unit_test(a_run_that_waits_to_begin_ends_at_once),
      cmocka_unit_test(what_a_run_that_waits_to_begin_needs_may_fail),
      cmocka_unit_test(another_processs_work_is_not_forgotten_where_a_run_waits_to_begin),
      cmocka_unit_test(whoever_left_a_task_is_told_once_what_became_of_it),
      cmocka_unit_test(work_that_may_be_done_is_in_doubt_until_its_result_is_heard),
      cmocka_unit_test(a_record_says_who_owns_the_task_and_who_does_no_longer),
      cmocka_unit_test(a_cancel_that_is_stored_first_decides),
      cmocka_unit_test(a_task_that_is_cancelled_before_its_run_is_stored_does_not_run),
      cmocka_unit_test(a_question_is_answered_when_it_has_been_told),
      cmocka_unit_test(a_task_that_somebody_else_owns_is_let_go),
      cmocka_unit_test(a_subscription_is_told_whether_there_is_something_to_wait_for),
      cmocka_unit_test(a_task_may_be_let_go_at_any_time),
      cmocka_unit_test(every_allocation_fails_and_nothing_is_lost),
      cmocka_unit_test(a_task_that_is_forgotten_makes_room_while_memory_is_short),
      cmocka_unit_test(an_outage_is_waited_for_longer_and_longer_up_to_a_limit),
      cmocka_unit_test(a_stream_with_numbers_goes_on_where_it_was_unless_it_brought_nothing),
      cmocka_unit_test(the_time_that_an_agent_asks_for_is_given_to_it),
      cmocka_unit_test(a_message_is_sent_again_only_where_that_does_no_harm),
      cmocka_unit_test(a_cancel_is_sent_once_and_again_only_while_the_agent_is_out_of_reach),
      cmocka_unit_test(a_cancel_ends_the_wait_for_an_agent),
      cmocka_unit_test(a_reader_that_leaves_closes_the_stream_unless_a_cancel_waits_for_the_id),
      cmocka_unit_test(only_a_task_that_is_new_to_a_client_is_watched),
      cmocka_unit_test(a_watch_ends_with_its_task_and_lingers),
      cmocka_unit_test(one_that_asks_for_input_ends_a_message_and_no_lasting_subscription),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
