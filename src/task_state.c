/*
 * The life of a task.
 *
 * Two rules, as for calls: the table below is the only place that changes a task's state, and this
 * file does not know who asks. The first final state wins, because no row leads out of one; and no
 * event of a task that has ended is published, because no such row owes TELL.
 *
 *   SUBMITTED ──start──▶ WORKING ──returns, says──▶ COMPLETED, FAILED, REJECTED, CANCELED
 *                         ▲   │
 *                   start │   │ says
 *                         │   ▼
 *            INPUT_REQUIRED, AUTH_REQUIRED
 *
 * A cancel takes effect at once (TE_CANCEL), or asks the executor first:
 *
 *   WORKING ──ask──▶ CANCELING ──returns, throws, parks, grace──▶ CANCELED
 *                        └──says──▶ COMPLETED, FAILED, REJECTED, CANCELED
 *
 * An executor that stops because its signal fired need not report that: returning is enough. An
 * executor that asks for input while its caller wants it to stop would wait forever, so this counts
 * as a stop. A task that gets no input also ends (TE_GRACE).
 *
 * If tasks outlive their process, a state is stored before it is published. Then each step with
 * TELL owes COMMIT instead (abp_task_defer()), and a task that is about to end is COMMITTING until
 * its end is stored. Meanwhile its executor is ignored, and a cancel waits for the log.
 *
 *   WORKING ──returns, says, cancel──▶ COMMITTING ──stored──▶ COMPLETED, FAILED, REJECTED, CANCELED
 *
 * The task's log decides which came first. If that was a cancel (TE_WISH), the task is canceled,
 * and this end is stored in place of the one that was decided (REPLACE).
 *
 * The last column is the fate of the executor's work (abp_fate in abp.h), set by the row that ends
 * the task. If it is `running`, the task ends before its executor returns; the final fate is learnt
 * when the executor returns (LEARN), for later questions. Other fates do not change.
 */
#include "task_state.h"

enum {
  ABORT = ABP_TASK_ABORT,
  TELL = ABP_TASK_TELL,
  SETTLE = ABP_TASK_SETTLE,
  END = ABP_TASK_END,
  START = ABP_TASK_START,
  ACK = ABP_TASK_ACK,
  WAIT = ABP_TASK_WAIT,
  NAK = ABP_TASK_NAK,
  COMMIT = ABP_TASK_COMMIT,
  LEARN = ABP_TASK_LEARN,
  REPLACE = ABP_TASK_REPLACE,
  AGAIN = TASK_AGAIN,
  LAST = TELL | SETTLE | END,
  PARK = TELL | SETTLE | ABP_TASK_PARK
};

enum {
  UNKNOWN = ABP_TASK_UNKNOWN,
  SUBMITTED = ABP_TASK_SUBMITTED,
  WORKING = ABP_TASK_WORKING,
  COMPLETED = ABP_TASK_COMPLETED,
  FAILED = ABP_TASK_FAILED,
  CANCELED = ABP_TASK_CANCELED,
  INPUT_REQUIRED = ABP_TASK_INPUT_REQUIRED,
  REJECTED = ABP_TASK_REJECTED,
  AUTH_REQUIRED = ABP_TASK_AUTH_REQUIRED,
  CANCELING = TASK_CANCELING,
  COMMITTING = TASK_COMMITTING
};

static const struct task_step TABLE[TASK_STATES][TASK_EVENTS] =
    {
        [UNKNOWN] =
            {
                [TE_SAYS_SUBMITTED] = {SUBMITTED, TELL, 0},
                [TE_SAYS_WORKING] = {WORKING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, 0},
                [TE_SAYS_FAILED] = {FAILED, LAST, 0},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, 0},
                [TE_SAYS_INPUT_REQUIRED] = {INPUT_REQUIRED, PARK, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, 0},
                [TE_SAYS_AUTH_REQUIRED] = {AUTH_REQUIRED, TELL | SETTLE, 0},
            },
        [SUBMITTED] =
            {
                [TE_SAYS_SUBMITTED] = {SUBMITTED, TELL, 0},
                [TE_SAYS_WORKING] = {WORKING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_SAYS_FAILED] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_INPUT_REQUIRED] = {INPUT_REQUIRED, PARK, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_AUTH_REQUIRED] = {AUTH_REQUIRED, TELL | SETTLE, 0},
                [TE_START] = {WORKING, TELL | START, 0},
                [TE_CANCEL] = {CANCELED, LAST | ACK, ABP_FATE_UNSTARTED},
            },
        [WORKING] =
            {
                [TE_SAYS_WORKING] = {WORKING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_SAYS_FAILED] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_INPUT_REQUIRED] = {INPUT_REQUIRED, PARK, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_AUTH_REQUIRED] = {AUTH_REQUIRED, TELL | SETTLE, 0},
                [TE_RETURN] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_THROW] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_STOP] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_UNSURE] = {FAILED, LAST, ABP_FATE_UNKNOWN},
                [TE_CANCEL] = {CANCELED, ABORT | LAST | ACK, ABP_FATE_RUNNING},
                [TE_ASK] = {CANCELING, ABORT | WAIT, 0},
            },
        [INPUT_REQUIRED] =
            {
                [TE_SAYS_WORKING] = {WORKING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_SAYS_FAILED] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_INPUT_REQUIRED] = {INPUT_REQUIRED, PARK, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_AUTH_REQUIRED] = {AUTH_REQUIRED, TELL | SETTLE, 0},
                [TE_START] = {WORKING, ABORT | TELL | START, 0},
                [TE_THROW] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_STOP] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_UNSURE] = {FAILED, LAST, ABP_FATE_UNKNOWN},
                [TE_CANCEL] = {CANCELED, ABORT | LAST | ACK, ABP_FATE_RUNNING},
                [TE_ASK] = {CANCELED, ABORT | LAST | ACK, ABP_FATE_RUNNING},
                [TE_GRACE] = {CANCELED, LAST, ABP_FATE_STOPPED},
            },
        [AUTH_REQUIRED] =
            {
                [TE_SAYS_WORKING] = {WORKING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_SAYS_FAILED] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_INPUT_REQUIRED] = {INPUT_REQUIRED, PARK, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_AUTH_REQUIRED] = {AUTH_REQUIRED, TELL | SETTLE, 0},
                [TE_START] = {WORKING, ABORT | TELL | START, 0},
                [TE_THROW] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_STOP] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_UNSURE] = {FAILED, LAST, ABP_FATE_UNKNOWN},
                [TE_CANCEL] = {CANCELED, ABORT | LAST | ACK, ABP_FATE_RUNNING},
                [TE_ASK] = {CANCELING, ABORT | WAIT, 0},
                [TE_GRACE] = {CANCELED, LAST, ABP_FATE_STOPPED},
            },
        [CANCELING] =
            {
                [TE_SAYS_WORKING] = {CANCELING, TELL, 0},
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, ABP_FATE_FINISHED},
                [TE_SAYS_FAILED] = {FAILED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_INPUT_REQUIRED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, ABP_FATE_FAILED},
                [TE_SAYS_AUTH_REQUIRED] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_RETURN] = {CANCELED, LAST, ABP_FATE_FINISHED},
                [TE_THROW] = {CANCELED, LAST, ABP_FATE_FAILED},
                [TE_STOP] = {CANCELED, LAST, ABP_FATE_STOPPED},
                [TE_UNSURE] = {CANCELED, LAST, ABP_FATE_UNKNOWN},
                [TE_CANCEL] = {CANCELED, LAST | ACK, ABP_FATE_RUNNING},
                [TE_ASK] = {CANCELING, WAIT, 0},
                [TE_GRACE] = {CANCELED, LAST, ABP_FATE_RUNNING},
            },
        /* Only the log changes it. */
        [COMMITTING] =
            {
                [TE_SAYS_COMPLETED] = {COMPLETED, LAST, 0},
                [TE_SAYS_FAILED] = {FAILED, LAST, 0},
                [TE_SAYS_CANCELED] = {CANCELED, LAST, 0},
                [TE_SAYS_REJECTED] = {REJECTED, LAST, 0},
                [TE_CANCEL] = {COMMITTING, WAIT, 0},
                [TE_ASK] = {COMMITTING, WAIT, 0},
                [TE_RETURN] = {COMMITTING, LEARN, ABP_FATE_FINISHED},
                [TE_THROW] = {COMMITTING, LEARN, ABP_FATE_FAILED},
                [TE_STOP] = {COMMITTING, LEARN, ABP_FATE_STOPPED},
                [TE_UNSURE] = {COMMITTING, LEARN, ABP_FATE_UNKNOWN},
                [TE_WISH] = {COMMITTING, REPLACE | COMMIT | WAIT, 0},
            },
        [COMPLETED] = {[TE_CANCEL] = {COMPLETED, NAK, 0}, [TE_ASK] = {COMPLETED, NAK, 0}},
        [FAILED] = {[TE_CANCEL] = {FAILED, NAK, 0}, [TE_ASK] = {FAILED, NAK, 0}},
        [REJECTED] = {[TE_CANCEL] = {REJECTED, NAK, 0}, [TE_ASK] = {REJECTED, NAK, 0}},
        [CANCELED] =
            {
                [TE_RETURN] = {CANCELED, LEARN, ABP_FATE_FINISHED},
                [TE_THROW] = {CANCELED, LEARN, ABP_FATE_FAILED},
                [TE_STOP] = {CANCELED, LEARN, ABP_FATE_STOPPED},
                [TE_UNSURE] = {CANCELED, LEARN, ABP_FATE_UNKNOWN},
                [TE_CANCEL] = {CANCELED, AGAIN, 0},
                [TE_ASK] = {CANCELED, AGAIN, 0},
            },
};

struct task_step abp_task_step(enum abp_task_state state, enum task_event event) {
  struct task_step step = TABLE[state][event];
  if (step.next == UNKNOWN) step.next = (uint8_t)state;
  return step;
}

struct task_step abp_task_defer(struct task_step step) {
  if (abp_task_ended((enum abp_task_state)step.next)) step.next = COMMITTING;
  step.owed = (uint16_t)((step.owed & ABORT) | (step.owed & ACK ? WAIT : 0) | COMMIT);
  return step;
}

int abp_task_ended(enum abp_task_state state) {
  return state == ABP_TASK_COMPLETED || state == ABP_TASK_FAILED || state == ABP_TASK_CANCELED ||
         state == ABP_TASK_REJECTED;
}
