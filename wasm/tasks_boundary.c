/*
 * The boundary between the tasks' core and JavaScript: all exports of the module. Many tables share
 * one instance of the module; each export takes a table's address.
 *
 * Ids are passed in the scratch. An input returns a verdict or a negative abp_status: see
 * src/abp_tasks.h.
 */
#include "../src/abp_tasks.h"

#include "boundary.h"

#include "tasks_abi.h"

static abp_task due;

EXPORT("abi") uint32_t abi(void) { return ABP_ABI; }

/* The configuration of the next table, all zero; fill it in, then call create(). */
static abp_tasks_config config;
EXPORT("config") void *get_config(void) {
  config = (abp_tasks_config){0};
  return &config;
}
/* Creates a table; 0 when memory is short. */
EXPORT("create") abp_tasks *create(double now) { return abp_tasks_new(&config, (uint64_t)now); }
/* Frees a table. Returns 0: there is no table any more. */
EXPORT("destroy") abp_tasks *destroy(abp_tasks *tasks) {
  abp_tasks_free(tasks);
  return NULL;
}

/* Returns the new task, or a negative abp_status; a handle has 30 bits. */
EXPORT("add") int32_t add(abp_tasks *tasks, uint32_t length, enum abp_task_state state) {
  abp_task task;
  const int status = abp_task_add(tasks, buffer, length, state, &task);
  return status < 0 ? status : (int32_t)task;
}
EXPORT("find") abp_task find(abp_tasks *tasks, uint32_t length) {
  return abp_task_find(tasks, buffer, length);
}
EXPORT("start") int32_t start(abp_tasks *tasks, abp_task task) {
  return abp_task_start(tasks, task);
}
EXPORT("run") uint32_t run(abp_tasks *tasks, abp_task task) { return abp_task_run(tasks, task); }
EXPORT("postpone") void postpone(abp_tasks *tasks, abp_task task, uint32_t number) {
  abp_task_postpone(tasks, task, number);
}
EXPORT("begin") int32_t begin(abp_tasks *tasks, abp_task task) {
  return abp_task_begin(tasks, task);
}
EXPORT("says")
int32_t says(abp_tasks *tasks, abp_task task, uint32_t number, enum abp_task_state state,
             uint32_t what) {
  return abp_task_says(tasks, task, number, state, (int)what);
}
EXPORT("returns")
int32_t returns(abp_tasks *tasks, abp_task task, uint32_t number, enum abp_task_return how) {
  return abp_task_returns(tasks, task, number, how);
}
/* The fate of a task, by its id. */
EXPORT("became") enum abp_fate became(abp_tasks *tasks, uint32_t length) {
  return abp_task_became(tasks, buffer, length);
}
EXPORT("learn") void learn(abp_tasks *tasks, abp_task task, enum abp_fate fate) {
  abp_task_learn(tasks, task, fate);
}
EXPORT("leave") void leave(abp_tasks *tasks, abp_task task) { abp_task_leave(tasks, task); }
EXPORT("hear") int32_t hear(abp_tasks *tasks, abp_task task) { return abp_task_hear(tasks, task); }
EXPORT("news") enum abp_fate news(abp_tasks *tasks, abp_task task) {
  return abp_task_news(tasks, task);
}
EXPORT("doubt") enum abp_fate doubt(abp_tasks *tasks, abp_task task) {
  return abp_task_doubt(tasks, task);
}
EXPORT("cancel")
int32_t cancel(abp_tasks *tasks, abp_task task, uint32_t grace_ms, uint32_t repeatable) {
  return abp_task_cancel(tasks, task, grace_ms, (int)repeatable);
}
EXPORT("lease") void lease(abp_tasks *tasks, abp_task task, uint32_t ms) {
  abp_task_lease(tasks, task, ms);
}
EXPORT("subscribe")
int32_t subscribe(abp_tasks *tasks, abp_task task, uint32_t lasting) {
  return abp_task_subscribe(tasks, task, (int)lasting);
}
/* Returns an abp_task_artifact, and the artifact's index << 2. */
EXPORT("artifact")
int32_t artifact(abp_tasks *tasks, abp_task task, uint32_t number, uint32_t length,
                 uint32_t append) {
  uint32_t place = 0;
  const int what = abp_task_artifact(tasks, task, number, buffer, length, (int)append, &place);
  return what < 0 ? what : (int32_t)((uint32_t)what | place << 2);
}
EXPORT("own")
void own(abp_tasks *tasks, abp_task task, uint32_t epoch, uint32_t others) {
  abp_task_own(tasks, task, epoch, (int)others);
}
EXPORT("read")
int32_t export_read(abp_tasks *tasks, abp_task task, uint32_t seen, uint32_t epoch, uint32_t what) {
  return abp_task_read(tasks, task, seen, epoch, (int)what);
}
EXPORT("committed")
int32_t committed(abp_tasks *tasks, abp_task task, enum abp_task_state state) {
  return abp_task_committed(tasks, task, state);
}
EXPORT("wish") int32_t wish(abp_tasks *tasks, abp_task task, uint32_t grace_ms) {
  return abp_task_wish(tasks, task, grace_ms);
}
EXPORT("lost") int32_t lost(abp_tasks *tasks, abp_task task) { return abp_task_lost(tasks, task); }
EXPORT("forget") void forget(abp_tasks *tasks, abp_task task) { abp_task_forget(tasks, task); }

EXPORT("watch") int32_t watch(abp_tasks *tasks, abp_task task, uint32_t kind) {
  return abp_watch(tasks, task, (enum abp_watch_kind)kind);
}
EXPORT("watch_named") int32_t export_watch_named(abp_tasks *tasks, abp_task task) {
  return abp_watch_named(tasks, task);
}
EXPORT("watch_replied") int32_t export_watch_replied(abp_tasks *tasks, abp_task task) {
  return abp_watch_replied(tasks, task);
}
EXPORT("watch_ended")
int32_t export_watch_ended(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                           uint32_t delay_ms) {
  return abp_watch_ended(tasks, task, how, delay_ms);
}
EXPORT("watch_asked")
int32_t export_watch_asked(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                           uint32_t delay_ms) {
  return abp_watch_asked(tasks, task, how, delay_ms);
}
EXPORT("watch_cancel") int32_t export_watch_cancel(abp_tasks *tasks, abp_task task) {
  return abp_watch_cancel(tasks, task);
}
EXPORT("watch_cancel_answered")
int32_t export_watch_cancel_answered(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                                     uint32_t delay_ms, enum abp_task_state state) {
  return abp_watch_cancel_answered(tasks, task, how, delay_ms, state);
}
EXPORT("watch_leave") int32_t export_watch_leave(abp_tasks *tasks, abp_task task) {
  return abp_watch_leave(tasks, task);
}
EXPORT("watch_stop") int32_t export_watch_stop(abp_tasks *tasks, abp_task task) {
  return abp_watch_stop(tasks, task);
}

EXPORT("advance") void advance(abp_tasks *tasks, double now) {
  abp_tasks_advance(tasks, (uint64_t)now);
}
/* The verdict of a due effect, or 0; its task is due_task(). */
EXPORT("next") int32_t next(abp_tasks *tasks) { return abp_tasks_next(tasks, &due); }
EXPORT("due_task") abp_task due_task(void) { return due; }
EXPORT("wake") double wake(abp_tasks *tasks) { return (double)abp_tasks_wake(tasks); }

EXPORT("state") enum abp_task_state state(abp_tasks *tasks, abp_task task) {
  return abp_task_state(tasks, task);
}
EXPORT("ended") int32_t ended(enum abp_task_state of) { return abp_task_ended(of); }
EXPORT("count") uint32_t count(abp_tasks *tasks, enum abp_task_count what) {
  return abp_tasks_count(tasks, what);
}
