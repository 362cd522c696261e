/* The state machine of tasks: its states and events. task_state.c has the table. */
#ifndef ABP_TASK_STATE_H
#define ABP_TASK_STATE_H

#include "abp_tasks.h"

/* A state that the protocol does not have: a cancel waits for the executor. To others, the task is
 * in the state that was published last. */
#define TASK_CANCELING ((enum abp_task_state)(ABP_TASK_AUTH_REQUIRED + 1))
/* Another such state, in tables with `commits`: the end of the task is decided, but not published.
 */
#define TASK_COMMITTING ((enum abp_task_state)(ABP_TASK_AUTH_REQUIRED + 2))
#define TASK_STATES (ABP_TASK_AUTH_REQUIRED + 3)

enum task_event {
  TE_SAYS, /* + an abp_task_state: the executor, or another agent, reports it */
  TE_SAYS_SUBMITTED,
  TE_SAYS_WORKING,
  TE_SAYS_COMPLETED,
  TE_SAYS_FAILED,
  TE_SAYS_CANCELED,
  TE_SAYS_INPUT_REQUIRED,
  TE_SAYS_REJECTED,
  TE_SAYS_AUTH_REQUIRED,
  TE_START,  /* there is a message for the executor */
  TE_RETURN, /* the executor has returned */
  TE_THROW,  /* the executor has failed */
  TE_STOP,   /* the executor has thrown an AbortError */
  TE_UNSURE, /* the executor has failed, and does not know the fate of its work */
  TE_CANCEL, /* stop now */
  TE_ASK,    /* stop, and the executor may report how it ends */
  TE_GRACE,  /* too late: the executor has not reported how it ends, or no input arrived */
  TE_WISH,   /* a cancel was stored before the end that was decided */
  TASK_EVENTS
};
_Static_assert((int)TE_SAYS_AUTH_REQUIRED == (int)ABP_TASK_AUTH_REQUIRED, "events follow states");
_Static_assert((int)TE_UNSURE - (int)TE_RETURN == (int)ABP_TASK_UNSURE, "events follow returns");
_Static_assert(ABP_TASK_UNKNOWN == 0, "missing rows lead to UNKNOWN, which changes nothing");
_Static_assert(ABP_TASK_REPLACE <= UINT16_MAX,
               "task_step.owed has a bit for all that the table owes");

/* The answer to a cancel of a canceled task: ACK or NAK, depending on the dialect. */
#define TASK_AGAIN (ABP_TASK_ACK | ABP_TASK_NAK)

struct task_step {
  uint8_t next;
  uint16_t owed; /* abp_task_verdict */
  uint8_t fate;  /* abp_fate of the executor's work, if this step decides it */
};

struct task_step abp_task_step(enum abp_task_state state, enum task_event event);

/* The same step, in a table with `commits`. */
struct task_step abp_task_defer(struct task_step step);

#endif
