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
 * Where tasks outlive their process, `commits` is set in the configuration, and each task has a log
 * outside. Then a verdict never has TELL for what has just been decided: it has COMMIT, and what it
 * decides is appended to the log. The answer of the log is an input, in the log's order:
 * abp_task_committed() has the verdict that tells, abp_task_wish() says that a cancel came first,
 * and abp_task_lost() that somebody else owns the task. Whatever waits for an answer of the log
 * tells nobody anything.
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
  ABP_TASK_TELL = 1,     /* store the state and tell every stream */
  ABP_TASK_ABORT = 2,    /* fire the signal of the run so far */
  ABP_TASK_SETTLE = 4,   /* answer whoever waits for the task: it has ended, or needs somebody */
  ABP_TASK_END = 8,      /* end the streams: there is nothing more to come in them */
  ABP_TASK_START = 16,   /* run the executor; the run's number is abp_task_run() */
  ABP_TASK_ACK = 32,     /* this cancel: answer it with the task */
  ABP_TASK_WAIT = 64,    /* this cancel: answer it when the task settles */
  ABP_TASK_NAK = 128,    /* this cancel: the task cannot be cancelled any more */
  ABP_TASK_FORGET = 256, /* drop all that is kept of the task: its handle is void */
  ABP_TASK_COMMIT = 512, /* store the state, tell nobody, then abp_task_committed() */
  ABP_TASK_PARK = 1024,  /* the task waits for input: end the streams of versions that end there */
  ABP_TASK_LEARN = 8192, /* abp_task_fate() of the ended task has changed: keep it, tell nobody */
  /* Before a COMMIT: the end that is not stored will not be, nor what was learnt since. */
  ABP_TASK_REPLACE = 16384,
  /* Of a record that was read: its writer owns the task from now on. */
  ABP_TASK_TAKEN = 32768,
  /* Of a task that a client watches; an abp_watch_step may be beside them. */
  ABP_WATCH_CANCEL = 2048, /* send the cancel */
  ABP_WATCH_CLOSE = 4096   /* stop reading the stream */
};

/* What a verdict has besides its bits: the step that follows what a watching client has done, if
 * that is over, in four bits; and the state to tell. */
enum abp_task_shift { ABP_WATCH_STEP_SHIFT = 16, ABP_TASK_STATE_SHIFT = 20 };

/* What a client that watches a task does next. */
enum abp_watch_step {
  ABP_WATCH_OPEN = 1,  /* open a stream: with the message, or of the task when its id is known */
  ABP_WATCH_ASK,       /* ask for the task: abp_task_says(), then abp_watch_asked() */
  ABP_WATCH_PAUSE,     /* wait: the next step comes from another input, or from the clock */
  ABP_WATCH_DONE,      /* it is over; the rest are errors */
  ABP_WATCH_FAIL,      /* over: what failed last is why */
  ABP_WATCH_LOST,      /* over: the stream broke, and the agent cannot be asked for the task */
  ABP_WATCH_LATE,      /* over: the agent did not end the task in time after the cancel */
  ABP_WATCH_STOPPED,   /* over: it was to be cancelled before anything of it had arrived */
  ABP_WATCH_STEPS = 15 /* all of them */
};

/* What a client watches, in bits. */
enum abp_watch_kind {
  ABP_WATCH_MESSAGE = 1, /* the task that a message begins, until it ends or asks for something */
  ABP_WATCH_TASK = 2,    /* a task that is known by its id, */
  ABP_WATCH_LASTING = 4, /* in a version whose streams go on while a task waits for input */
  ABP_WATCH_REPEATS = 8  /* the agent recognises a message that comes again */
};

/* How something that a client asked of an agent has ended. */
enum abp_watch_end {
  ABP_WATCH_ENDED,  /* as it should, or by a connection that broke later */
  ABP_WATCH_FAILED, /* the agent refused it, or answered what cannot be read */
  ABP_WATCH_BROKEN, /* no answer came: it may have arrived */
  ABP_WATCH_UNSENT, /* it has not arrived, or the agent is too busy: try again */
  /* As ENDED, but of a stream whose latest event has a number: the agent can go on behind it. */
  ABP_WATCH_NUMBERED
};

/* How a run of an executor ended. */
enum abp_task_return {
  ABP_TASK_RETURNED,
  ABP_TASK_THREW,
  ABP_TASK_STOPPED, /* it threw an AbortError */
  ABP_TASK_UNSURE   /* it threw, and does not know what became of its work */
};

/* What is said besides a state. */
enum abp_task_saying { ABP_TASK_NEWS = 1, ABP_TASK_SNAPSHOT = 2 };

/* What is said of a record of a task's log besides its number. */
enum abp_task_record {
  ABP_RECORD_OWN = 1,    /* it was decided here: it is the oldest of what is not committed */
  ABP_RECORD_OUTCOME = 2 /* it says what became of the work of the task, which has ended */
};

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

/* The defaults of limits that the configuration leaves at 0. */
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
  uint8_t seed[16]; /* secret and random: hashes come from it */

  /* Limits; 0 takes the default (enum abp_tasks_default). */
  uint32_t max_tasks;     /* live tasks */
  uint32_t max_artifacts; /* artifacts of one task */
  uint32_t remembered;    /* finished tasks */
  uint32_t remember_ms;   /* and for how long; an agent's task that asks for something and is not
                             answered for as long is canceled */
  uint32_t max_id;        /* bytes of an id, at most 1024 */

  uint32_t commits; /* 1: states are stored before they are told; abp_task_committed() */
  /* Of a client that watches tasks, in ms: */
  uint32_t grace_ms;  /* for an agent to end a task after its cancel; for an executor, after its
                         lease */
  uint32_t linger_ms; /* for a stream to end after its task, or after its cancel was answered */
  uint32_t retry_ms;  /* before a second attempt; each time twice as long, up to 30 s */
  uint32_t outage_ms; /* that an agent may be out of reach */
} abp_tasks_config;

/* A new table, or NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_tasks_free(). */
abp_tasks *abp_tasks_new(const abp_tasks_config *config, uint64_t now);
/* Frees the table and everything that it owns. NULL is allowed. */
void abp_tasks_free(abp_tasks *tasks);

/* Adds a task: ABP_TASK_SUBMITTED for an agent's own, ABP_TASK_UNKNOWN for one that a client hears
 * of, or a state that a task can go on from. `id` has `length` bytes. Returns ABP_OK, with the
 * handle in *task. Errors: ABP_E_ID, ABP_E_STATE for a state in which it has ended,
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
/* What the run that has just started needs is not there yet. Until abp_task_begin() its work has
 * not begun: whatever ends the task meanwhile ends it at once, as ABP_FATE_UNSTARTED unless an
 * earlier run has worked. abp_task_returns() is due all the same. No errors. */
void abp_task_postpone(abp_tasks *tasks, abp_task task, uint32_t run);
/* The work of the latest run begins now. Errors: ABP_E_STATE when the task has ended or is to end,
 * or is void: then the executor must not begin. */
int abp_task_begin(abp_tasks *tasks, abp_task task);
/* The executor, or an agent somewhere else (run 0), says that the task is in this state. `what`, in
 * bits: NEWS, it says more than the state, so it is told even when the state is the old one;
 * SNAPSHOT, it came with the task as it stands. No errors. */
int abp_task_says(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_state state,
                  int what);
/* The executor has returned: the task is completed (or failed) unless it was said what it is. To be
 * called once for each START. No errors. */
int abp_task_returns(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_return how);
/* What became of the work of a task whose end was decided, unless that is COMPLETED; ABP_FATE_NONE
 * for any other task, for one that a client hears of, and for a void handle. */
abp_fate abp_task_fate(const abp_tasks *tasks, abp_task task);
/* What became of the task with this id, as long as it is remembered, in the words of abp_became():
 * ABP_FATE_RUNNING until its end is decided, then abp_task_fate(), and ABP_FATE_FINISHED if that is
 * COMPLETED. Of a task that a client hears of, unless it is COMPLETED, ABP_FATE_UNKNOWN: its agent
 * says more. ABP_FATE_NONE if no such task is known. Changes nothing. */
abp_fate abp_task_became(const abp_tasks *tasks, const char *id, uint32_t length);

/* Whoever began the task, its reader, is to learn what became of the work, whatever happens to the
 * answer that was to say it. The word is that of abp_task_became(); a void handle is left alone.
 *
 * Whoever did the work says what became of it, and may say it again as long as the word was RUNNING
 * or UNKNOWN. It counts for more than what the state says, unless that is COMPLETED. Nothing comes
 * of it before the task has ended. */
void abp_task_learn(abp_tasks *tasks, abp_task task, abp_fate fate);
/* The reader will not get the result by an answer of the task's own: it has cancelled its request,
 * or an answer was lost, that of the task or the one that told the news of it. So it is, too, when
 * a lease runs out. */
void abp_task_leave(abp_tasks *tasks, abp_task task);
/* The reader got the result of the task, which has ended. FORGET if nothing more can come of it:
 * drop it then, by abp_task_forget(), unless the reader may ask for it once more. No errors. */
int abp_task_hear(abp_tasks *tasks, abp_task task);
/* What is to be told of the task with another answer to its reader, who is told it with this call:
 * the word, if the reader has left and was told nothing, or was told RUNNING or UNKNOWN and there
 * is another word by now. RUNNING is news, too, while nobody cancels the task: the reader can ask
 * for it. ABP_FATE_NONE if there is no news, or a cancel is not answered yet. */
abp_fate abp_task_news(abp_tasks *tasks, abp_task task);
/* What to know before the same work is begun again: RUNNING or UNKNOWN, and FINISHED if the reader
 * did not get its result. Else ABP_FATE_NONE. */
abp_fate abp_task_doubt(const abp_tasks *tasks, abp_task task);

/* Somebody asks for the task to be cancelled. With `grace_ms` the executor, if one runs, has that
 * long to say how the task ended; with 0 it is canceled at once. `repeatable`: in this dialect a
 * canceled task may be cancelled again, and is answered as it is. Always one of ACK, WAIT, NAK.
 * Errors: ABP_E_STATE for a void handle. */
int abp_task_cancel(abp_tasks *tasks, abp_task task, uint32_t grace_ms, int repeatable);

/* Whoever began the task has to ask for it: a task whose lease of `ms` runs out is cancelled, as by
 * abp_task_cancel() with `grace_ms` of the configuration; abp_tasks_next() says so. Each call
 * begins the lease again, and 0 is no end of it. No lease counts while a task is cancelled, or asks
 * for something and no executor runs. A void handle is left alone. */
void abp_task_lease(abp_tasks *tasks, abp_task task, uint32_t ms);

/* Somebody wants to read the task's events. TELL: send the task as it stands, and then what comes;
 * with END, nothing comes, since it waits for input and the version of the reader is one that ends
 * streams there (`lasting` is 0). SETTLE: the task needs somebody, so that who would wait for it is
 * answered. 0 for a task that has ended, or a void handle. No errors. */
int abp_task_subscribe(const abp_tasks *tasks, abp_task task, int lasting);

/* For tables with `commits`; without it, nothing is ever uncommitted.
 *
 * This process takes the task, which is new in the table, with the next record that it stores: it
 * is the `epoch`th to do so. With `others` a process before it has worked on the task, and what
 * became of that is not known here: unless a run begins here, the task's fate will be
 * ABP_FATE_UNKNOWN. A void handle is left alone. */
void abp_task_own(abp_tasks *tasks, abp_task task, uint32_t epoch, int others);
/* A record of a task's log was read. `epoch` is how often the task had been taken when it was
 * written, its writer's own time included, and 0 for what anybody may write; `seen` is the highest
 * one of the records before it; `what` is of enum abp_task_record, in bits. TAKEN if its writer
 * takes the task. If a process has taken a task that this one owns, or has said what became of its
 * work, since it took this process for gone, the verdict has what abp_task_lost() says. `task` may
 * be void. No errors. */
int abp_task_read(abp_tasks *tasks, abp_task task, uint32_t seen, uint32_t epoch, int what);
/*
 * The oldest state that is not committed is stored: `state` is what COMMIT said of it. In the
 * verdict is what is to be told of it, and START if its run may begin now; a run of a task that is
 * to end begins no more. No START is ever in another verdict of such a table, and a cancel that
 * would be answered at once WAITs for this. Errors: ABP_E_STATE for a void handle, and when no such
 * state is next. */
int abp_task_committed(abp_tasks *tasks, abp_task task, enum abp_task_state state);
/* A cancel is stored before all that is not committed yet. A task that is to end, and whose end is
 * not stored, is canceled instead, unless with `grace_ms` its executor may say how it ends; its
 * COMMIT has REPLACE. For any other task this is abp_task_cancel(). Errors: ABP_E_STATE
 * for a void handle. */
int abp_task_wish(abp_tasks *tasks, abp_task task, uint32_t grace_ms);
/* Somebody else owns the task, and nothing that is not committed will be: FORGET, and ABORT if an
 * executor runs. Its runs need not return. What waits for the task is answered from its log. 0 for
 * a void handle; no errors. */
int abp_task_lost(abp_tasks *tasks, abp_task task);

/* An artifact has come: returns an abp_task_artifact and, unless that is DROP, where the artifact
 * stands among the task's in *place. Errors: ABP_E_ID, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_task_artifact(abp_tasks *tasks, abp_task task, uint32_t run, const char *id,
                      uint32_t length, int append, uint32_t *place);

/* A client watches a task that it has added as ABP_TASK_UNKNOWN: from now on it is told what to do
 * until the task has ended. The verdict has a step, and so has that of each input that says how a
 * step ended; others may interrupt a step, with bits, or with the next step in place of a PAUSE.
 * The task's states and artifacts go to abp_task_says() and abp_task_artifact() as they come, and a
 * verdict with END ends the watch; what the stream still brings is dropped and counted. All of
 * these return 0 for a void handle. This one also does for a task of which something is known, or
 * that is watched already. Errors: ABP_E_MEMORY; the others have none. */
int abp_watch(abp_tasks *tasks, abp_task task, enum abp_watch_kind kind);
/* The agent has named the task: a cancel can be sent. */
int abp_watch_named(abp_tasks *tasks, abp_task task);
/* A message came in place of a task. */
int abp_watch_replied(abp_tasks *tasks, abp_task task);
/* The stream has ended. `delay_ms`: how long the agent wants to be left alone. */
int abp_watch_ended(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms);
/* The agent was asked for the task; if it answered, abp_task_says() has been told the state. */
int abp_watch_asked(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms);
/* The reader wants the task to be cancelled. */
int abp_watch_cancel(abp_tasks *tasks, abp_task task);
/* The agent has answered the cancel: with a task in that state, if it did not fail. */
int abp_watch_cancel_answered(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                              uint32_t delay_ms, enum abp_task_state state);
/* The reader wants no more events. */
int abp_watch_leave(abp_tasks *tasks, abp_task task);
/* The reader is gone. Without CLOSE in the verdict the stream is read until it ends, for a while,
 * so that its connection can be used again. Then abp_task_forget(). */
int abp_watch_stop(abp_tasks *tasks, abp_task task);

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

/* The task's state as the protocol has it, which is the latest that was to be told;
 * ABP_TASK_UNKNOWN for a void handle. */
enum abp_task_state abp_task_state(const abp_tasks *tasks, abp_task task);
/* 1 if a task in this state has ended, else 0. */
int abp_task_ended(enum abp_task_state state);
/* A counter's value. */
uint32_t abp_tasks_count(const abp_tasks *tasks, enum abp_task_count count);

#ifdef __cplusplus
}
#endif
#endif
