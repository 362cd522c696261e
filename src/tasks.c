/*
 * The inputs about tasks: find the slot, step the table, return a verdict.
 *
 * Tasks and their artifacts are kept in the table of calls (call_table.c), and found by their ids.
 * An artifact is a child of its task, and its key begins with the task's slot. Further fields are
 * in `extras`, by slot.
 */
#include "call_table.h"
#include "task_state.h"
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TASK_ID 1024

/* The two kinds of keys in one table, in place of a call's two directions. */
enum { TASK_KEY, ARTIFACT_KEY = CALL_OUT };

/* The bits of a verdict that answer a cancel. */
enum { CANCEL_ANSWERS = ABP_TASK_ACK | ABP_TASK_WAIT | ABP_TASK_NAK };

/* Other workers on a task: another process of the agent (TAKEN), or another agent (HEARD). */
enum { TAKEN = 1, HEARD };

/* The reader's result: still to come (WAITS), not expected any more (LEFT), or received. */
enum { WAITS, LEFT, ANSWERED };

struct abp_tasks {
  abp_tasks_config config;
  struct call_table table; /* `memory` has the finished tasks, oldest first */
  struct extra {
    uint32_t run;         /* of a task: its latest run */
    uint32_t place;       /* of an artifact: its index; of a task: the number of artifacts */
    uint32_t active;      /* runs that have not returned */
    uint32_t uncommitted; /* states that are being stored */
    uint8_t current;      /* the protocol's state; published, unless it is uncommitted */
    uint8_t told;
    uint8_t starts;   /* the oldest uncommitted state begins a run */
    uint8_t fate;     /* abp_fate of the work, once an end was decided */
    uint8_t others;   /* TAKEN or HEARD, if others have worked on it */
    uint8_t worked;   /* a run has begun, here or elsewhere */
    uint8_t how;      /* the event of the return of the latest run that has begun */
    uint8_t learnt;   /* `fate` was reported by the worker */
    uint8_t heard;    /* the fate that the reader got last */
    uint8_t reader;   /* WAITS, LEFT, ANSWERED */
    uint8_t prepares; /* that run has to wait, and has not begun its work */
    uint8_t fresh;    /* and no earlier run has worked */
    uint32_t begun;   /* the latest run that has begun */
    uint32_t before;  /* the one before it */
    uint32_t epoch;   /* how often the task was taken, including by this process; 0 without a log */
    uint64_t lease;   /* the end of its lease; 0: none */
  } * extras;
  uint32_t room;         /* of extras */
  struct watch *watches; /* by slot, for watched tasks; NULL without any */
  uint32_t watch_room;
  uint32_t live, dropped;
  uint64_t now;
};

abp_tasks *abp_tasks_new(const abp_tasks_config *config, uint64_t now) {
  abp_tasks *tasks = calloc(1, sizeof *tasks);
  if (!tasks) return NULL;
  tasks->config = *config;
  set_default(&tasks->config.max_tasks, ABP_TASKS_DEFAULT_MAX_TASKS);
  set_default(&tasks->config.max_artifacts, ABP_TASKS_DEFAULT_MAX_ARTIFACTS);
  set_default(&tasks->config.remembered, ABP_TASKS_DEFAULT_REMEMBERED);
  set_default(&tasks->config.remember_ms, ABP_TASKS_DEFAULT_REMEMBER_MS);
  set_default(&tasks->config.max_id, ABP_TASKS_DEFAULT_MAX_ID);
  set_default(&tasks->config.grace_ms, ABP_TASKS_DEFAULT_GRACE_MS);
  set_default(&tasks->config.linger_ms, ABP_TASKS_DEFAULT_LINGER_MS);
  set_default(&tasks->config.retry_ms, ABP_TASKS_DEFAULT_RETRY_MS);
  set_default(&tasks->config.outage_ms, ABP_TASKS_DEFAULT_OUTAGE_MS);
  if (tasks->config.max_id > MAX_TASK_ID) tasks->config.max_id = MAX_TASK_ID;
  tasks->now = now;
  abp_table_init(&tasks->table, config->seed);
  return tasks;
}

void abp_tasks_free(abp_tasks *tasks) {
  if (!tasks) return;
  abp_table_free(&tasks->table);
  free(tasks->extras);
  free(tasks->watches);
  free(tasks);
}

/* --- Slots ------------------------------------------------------------------------------------ */

static uint32_t slot_of(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = task & ((1u << SLOT_BITS) - 1);
  if (slot >= tasks->table.slab_count * SLAB_CALLS) return NO_CALL;
  const struct call *call = table_call(&tasks->table, slot);
  const int is_task = (call->flags & (CALL_INDEXED | ARTIFACT_KEY)) == CALL_INDEXED;
  return is_task && call->generation == task >> SLOT_BITS ? slot : NO_CALL;
}

static abp_task handle(const abp_tasks *tasks, uint32_t slot) {
  return (abp_task)table_call(&tasks->table, slot)->generation << SLOT_BITS | slot;
}

static enum abp_task_state state_of(const abp_tasks *tasks, uint32_t slot) {
  return (enum abp_task_state)table_call(&tasks->table, slot)->state;
}

static int id_ok(const abp_tasks *tasks, uint32_t length) {
  return length > 0 && length <= tasks->config.max_id;
}

/* Adds a slot, found by `id`, and its extra; or neither. */
static int add(abp_tasks *tasks, const abp_id *id, uint32_t hash, uint32_t kind, uint32_t *slot) {
  const int status = abp_table_add(&tasks->table, id, hash, kind, slot);
  if (status != ABP_OK) return status;
  if (*slot >= tasks->room) {
    const uint32_t room = tasks->table.slab_count * SLAB_CALLS;
    struct extra *extras = realloc(tasks->extras, room * sizeof *extras);
    if (!extras) {
      abp_table_release(&tasks->table, *slot);
      return ABP_E_MEMORY;
    }
    tasks->extras = extras;
    tasks->room = room;
  }
  tasks->extras[*slot] = (struct extra){0};
  return ABP_OK;
}

static void forget_artifacts(abp_tasks *tasks, uint32_t slot) {
  struct call *task = table_call(&tasks->table, slot);
  while (task->child != NO_CALL) {
    const uint32_t artifact = task->child;
    task->child = table_call(&tasks->table, artifact)->sibling;
    abp_table_release(&tasks->table, artifact);
  }
}

/* The watch of a task, or NULL if it is not watched. */
static struct watch *watch_of(const abp_tasks *tasks, uint32_t slot) {
  return slot < tasks->watch_room && tasks->watches[slot].kind ? &tasks->watches[slot] : NULL;
}

/* The task has ended, and all its runs have returned. */
static void finish(abp_tasks *tasks, uint32_t slot) {
  if (watch_of(tasks, slot))
    return; /* a watched task has a timer of its own, and is not remembered */
  tasks->live--;
  table_call(&tasks->table, slot)->deadline = tasks->now;
  abp_list_push(&tasks->table, &tasks->table.memory, slot);
}

static int finished(const abp_tasks *tasks, uint32_t slot) {
  return abp_task_ended(state_of(tasks, slot)) && !tasks->extras[slot].active &&
         !watch_of(tasks, slot);
}

/* A task that needs input, and that no run works on, waits as long as a finished task is
 * remembered; other tasks run until their lease ends. A client does not end tasks of other agents:
 * these have no runs. */
static void set_patience(abp_tasks *tasks, uint32_t slot) {
  const enum abp_task_state state = state_of(tasks, slot);
  const struct extra *extra = &tasks->extras[slot];
  const int waits = state == ABP_TASK_INPUT_REQUIRED || state == ABP_TASK_AUTH_REQUIRED;
  if (state == TASK_CANCELING || watch_of(tasks, slot)) return; /* another timer runs */
  if (waits && extra->run && !extra->active)
    abp_table_set_timer(&tasks->table, slot, tasks->now + tasks->config.remember_ms);
  else if (extra->lease && !abp_task_ended(state))
    abp_table_set_timer(&tasks->table, slot, extra->lease);
  else
    abp_table_clear_timer(&tasks->table, slot);
}

/* --- Steps ------------------------------------------------------------------------------------ */

/* 1 if a run has begun its work and not returned. */
static int works(const struct extra *extra) { return extra->active > extra->prepares; }

/* The fate of the work, where a row of the table has `fate`. */
static abp_fate fate_of(const struct extra *extra, enum task_event event, abp_fate fate) {
  if (extra->others && !(extra->prepares ? extra->before : extra->begun))
    return extra->others == TAKEN ? ABP_FATE_UNKNOWN : ABP_FATE_NONE;
  const int worked = extra->worked && !(extra->prepares && extra->fresh);
  const int returns = event >= TE_RETURN && event <= TE_UNSURE;
  const int cancels = (event == TE_CANCEL || event == TE_ASK) && fate == ABP_FATE_RUNNING;
  if (!worked && (returns || cancels))
    return (abp_fate)abp_task_step(ABP_TASK_SUBMITTED, TE_CANCEL).fate;
  /* The cancel came while no run was working. */
  if (cancels && !works(extra)) return ABP_FATE_STOPPED;
  /* The latest run has ended; an earlier one, which it replaced, has not. */
  const int stays = fate == ABP_FATE_FAILED || fate == ABP_FATE_UNKNOWN;
  return returns && extra->active && !stays ? ABP_FATE_RUNNING : fate;
}

/* Begins a run. */
static void begin(struct extra *extra) {
  extra->active++;
  extra->fresh = !extra->worked;
  extra->worked = 1;
  extra->before = extra->begun;
  extra->begun = extra->run;
}

static int step(abp_tasks *tasks, uint32_t slot, enum task_event event) {
  struct extra *extra = &tasks->extras[slot];
  const enum abp_task_state before = state_of(tasks, slot);
  struct task_step step = abp_task_step(before, event);
  const int learns = !extra->fate || extra->fate == ABP_FATE_RUNNING;
  if (step.fate && learns) extra->fate = (uint8_t)fate_of(extra, event, (abp_fate)step.fate);
  if (!learns || extra->current == ABP_TASK_COMPLETED) step.owed &= (uint16_t)~ABP_TASK_LEARN;
  if (step.next == (uint8_t)before && !step.owed) return 0;
  if (!extra->active) step.owed &= (uint16_t)~ABP_TASK_ABORT;
  if (step.next <= ABP_TASK_AUTH_REQUIRED)
    extra->current = step.next;
  else if (step.owed & ABP_TASK_TELL)
    extra->current = ABP_TASK_WORKING; /* the published state of a task that is CANCELING */
  else if (step.owed & ABP_TASK_COMMIT)
    extra->current = ABP_TASK_CANCELED;
  if (step.owed & ABP_TASK_START) extra->run++;
  if (tasks->config.commits && before != TASK_COMMITTING && step.owed & ABP_TASK_TELL) {
    extra->starts |= (step.owed & ABP_TASK_START) != 0;
    extra->uncommitted++;
    step = abp_task_defer(step);
  }
  if (step.owed & ABP_TASK_TELL) extra->told = extra->current;
  if (step.owed & ABP_TASK_START) begin(extra);
  table_call(&tasks->table, slot)->state = step.next;
  set_patience(tasks, slot);
  if (!abp_task_ended(before) && abp_task_ended((enum abp_task_state)step.next)) {
    forget_artifacts(tasks, slot);
    if (!extra->active) finish(tasks, slot);
  }
  const int state = step.owed & ABP_TASK_COMMIT ? extra->current : extra->told;
  return step.owed | state << ABP_TASK_STATE_SHIFT;
}

int abp_task_add(abp_tasks *tasks, const char *id, uint32_t length, enum abp_task_state state,
                 abp_task *task) {
  if (!id_ok(tasks, length)) return ABP_E_ID;
  /* Finished tasks are remembered in the order of their ends, so none can be added. */
  if (state > ABP_TASK_AUTH_REQUIRED || abp_task_ended(state)) return ABP_E_STATE;
  if (tasks->live >= tasks->config.max_tasks) return ABP_E_LIMIT;
  const abp_id key = {id, length, 0};
  const uint32_t hash = abp_table_hash_text(&tasks->table, &key, TASK_KEY);
  if (abp_table_find(&tasks->table, &key, hash, TASK_KEY) != NO_CALL) return ABP_E_DUPLICATE;
  uint32_t slot;
  const int status = add(tasks, &key, hash, TASK_KEY, &slot);
  if (status != ABP_OK) return status;
  tasks->live++;
  table_call(&tasks->table, slot)->state = (uint8_t)state;
  struct extra *extra = &tasks->extras[slot];
  extra->current = extra->told = (uint8_t)state;
  if (state == ABP_TASK_UNKNOWN) extra->others = HEARD;
  extra->worked = state != ABP_TASK_SUBMITTED;
  *task = handle(tasks, slot);
  return ABP_OK;
}

abp_task abp_task_find(const abp_tasks *tasks, const char *id, uint32_t length) {
  if (!id_ok(tasks, length)) return 0;
  const abp_id key = {id, length, 0};
  const uint32_t hash = abp_table_hash_text(&tasks->table, &key, TASK_KEY);
  const uint32_t slot = abp_table_find(&tasks->table, &key, hash, TASK_KEY);
  return slot == NO_CALL ? 0 : handle(tasks, slot);
}

int abp_task_start(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  /* A request for input that is not published has no answer yet. */
  return slot == NO_CALL || tasks->extras[slot].uncommitted ? 0 : step(tasks, slot, TE_START);
}

uint32_t abp_task_run(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  return slot == NO_CALL ? 0 : tasks->extras[slot].run;
}

void abp_task_postpone(abp_tasks *tasks, abp_task task, uint32_t run) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot != NO_CALL && tasks->extras[slot].active && tasks->extras[slot].begun == run)
    tasks->extras[slot].prepares = 1;
}

int abp_task_begin(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL) return ABP_E_STATE;
  const enum abp_task_state state = state_of(tasks, slot);
  if (abp_task_ended(state) || state == TASK_CANCELING || state == TASK_COMMITTING)
    return ABP_E_STATE;
  tasks->extras[slot].prepares = 0;
  return ABP_OK;
}

/* The slot of a task, or NO_CALL if this run may not report on it, no longer or not yet; that is
 * counted. */
static uint32_t speaker(abp_tasks *tasks, abp_task task, uint32_t run) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot != NO_CALL) {
    const struct extra *extra = &tasks->extras[slot];
    const int ended = abp_task_ended((enum abp_task_state)extra->current);
    if (extra->run == run && !ended && !extra->starts) return slot;
  }
  tasks->dropped++;
  return NO_CALL;
}

/* Sets the timer after each input of a watch. */
static int rearm(abp_tasks *tasks, uint32_t slot, int verdict) {
  const uint64_t wake = abp_watch_state_wake(watch_of(tasks, slot));
  if (wake)
    abp_table_set_timer(&tasks->table, slot, wake);
  else
    abp_table_clear_timer(&tasks->table, slot);
  return verdict;
}

/* An event of a task arrived, which may be watched. */
static int note_event(abp_tasks *tasks, uint32_t slot, int verdict, int snapshot) {
  struct watch *watch = watch_of(tasks, slot);
  if (!watch) return verdict;
  verdict = abp_watch_state_heard(watch, &tasks->config, tasks->now, verdict, snapshot);
  return rearm(tasks, slot, verdict);
}

int abp_task_says(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_state state,
                  int what) {
  const uint32_t slot = speaker(tasks, task, run);
  if (slot == NO_CALL || state > ABP_TASK_AUTH_REQUIRED) return 0;
  const int silent = state == tasks->extras[slot].current && !(what & ABP_TASK_NEWS);
  const int verdict = silent ? 0 : step(tasks, slot, (enum task_event)((int)TE_SAYS + (int)state));
  return note_event(tasks, slot, verdict, what & ABP_TASK_SNAPSHOT);
}

int abp_task_returns(abp_tasks *tasks, abp_task task, uint32_t run, enum abp_task_return how) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL || !tasks->extras[slot].active || how > ABP_TASK_UNSURE) return 0;
  struct extra *extra = &tasks->extras[slot];
  const enum task_event event = (enum task_event)((int)TE_RETURN + (int)how);
  const enum abp_task_state state = state_of(tasks, slot);
  extra->active--;
  if (run == extra->begun) extra->how = (uint8_t)event;
  if (abp_task_ended(state) || state == TASK_COMMITTING) {
    if (extra->active) return 0;
    /* The latest run decides. */
    const int verdict = step(tasks, slot, (enum task_event)extra->how);
    if (state != TASK_COMMITTING) finish(tasks, slot);
    return verdict;
  }
  if (extra->run == run) {
    const int verdict = step(tasks, slot, event);
    if (verdict) return verdict;
  }
  set_patience(tasks, slot);
  return 0;
}

abp_fate abp_task_fate(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL || tasks->extras[slot].current == ABP_TASK_COMPLETED) return ABP_FATE_NONE;
  return (abp_fate)tasks->extras[slot].fate;
}

static abp_fate became(const abp_tasks *tasks, uint32_t slot) {
  if (slot == NO_CALL) return ABP_FATE_NONE;
  const struct extra *extra = &tasks->extras[slot];
  if (extra->current == ABP_TASK_COMPLETED) return ABP_FATE_FINISHED;
  if (extra->others == HEARD) return ABP_FATE_UNKNOWN;
  return extra->fate ? (abp_fate)extra->fate : ABP_FATE_RUNNING;
}

abp_fate abp_task_became(const abp_tasks *tasks, const char *id, uint32_t length) {
  return became(tasks, slot_of(tasks, abp_task_find(tasks, id, length)));
}

/* --- The reader ----------------------------------------------------------------------------------
 */

/* The slot of a task that has ended, or NO_CALL. */
static uint32_t ended_slot(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  return slot != NO_CALL && abp_task_ended(state_of(tasks, slot)) ? slot : NO_CALL;
}

/* 1 if the final fate may still become known. */
static int is_open(unsigned fate) { return fate == ABP_FATE_RUNNING || fate == ABP_FATE_UNKNOWN; }

void abp_task_learn(abp_tasks *tasks, abp_task task, abp_fate fate) {
  const uint32_t slot = ended_slot(tasks, task);
  if (slot == NO_CALL || fate == ABP_FATE_NONE || fate > ABP_FATE_FAILED) return;
  struct extra *extra = &tasks->extras[slot];
  if (extra->learnt && !is_open(extra->fate)) return;
  extra->fate = (uint8_t)fate;
  extra->learnt = 1;
}

void abp_task_leave(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL) return;
  tasks->extras[slot].reader = LEFT;
  tasks->extras[slot].heard = ABP_FATE_NONE;
}

int abp_task_hear(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = ended_slot(tasks, task);
  if (slot == NO_CALL) return 0;
  struct extra *extra = &tasks->extras[slot];
  extra->reader = ANSWERED;
  extra->heard = (uint8_t)became(tasks, slot);
  return abp_task_doubt(tasks, task) == ABP_FATE_NONE ? ABP_TASK_FORGET : 0;
}

abp_fate abp_task_news(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  /* The effect of a cancel is known within its grace period. */
  if (slot == NO_CALL || state_of(tasks, slot) == TASK_CANCELING) return ABP_FATE_NONE;
  struct extra *extra = &tasks->extras[slot];
  const abp_fate now = became(tasks, slot);
  const int is_new =
      extra->heard ? is_open(extra->heard) && extra->heard != (uint8_t)now : extra->reader == LEFT;
  if (!is_new) return ABP_FATE_NONE;
  extra->heard = (uint8_t)now;
  return now;
}

abp_fate abp_task_doubt(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  const abp_fate now = became(tasks, slot);
  const int finished =
      now == ABP_FATE_FINISHED &&
      (tasks->extras[slot].reader != ANSWERED || tasks->extras[slot].current != ABP_TASK_COMPLETED);
  if (!finished && !is_open(now)) return ABP_FATE_NONE;
  return now;
}

int abp_task_cancel(abp_tasks *tasks, abp_task task, uint32_t grace_ms, int repeatable) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL) return ABP_E_STATE;
  struct extra *extra = &tasks->extras[slot];
  if (extra->lease) {
    extra->lease = 0;
    abp_table_clear_timer(&tasks->table, slot);
  }
  /* If no run works, or the next one has not begun, there is nothing to wait for. */
  const int waits = grace_ms && works(extra) && !extra->starts;
  int verdict = step(tasks, slot, waits ? TE_ASK : TE_CANCEL);
  if (state_of(tasks, slot) == TASK_CANCELING && !table_call(&tasks->table, slot)->timer)
    abp_table_set_timer(&tasks->table, slot, tasks->now + grace_ms);
  if ((verdict & TASK_AGAIN) == TASK_AGAIN) verdict &= repeatable ? ~ABP_TASK_NAK : ~ABP_TASK_ACK;
  return verdict;
}

void abp_task_lease(abp_tasks *tasks, abp_task task, uint32_t ms) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL || state_of(tasks, slot) == TASK_CANCELING) return;
  tasks->extras[slot].lease = ms ? tasks->now + ms : 0;
  set_patience(tasks, slot);
}

int abp_task_subscribe(const abp_tasks *tasks, abp_task task, int lasting) {
  const uint32_t slot = slot_of(tasks, task);
  const enum abp_task_state state = abp_task_state(tasks, task);
  if (slot == NO_CALL || abp_task_ended(state)) return 0;
  const int needs_input = state == ABP_TASK_INPUT_REQUIRED;
  const int settled = needs_input || state == ABP_TASK_AUTH_REQUIRED;
  return ABP_TASK_TELL | (settled ? ABP_TASK_SETTLE : 0) |
         (needs_input && !lasting ? ABP_TASK_END : 0);
}

/* --- Artifacts -------------------------------------------------------------------------------- */

int abp_task_artifact(abp_tasks *tasks, abp_task task, uint32_t run, const char *id,
                      uint32_t length, int append, uint32_t *place) {
  if (!id_ok(tasks, length)) return ABP_E_ID;
  const uint32_t slot = speaker(tasks, task, run);
  if (slot == NO_CALL) return ABP_ARTIFACT_DROP;
  note_event(tasks, slot, 0, 0);
  char text[sizeof slot + MAX_TASK_ID];
  memcpy(text, &slot, sizeof slot);
  memcpy(text + sizeof slot, id, length);
  const abp_id key = {text, (uint32_t)sizeof slot + length, 0};
  const uint32_t hash = abp_table_hash_text(&tasks->table, &key, ARTIFACT_KEY);
  uint32_t artifact = abp_table_find(&tasks->table, &key, hash, ARTIFACT_KEY);
  if (artifact != NO_CALL) {
    *place = tasks->extras[artifact].place;
    return append ? ABP_ARTIFACT_APPEND : ABP_ARTIFACT_REPLACE;
  }
  if (tasks->extras[slot].place >= tasks->config.max_artifacts) return ABP_E_LIMIT;
  const int status = add(tasks, &key, hash, ARTIFACT_KEY, &artifact);
  if (status != ABP_OK) return status;
  abp_table_adopt(&tasks->table, slot, artifact);
  *place = tasks->extras[artifact].place = tasks->extras[slot].place++;
  return ABP_ARTIFACT_CREATE;
}

/* --- Watching --------------------------------------------------------------------------------- */

int abp_watch(abp_tasks *tasks, abp_task task, enum abp_watch_kind kind) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL || state_of(tasks, slot) != ABP_TASK_UNKNOWN || watch_of(tasks, slot))
    return 0;
  if (slot >= tasks->watch_room) {
    struct watch *watches = realloc(tasks->watches, tasks->room * sizeof *watches);
    if (!watches) return ABP_E_MEMORY;
    const uint32_t more = tasks->room - tasks->watch_room;
    memset(watches + tasks->watch_room, 0, more * sizeof *watches);
    tasks->watches = watches;
    tasks->watch_room = tasks->room;
  }
  return abp_watch_state_begin(&tasks->watches[slot], kind);
}

/* The slot of a watched task, or NO_CALL. */
static uint32_t watch_slot(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  return slot != NO_CALL && watch_of(tasks, slot) ? slot : NO_CALL;
}

int abp_watch_named(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = watch_slot(tasks, task);
  return slot == NO_CALL ? 0 : rearm(tasks, slot, abp_watch_state_named(watch_of(tasks, slot)));
}

int abp_watch_replied(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = watch_slot(tasks, task);
  return slot == NO_CALL ? 0 : note_event(tasks, slot, ABP_TASK_TELL | ABP_TASK_END, 0);
}

int abp_watch_ended(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms) {
  const uint32_t slot = watch_slot(tasks, task);
  if (slot == NO_CALL) return 0;
  struct watch *watch = watch_of(tasks, slot);
  return rearm(tasks, slot,
               abp_watch_state_ended(watch, &tasks->config, tasks->now, how, delay_ms));
}

int abp_watch_asked(abp_tasks *tasks, abp_task task, enum abp_watch_end how, uint32_t delay_ms) {
  const uint32_t slot = watch_slot(tasks, task);
  if (slot == NO_CALL) return 0;
  const enum abp_task_state state = state_of(tasks, slot);
  const int settled = state == ABP_TASK_INPUT_REQUIRED || state == ABP_TASK_AUTH_REQUIRED;
  struct watch *watch = watch_of(tasks, slot);
  return rearm(tasks, slot,
               abp_watch_state_asked(watch, &tasks->config, tasks->now, how, delay_ms, settled,
                                     abp_task_ended(state)));
}

int abp_watch_cancel(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = watch_slot(tasks, task);
  if (slot == NO_CALL) return 0;
  return rearm(tasks, slot,
               abp_watch_state_cancel(watch_of(tasks, slot), &tasks->config, tasks->now));
}

int abp_watch_cancel_answered(abp_tasks *tasks, abp_task task, enum abp_watch_end how,
                              uint32_t delay_ms, enum abp_task_state state) {
  const uint32_t slot = watch_slot(tasks, task);
  if (slot == NO_CALL) return 0;
  return rearm(tasks, slot,
               abp_watch_state_cancel_answered(watch_of(tasks, slot), &tasks->config, tasks->now,
                                               how, delay_ms, abp_task_ended(state)));
}

int abp_watch_leave(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = watch_slot(tasks, task);
  return slot == NO_CALL ? 0 : rearm(tasks, slot, abp_watch_state_leave(watch_of(tasks, slot)));
}

int abp_watch_stop(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = watch_slot(tasks, task);
  return slot == NO_CALL ? 0 : rearm(tasks, slot, abp_watch_state_stop(watch_of(tasks, slot)));
}

/* --- Time and memory -------------------------------------------------------------------------- */

static int forget(abp_tasks *tasks, uint32_t slot) {
  if (finished(tasks, slot))
    abp_list_remove(&tasks->table, &tasks->table.memory, slot);
  else
    tasks->live--;
  if (watch_of(tasks, slot)) tasks->watches[slot].kind = 0;
  forget_artifacts(tasks, slot);
  abp_table_release(&tasks->table, slot);
  return ABP_TASK_FORGET;
}

void abp_task_forget(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot != NO_CALL) forget(tasks, slot);
}

void abp_tasks_advance(abp_tasks *tasks, uint64_t now) {
  if (now > tasks->now) tasks->now = now;
}

/* When the oldest finished task is forgotten. */
static uint64_t forgets_at(const abp_tasks *tasks) {
  return table_call(&tasks->table, tasks->table.memory.head)->deadline + tasks->config.remember_ms;
}

int abp_tasks_next(abp_tasks *tasks, abp_task *task) {
  struct call_table *table = &tasks->table;
  while (table->timer_count && table_call(table, table->timers[0])->deadline <= tasks->now) {
    const uint32_t slot = table->timers[0];
    *task = handle(tasks, slot);
    struct watch *watch = watch_of(tasks, slot);
    const uint64_t lease = tasks->extras[slot].lease;
    int verdict;
    if (watch)
      verdict = rearm(tasks, slot, abp_watch_state_due(watch, tasks->now));
    else if (lease && lease <= tasks->now) { /* no request waits, so none is answered */
      abp_task_leave(tasks, *task);
      verdict = abp_task_cancel(tasks, *task, tasks->config.grace_ms, 1) & ~CANCEL_ANSWERS;
    } else
      verdict = step(tasks, slot, TE_GRACE);
    if (verdict) return verdict;
  }
  const struct call_list *memory = &table->memory;
  if (memory->count > tasks->config.remembered ||
      (memory->count && forgets_at(tasks) <= tasks->now)) {
    *task = handle(tasks, memory->head);
    return forget(tasks, memory->head);
  }
  return 0;
}

uint64_t abp_tasks_wake(const abp_tasks *tasks) {
  const struct call_table *table = &tasks->table;
  uint64_t wake = table->memory.count ? forgets_at(tasks) : 0;
  if (table->timer_count) {
    const uint64_t grace = table_call(table, table->timers[0])->deadline;
    if (!wake || grace < wake) wake = grace;
  }
  return wake;
}

/* --- A log outside ---------------------------------------------------------------------------- */

void abp_task_own(abp_tasks *tasks, abp_task task, uint32_t epoch, int others) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL) return;
  tasks->extras[slot].epoch = epoch;
  if (others) tasks->extras[slot].others = TAKEN;
}

int abp_task_read(abp_tasks *tasks, abp_task task, uint32_t seen, uint32_t epoch, int what) {
  const uint32_t slot = slot_of(tasks, task);
  const int taken = epoch > seen ? ABP_TASK_TAKEN : 0;
  if (slot == NO_CALL || what & ABP_RECORD_OWN) return taken;
  const int lost = epoch >= tasks->extras[slot].epoch || what & ABP_RECORD_OUTCOME;
  return lost ? taken | abp_task_lost(tasks, task) : taken;
}

int abp_task_committed(abp_tasks *tasks, abp_task task, enum abp_task_state state) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL || state > ABP_TASK_AUTH_REQUIRED) return ABP_E_STATE;
  struct extra *extra = &tasks->extras[slot];
  const int ends = state_of(tasks, slot) == TASK_COMMITTING;
  const int last = ends && extra->uncommitted == 1;
  if (!extra->uncommitted || last != abp_task_ended(state)) return ABP_E_STATE;
  if (last && extra->current != (uint8_t)state) return ABP_E_STATE;
  extra->uncommitted--;
  const enum task_event event = (enum task_event)((int)TE_SAYS + (int)state);
  if (last) return step(tasks, slot, event);
  /* The obligations of publishing a state are those of a client that learns of it. */
  int verdict = abp_task_step(ABP_TASK_UNKNOWN, event).owed;
  if (ends || state_of(tasks, slot) == TASK_CANCELING) verdict &= ABP_TASK_TELL; /* cancels wait */
  if (extra->starts && !ends) {
    begin(extra);
    verdict |= ABP_TASK_START;
  }
  extra->starts = 0;
  extra->told = (uint8_t)state;
  return verdict | (int)state << ABP_TASK_STATE_SHIFT;
}

int abp_task_wish(abp_tasks *tasks, abp_task task, uint32_t grace_ms) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot != NO_CALL && !grace_ms && state_of(tasks, slot) == TASK_COMMITTING)
    return step(tasks, slot, TE_WISH);
  return abp_task_cancel(tasks, task, grace_ms, 1);
}

int abp_task_lost(abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  if (slot == NO_CALL) return 0;
  const int runs = tasks->extras[slot].active ? ABP_TASK_ABORT : 0;
  return runs | forget(tasks, slot);
}

/* --- Looking ---------------------------------------------------------------------------------- */

enum abp_task_state abp_task_state(const abp_tasks *tasks, abp_task task) {
  const uint32_t slot = slot_of(tasks, task);
  return slot == NO_CALL ? ABP_TASK_UNKNOWN : (enum abp_task_state)tasks->extras[slot].told;
}

uint32_t abp_tasks_count(const abp_tasks *tasks, enum abp_task_count count) {
  switch (count) {
  case ABP_TASKS_LIVE: return tasks->live;
  case ABP_TASKS_FINISHED: return tasks->table.memory.count;
  default: return tasks->dropped;
  }
}
