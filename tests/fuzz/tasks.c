/*
 * Every input of the tasks' table, in any order and with any value: a byte says which, the bytes
 * after it with what. What must hold whatever happened: a task that has ended stays as it ended,
 * what is told is the state that is kept, and a verdict has no bit that is nobody's.
 */
#include "abp_tasks.h"
#include "side.h"

#include <string.h>

enum {
  HANDLES = 64,
  OF_A_WATCH = ABP_WATCH_CANCEL | ABP_WATCH_CLOSE | ABP_WATCH_STEPS << ABP_WATCH_STEP_SHIFT
};

static struct {
  abp_task task;
  enum abp_task_state ended; /* as it was told to have, or UNKNOWN */
} known[HANDLES];

static void look(const abp_tasks *tasks, abp_task task, int verdict) {
  if (verdict <= 0) return;
  const enum abp_task_state state = (enum abp_task_state)(verdict >> ABP_TASK_STATE_SHIFT);
  for (int i = 0; i < HANDLES; i++) {
    if (known[i].task != task || !task) continue;
    if (verdict & ABP_TASK_FORGET) {
      REQUIRE(abp_task_state(tasks, task) == ABP_TASK_UNKNOWN);
      known[i].task = 0;
    } else {
      REQUIRE(verdict & ABP_TASK_COMMIT || state == abp_task_state(tasks, task));
      REQUIRE(!known[i].ended || known[i].ended == state);
      REQUIRE(!known[i].ended || !(verdict & ABP_TASK_TELL));
      REQUIRE(!(verdict & ABP_TASK_COMMIT) || !(verdict & (ABP_TASK_TELL | ABP_TASK_START)));
      if (abp_task_ended(state) && !(verdict & ABP_TASK_COMMIT)) known[i].ended = state;
    }
  }
}

static const char *take_id(struct bytes *bytes, uint32_t *length) {
  static const char *const texts[] = {"a", "b", "", "\xff",
                                      "an-id-that-is-longer-than-a-cell-of-the-table-can-hold"};
  const uint8_t choice = take8(bytes);
  if (choice < 5) {
    *length = (uint32_t)strlen(texts[choice]);
    return texts[choice];
  }
  const char *text = (const char *)bytes->at;
  *length = choice & 31u;
  if (*length > bytes->left) *length = (uint32_t)bytes->left;
  bytes->at += *length;
  bytes->left -= *length;
  return text;
}

static abp_task take_task(struct bytes *bytes) {
  const uint8_t choice = take8(bytes);
  return choice < 240 ? known[choice % HANDLES].task : take32(bytes);
}

/* An input about a watch. What it must not do is say that a task has ended which was not told to.
 */
static void watch(abp_tasks *tasks, struct bytes *bytes, abp_task task) {
  const uint8_t op = take8(bytes);
  const enum abp_watch_end how = (enum abp_watch_end)(op / 8 % (ABP_WATCH_NUMBERED + 1));
  int verdict = 0;
  switch (op % 8) {
  case 0: verdict = abp_watch(tasks, task, (enum abp_watch_kind)(take8(bytes) & 15)); break;
  case 1: verdict = abp_watch_named(tasks, task); break;
  case 2: verdict = abp_watch_replied(tasks, task); break;
  case 3: verdict = abp_watch_ended(tasks, task, how, take8(bytes)); break;
  case 4: verdict = abp_watch_asked(tasks, task, how, take32(bytes)); break;
  case 5: verdict = abp_watch_cancel(tasks, task); break;
  case 6:
    verdict = abp_watch_cancel_answered(tasks, task, how, take32(bytes),
                                        (enum abp_task_state)take8(bytes));
    break;
  default: verdict = op & 64 ? abp_watch_leave(tasks, task) : abp_watch_stop(tasks, task);
  }
  REQUIRE(verdict >= 0 && !(verdict & ~(ABP_TASK_TELL | ABP_TASK_END | OF_A_WATCH)));
}

static void step(abp_tasks *tasks, struct bytes *bytes, uint64_t *now) {
  const uint8_t op = take8(bytes);
  uint32_t length, place = 0, run;
  abp_task task;
  const char *id;
  int status;
  switch (op % 10) {
  case 0:
    id = take_id(bytes, &length);
    status = abp_task_add(tasks, id, length, (enum abp_task_state)(op >> 7), &task);
    if (status != ABP_OK) return;
    REQUIRE(abp_task_find(tasks, id, length) == task);
    for (int i = 0; i < HANDLES; i++) {
      if (known[i].task) continue;
      known[i].task = task;
      known[i].ended = ABP_TASK_UNKNOWN;
      return;
    }
    abp_task_forget(tasks, task);
    return;
  case 1:
    task = take_task(bytes);
    look(tasks, task, abp_task_start(tasks, task));
    return;
  case 2:
    task = take_task(bytes);
    run = op & 64 ? take8(bytes) : abp_task_run(tasks, task);
    look(tasks, task, abp_task_says(tasks, task, run, (enum abp_task_state)take8(bytes), op & 128));
    return;
  case 3:
    task = take_task(bytes);
    run = op & 64 ? take8(bytes) : abp_task_run(tasks, task);
    look(tasks, task, abp_task_returns(tasks, task, run, (enum abp_task_return)(op >> 6)));
    return;
  case 4:
    task = take_task(bytes);
    status = abp_task_cancel(tasks, task, op & 64 ? take8(bytes) : 0, op & 128);
    REQUIRE(status != 0 || abp_task_state(tasks, task) == ABP_TASK_UNKNOWN);
    look(tasks, task, status);
    return;
  case 5:
  case 6:
    task = take_task(bytes);
    run = op & 64 ? take8(bytes) : abp_task_run(tasks, task);
    id = take_id(bytes, &length);
    status = abp_task_artifact(tasks, task, run, id, length, op & 128, &place);
    REQUIRE(status <= 0 || place < 16);
    REQUIRE(status <= 0 || !abp_task_ended(abp_task_state(tasks, task)));
    return;
  case 7:
    abp_tasks_advance(tasks, *now += take8(bytes));
    while ((status = abp_tasks_next(tasks, &task)))
      if (!(status & OF_A_WATCH))
        look(tasks, task, status); /* a watch's says nothing of its task */
    REQUIRE(!abp_tasks_wake(tasks) || abp_tasks_wake(tasks) > *now);
    REQUIRE(abp_tasks_count(tasks, ABP_TASKS_FINISHED) <= 4);
    return;
  case 8:
    task = take_task(bytes);
    if (op & 64) {
      status = op & 128 ? abp_task_wish(tasks, task, take8(bytes) & 7)
                        : abp_task_committed(tasks, task, (enum abp_task_state)take8(bytes));
      look(tasks, task, status);
      return;
    }
    look(tasks, task, abp_task_lost(tasks, task));
    return;
  default:
    task = take_task(bytes);
    if (op & 128) {
      watch(tasks, bytes, task);
      return;
    }
    abp_task_forget(tasks, task);
    for (int i = 0; i < HANDLES; i++)
      if (known[i].task == task) known[i].task = 0;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct bytes bytes = {data, size};
  const abp_tasks_config config = {.max_tasks = 32,
                                   .max_artifacts = 16,
                                   .remembered = 4,
                                   .remember_ms = 100,
                                   .commits = take8(&bytes) & 1};
  abp_tasks *tasks = abp_tasks_new(&config, 0);
  uint64_t now = 0;
  memset(known, 0, sizeof known);
  while (tasks && bytes.left)
    step(tasks, &bytes, &now);
  REQUIRE(!tasks || abp_tasks_count(tasks, ABP_TASKS_LIVE) <= 32);
  abp_tasks_free(tasks);
  return 0;
}
