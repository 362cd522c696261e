/*
 * abp_tasks.h - the tasks of one A2A agent, or of one client of such agents, without I/O.
 *
 * A task is a long call: it has a state, artifacts, and an end. This table knows each task's state
 * and the ids of its artifacts; messages and parts stay with whoever uses it. Whatever happens to a
 * task is an *input* here, and the answer is a *verdict*: what to do about it, in bits. So what is
 * stored, what the streams carry and what a cancel is answered come from one decision, made once.
 *
 *   1. Create a table:   abp_tasks_new().
 *   2. Add a task:       abp_task_add(), then abp_task_start() to run its executor.
 *   3. Ask, then act:    abp_task_says(), abp_task_artifact(), abp_task_returns(),
 *                        abp_task_cancel().
 *   4. Pass the time:    abp_tasks_advance(), then abp_tasks_next() until it returns 0.
 *
 * Inputs return a verdict, 0 for "nothing: drop it", or a negative abp_status (abp.h), after which
 * nothing has changed; each names below those that it can return. Whatever is passed is read, and
 * ids are copied, before the function returns. Tables share nothing; one table takes one input at a
 * time.
 */
#ifndef ABP_TASKS_H
#define ABP_TASKS_H

#include "abp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abp_tasks abp_tasks;

/* Names a task until it is forgotten. 0 is no task. One that outlived its task is recognised. */
typedef uint32_t abp_task;

/* The numbers of A2A 1.0. From COMPLETED, FAILED, CANCELED and REJECTED nothing leads anywhere. */
enum abp_task_state {
  ABP_TASK_UNKNOWN, /* a client has not been told yet */
  ABP_TASK_SUBMITTED,
  ABP_TASK_WORKING,
  ABP_TASK_COMPLETED,
  ABP_TASK_FAILED,
  ABP_TASK_CANCELED,
  ABP_TASK_INPUT_REQUIRED,
  ABP_TASK_REJECTED,
  ABP_TASK_AUTH_REQUIRED
};

/* What a verdict says, to be done in this order; the state to tell is above the bits. */
enum abp_task_verdict {
  ABP_TASK_TELL = 1,    /* store the state and tell every stream */
  ABP_TASK_ABORT = 2,   /* fire the signal of the run so far */
  ABP_TASK_SETTLE = 4,  /* answer whoever waits for the task: it has ended, or needs somebody */
  ABP_TASK_END = 8,     /* end the streams: there is nothing more to come in them */
  ABP_TASK_START = 16,  /* run the executor; the run's number is abp_task_run() */
  ABP_TASK_ACK = 32,    /* this cancel: answer it with the task */
  ABP_TASK_WAIT = 64,   /* this cancel: answer it when the task settles */
  ABP_TASK_NAK = 128,   /* this cancel: the task cannot be cancelled any more */
  ABP_TASK_FORGET = 256 /* drop all that is kept of the task: its handle is void */
};

enum abp_task_shift { ABP_TASK_STATE_SHIFT = 16 };

/* What becomes of an artifact. */
enum abp_task_artifact {
  ABP_ARTIFACT_DROP, /* the task has ended, or another run has taken over */
  ABP_ARTIFACT_CREATE,
  ABP_ARTIFACT_REPLACE,
  ABP_ARTIFACT_APPEND /* add the parts to those that are there */
};

enum abp_task_count {
  ABP_TASKS_LIVE,     /* not ended, or ended and their executor has not returned */
  ABP_TASKS_FINISHED, /* remembered */
  ABP_TASKS_DROPPED   /* states and artifacts that came too late */
};

/* What a limit is that the configuration leaves at 0. */
enum abp_tasks_default {
  ABP_TASKS_DEFAULT_MAX_TASKS = 4096,
  ABP_TASKS_DEFAULT_MAX_ARTIFACTS = 4096,
  ABP_TASKS_DEFAULT_REMEMBERED = 1024,
  ABP_TASKS_DEFAULT_REMEMBER_MS = 3600000,
  ABP_TASKS_DEFAULT_MAX_ID = 256
};

typedef struct abp_tasks_config {
  uint8_t seed[16]; /* secret and random: hashes come from it */

  /* Limits; 0 takes the default (enum abp_tasks_default). */
  uint32_t max_tasks;     /* live tasks */
  uint32_t max_artifacts; /* artifacts of one task */
  uint32_t remembered;    /* finished tasks */
  uint32_t remember_ms;   /* and for how long; an agent's task that asks for something and is not
                             answered for as long is canceled */
  uint32_t max_id;        /* bytes of an id, at most 1024 */
} abp_tasks_config;

/* A new table, or NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_tasks_free(). */
abp_tasks *abp_tasks_new(const abp_tasks_config *config, uint64_t now);
/* Frees the table and everything that it owns. NULL is allowed. */
void abp_tasks_free(abp_tasks *tasks);

/* Adds a task: ABP_TASK_SUBMITTED for an agent's own, ABP_TASK_UNKNOWN for one that a client hears
 * of. `id` has `length` bytes. Returns ABP_OK, with the handle in *task. Errors: ABP_E_ID,
 * ABP_E_DUPLICATE, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_task_add(abp_tasks *tasks, const char *id, uint32_t length, enum abp_task_state state,
                 abp_task *task);
/* The task with this id, finished ones included while they are remembered, or 0. */
abp_task abp_task_find(const abp_tasks *tasks, const char *id, uint32_t length);

/* A message is there for the executor: the task's first, or the answer that it asked for. START is
 * in the verdict, or it is 0 when the task takes no message now: it works, has ended, or is void.
 * No errors. */
int abp_task_start(abp_tasks *tasks, abp_task task);
/* The number of the latest run; 0 before the first, and for a void handle. What an earlier run
 * still says is dropped. */
uint32_t abp_task_run(const abp_tasks *tasks, abp_task task);
/* The executor, or an agent somewhere else (run 0), says that the task is in this state. `news`: it
 * says more than the state, so it is told even when the state is the old one. No errors. */
int abp_task_says(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_state state,
                  int news);
/* The executor has returned: the task is completed (or failed) unless it was said what it is. To be
 * called once for each START. No errors. */
int abp_task_returns(abp_tasks *tasks, abp_task task, uint32_t run, int failed);

/* Somebody asks for the task to be cancelled. With `grace_ms` the executor, if one runs, has that
 * long to say how the task ended; with 0 it is canceled at once. `repeatable`: in this dialect a
 * canceled task may be cancelled again, and is answered as it is. Always one of ACK, WAIT, NAK.
 * Errors: ABP_E_STATE for a void handle. */
int abp_task_cancel(abp_tasks *tasks, abp_task task, uint32_t grace_ms, int repeatable);

/* An artifact has come: returns an abp_task_artifact and, unless that is DROP, where the artifact
 * stands among the task's in *place. Errors: ABP_E_ID, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_task_artifact(abp_tasks *tasks, abp_task task, uint32_t run, const char *id,
                      uint32_t length, int append, uint32_t *place);

/* Forgets a task that nobody asks for any more, whatever its state; a client's way to let go. Its
 * handle is void. */
void abp_task_forget(abp_tasks *tasks, abp_task task);

/* Time has passed: `now` is monotonic, in ms. abp_tasks_next() says what came of it. */
void abp_tasks_advance(abp_tasks *tasks, uint64_t now);
/* Takes what time and limits have done, after any input: a grace period that is over, a question
 * that nobody answered, a finished task that is forgotten. Returns its verdict and sets *task, or
 * returns 0 when nothing is left. No errors. */
int abp_tasks_next(abp_tasks *tasks, abp_task *task);
/* When to call abp_tasks_advance(), in ms, or 0 for never. */
uint64_t abp_tasks_wake(const abp_tasks *tasks);

/* The task's state as the protocol has it; ABP_TASK_UNKNOWN for a void handle. */
enum abp_task_state abp_task_state(const abp_tasks *tasks, abp_task task);
/* 1 if a task in this state has ended, else 0. */
int abp_task_ended(enum abp_task_state state);
/* A counter's value. */
uint32_t abp_tasks_count(const abp_tasks *tasks, enum abp_task_count count);

#ifdef __cplusplus
}
#endif
#endif
