/*
 * Every history of a client that watches a task, up to a length, as a client that does what it is
 * told can have it. What must hold in each: a message is not sent twice where that does harm, a
 * cancel is sent once and not before the task has a name, whatever ends has a reason that fits, and
 * from everywhere a cancel ends the watch, although the agent is never heard of again.
 *
 *   explore_watches [length]
 */
#include "abp_tasks.h"

#include <stdio.h>
#include <stdlib.h>

enum { TICK = 10, MAX_MOVES = 16, MANY_TICKS = 200 };

enum kind { HEAR, REPLY, END, ANSWER, CANCEL, CANCELLED, LEAVE, TIME, KINDS };

struct move {
  uint8_t kind, arg;
};

static const enum abp_task_state STATES[] = {ABP_TASK_WORKING, ABP_TASK_INPUT_REQUIRED,
                                             ABP_TASK_COMPLETED};
enum { HOWS = 4, OTHERS = 3 };

/* States for what is heard; ways to end, with and without a delay; an answer's states, and its
 * other ways to end. */
static const uint8_t CHOICES[KINDS] = {
    [HEAR] = 3,           [REPLY] = 1,
    [END] = HOWS * 2 + 1, [ANSWER] = 3 + OTHERS,
    [CANCEL] = 1,         [CANCELLED] = HOWS + 1,
    [LEAVE] = 1,          [TIME] = 1,
};

static struct {
  abp_tasks *tasks;
  abp_task task;
  uint64_t now;
  int kind;
  enum abp_watch_step doing; /* OPEN while it reads */
  int closing, named, arrived, ended, parked, left;
  int cancel;  /* wanted */
  int sent;    /* a cancel is under way */
  int settled; /* and was answered */
  const char *violation;
} world;

static void require(int fine, const char *what) {
  if (!fine && !world.violation) world.violation = what;
}

static int over(void) { return world.doing >= ABP_WATCH_DONE; }

/* Does what a verdict says. `step_ended`: it answers the end of a step. */
static void act(int verdict, int step_ended) {
  require(verdict >= 0, "no input fails");
  const int next = verdict >> ABP_WATCH_STEP_SHIFT & ABP_WATCH_STEPS;
  if (verdict & ABP_WATCH_CANCEL) {
    require(world.cancel && world.named,
            "a cancel that is wanted is sent when the task has a name");
    require(!world.sent && !world.settled, "a cancel is sent again only if it did not arrive");
    world.sent = 1;
  }
  if (verdict & ABP_WATCH_CLOSE) {
    require(world.doing == ABP_WATCH_OPEN || over(), "a stream is closed that is open");
    world.closing = 1;
  }
  require(!step_ended || next, "when a step has ended, the next is said");
  if (!next) return;
  const int ends_now = (world.ended || world.parked) && next == ABP_WATCH_DONE;
  require(step_ended || world.doing == ABP_WATCH_PAUSE || ends_now, "only a pause is interrupted");
  if (next == ABP_WATCH_OPEN)
    require(world.named || !world.arrived || world.kind & ABP_WATCH_REPEATS,
            "a message is sent again only where that does no harm");
  if (next == ABP_WATCH_ASK) require(world.named, "only a task with a name is asked for");
  if (next == ABP_WATCH_PAUSE) require(abp_tasks_wake(world.tasks) != 0, "a pause ends by itself");
  if (next == ABP_WATCH_DONE)
    require(world.ended || world.parked || world.left,
            "what is over has ended, or nobody reads it");
  if (next == ABP_WATCH_LATE) require(world.cancel, "only after a cancel it is late");
  if (next == ABP_WATCH_STOPPED)
    require(world.cancel && !world.named && !world.arrived, "what has arrived is not stopped");
  if (next < ABP_WATCH_DONE && world.left)
    require(world.cancel && !world.named, "who has left goes on only for a cancel's sake");
  world.doing = (enum abp_watch_step)next;
  world.closing = 0;
}

/* A state is heard of in a stream, or asked for. */
static int hear(enum abp_task_state state, int snapshot) {
  const int what = ABP_TASK_NEWS | (snapshot ? ABP_TASK_SNAPSHOT : 0);
  const int verdict = abp_task_says(world.tasks, world.task, 0, state, what);
  if (verdict & ABP_TASK_END && state == ABP_TASK_COMPLETED) world.ended = 1;
  world.parked = state == ABP_TASK_INPUT_REQUIRED;
  return verdict;
}

static void name(void) {
  if (world.named) return;
  world.named = 1;
  act(abp_watch_named(world.tasks, world.task), 0);
}

static void pass(uint64_t ms) {
  abp_task task;
  abp_tasks_advance(world.tasks, world.now += ms);
  for (int i = 0, verdict; i < 8 && (verdict = abp_tasks_next(world.tasks, &task)); i++)
    act(verdict, 0);
  const uint64_t wake = abp_tasks_wake(world.tasks);
  require(!wake || wake > world.now, "what is due is done");
}

static int can(struct move move) {
  const int reads = world.doing == ABP_WATCH_OPEN && !over();
  switch (move.kind) {
  case HEAR: return reads && !world.closing;
  case REPLY: return reads && !world.closing && !world.named;
  case END:
    if (move.arg / 2 == ABP_WATCH_NUMBERED) return reads && world.named;
    return reads && (!world.closing || move.arg == ABP_WATCH_ENDED * 2);
  case ANSWER: return world.doing == ABP_WATCH_ASK;
  case CANCELLED: return world.sent;
  default: return !over();
  }
}

static void make(struct move move) {
  abp_tasks *tasks = world.tasks;
  const abp_task task = world.task;
  switch (move.kind) {
  case HEAR: {
    const int verdict = hear(STATES[move.arg], 0);
    act(verdict, (verdict & ABP_TASK_END) != 0);
    require(!world.ended || over(), "the end of a task ends its watch");
    if (!over()) name();
    break;
  }
  case REPLY:
    world.ended = 1;
    act(abp_watch_replied(tasks, task), 1);
    require(world.doing == ABP_WATCH_DONE, "a message in place of a task ends the watch");
    break;
  case END: {
    const enum abp_watch_end how = (enum abp_watch_end)(move.arg / 2);
    if (!world.named) world.arrived |= how != ABP_WATCH_UNSENT;
    act(abp_watch_ended(tasks, task, how, move.arg % 2 ? 25 : 0), 1);
    break;
  }
  case ANSWER: {
    const int answered = move.arg < 3;
    if (answered) {
      const int verdict = hear(STATES[move.arg], 1);
      require(!(verdict & ABP_TASK_END) || world.ended || world.parked, "what ends has a reason");
      if (verdict & ABP_TASK_END) world.doing = ABP_WATCH_DONE;
      if (over()) break;
    }
    const int how = answered ? ABP_WATCH_ENDED : move.arg - 2;
    act(abp_watch_asked(tasks, task, (enum abp_watch_end)how, 0), 1);
    break;
  }
  case CANCEL:
    world.cancel = 1;
    act(abp_watch_cancel(tasks, task), 0);
    break;
  case CANCELLED: {
    const int how = move.arg < HOWS ? move.arg : ABP_WATCH_ENDED;
    world.sent = 0;
    world.settled = how == ABP_WATCH_ENDED || how == ABP_WATCH_FAILED;
    const enum abp_task_state state = move.arg == HOWS ? ABP_TASK_CANCELED : ABP_TASK_WORKING;
    act(abp_watch_cancel_answered(tasks, task, (enum abp_watch_end)how, 0, state), 0);
    break;
  }
  case LEAVE:
    world.left = 1;
    act(abp_watch_leave(tasks, task), 0);
    break;
  default: pass(TICK);
  }
}

static void open_world(int kind) {
  const abp_tasks_config config = {
      .seed = {1}, .grace_ms = 20, .linger_ms = 10, .retry_ms = 5, .outage_ms = 60};
  abp_tasks_free(world.tasks);
  world.tasks = abp_tasks_new(&config, 0);
  world.now = 0;
  if (!world.tasks || abp_task_add(world.tasks, "task", 4, ABP_TASK_UNKNOWN, &world.task) != ABP_OK)
    exit(2);
  world.kind = kind;
  world.doing = ABP_WATCH_PAUSE;
  world.closing = world.arrived = world.ended = world.parked = world.left = 0;
  world.cancel = world.sent = world.settled = 0;
  world.named = (kind & ABP_WATCH_TASK) != 0;
  act(abp_watch(world.tasks, world.task, (enum abp_watch_kind)kind), 1);
}

/* The agent is never heard of again, and the reader has had enough. */
static void give_up(void) {
  if (!world.cancel && !over()) make((struct move){CANCEL, 0});
  for (int i = 0; i < MANY_TICKS && !over() && !world.violation; i++) {
    if (world.sent) make((struct move){CANCELLED, ABP_WATCH_BROKEN});
    if (world.closing)
      make((struct move){END, 0});
    else if (world.doing == ABP_WATCH_ASK)
      make((struct move){ANSWER, 3 + ABP_WATCH_BROKEN - 1});
    else
      pass(TICK);
  }
  require(over(), "a cancel ends the watch, whatever the agent does");
  abp_watch_stop(world.tasks, world.task);
  for (int i = 0; i < 4; i++)
    pass(TICK);
  require(!abp_tasks_wake(world.tasks), "when all is over there is nothing to wake for");
  abp_task_forget(world.tasks, world.task);
  require(abp_tasks_count(world.tasks, ABP_TASKS_LIVE) == 0, "what is forgotten is gone");
}

static struct move history[MAX_MOVES];
static int longest = 6;
static uint64_t histories;

static void replay(int kind, int length) {
  open_world(kind);
  for (int i = 0; i < length; i++)
    make(history[i]);
}

static int explore(int kind, int length) {
  for (history[length].kind = 0; history[length].kind < KINDS; history[length].kind++) {
    for (history[length].arg = 0; history[length].arg < CHOICES[history[length].kind];
         history[length].arg++) {
      replay(kind, length);
      if (!can(history[length])) continue;
      make(history[length]);
      histories++;
      const int ends = over() || length + 1 == longest;
      if (ends) give_up();
      if (world.violation) {
        printf("violated: %s, after", world.violation);
        for (int i = 0; i <= length; i++)
          printf(" %d.%d", history[i].kind, history[i].arg);
        printf(" of kind %d\n", kind);
        return 0;
      }
      if (!ends && !explore(kind, length + 1)) return 0;
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  static const int kinds[] = {ABP_WATCH_MESSAGE, ABP_WATCH_MESSAGE | ABP_WATCH_REPEATS,
                              ABP_WATCH_TASK, ABP_WATCH_TASK | ABP_WATCH_LASTING};
  if (argc > 1) longest = atoi(argv[1]);
  if (longest < 1 || longest > MAX_MOVES) return 2;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!explore(kinds[i], 0)) return 1;
  abp_tasks_free(world.tasks);
  printf("%llu histories of at most %d inputs\n", (unsigned long long)histories, longest);
  return 0;
}
