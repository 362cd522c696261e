/*
 * abp_tasks.h - the tasks of one A2A agent, or of one client of such agents, without I/O.
 *
 * A task is a long call: it has a state, artifacts, and an end. This table keeps each task's state
 * and the ids of its artifacts; you keep messages and parts. Each event of a task is an *input*,
 * and the answer is a *verdict*: bits that say what to do. So one decision determines what is
 * stored, what the streams carry and how a cancel is answered.
 *
 *   1. Create a table:   abp_tasks_new().
 *   2. Add a task:       abp_task_add(), then abp_task_start() to run its executor.
 *   3. Ask, then act:    abp_task_says(), abp_task_artifact(), abp_task_returns(),
 *                        abp_task_cancel().
 *   4. Pass the time:    abp_tasks_advance(), then abp_tasks_next() until it returns 0.
 *
 * If tasks outlive their process, `commits` is set in the configuration, and each task has a log
 * outside. Then the verdict of a decision never has TELL, but COMMIT: append the decision to the
 * log. The records of the log are inputs, in the log's order: abp_task_committed() returns the
 * verdict with TELL, abp_task_wish() reports that a cancel came first, and abp_task_lost() that
 * another process owns the task. A decision that waits for the log is not published.
 *
 * Inputs return a verdict, 0 for "nothing to do: drop it", or a negative abp_status (abp.h), after
 * which nothing has changed; each comment lists the codes that its function can return. Arguments
 * are read, and ids are copied, before the function returns. Tables share nothing; one table takes
 * one input at a time.
 */
#ifndef ABP_TASKS_H
#define ABP_TASKS_H

#include "abp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abp_tasks abp_tasks;

/* A handle of a task, valid until the task is forgotten. 0 is no task. A handle that outlives its
 * task is void: it never matches another task. */
typedef uint32_t abp_task;

/* The numbers of A2A 1.0. COMPLETED, FAILED, CANCELED and REJECTED are final. */
enum abp_task_state {
  ABP_TASK_UNKNOWN, /* a client does not know the state yet */
  ABP_TASK_SUBMITTED,
  ABP_TASK_WORKING,
  ABP_TASK_COMPLETED,
  ABP_TASK_FAILED,
  ABP_TASK_CANCELED,
  ABP_TASK_INPUT_REQUIRED,
  ABP_TASK_REJECTED,
  ABP_TASK_AUTH_REQUIRED
};

/* The bits of a verdict, to be performed in this order; the state to publish is above the bits. */
enum abp_task_verdict {
  ABP_TASK_TELL = 1,     /* store the state and send it to every stream */
  ABP_TASK_ABORT = 2,    /* fire the signal of the run so far */
  ABP_TASK_SETTLE = 4,   /* answer requests that wait for the task: it has ended, or needs input */
  ABP_TASK_END = 8,      /* end the streams: no events follow */
  ABP_TASK_START = 16,   /* run the executor; the run's number is abp_task_run() */
  ABP_TASK_ACK = 32,     /* for this cancel: answer it with the task */
  ABP_TASK_WAIT = 64,    /* for this cancel: answer it when the task settles */
  ABP_TASK_NAK = 128,    /* for this cancel: the task can no longer be cancelled */
  ABP_TASK_FORGET = 256, /* drop all data of the task: its handle is void */
  ABP_TASK_COMMIT = 512, /* store the state, publish nothing, then abp_task_committed() */
  ABP_TASK_PARK = 1024,  /* the task waits for input: end streams of A2A versions that end there */
  ABP_TASK_LEARN = 8192, /* abp_task_fate() of the ended task has changed: store it, send nothing */
  /* Before a COMMIT: drop the end that is not stored yet, and the fate learnt since. */
  ABP_TASK_REPLACE = 16384,
  /* For a record that was read: its writer owns the task from now on. */
  ABP_TASK_TAKEN = 32768,
  /* For a task that a client watches; an abp_watch_step may be beside them. */
  ABP_WATCH_CANCEL = 2048, /* send the cancel */
  ABP_WATCH_CLOSE = 4096   /* stop reading the stream */
};

/* Further parts of a verdict: in four bits the next step of a watching client, if its last step is
 * over; and the state to publish. */
enum abp_task_shift { ABP_WATCH_STEP_SHIFT = 16, ABP_TASK_STATE_SHIFT = 20 };

/* The steps of a client that watches a task. */
enum abp_watch_step {
  ABP_WATCH_OPEN = 1,  /* open a stream: with the message, or of the task if its id is known */
  ABP_WATCH_ASK,       /* request the task: abp_task_says(), then abp_watch_asked() */
  ABP_WATCH_PAUSE,     /* wait: the next step comes from another input, or from the clock */
  ABP_WATCH_DONE,      /* over; the following steps are errors */
  ABP_WATCH_FAIL,      /* over: the last failure is the reason */
  ABP_WATCH_LOST,      /* over: the stream broke, and the agent cannot be reached */
  ABP_WATCH_LATE,      /* over: the agent did not end the task in time after the cancel */
  ABP_WATCH_STOPPED,   /* over: it was cancelled before its message had arrived */
  ABP_WATCH_STEPS = 15 /* all of them */
};

/* Ways to watch a task, in bits. */
enum abp_watch_kind {
  ABP_WATCH_MESSAGE = 1, /* the task that a message begins, until it ends or needs input */
  ABP_WATCH_TASK = 2,    /* a task with a known id */
  ABP_WATCH_LASTING = 4, /* the A2A version continues streams while a task waits for input */
  ABP_WATCH_REPEATS = 8  /* the agent recognises a repeated message */
};

/* How a client's request to an agent has ended. */
enum abp_watch_end {
  ABP_WATCH_ENDED,  /* in good order, or because its connection broke later */
  ABP_WATCH_FAILED, /* the agent rejected it, or its answer cannot be read */
  ABP_WATCH_BROKEN, /* no answer: it may have arrived */
  ABP_WATCH_UNSENT, /* it has not arrived, or the agent is too busy: try again */
  /* As ENDED, for a stream whose latest event has a number: the agent can continue after it. */
  ABP_WATCH_NUMBERED
};

/* How a run of an executor ended. */
enum abp_task_return {
  ABP_TASK_RETURNED,
  ABP_TASK_THREW,
  ABP_TASK_STOPPED, /* it threw an AbortError */
  ABP_TASK_UNSURE   /* it threw, and does not know the fate of its work */
};

/* Details of a reported state. */
enum abp_task_saying { ABP_TASK_NEWS = 1, ABP_TASK_SNAPSHOT = 2 };

/* Details of a record of a task's log. */
enum abp_task_record {
  ABP_RECORD_OWN = 1,    /* it was decided here: the oldest state that is not committed */
  ABP_RECORD_OUTCOME = 2 /* it has the fate of the work of the task, which has ended */
};

/* The action for an artifact. */
enum abp_task_artifact {
  ABP_ARTIFACT_DROP, /* the task has ended, or another run has taken over */
  ABP_ARTIFACT_CREATE,
  ABP_ARTIFACT_REPLACE,
  ABP_ARTIFACT_APPEND /* append its parts to those of the artifact */
};

enum abp_task_count {
  ABP_TASKS_LIVE,     /* not ended, or ended but the executor has not returned */
  ABP_TASKS_FINISHED, /* remembered */
  ABP_TASKS_DROPPED   /* states and artifacts that arrived too late */
};

/* Defaults of the limits that the configuration leaves at 0. */
enum abp_tasks_default {
  ABP_TASKS_DEFAULT_MAX_TASKS = 4096,
  ABP_TASKS_DEFAULT_MAX_ARTIFACTS = 4096,
  ABP_TASKS_DEFAULT_REMEMBERED = 1024,
  ABP_TASKS_DEFAULT_REMEMBER_MS = 3600000,
  ABP_TASKS_DEFAULT_MAX_ID = 256,
  ABP_TASKS_DEFAULT_GRACE_MS = 30000,
  ABP_TASKS_DEFAULT_LINGER_MS = 5000,
  ABP_TASKS_DEFAULT_RETRY_MS = 1000,
  ABP_TASKS_DEFAULT_OUTAGE_MS = 60000
};

typedef struct abp_tasks_config {
  uint8_t seed[16]; /* secret and random: hashes are derived from it */

  /* Limits; 0 takes the default (enum abp_tasks_default). */
  uint32_t max_tasks;     /* live tasks */
  uint32_t max_artifacts; /* artifacts of one task */
  uint32_t remembered;    /* finished tasks */
  uint32_t remember_ms;   /* how long they are remembered; an agent's task that needs input and gets
                             none for as long is canceled */
  uint32_t max_id;        /* bytes of an id, at most 1024 */

  uint32_t commits; /* 1: states are stored before they are published; abp_task_committed() */
  /* For a client that watches tasks, in ms: */
  uint32_t grace_ms;  /* how long an agent may take to end a task after its cancel; an executor,
                         after its lease */
  uint32_t linger_ms; /* how long a stream may last after its task or an answered cancel */
  uint32_t retry_ms;  /* the pause before a second attempt; doubled each time, up to 30 s */
  uint32_t outage_ms; /* how long an agent may be unreachable */
} abp_tasks_config;

/* Creates a table. Returns NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_tasks_free(). */
abp_tasks *abp_tasks_new(const abp_tasks_config *config, uint64_t now);
/* Frees the table and everything that it owns. NULL is allowed. */
void abp_tasks_free(abp_tasks *tasks);

/* Adds a task, in the state ABP_TASK_SUBMITTED for an agent's own task, ABP_TASK_UNKNOWN for a task
 * of another agent that a client learns of, or a state in which the task can continue. `id` has
 * `length` bytes. Returns ABP_OK, with the handle in *task. Errors: ABP_E_ID, ABP_E_STATE for a
 * final state, ABP_E_DUPLICATE, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_task_add(abp_tasks *tasks, const char *id, uint32_t length, enum abp_task_state state,
                 abp_task *task);
/* The task with this id, also a finished one while it is remembered, or 0. */
abp_task abp_task_find(const abp_tasks *tasks, const char *id, uint32_t length);

/* A message for the executor arrived: the task's first, or the input that it asked for. Returns a
 * verdict with START, or 0 if the task takes no message now: it works, has ended, or is void. No
 * errors. */
int abp_task_start(abp_tasks *tasks, abp_task task);
/* The number of the latest run; 0 before the first, and for a void handle. Inputs of earlier runs
 * are dropped. */
uint32_t abp_task_run(const abp_tasks *tasks, abp_task task);
/* The run that has just started has to wait. Until abp_task_begin() its work has not begun:
 * anything that ends the task before then ends it at once, as ABP_FATE_UNSTARTED unless an earlier
 * run has worked. abp_task_returns() is due in any case. No errors. */
void abp_task_postpone(abp_tasks *tasks, abp_task task, uint32_t run);
/* The work of the latest run begins now. Errors: ABP_E_STATE when the task has ended, is about to
 * end, or is void: then the executor must not begin. */
int abp_task_begin(abp_tasks *tasks, abp_task task);
/* The executor, or another agent (run 0), reports that the task is in this state. `what`, in bits:
 * NEWS, there is more than the state, so it is published even if the state is the same; SNAPSHOT,
 * it is the state of a whole task. No errors. */
int abp_task_says(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_state state,
                  int what);
/* The executor has returned: the task is completed (or failed), unless its state was reported
 * before. Call it once for each START. No errors. */
int abp_task_returns(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_return how);
/* The fate of the work of a task whose end was decided, unless that is COMPLETED. ABP_FATE_NONE for
 * other tasks, for those of another agent, and for a void handle. */
abp_fate abp_task_fate(const abp_tasks *tasks, abp_task task);
/* The fate of the task with this id, for as long as it is remembered, as for abp_became():
 * ABP_FATE_RUNNING until its end is decided, then abp_task_fate(), or ABP_FATE_FINISHED if it is
 * COMPLETED. For a task of another agent that is not COMPLETED, ABP_FATE_UNKNOWN: that agent knows
 * more. ABP_FATE_NONE if the task is unknown. Changes nothing. */
abp_fate abp_task_became(const abp_tasks *tasks, const char *id, uint32_t length);

/* The *reader* of a task is the one that began it. It must learn the fate of the work, even if the
 * answer with the fate is lost. The fate is that of abp_task_became(). For a void handle these
 * functions do nothing.
 *
 * The worker reports the fate of its work, and may report it again while that was RUNNING or
 * UNKNOWN. It outweighs the state, unless that is COMPLETED. Before the task has ended it has no
 * effect. */
void abp_task_learn(abp_tasks *tasks, abp_task task, abp_fate fate);
/* The reader will not get the result in the task's own answer: it has cancelled its request, or an
 * answer was lost, that of the task or another one with its news. The same holds when a lease runs
 * out. */
void abp_task_leave(abp_tasks *tasks, abp_task task);
/* The reader got the result of the task, which has ended. FORGET if nothing more can become known:
 * then drop the task by abp_task_forget(), unless the reader may ask for it again. No errors. */
int abp_task_hear(abp_tasks *tasks, abp_task task);
/* The news about a task for its reader, to be sent with another answer; this call counts as sent.
 * Returns the fate if the reader has left and got no fate, or got RUNNING or UNKNOWN and the fate
 * is another one now. RUNNING is news, too, while the task is not being cancelled: the reader can
 * ask for it. ABP_FATE_NONE if there is no news, or a cancel is not answered yet. */
abp_fate abp_task_news(abp_tasks *tasks, abp_task task);
/* The reason to be careful before the same work begins again: RUNNING or UNKNOWN, or FINISHED if
 * the reader did not get the result. ABP_FATE_NONE otherwise. */
abp_fate abp_task_doubt(const abp_tasks *tasks, abp_task task);

/* A cancel of the task was requested. A running executor has `grace_ms` to report how the task
 * ended; with 0 the task is canceled at once. `repeatable`: in this dialect a cancel of a canceled
 * task is answered with the task. The verdict always has one of ACK, WAIT, NAK. Errors: ABP_E_STATE
 * for a void handle. */
int abp_task_cancel(abp_tasks *tasks, abp_task task, uint32_t grace_ms, int repeatable);

/* The reader has to ask for its task regularly: a task whose lease of `ms` runs out is cancelled,
 * as by abp_task_cancel() with `grace_ms` of the configuration; abp_tasks_next() returns that. Each
 * call renews the lease; 0 means that it never ends. No lease applies while a task is being
 * cancelled, or needs input and no executor runs. For a void handle it does nothing. */
void abp_task_lease(abp_tasks *tasks, abp_task task, uint32_t ms);

/* A stream of the task's events was requested. TELL: send the task as it is, then its events. With
 * END no events follow, since the task waits for input and the A2A version ends streams there
 * (`lasting` is 0). SETTLE: the task needs input, so requests that would wait for it are answered.
 * 0 for a task that has ended, or a void handle. No errors. */
int abp_task_subscribe(const abp_tasks *tasks, abp_task task, int lasting);

/* The following is for tables with `commits`; in others, no state is ever uncommitted.
 *
 * This process takes a task, which is new in the table, with the next record that it stores; that
 * is the `epoch`th time that the task is taken. `others`: an earlier process has worked on the
 * task, with an unknown fate. Then the task's fate will be ABP_FATE_UNKNOWN unless a run begins
 * here. For a void handle it does nothing. */
void abp_task_own(abp_tasks *tasks, abp_task task, uint32_t epoch, int others);
/* A record of a task's log was read. `epoch` is how often the task had been taken when it was
 * written, including by its writer, and 0 for records that any process may write; `seen` is the
 * highest epoch of the records before it; `what` is of enum abp_task_record, in bits. TAKEN if its
 * writer takes the task. If another process has taken a task of this one, or has written the fate
 * of its work because this process seemed gone, the verdict has that of abp_task_lost(). `task` may
 * be void. No errors. */
int abp_task_read(abp_tasks *tasks, abp_task task, uint32_t seen, uint32_t epoch, int what);
/*
 * The oldest state that is not committed is stored: `state` is the state of its COMMIT. The verdict
 * publishes it, and has START if its run may begin now; a run of a task that is about to end no
 * longer begins. In such a table only this verdict has START, and a cancel that would be answered
 * at once gets WAIT until then. Errors: ABP_E_STATE for a void handle, and when no such state is
 * next. */
int abp_task_committed(abp_tasks *tasks, abp_task task, enum abp_task_state state);
/* A cancel was stored before all uncommitted states. A task that is about to end, and whose end is
 * not stored, is canceled instead, unless `grace_ms` lets its executor report how it ends; its
 * COMMIT has REPLACE. For other tasks this is abp_task_cancel(). Errors: ABP_E_STATE for a void
 * handle. */
int abp_task_wish(abp_tasks *tasks, abp_task task, uint32_t grace_ms);
/* Another process owns the task, and no uncommitted state will be stored: FORGET, and ABORT if an
 * executor runs. Its runs need not return. Requests that wait for the task are answered from its
 * log. 0 for a void handle; no errors. */
int abp_task_lost(abp_tasks *tasks, abp_task task);

/* An artifact arrived. Returns an abp_task_artifact and, unless that is DROP, the index of the
 * artifact in the task in *place. Errors: ABP_E_ID, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_task_artifact(abp_tasks *tasks, abp_task task, uint32_t run, const char *id,
                      uint32_t length, int append, uint32_t *place);

/* A client watches a task that it has added as ABP_TASK_UNKNOWN: from now on verdicts tell it what
 * to do until the task has ended. This verdict has a step, and so has that of each input that
 * reports the end of a step; other verdicts may interrupt a step, with bits, or with the next step
 * in place of a PAUSE. Pass the task's states and artifacts to abp_task_says() and
 * abp_task_artifact() as they arrive. A verdict with END ends the watch; later events of the stream
 * are dropped and counted. These functions return 0 for a void handle; this one also for a task
 * whose state is known, or that is watched already. Errors: ABP_E_MEMORY; the others have none. */
int abp_watch(abp_tasks *tasks, abp_task task, enum abp_watch_kind kind);
/* The agent has reported the task's id: a cancel can be sent. */
int abp_watch_named(abp_tasks *tasks, abp_task task);
/* A message arrived in place of a task. */
int abp_watch_replied(abp_tasks *tasks, abp_task task);
/* The stream has ended. `delay_ms`: how long the agent asked to wait before the next request. */
int abp_watch_ended(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms);
/* The request for the task has ended; if it was answered, abp_task_says() has been called with the
 * state. */
int abp_watch_asked(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms);
/* The reader cancels the task. */
int abp_watch_cancel(abp_tasks *tasks, abp_task task);
/* The agent has answered the cancel: with a task in that state, unless it failed. */
int abp_watch_cancel_answered(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                              uint32_t delay_ms, enum abp_task_state state);
/* The reader takes no more events. */
int abp_watch_leave(abp_tasks *tasks, abp_task task);
/* The reader is gone. Without CLOSE in the verdict the stream is read until it ends, for a while,
 * so that its connection can be reused. Then call abp_task_forget(). */
int abp_watch_stop(abp_tasks *tasks, abp_task task);

/* Forgets a task that is no longer needed, in any state; a client's way to drop a task. Its handle
 * is void. */
void abp_task_forget(abp_tasks *tasks, abp_task task);

/* Time has passed: `now` is monotonic, in ms. abp_tasks_next() returns the effects. */
void abp_tasks_advance(abp_tasks *tasks, uint64_t now);
/* Returns the effects of time and limits, after any input: a grace period that is over, input that
 * never arrived, a finished task that is forgotten. Returns a verdict and sets *task, or returns 0
 * when nothing is left. No errors. */
int abp_tasks_next(abp_tasks *tasks, abp_task *task);
/* When to call abp_tasks_advance(), in ms; 0 for never. */
uint64_t abp_tasks_wake(const abp_tasks *tasks);

/* The published state of the task; ABP_TASK_UNKNOWN for a void handle. */
enum abp_task_state abp_task_state(const abp_tasks *tasks, abp_task task);
/* 1 if this state is final, else 0. */
int abp_task_ended(enum abp_task_state state);
/* A counter's value. */
uint32_t abp_tasks_count(const abp_tasks *tasks, enum abp_task_count count);

#ifdef __cplusplus
}
#endif
#endif
