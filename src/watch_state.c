/*
 * A client that watches a task. It reads a stream of the task's events until the task has ended,
 * also when the stream breaks, and cancels the task on request.
 *
 *   READING ──stream ends──▶ ASKING ──the task works on──▶ READING (a stream of the task)
 *      │                       │ ▲ └─brought nothing──▶ PAUSING ──▶ READING
 *      │            unreachable│ │again
 *      │                       ▼ │
 *      │                     PAUSING ──out of reach for too long──▶ OVER (LOST)
 *      ├──stream ends, and its events have numbers──▶ READING (what comes after the last one)
 *      ├──the task ends──▶ LINGERING ──stream ends, or too late──▶ OVER
 *      └──message did not arrive──▶ PAUSING ──▶ READING (the message again)
 *
 * The cancel has states of its own: it is sent once, when the task's id is known, and again only if
 * it could not reach the agent. From then on the agent has the grace period to end the task; after
 * its answer, the linger period. A task that has not ended by then is requested once more.
 */
#include "watch_state.h"

/* The longest pause between two attempts, in ms. */
#define MAX_PAUSE 30000

static int step_of(enum abp_watch_step step) { return (int)step << ABP_WATCH_STEP_SHIFT; }

static int over(struct watch *watch, enum abp_watch_step step) {
  watch->phase = WATCH_OVER;
  watch->overdue_at = watch->resume_at = watch->cancel_at = 0;
  return step_of(step);
}

static int take(struct watch *watch, enum abp_watch_step step) {
  watch->resume_at = 0;
  watch->phase = step == ABP_WATCH_ASK ? WATCH_ASKING : WATCH_READING;
  if (step == ABP_WATCH_OPEN) {
    watch->heard = 0;
    watch->reopened = watch->named;
  }
  return step_of(step);
}

/* Twice as long each time. */
static uint64_t backoff(const abp_tasks_config *config, uint32_t failures) {
  uint64_t ms = config->retry_ms;
  while (failures-- > 1 && ms < MAX_PAUSE)
    ms *= 2;
  return ms < MAX_PAUSE ? ms : MAX_PAUSE;
}

static int pause_for(struct watch *watch, uint64_t now, uint64_t ms, enum abp_watch_step after) {
  if (watch->hurry) {
    watch->hurry = 0;
    return take(watch, after);
  }
  watch->phase = WATCH_PAUSING;
  watch->after = (uint8_t)after;
  watch->resume_at = now + ms;
  return step_of(ABP_WATCH_PAUSE);
}

/* The agent cannot be reached: retry later, unless it is too late. */
static int retry(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                 uint32_t delay_ms, enum abp_watch_step after) {
  if (!watch->out_since) {
    watch->out_since = now;
    watch->failures = 0;
  }
  watch->failures++;
  uint64_t ms = backoff(config, watch->failures);
  if (ms < delay_ms) ms = delay_ms;
  if (watch->overdue) return over(watch, ABP_WATCH_LATE);
  if (now + ms - watch->out_since > config->outage_ms)
    return over(watch, watch->named ? ABP_WATCH_LOST : ABP_WATCH_FAIL);
  return pause_for(watch, now, ms, after);
}

static void reached(struct watch *watch) {
  if (watch->out_since) watch->failures = 0;
  watch->out_since = 0;
}

/* A task that needs input is still watched while it is being cancelled. */
static int canceling(const struct watch *watch) {
  return watch->cancel == CANCEL_WANTED || watch->cancel == CANCEL_SENT;
}

static int send_cancel(struct watch *watch) {
  if (watch->cancel != CANCEL_WANTED || !watch->named) return 0;
  watch->cancel = CANCEL_SENT;
  watch->cancel_at = 0;
  return ABP_WATCH_CANCEL;
}

/* Returns the immediate action: close the stream, or end the pause. */
static int interrupt(struct watch *watch) {
  switch (watch->phase) {
  case WATCH_READING:
  case WATCH_LINGERING: return ABP_WATCH_CLOSE;
  case WATCH_PAUSING:
    if (watch->left) return over(watch, ABP_WATCH_DONE);
    if (watch->named) /* an overdue task is requested, not read */
      return take(watch, watch->overdue ? ABP_WATCH_ASK : (enum abp_watch_step)watch->after);
    if (!watch->arrived) return over(watch, ABP_WATCH_STOPPED);
    return watch->overdue ? over(watch, ABP_WATCH_LATE) : take(watch, ABP_WATCH_OPEN);
  default: return 0;
  }
}

int abp_watch_state_begin(struct watch *watch, enum abp_watch_kind kind) {
  *watch = (struct watch){.kind = (uint8_t)kind, .named = (kind & ABP_WATCH_TASK) != 0};
  return step_of(ABP_WATCH_OPEN);
}

int abp_watch_state_named(struct watch *watch) {
  watch->named = 1;
  const int verdict = send_cancel(watch);
  return verdict && watch->left ? verdict | ABP_WATCH_CLOSE : verdict;
}

int abp_watch_state_heard(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          int verdict, int snapshot) {
  if (watch->phase == WATCH_READING) {
    watch->heard++;
    reached(watch);
  }
  if (verdict & ABP_TASK_PARK) {
    /* A stream that was opened with a message may begin with a task that still waits for that
     * message. */
    const int waits = watch->kind & ABP_WATCH_LASTING || canceling(watch) ||
                      (snapshot && !(watch->kind & ABP_WATCH_TASK) && !watch->reopened);
    if (!waits) verdict |= ABP_TASK_END;
  }
  if (!(verdict & ABP_TASK_END) || watch->phase == WATCH_OVER) return verdict;
  if (watch->phase != WATCH_READING) return verdict | over(watch, ABP_WATCH_DONE);
  watch->phase = WATCH_LINGERING;
  watch->cancel = CANCEL_ANSWERED;
  watch->cancel_at = 0;
  watch->overdue_at = now + config->linger_ms;
  return verdict | step_of(ABP_WATCH_DONE);
}

int abp_watch_state_ended(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          enum abp_watch_end how, uint32_t delay_ms) {
  if (watch->phase != WATCH_READING) return step_of(ABP_WATCH_DONE);
  if (watch->left) return over(watch, ABP_WATCH_DONE);
  if (!watch->reopened && how == ABP_WATCH_FAILED) return over(watch, ABP_WATCH_FAIL);
  /* A stream that brought news is continued after it. Requesting the task would only repeat the
   * news. */
  const int news = watch->heard > watch->reopened;
  if (how == ABP_WATCH_NUMBERED && watch->named && news && !watch->overdue)
    return take(watch, ABP_WATCH_OPEN);
  if (watch->named) return take(watch, ABP_WATCH_ASK);
  watch->arrived |= how != ABP_WATCH_UNSENT;
  if (watch->cancel == CANCEL_WANTED && !watch->arrived) return over(watch, ABP_WATCH_STOPPED);
  if (how == ABP_WATCH_UNSENT || watch->kind & ABP_WATCH_REPEATS)
    return retry(watch, config, now, delay_ms, ABP_WATCH_OPEN);
  if (watch->overdue) return over(watch, ABP_WATCH_LATE);
  return over(watch, how == ABP_WATCH_ENDED ? ABP_WATCH_LOST : ABP_WATCH_FAIL);
}

int abp_watch_state_asked(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          enum abp_watch_end how, uint32_t delay_ms, int settled, int ended) {
  if (watch->phase != WATCH_ASKING) return step_of(ABP_WATCH_DONE);
  if (watch->left) return over(watch, ABP_WATCH_DONE);
  if (how == ABP_WATCH_FAILED) return over(watch, ABP_WATCH_FAIL);
  if (how != ABP_WATCH_ENDED) return retry(watch, config, now, delay_ms, ABP_WATCH_ASK);
  reached(watch);
  if (ended || (settled && !canceling(watch))) return over(watch, ABP_WATCH_DONE);
  if (watch->overdue) return over(watch, ABP_WATCH_LATE);
  /* A stream that is opened again begins with the task itself, which is not news. */
  if (watch->heard > watch->reopened) {
    watch->failures = 0;
    return take(watch, ABP_WATCH_OPEN);
  }
  return pause_for(watch, now, backoff(config, ++watch->failures), ABP_WATCH_OPEN);
}

int abp_watch_state_cancel(struct watch *watch, const abp_tasks_config *config, uint64_t now) {
  if (watch->cancel != CANCEL_UNWANTED || watch->phase == WATCH_OVER) return 0;
  watch->cancel = CANCEL_WANTED;
  watch->overdue_at = now + config->grace_ms;
  const int verdict = send_cancel(watch);
  if (watch->phase == WATCH_PAUSING) return verdict | interrupt(watch);
  watch->hurry = 1;
  return verdict;
}

int abp_watch_state_cancel_answered(struct watch *watch, const abp_tasks_config *config,
                                    uint64_t now, enum abp_watch_end how, uint32_t delay_ms,
                                    int ended) {
  if (watch->cancel != CANCEL_SENT || watch->phase == WATCH_OVER) return 0;
  if (how == ABP_WATCH_UNSENT || how == ABP_WATCH_BROKEN) {
    watch->cancel = CANCEL_WANTED;
    watch->cancel_at = now + (delay_ms > config->retry_ms ? delay_ms : config->retry_ms);
    return 0;
  }
  watch->cancel = CANCEL_ANSWERED;
  /* The task has ended, or will not end: the stream gets only a little more time. */
  if (how == ABP_WATCH_FAILED || ended) watch->overdue_at = now + config->linger_ms;
  return 0;
}

int abp_watch_state_leave(struct watch *watch) {
  watch->left = 1;
  /* A cancel still waits for the task's id. */
  if (watch->cancel == CANCEL_WANTED && !watch->named) return 0;
  return watch->phase == WATCH_LINGERING ? 0 : interrupt(watch);
}

int abp_watch_state_stop(struct watch *watch) {
  if (watch->phase == WATCH_LINGERING) return 0;
  over(watch, ABP_WATCH_DONE);
  return ABP_WATCH_CLOSE;
}

int abp_watch_state_due(struct watch *watch, uint64_t now) {
  if (watch->overdue_at && watch->overdue_at <= now) {
    watch->overdue_at = 0;
    watch->overdue = 1;
    return interrupt(watch);
  }
  if (watch->resume_at && watch->resume_at <= now)
    return take(watch, (enum abp_watch_step)watch->after);
  if (watch->cancel_at && watch->cancel_at <= now) {
    watch->cancel_at = 0;
    return send_cancel(watch);
  }
  return 0;
}

uint64_t abp_watch_state_wake(const struct watch *watch) {
  const uint64_t times[] = {watch->overdue_at, watch->resume_at, watch->cancel_at};
  uint64_t wake = 0;
  for (int i = 0; i < 3; i++)
    if (times[i] && (!wake || times[i] < wake)) wake = times[i];
  return wake;
}
