/* What happens to a task: its states and events. task_state.c has the table. */
#ifndef ABP_TASK_STATE_H
#define ABP_TASK_STATE_H

#include "abp_tasks.h"

/* A state that the protocol does not know: a cancel waits for the executor. To others, the task is
 * in the state that was told last. */
#define TASK_CANCELING ((enum abp_task_state)(ABP_TASK_AUTH_REQUIRED + 1))
/* Another one, of tables whose states are stored before they are told: it is decided how the task
 * ends, and nobody has been told. */
#define TASK_COMMITTING ((enum abp_task_state)(ABP_TASK_AUTH_REQUIRED + 2))
#define TASK_STATES (ABP_TASK_AUTH_REQUIRED + 3)

enum task_event {
  TE_SAYS, /* + an abp_task_state: the executor, or an agent somewhere else, says so */
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
  TE_UNSURE, /* the executor has failed, and does not know what became of its work */
  TE_CANCEL, /* stop now */
  TE_ASK,    /* stop, and the executor may say how */
  TE_GRACE,  /* too late: the executor has not said how it ended, or nobody has answered */
  TE_WISH,   /* a cancel was stored before what has been decided could be */
  TASK_EVENTS
};
_Static_assert((int)TE_SAYS_AUTH_REQUIRED == (int)ABP_TASK_AUTH_REQUIRED, "events follow states");
_Static_assert((int)TE_UNSURE - (int)TE_RETURN == (int)ABP_TASK_UNSURE, "events follow returns");
_Static_assert(ABP_TASK_UNKNOWN == 0, "a row that is not in the table leads to UNKNOWN: nowhere");
_Static_assert(ABP_TASK_REPLACE <= UINT16_MAX,
               "task_step.owed has a bit for all that the table owes");

/* A cancel of a task that is canceled: ACK or NAK, the dialect says which. */
#define TASK_AGAIN (ABP_TASK_ACK | ABP_TASK_NAK)

struct task_step {
  uint8_t next;
  uint16_t owed; /* abp_task_verdict */
  uint8_t fate;  /* abp_fate: what became of the executor's work, if this step decides it */
};

struct task_step abp_task_step(enum abp_task_state state, enum task_event event);

/* The same step, in a table whose states are stored before they are told. */
struct task_step abp_task_defer(struct task_step step);

#endif
