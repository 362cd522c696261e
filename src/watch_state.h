/* The state machine of a client that watches a task: watch_state.c has the rules. */
#ifndef ABP_WATCH_STATE_H
#define ABP_WATCH_STATE_H

#include "abp_tasks.h"

struct watch {
  uint8_t kind;  /* abp_watch_kind; 0: not watched */
  uint8_t phase; /* enum watch_phase */
  uint8_t after; /* during a pause: the next step */
  uint8_t cancel;
  uint8_t named;    /* the task's id is known */
  uint8_t arrived;  /* the message may have reached the agent, though there was no answer */
  uint8_t left;     /* the events are no longer read */
  uint8_t hurry;    /* the next pause is skipped: the task is being cancelled */
  uint8_t overdue;  /* the task should have ended by now */
  uint8_t reopened; /* the stream is not the first */
  uint32_t heard;   /* events since the stream was opened */
  uint32_t failures;
  uint64_t out_since; /* since when the agent is unreachable; 0 if it is not */
  /* When an action is due; 0 for never. */
  uint64_t overdue_at, resume_at, cancel_at;
};

enum watch_phase { WATCH_READING, WATCH_ASKING, WATCH_PAUSING, WATCH_LINGERING, WATCH_OVER };
enum watch_cancel { CANCEL_UNWANTED, CANCEL_WANTED, CANCEL_SENT, CANCEL_ANSWERED };

/* The inputs of abp_tasks.h, for one watch; each returns its verdict. */
int abp_watch_state_begin(struct watch *watch, enum abp_watch_kind kind);
int abp_watch_state_named(struct watch *watch);
/* `verdict` is that of the event; `snapshot`: 1 if the event was the task itself. */
int abp_watch_state_heard(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          int verdict, int snapshot);
int abp_watch_state_ended(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          enum abp_watch_end how, uint32_t delay_ms);
int abp_watch_state_asked(struct watch *watch, const abp_tasks_config *config, uint64_t now,
                          enum abp_watch_end how, uint32_t delay_ms, int settled, int ended);
int abp_watch_state_cancel(struct watch *watch, const abp_tasks_config *config, uint64_t now);
int abp_watch_state_cancel_answered(struct watch *watch, const abp_tasks_config *config,
                                    uint64_t now, enum abp_watch_end how, uint32_t delay_ms,
                                    int ended);
int abp_watch_state_leave(struct watch *watch);
int abp_watch_state_stop(struct watch *watch);
int abp_watch_state_due(struct watch *watch, uint64_t now);

/* When to call abp_watch_state_due(); 0 for never. */
uint64_t abp_watch_state_wake(const struct watch *watch);

#endif
