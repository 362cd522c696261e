/* What the table of call_state.c promises, read off the table itself: every path, not some. */
#include "call_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int reachable(enum call_state from, enum call_state to) {
  uint32_t seen = 1u << from, before = 0;
  while (seen != before) {
    before = seen;
    for (int state = 0; state < CALL_STATES; state++) {
      if (!(seen & 1u << state)) continue;
      for (int event = 0; event < CALL_EVENTS; event++)
        seen |= 1u << call_step((enum call_state)state, (enum call_event)event).next;
    }
  }
  return (seen >> to) & 1;
}

static void a_cancel_answered_true_never_leads_to_a_completed_call(void **state) {
  (void)state;
  for (int from = 0; from < CALL_STATES; from++) {
    const struct call_step step = call_step((enum call_state)from, EV_CANCEL);
    if (step.owed & OWE_ACK) assert_false(reachable(step.next, COMPLETED));
  }
}

static void a_completed_call_answers_false_for_ever(void **state) {
  (void)state;
  assert_int_equal(call_step(COMPLETED, EV_CANCEL).owed, OWE_NAK);
  for (int event = 0; event < CALL_EVENTS; event++)
    assert_int_equal(call_step(COMPLETED, (enum call_event)event).next, COMPLETED);
}

static void no_cancel_is_left_without_an_answer(void **state) {
  (void)state;
  for (int from = QUEUED; from <= CANCELLED; from++) {
    if (from >= WAITING && from <= DETACHED) continue;
    if (from == RETURNED || from == UNWOUND) continue; /* in which no call of ABP stays */
    assert_true(call_step((enum call_state)from, EV_CANCEL).owed & (OWE_ANSWERS | OWE_WORD));
  }
}

/* A cancel that waits is answered by the step that decides, before the result; unless the peer is
 * gone. */
static void a_cancel_that_waits_for_the_handlers_word_gets_it(void **state) {
  (void)state;
  for (int from = 0; from < CALL_STATES; from++) {
    for (int event = 0; event < CALL_EVENTS; event++) {
      const struct call_step step = call_step((enum call_state)from, (enum call_event)event);
      if (step.owed & OWE_WORD) assert_int_equal(step.next, ASKED);
      const int waits = from == ASKED || from == RETURNED || from == UNWOUND;
      const int decides = step.next != ASKED && step.next != RETURNED && step.next != UNWOUND;
      if (!waits || !decides || event == EV_LOST) continue;
      assert_true(step.owed & OWE_ANSWERS);
      assert_true(!(step.owed & OWE_ACK) || step.next == CANCELLING || step.next == CANCELLED);
      assert_true(!(step.owed & OWE_NAK) || step.next == COMPLETED);
    }
  }
  _Static_assert((OWE_ANSWERS & -OWE_RESULT) == 0, "answers are paid before results");
}

/* Once it was said that nobody knows, nothing else is said of it. */
static void what_nobody_knows_stays_unknown(void **state) {
  (void)state;
  for (int event = 0; event < CALL_EVENTS; event++) {
    const struct call_step step = call_step(UNANSWERED, (enum call_event)event);
    assert_true(step.next == UNANSWERED || step.next == UNKNOWN);
    assert_false(step.owed & ~(uint32_t)OWE_UNKNOWN);
  }
  assert_int_equal(call_step(UNANSWERED, EV_CANCEL).owed, OWE_UNKNOWN);
  assert_int_equal(call_step(UNKNOWN, EV_CANCEL).owed, OWE_UNKNOWN);
}

/* What says how a call ended says what became of its work, too; but for the caller of one that
 * succeeded. Where the answer follows those to the handler's own requests, it was said before. */
static void what_ends_a_call_says_what_became_of_its_work(void **state) {
  (void)state;
  for (int from = QUEUED; from < COMPLETED; from++) {
    for (int event = 0; event < CALL_EVENTS; event++) {
      const struct call_step step = call_step((enum call_state)from, (enum call_event)event);
      if ((int)step.next == from || event == EV_CHILDREN_DONE) continue;
      const int received = from < WAITING, succeeded = event == EV_COMPLETE && from != STOPPED;
      const int ends = step.owed & (OWE_RESULT | OWE_SETTLE) || step.next == RETURNED ||
                       step.next == UNWOUND || step.next == UNWINDING;
      const int says = step.next != CANCELLED || from != RETURNED;
      if (ends && says && (received || !succeeded)) assert_true(step.fate);
      if (step.fate) assert_true(ends || call_is_over((enum call_state)step.next));
      assert_true(step.fate <= ABP_FATE_FAILED);
    }
  }
}

/* Only what waits for its turn, or for what its handler needs, or was not sent, is said not to have
 * run. */
static void a_handler_that_ran_is_never_unstarted(void **state) {
  (void)state;
  for (int from = 0; from < CALL_STATES; from++) {
    for (int event = 0; event < CALL_EVENTS; event++) {
      const struct call_step step = call_step((enum call_state)from, (enum call_event)event);
      assert_int_equal(step.fate == ABP_FATE_UNSTARTED,
                       (from == QUEUED && (int)step.next != from && event != EV_START) ||
                           (from == PREPARING && (int)step.next != from && event != EV_BEGIN &&
                            event != EV_COMPLETE) ||
                           (event == EV_UNSENT && (int)step.next != from));
    }
  }
}

/* Whatever ends a call whose handler has not begun ends it at once: there is nothing to unwind. */
static void a_handler_that_has_not_begun_is_not_waited_for(void **state) {
  (void)state;
  for (int event = 0; event < CALL_EVENTS; event++) {
    const struct call_step step = call_step(PREPARING, (enum call_event)event);
    const int may_begin = step.next == PREPARING || event == EV_BEGIN;
    assert_true(may_begin || call_is_over((enum call_state)step.next));
    const struct call_step queued = call_step(QUEUED, (enum call_event)event);
    if (!call_is_over((enum call_state)queued.next)) continue;
    assert_int_equal(step.next, queued.next);
    assert_int_equal(step.owed, queued.owed | OWE_ABORT);
  }
  assert_int_equal(call_step(PREPARING, EV_BEGIN).next, RUNNING);
  for (int from = 0; from < CALL_STATES; from++) {
    const struct call_step step = call_step((enum call_state)from, EV_POSTPONE);
    assert_int_equal(step.next, from == RUNNING ? PREPARING : from);
  }
}

static void a_handler_starts_only_from_the_queue(void **state) {
  (void)state;
  for (int from = 0; from < CALL_STATES; from++) {
    for (int event = 0; event < CALL_EVENTS; event++) {
      const struct call_step step = call_step((enum call_state)from, (enum call_event)event);
      assert_int_equal((step.owed & OWE_START) != 0, from == QUEUED && event == EV_START);
    }
  }
}

/* From any state, follow every event: a result is sent, and a promise settled, at most once. */
static void walk(enum call_state at, int results, int settles, int depth) {
  assert_true(results <= 1 && settles <= 1);
  for (int event = 0; depth && event < CALL_EVENTS; event++) {
    const struct call_step step = call_step(at, (enum call_event)event);
    if (step.next == at && !(step.owed & (OWE_RESULT | OWE_SETTLE))) continue;
    walk(step.next, results + !!(step.owed & OWE_RESULT), settles + !!(step.owed & OWE_SETTLE),
         depth - 1);
  }
}

static void a_call_has_one_outcome(void **state) {
  (void)state;
  walk(QUEUED, 0, 0, CALL_STATES);
  walk(WAITING, 0, 0, CALL_STATES);
}

static void what_is_over_stays_over(void **state) {
  (void)state;
  for (int from = COMPLETED; from < CALL_STATES; from++) {
    for (int event = 0; event < CALL_EVENTS; event++)
      assert_int_equal(call_step((enum call_state)from, (enum call_event)event).next, from);
  }
}

static void only_a_caller_that_waits_for_its_cancel_takes_its_acknowledgement(void **state) {
  (void)state;
  for (int from = 0; from < CALL_STATES; from++) {
    const struct call_step step = call_step((enum call_state)from, EV_ACKNOWLEDGED);
    assert_int_equal(step.next, from == STOPPING ? STOPPED : from);
    assert_int_equal(step.owed, 0);
  }
}

static void a_call_that_was_asked_to_stop_ends_as_its_handler_says(void **state) {
  (void)state;
  const enum call_state asked = (enum call_state)call_step(RUNNING, EV_ASK).next;
  const enum call_state returned = (enum call_state)call_step(asked, EV_COMPLETE).next;
  assert_int_equal(call_step(returned, EV_CHILDREN_DONE).next, COMPLETED);
  assert_int_equal(call_step(returned, EV_CHILDREN_DONE).owed, OWE_NAK | OWE_RESULT);
  for (int thrown = EV_FAIL; thrown <= EV_CANCELLED; thrown++) {
    const enum call_state unwound = (enum call_state)call_step(asked, (enum call_event)thrown).next;
    assert_int_equal(call_step(unwound, EV_CHILDREN_DONE).next, CANCELLED);
    assert_int_equal(call_step(unwound, EV_CHILDREN_DONE).owed, OWE_ACK | OWE_RESULT);
  }
}

/* Its maker is told at once, and of nothing that comes later; its parent waits on. */
static void what_a_stopped_handler_asked_for_is_settled_before_its_answer(void **state) {
  (void)state;
  for (int from = WAITING; from <= STOPPING; from++) {
    const struct call_step left = call_step((enum call_state)from, EV_DETACH);
    assert_true(left.owed & OWE_SETTLE);
    assert_int_equal((left.owed & OWE_CANCEL) != 0, from == WAITING);
    assert_false(call_is_over((enum call_state)left.next));
    for (int event = 0; event < CALL_EVENTS; event++)
      assert_int_equal(call_step((enum call_state)left.next, (enum call_event)event).owed, 0);
  }
}

static void what_the_peer_dropped_is_never_answered(void **state) {
  (void)state;
  for (int from = QUEUED; from <= RUNNING; from++) {
    const struct call_step dropped = call_step((enum call_state)from, EV_PEER_ABANDONED);
    assert_int_equal(dropped.owed, OWE_ABORT);
    for (int event = 0; event < CALL_EVENTS; event++)
      assert_false(call_step((enum call_state)dropped.next, (enum call_event)event).owed &
                   OWE_RESULT);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cancel_answered_true_never_leads_to_a_completed_call),
      cmocka_unit_test(a_completed_call_answers_false_for_ever),
      cmocka_unit_test(no_cancel_is_left_without_an_answer),
      cmocka_unit_test(a_cancel_that_waits_for_the_handlers_word_gets_it),
      cmocka_unit_test(what_nobody_knows_stays_unknown),
      cmocka_unit_test(what_ends_a_call_says_what_became_of_its_work),
      cmocka_unit_test(a_handler_that_ran_is_never_unstarted),
      cmocka_unit_test(a_handler_that_has_not_begun_is_not_waited_for),
      cmocka_unit_test(a_handler_starts_only_from_the_queue),
      cmocka_unit_test(a_call_has_one_outcome),
      cmocka_unit_test(what_is_over_stays_over),
      cmocka_unit_test(only_a_caller_that_waits_for_its_cancel_takes_its_acknowledgement),
      cmocka_unit_test(a_call_that_was_asked_to_stop_ends_as_its_handler_says),
      cmocka_unit_test(what_a_stopped_handler_asked_for_is_settled_before_its_answer),
      cmocka_unit_test(what_the_peer_dropped_is_never_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
