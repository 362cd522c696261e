/* What a client does about the task that it watches: watch_state.c has the rules. */
#ifndef ABP_WATCH_STATE_H
#define ABP_WATCH_STATE_H

#include "abp_tasks.h"

struct watch {
  uint8_t kind;  /* abp_watch_kind, 0 for nobody */
  uint8_t phase; /* what the client does: enum watch_phase */
  uint8_t after; /* while it pauses: the step that follows */
  uint8_t cancel;
  uint8_t named;    /* the task's id is known */
  uint8_t arrived;  /* the message may have reached the agent, though nothing was heard of it */
  uint8_t left;     /* nobody reads the events any more */
  uint8_t hurry;    /* the next pause is skipped: the task is to be cancelled */
  uint8_t overdue;  /* the task should have ended by now */
  uint8_t reopened; /* the stream is not the first */
  uint32_t heard;   /* events since the stream was opened */
  uint32_t failures;
  uint64_t out_since; /* when the agent was first out of reach, 0 when it is not */
  /* Times at which something is due, 0 for never. */
  uint64_t overdue_at, resume_at, cancel_at;
};

enum watch_phase { WATCH_READING, WATCH_ASKING, WATCH_PAUSING, WATCH_LINGERING, WATCH_OVER };
enum watch_cancel { CANCEL_UNWANTED, CANCEL_WANTED, CANCEL_SENT, CANCEL_ANSWERED };

/* The inputs of abp_tasks.h, for one watch at a time; each returns its verdict. */
int abp_watch_state_begin(struct watch *watch, enum abp_watch_kind kind);
int abp_watch_state_named(struct watch *watch);
/* `verdict` is the one on the event; `snapshot`: whether the event was the task itself. */
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

/* When abp_watch_state_due() is to be called, 0 for never. */
uint64_t abp_watch_state_wake(const struct watch *watch);

#endif
