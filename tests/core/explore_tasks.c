/*
 * Every history of a task, up to a length: each input at each point, against a model that says in
 * rules what tasks.c says in a table. A history goes no further through an input that changed
 * nothing, unless it told something.
 *
 * One task; it may be an agent's, one that a client hears of, or an agent's whose states are stored
 * before they are told, which may have been another process's before. Grace periods are 10, time
 * passes in steps of 10, finished tasks are remembered for 20.
 *
 *   explore_tasks [length]
 */
#include "abp_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE = 10, TICK = 10, REMEMBER = 20, RUNS = 7, ARTIFACTS = 2, MAX_MOVES = 16 };

enum kind {
  START,
  SAY,
  SAY_LATE,
  RETURN,
  THROW,
  STOP,   /* with an AbortError */
  UNSURE, /* of what became of its work, with another error */
  CANCEL,
  ASK,
  TIME,
  ADD,
  ADD_LATE,
  STORED,
  STORED_OTHER, /* what was not to be stored next */
  WISH,
  LOSE,
  KINDS
};

struct move {
  uint8_t kind, arg;
};

/* What there is to choose from for each kind: states with and without news, runs, and so on. */
static const uint8_t CHOICES[KINDS] = {
    [START] = 1,    [SAY] = 18,          [SAY_LATE] = 9,  [RETURN] = RUNS,
    [THROW] = RUNS, [STOP] = RUNS,       [UNSURE] = RUNS, [CANCEL] = 2,
    [ASK] = 2,      [TIME] = 1,          [ADD] = 4,       [ADD_LATE] = 1,
    [STORED] = 1,   [STORED_OTHER] = 10, [WISH] = 2,      [LOSE] = 1,
};

/* Who else has worked on the task. */
enum others { NOBODY, TAKEN, HEARD, PARKED };

static struct model {
  uint64_t now, gives_up, ended_at;
  enum abp_task_state said, told; /* what is stored first was said, and is not told yet */
  int commits, starts, storing[MAX_MOVES], unstored;
  int gone, canceling, run, active, dropped, artifacts;
  int running[RUNS]; /* by number: has not returned */
  int place[ARTIFACTS];
  int others;     /* enum others */
  int latest;     /* the latest run that has begun */
  int left[RUNS]; /* by number: the move by which it returned */
  int became;     /* abp_fate: what the task's end says of its work */
} model;
_Static_assert(sizeof model == 3 * sizeof(uint64_t) + (16 + MAX_MOVES + 2 * RUNS) * sizeof(int),
               "no padding");

static struct {
  abp_tasks *tasks;
  abp_task task;
  int waiting; /* cancels that have no answer yet */
  const char *violation;
} world;

static void require(int fine, const char *what) {
  if (!fine && !world.violation) world.violation = what;
}

/* --- The rules -------------------------------------------------------------------------------- */

static int is_end(enum abp_task_state state) {
  switch (state) {
  case ABP_TASK_COMPLETED:
  case ABP_TASK_FAILED:
  case ABP_TASK_CANCELED:
  case ABP_TASK_REJECTED: return 1;
  default: return 0;
  }
}

static int needs_somebody(enum abp_task_state state) {
  return state == ABP_TASK_INPUT_REQUIRED || state == ABP_TASK_AUTH_REQUIRED;
}

/* Its end is said, and it is not stored. */
static int committing(void) { return is_end(model.said) && model.unstored; }

/* It waits for an answer, and nobody works on it. */
static int parked(void) {
  return needs_somebody(model.said) && !model.gone && !model.canceling && model.run &&
         !model.active;
}

static void note_end(void) {
  if (is_end(model.said) && !committing() && !model.active) model.ended_at = model.now;
}

/* An answer is awaited from now on. */
static void note_question(void) {
  if (parked()) model.gives_up = model.now + REMEMBER;
}

static int bits_of(enum abp_task_state state) {
  int bits = ABP_TASK_TELL;
  if (is_end(state) || needs_somebody(state)) bits |= ABP_TASK_SETTLE;
  if (is_end(state)) bits |= ABP_TASK_END;
  if (state == ABP_TASK_INPUT_REQUIRED) bits |= ABP_TASK_PARK;
  return bits;
}

/* What became of the work of a task that somebody else ends. */
static enum abp_fate cut_off(void) {
  if (model.active) return ABP_FATE_RUNNING;
  return model.latest || model.others == PARKED ? ABP_FATE_STOPPED : ABP_FATE_UNSTARTED;
}

/* What the latest run that has begun did. */
static enum abp_fate left_by(int run) {
  switch (model.left[run]) {
  case RETURN: return ABP_FATE_FINISHED;
  case STOP: return ABP_FATE_STOPPED;
  case UNSURE: return ABP_FATE_UNKNOWN;
  default: return ABP_FATE_FAILED;
  }
}

/* The task is said to be in this state: that is told, or stored first. If that is its end,
 * `became` is what that says of its work. */
static int tell(enum abp_task_state state, enum abp_fate became) {
  model.said = state;
  if (is_end(state)) {
    model.canceling = 0;
    model.became = became;
    if (!model.latest && (model.others == TAKEN || model.others == HEARD))
      model.became = model.others == TAKEN ? ABP_FATE_UNKNOWN : ABP_FATE_NONE;
  }
  if (model.commits)
    model.storing[model.unstored++] = (int)state;
  else
    model.told = state;
  note_end();
  note_question();
  return model.commits ? ABP_TASK_COMMIT : bits_of(state);
}

static int expect_stored(enum abp_task_state state) {
  if (model.gone || !model.unstored || model.storing[0] != (int)state) return ABP_E_STATE;
  model.unstored--;
  memmove(model.storing, model.storing + 1, (MAX_MOVES - 1) * sizeof *model.storing);
  model.storing[MAX_MOVES - 1] = 0;
  model.told = state;
  int bits = bits_of(state);
  /* Who waits for a cancel waits for the end. */
  if (!is_end(state) && (model.canceling || is_end(model.said))) bits = ABP_TASK_TELL;
  if (model.starts && !is_end(model.said)) {
    bits |= ABP_TASK_START;
    model.running[model.latest = model.run] = 1;
    model.active++;
  }
  model.starts = 0;
  note_end();
  return bits;
}

static int expect_lost(void) {
  if (model.gone) return 0;
  model.gone = 1;
  model.canceling = model.unstored = 0;
  memset(model.storing, 0, sizeof model.storing);
  return ABP_TASK_FORGET | (model.active ? ABP_TASK_ABORT : 0);
}

static int expect_says(int run, enum abp_task_state state, int news) {
  if (model.gone || run != model.run || is_end(model.said) || model.starts) {
    model.dropped++;
    return 0;
  }
  if (state == ABP_TASK_UNKNOWN || (state == model.said && !news)) return 0;
  if (state == ABP_TASK_SUBMITTED &&
      (model.canceling || (model.said != ABP_TASK_UNKNOWN && model.said != state)))
    return 0;
  const int stops = model.canceling && needs_somebody(state);
  const enum abp_fate said = state == ABP_TASK_COMPLETED           ? ABP_FATE_FINISHED
                             : stops || state == ABP_TASK_CANCELED ? ABP_FATE_STOPPED
                                                                   : ABP_FATE_FAILED;
  return tell(stops ? ABP_TASK_CANCELED : state, said);
}

static int expect_start(void) {
  const int ready = model.said == ABP_TASK_SUBMITTED || needs_somebody(model.said);
  if (model.gone || model.canceling || !ready || model.unstored || model.run == RUNS - 1) return 0;
  int bits = tell(ABP_TASK_WORKING, ABP_FATE_NONE);
  if (model.active) bits |= ABP_TASK_ABORT;
  model.run++;
  if (model.commits) {
    model.starts = 1;
    return bits;
  }
  model.running[model.latest = model.run] = 1;
  model.active++;
  return bits | ABP_TASK_START;
}

static int expect_returns(int run, enum kind how) {
  model.running[run] = 0;
  model.left[run] = (int)how;
  if (model.gone) return 0;
  model.active--;
  note_end();
  note_question();
  if (is_end(model.said)) {
    if (model.active || model.became != ABP_FATE_RUNNING) return 0;
    model.became = left_by(model.latest);
    return model.said == ABP_TASK_CANCELED ? ABP_TASK_LEARN : 0;
  }
  if (run != model.run) return 0;
  const enum abp_fate ran =
      model.active && how != THROW && how != UNSURE ? ABP_FATE_RUNNING : left_by(run);
  if (model.canceling) return tell(ABP_TASK_CANCELED, ran);
  if (how != RETURN)
    return tell(ABP_TASK_FAILED, how == UNSURE ? ABP_FATE_UNKNOWN : ABP_FATE_FAILED);
  return needs_somebody(model.said) ? 0 : tell(ABP_TASK_COMPLETED, ran);
}

static int expect_cancel(int grace, int repeatable) {
  if (model.gone) return ABP_E_STATE;
  if (committing()) return ABP_TASK_WAIT;
  if (is_end(model.told))
    return model.told == ABP_TASK_CANCELED && repeatable ? ABP_TASK_ACK : ABP_TASK_NAK;
  if (model.told == ABP_TASK_UNKNOWN) return 0;
  const int fires = model.active && !model.canceling ? ABP_TASK_ABORT : 0;
  if (grace && model.active && !model.starts && model.said != ABP_TASK_INPUT_REQUIRED) {
    if (!model.canceling) model.gives_up = model.now + GRACE;
    model.canceling = 1;
    return fires | ABP_TASK_WAIT;
  }
  const int answer = model.commits ? ABP_TASK_WAIT : ABP_TASK_ACK;
  return fires | answer | tell(ABP_TASK_CANCELED, cut_off());
}

static int expect_wish(int grace) {
  if (model.gone || !committing() || grace) return expect_cancel(grace, 1);
  model.storing[model.unstored - 1] = (int)(model.said = ABP_TASK_CANCELED);
  return ABP_TASK_REPLACE | ABP_TASK_COMMIT | ABP_TASK_WAIT;
}

static int expect_artifact(int run, int id, int append) {
  if (model.gone || run != model.run || is_end(model.said) || model.starts) {
    model.dropped++;
    return ABP_ARTIFACT_DROP;
  }
  if (model.place[id] >= 0) return append ? ABP_ARTIFACT_APPEND : ABP_ARTIFACT_REPLACE;
  model.place[id] = model.artifacts++;
  return ABP_ARTIFACT_CREATE;
}

static int expect_due(void) {
  if (model.gone) return 0;
  if ((model.canceling || parked()) && model.gives_up <= model.now)
    return tell(ABP_TASK_CANCELED, cut_off());
  if (is_end(model.told) && !model.active && model.ended_at + REMEMBER <= model.now) {
    model.gone = 1;
    return ABP_TASK_FORGET;
  }
  return 0;
}

/* --- A move, and what is checked after it ------------------------------------------------------
 */

static void check(int verdict, int expected, const char *what) {
  const int tells = expected > 0 && !(expected & ABP_TASK_FORGET);
  const enum abp_task_state which = expected & ABP_TASK_COMMIT ? model.said : model.told;
  const int state = tells ? (int)which << ABP_TASK_STATE_SHIFT : 0;
  const int promises = ABP_TASK_TELL | ABP_TASK_SETTLE | ABP_TASK_END | ABP_TASK_START;
  require(verdict < 0 || !(verdict & ABP_TASK_COMMIT) || !(verdict & promises),
          "what is being stored is not told");
  require(verdict == (expected | state), what);
  if (verdict < 0) return;
  if (verdict & ABP_TASK_WAIT) world.waiting = 1;
  require(!world.waiting || !(verdict & ABP_TASK_SETTLE) || is_end(model.told),
          "a cancel that waits is answered with the truth");
  if (verdict & (ABP_TASK_SETTLE | ABP_TASK_FORGET)) world.waiting = 0;
}

static void check_state(void) {
  require(abp_task_state(world.tasks, world.task) == (model.gone ? ABP_TASK_UNKNOWN : model.told),
          "the state is what was told");
  const int fails = !model.gone && is_end(model.said) && model.said != ABP_TASK_COMPLETED;
  require((int)abp_task_fate(world.tasks, world.task) == (fails ? model.became : ABP_FATE_NONE),
          "what became of the work is what the executor did");
  const int heard = model.others == HEARD && model.said != ABP_TASK_COMPLETED;
  const enum abp_fate known = model.gone                         ? ABP_FATE_NONE
                              : heard                            ? ABP_FATE_UNKNOWN
                              : fails                            ? model.became
                              : model.said == ABP_TASK_COMPLETED ? ABP_FATE_FINISHED
                                                                 : ABP_FATE_RUNNING;
  require(abp_task_became(world.tasks, "task", 4) == known, "its id says the same");
  require(!world.waiting || (!is_end(model.told) && (model.active || model.unstored)),
          "a cancel that waits has somebody to wait for");
  const int finished = !model.gone && is_end(model.told) && !model.active;
  require(abp_tasks_count(world.tasks, ABP_TASKS_LIVE) == (uint32_t)(!model.gone && !finished),
          "a task lives until it has ended and its executors have returned");
  require(abp_tasks_count(world.tasks, ABP_TASKS_FINISHED) == (uint32_t)finished,
          "a finished task is remembered");
  require(abp_tasks_count(world.tasks, ABP_TASKS_DROPPED) == (uint32_t)model.dropped,
          "what comes too late is counted");
  require(abp_task_find(world.tasks, "task", 4) == (model.gone ? 0 : world.task),
          "a task is found until it is forgotten");
  const uint64_t wake = model.canceling || parked() ? model.gives_up
                        : finished                  ? model.ended_at + REMEMBER
                                                    : 0;
  require(abp_tasks_wake(world.tasks) == wake, "the next time to wake up is known");
}

/* 1 if the move can be made here. */
static int can(struct move move) {
  switch (move.kind) {
  case SAY_LATE:
  case ADD_LATE: return model.run > 1;
  case RETURN:
  case THROW:
  case STOP:
  case UNSURE: return model.running[move.arg];
  case START: return model.run < 3;
  case STORED: return model.unstored;
  case STORED_OTHER: return model.commits && (!model.unstored || move.arg != model.storing[0]);
  case WISH:
  case LOSE: return model.commits;
  default: return 1;
  }
}

/* 1 if the task was told to be in a state. */
static int make(struct move move) {
  abp_tasks *tasks = world.tasks;
  const abp_task task = world.task;
  const uint32_t run = (uint32_t)model.run;
  uint32_t place = 0;
  int verdict = 0;
  switch (move.kind) {
  case START:
    verdict = abp_task_start(tasks, task);
    check(verdict, expect_start(), "a message starts a run where one is awaited");
    break;
  case SAY:
  case SAY_LATE: {
    const enum abp_task_state state = (enum abp_task_state)(move.arg % 9);
    const uint32_t by = move.kind == SAY ? run : run - 1;
    verdict = abp_task_says(tasks, task, by, state, move.arg / 9);
    check(verdict, expect_says((int)by, state, move.arg / 9), "a state is told, or dropped");
    break;
  }
  case RETURN:
  case THROW:
  case STOP:
  case UNSURE: {
    const enum abp_task_return how = move.kind == RETURN  ? ABP_TASK_RETURNED
                                     : move.kind == THROW ? ABP_TASK_THREW
                                     : move.kind == STOP  ? ABP_TASK_STOPPED
                                                          : ABP_TASK_UNSURE;
    verdict = abp_task_returns(tasks, task, move.arg, how);
    check(verdict, expect_returns(move.arg, (enum kind)move.kind), "a return ends what it may end");
    break;
  }
  case CANCEL:
  case ASK: {
    const uint32_t grace = move.kind == ASK ? GRACE : 0;
    verdict = abp_task_cancel(tasks, task, grace, move.arg);
    check(verdict, expect_cancel(grace != 0, move.arg), "a cancel is answered, now or later");
    break;
  }
  case TIME: {
    abp_tasks_advance(tasks, model.now += TICK);
    abp_task due = 0;
    do {
      verdict = abp_tasks_next(tasks, &due);
      check(verdict, expect_due(), "what is due is done");
      require(!verdict || due == task, "it is due to the task");
    } while (verdict && !world.violation);
    break;
  }
  case STORED:
  case STORED_OTHER: {
    const int state = move.kind == STORED ? model.storing[0] : move.arg;
    /* Which of the states that are no end comes next is known outside. */
    if (move.kind == STORED_OTHER && model.unstored > !!committing() && !is_end(state) &&
        state <= ABP_TASK_AUTH_REQUIRED)
      break;
    verdict = abp_task_committed(tasks, task, (enum abp_task_state)state);
    check(verdict, expect_stored((enum abp_task_state)state), "what is stored is told");
    break;
  }
  case WISH: {
    const uint32_t grace = move.arg ? GRACE : 0;
    verdict = abp_task_wish(tasks, task, grace);
    check(verdict, expect_wish(move.arg), "a cancel that came first decides");
    break;
  }
  case LOSE:
    verdict = abp_task_lost(tasks, task);
    check(verdict, expect_lost(), "who has lost a task lets it go");
    break;
  default: {
    const uint32_t by = move.kind == ADD ? run : run - 1;
    const char *id = move.arg & 1 ? "b" : "a";
    verdict = abp_task_artifact(tasks, task, by, id, 1, move.arg >> 1, &place);
    const int expected = expect_artifact((int)by, move.arg & 1, move.arg >> 1);
    require(verdict == expected, "an artifact is created, replaced, appended to, or dropped");
    require(!verdict || (int)place == model.place[move.arg & 1], "an artifact keeps its place");
  }
  }
  check_state();
  return move.kind == SAY && verdict > 0;
}

static void open_world(enum abp_task_state state, int commits, enum others others) {
  const abp_tasks_config config = {
      .seed = {1}, .remember_ms = REMEMBER, .commits = (uint32_t)commits};
  abp_tasks_free(world.tasks);
  world.tasks = abp_tasks_new(&config, 0);
  if (!world.tasks || abp_task_add(world.tasks, "task", 4, state, &world.task) != ABP_OK) exit(2);
  world.waiting = 0;
  if (others == TAKEN) abp_task_own(world.tasks, world.task, 2, 1);
  model = (struct model){
      .said = state, .told = state, .commits = commits, .place = {-1, -1}, .others = (int)others};
}

/* --- The search ------------------------------------------------------------------------------- */

static struct move history[MAX_MOVES];
static int longest = 5;
static uint64_t histories;

static void replay(enum abp_task_state state, int length) {
  open_world(state, model.commits, (enum others)model.others);
  for (int i = 0; i < length; i++)
    make(history[i]);
}

static int explore(enum abp_task_state state, int length) {
  if (length == longest) return 1;
  for (history[length].kind = 0; history[length].kind < KINDS; history[length].kind++) {
    for (history[length].arg = 0; history[length].arg < CHOICES[history[length].kind];
         history[length].arg++) {
      if (!can(history[length])) continue;
      const struct model before = model;
      const int waited = world.waiting;
      const int told = make(history[length]);
      histories++;
      if (world.violation) {
        printf("violated: %s, after", world.violation);
        for (int i = 0; i <= length; i++)
          printf(" %d.%d", history[i].kind, history[i].arg);
        printf(" from %d\n", (int)state);
        return 0;
      }
      struct model same = before;
      same.dropped = model.dropped;
      if (memcmp(&model, &same, sizeof model) == 0 && waited == world.waiting && !told) {
        model.dropped = before.dropped;
        if (abp_tasks_count(world.tasks, ABP_TASKS_DROPPED) == (uint32_t)before.dropped) continue;
      } else if (!explore(state, length + 1)) {
        return 0;
      }
      replay(state, length);
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc > 1) longest = atoi(argv[1]);
  if (longest < 1 || longest > MAX_MOVES) return 2;
  static const struct {
    enum abp_task_state state;
    int commits;
    enum others others;
  } WORLDS[] = {{ABP_TASK_UNKNOWN, 0, HEARD},
                {ABP_TASK_SUBMITTED, 0, NOBODY},
                {ABP_TASK_SUBMITTED, 1, NOBODY},
                {ABP_TASK_SUBMITTED, 1, TAKEN},
                {ABP_TASK_INPUT_REQUIRED, 1, PARKED}};
  for (size_t which = 0; which < sizeof WORLDS / sizeof *WORLDS; which++) {
    const enum abp_task_state state = WORLDS[which].state;
    open_world(state, WORLDS[which].commits, WORLDS[which].others);
    if (!explore(state, 0)) return 1;
  }
  abp_tasks_free(world.tasks);
  printf("%llu histories of at most %d inputs\n", (unsigned long long)histories, longest);
  return 0;
}
