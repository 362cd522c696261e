/*
 * Two processes and one task that outlives them: every order in which things can happen, within
 * bounds. Each process has a table of src/tasks.c that decides; between them there is nothing but
 * the task's log, which takes a record only where its writer expected it to go. Processes pause,
 * die, lose their lease and take over; publishes arrive late, acknowledgements never; clients
 * cancel wherever they like.
 *
 * What became of the work of a task is in its log, too: a word (abp_fate) with its end, and, where
 * that is `running`, another one later. Whatever a word says must be what the executors did, and
 * all processes must come to tell the same one.
 *
 * POINTS are those of the protocol, each with the rules that it consists of. Without an argument
 * all of them hold, and no history may go wrong. With the number of a point each of its rules is
 * left out in turn, and for each the search must find a history that goes wrong, which it shows.
 *
 *   explore_fleet             every rule holds
 *   explore_fleet <point>     what goes wrong without this one
 *
 * Some of the points say more, which two processes and one task cannot show. What a backend and a
 * reader do is in packages/a2a-store/tests/contracts (no gap and no repeat, resuming from a number,
 * pages of lists, objects, retention); that queues are bounded, in outbox.test.js and push.test.js;
 * resolved addresses and encrypted credentials, in push.test.js; namespaces, lost servers and the
 * cluster, in tests/fleet/nats.test.js; draining and whole processes, in
 * tests/fleet/processes.test.js. Here a process knows who owns the task and who is dead. How it
 * finds that out, on a backend that refuses, hangs and is late, is explored in
 * packages/a2a-store/tests/membership.test.js: nothing begins under a lease that is not stored, a
 * duty is over when a record has come after its process was gone, a question is watched by who
 * finds it.
 */
#include "abp_tasks.h"
#include "arena.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum rule {
  ALL_RULES,
  EXPECTED_SEQUENCE,      /* a record is stored where its writer expects it, or not at all */
  LEASE_FROM_SENDING,     /* an owner's lease counts from before its renewal was sent */
  TAKEOVER_IS_A_RECORD,   /* nobody runs a task before the log says that it is theirs */
  COMMIT_THEN_TELL,       /* what is not in the log is told to nobody */
  WISH_IS_A_RECORD,       /* a cancel is in the log; silence of the owner decides nothing */
  END_AFTER_ARTIFACTS,    /* the end of a task comes after all of its artifacts */
  RUN_AGAIN_IF_SAVED,     /* a task whose request was not saved is not run again */
  NOBODY_OWNS_A_QUESTION, /* whoever gets the answer to a question takes the task */
  OBJECT_BEFORE_RECORD,   /* what a record refers to is stored before it */
  READ_FROM_A_NUMBER,     /* readers go on where they were */
  ORPHANS_ARE_SOUGHT,     /* a task whose owner is gone is taken by who notices */
  INDEX_FROM_THE_LOG,     /* lists show what the log has */
  PUSH_THEN_NOTE,         /* that a push was delivered is noted after it was */
  VERSION_IN_RECORDS,     /* a record that a process cannot read keeps its hands off */
  ONE_PROCESS_A_FILE,     /* a log without expected sequences is open once */
  LOOK_AFTER_SILENCE,     /* without an acknowledgement the log says what was stored */
  TAKER_HONOURS_WISH,     /* what was cancelled does not run again */
  LOST_FOR_GOOD,          /* a lease that ran out is not renewed, and nothing begins under it */
  FULL_TERM,              /* a taker waits for a term from when it saw the lease unchanged */
  OTHERS_ARE_UNKNOWN,     /* a taker does not know what became of the work of who was before it */
  LEARNT_IS_STORED,       /* what an executor did after the end of its task is stored, too */
  SILENT_ARE_UNKNOWN,     /* of who is gone before it said so, it is unknown */
  CANCEL_REPLACES_END,    /* the end that a cancel decides is stored in place of the one before */
  END_HAS_THE_LEARNT,     /* such an end says what was learnt: that is not stored once more */
  TAKEN_IS_LOST,          /* who reads that another has taken the task lets go of it */
  SPOKEN_FOR_IS_LOST,     /* so does who reads that another has said what became of the work */
  RULES
};
static const char *const RULE_NAMES[RULES] = {
    "every rule holds",       "expected sequence",    "lease from sending",  "takeover is a record",
    "commit, then tell",      "wish is a record",     "end after artifacts", "run again if saved",
    "nobody owns a question", "object before record", "read from a number",  "orphans are sought",
    "index from the log",     "push, then note",      "version in records",  "one process a file",
    "look after silence",     "taker honours wish",   "lost for good",       "full term",
    "others are unknown",     "learnt is stored",     "silent are unknown",  "cancel replaces end",
    "end has the learnt",     "taken is lost",        "spoken for is lost"};

static const struct point {
  const char *name;
  enum rule rules[4]; /* up to ALL_RULES */
} POINTS[] = {
    {"one log a task is the truth", {EXPECTED_SEQUENCE, INDEX_FROM_THE_LOG}},
    {"the lease is a process's", {LEASE_FROM_SENDING, LOST_FOR_GOOD, FULL_TERM}},
    {"taking over is a record", {TAKEOVER_IS_A_RECORD, OTHERS_ARE_UNKNOWN, TAKEN_IS_LOST}},
    {"decide, commit, tell",
     {COMMIT_THEN_TELL, LOOK_AFTER_SILENCE, LEARNT_IS_STORED, END_HAS_THE_LEARNT}},
    {"a cancel is first a record", {WISH_IS_A_RECORD, TAKER_HONOURS_WISH, CANCEL_REPLACES_END}},
    {"artifacts are written behind", {END_AFTER_ARTIFACTS, READ_FROM_A_NUMBER}},
    {"running again", {RUN_AGAIN_IF_SAVED, TAKER_HONOURS_WISH}},
    {"waiting for input is nobody's", {NOBODY_OWNS_A_QUESTION}},
    {"large artifacts", {OBJECT_BEFORE_RECORD}},
    {"readers", {READ_FROM_A_NUMBER}},
    {"orphans are noticed", {ORPHANS_ARE_SOUGHT, SILENT_ARE_UNKNOWN, SPOKEN_FOR_IS_LOST}},
    {"lists by an index", {INDEX_FROM_THE_LOG}},
    {"pushes in the log's order", {PUSH_THEN_NOTE}},
    {"operation: versions side by side", {VERSION_IN_RECORDS}},
    {"one process a file", {ONE_PROCESS_A_FILE}},
};
enum { POINT_COUNT = sizeof POINTS / sizeof *POINTS, POINT_RULES = 4 };

enum { PROCESSES = 2, LOG = 12, OUT = 6, NET = 3, TERM = 6, VALID = 4, EPOCHS = 8, ARENA = 24576 };

enum record_kind { NO_RECORD, RUN, WISH, ARTIFACT, STATE, OUTCOME };

/* `epoch` is how often the task was taken; who took it with which record is its owner. `word` is
 * what became of the work (abp_fate), in the record that ends the task and in an OUTCOME. */
struct record {
  uint8_t kind, by, id, epoch, state, word;
};

/* What a run has come to. Nobody but the executor knows. */
enum effect { NOT_BEGUN, AT_WORK, RAN_OUT, BROKE_OFF, ASKED };

/* What a history may have, and how often. */
struct budget {
  uint8_t crashes, pauses, cancels, silences, artifacts, questions, answers;
  uint8_t saved, large, pushes, old, file, clocks, takes, grace;
};
static const struct config {
  const char *name;
  struct budget budget;
} CONFIGURATIONS[] = {
    {"a cancel, a crash and silence", {.crashes = 1, .cancels = 1, .silences = 1, .saved = 1}},
    {"two cancels and a pause", {.pauses = 1, .cancels = 2, .saved = 1}},
    {"a cancel that waits for the executor",
     {.crashes = 1, .pauses = 1, .cancels = 1, .saved = 1, .grace = 1}},
    {"an artifact, a pause and silence",
     {.pauses = 1, .silences = 1, .artifacts = 2, .saved = 1, .large = 1}},
    {"a question and a crash",
     {.crashes = 1, .cancels = 1, .questions = 1, .answers = 2, .saved = 1}},
    {"a request that was not saved", {.crashes = 1, .cancels = 1, .pauses = 1}},
    {"pushes and a crash", {.crashes = 1, .saved = 1, .pushes = 1}},
    {"a process of the version before", {.crashes = 1, .cancels = 1, .saved = 1, .old = 1}},
    {"a file", {.crashes = 1, .cancels = 1, .artifacts = 1, .saved = 1, .file = 1}},
    /* By far the largest, so the last: what others show without a rule is shown at once. */
    {"a lease and its clocks", {.pauses = 1, .saved = 1, .clocks = 1, .takes = 1}},
};

struct process {
  uint8_t dead, paused, blind;
  uint8_t owns;  /* a task in the table, from the attempt to take it on */
  uint8_t epoch; /* of what it writes */
  uint8_t runs;  /* an executor, which was not told to stop */
  uint8_t works; /* one that has not returned */
  uint8_t run;   /* its number */
  uint8_t read;  /* records of the log that it knows */
  uint8_t seen_state, seen_epoch, seen_owner, seen_wish;
  uint8_t seen_run; /* and that nobody has said that it is over */
  uint8_t word;     /* what it tells of the work of the task, which has ended */
  uint8_t told, listed, cancel, message;
  uint8_t ids, awaited, outs;
  uint8_t emitted, putting;
  uint8_t left, renewing, age, quiet;
  uint8_t pushing;
  struct record out[OUT]; /* what is to be stored, in order; the first may be under way */
  uint32_t task;
  abp_tasks *tasks;
};

struct publish {
  struct record record;
  uint8_t expected;
};

/* What the search copies and compares. */
static struct state {
  struct budget left;
  struct process p[PROCESSES];
  struct record log[LOG];
  struct publish net[NET];
  uint8_t stored, object, noted, delivered;
  uint8_t effects[EPOCHS]; /* of the run of each owner */
  size_t used;
  _Alignas(16) char arena[ARENA];
} now;

static enum rule without;
static const char *violation;

static int holds(enum rule rule) { return rule != without; }

static void require(int fine, const char *what) {
  if (!fine && !violation) violation = what;
}

static int is_end(int state) { return abp_task_ended((enum abp_task_state)state); }

/* How the task ended, or UNKNOWN. */
static int end_of_log(void) {
  for (int i = 0; i < now.stored; i++)
    if (now.log[i].kind == STATE && is_end(now.log[i].state)) return now.log[i].state;
  return ABP_TASK_UNKNOWN;
}

/* What became of the work, as the log has it: a word that is not `running` stays. */
static int word_of_log(void) {
  int word = ABP_FATE_NONE;
  for (int i = 0; i < now.stored; i++) {
    const struct record *record = &now.log[i];
    const int says = record->kind == OUTCOME || (record->kind == STATE && is_end(record->state));
    if (says && (!word || word == ABP_FATE_RUNNING)) word = record->word;
  }
  return word;
}

/* --- What is told ----------------------------------------------------------------------------- */

static void tell(struct process *p, int state, int word) {
  if (!is_end(state)) return;
  p->told = (uint8_t)state;
  p->word = (uint8_t)word;
  require(end_of_log() == state, "what is told is what the log says");
  if (p->cancel == 1) p->cancel = state == ABP_TASK_CANCELED ? 2 : 3;
}

/* --- Deciding --------------------------------------------------------------------------------- */

static void enqueue(struct process *p, struct record record) {
  record.by = (uint8_t)(p - now.p);
  record.id = ++p->ids;
  if (record.kind != WISH && p->owns) record.epoch = p->epoch;
  require(p->outs < OUT, "there is room for what is to be stored");
  if (p->outs == OUT) return;
  int at = p->outs++;
  if (!holds(END_AFTER_ARTIFACTS) && record.kind == STATE)
    for (; at > 1 && p->out[at - 1].kind == ARTIFACT; at--)
      p->out[at] = p->out[at - 1];
  p->out[at] = record;
}

static void start(struct process *p) {
  for (int i = 0, taken = 0; i < now.stored; i++) {
    if (now.log[i].kind == WISH && !taken)
      require(p->epoch == 1, "what was cancelled does not run again");
    taken |= now.log[i].kind == RUN && now.log[i].epoch == p->epoch;
  }
  require(p->epoch == 1 || now.left.saved, "what runs again has its request");
  p->runs = p->works = 1;
  p->run = (uint8_t)abp_task_run(p->tasks, p->task);
  now.effects[p->epoch] = AT_WORK;
}

/* Of what is to be stored, only records of this kind are. */
static void keep_only(struct process *p, enum record_kind kind) {
  uint8_t kept = 0;
  for (int i = 0; i < p->outs; i++)
    if (p->out[i].kind == kind) p->out[kept++] = p->out[i];
  memset(p->out + kept, 0, (size_t)(OUT - kept) * sizeof *p->out);
  p->outs = kept;
  p->awaited = 0;
}

static void release(struct process *p) {
  keep_only(p, WISH);
  p->owns = p->runs = p->works = p->left = p->putting = 0;
  p->task = 0;
}

/* Of what is to be stored, the end is not any more, nor what was learnt since. */
static void drop_end(struct process *p) {
  uint8_t kept = 0;
  for (int i = 0; i < p->outs; i++) {
    const struct record *one = &p->out[i];
    const int learnt = one->kind == OUTCOME && holds(END_HAS_THE_LEARNT);
    if (!learnt && !is_end(one->state)) p->out[kept++] = *one;
  }
  memset(p->out + kept, 0, (size_t)(OUT - kept) * sizeof *p->out);
  p->outs = kept;
  p->awaited = 0;
}

static void act(struct process *p, int verdict) {
  if (verdict <= 0) return;
  const int state = verdict >> ABP_TASK_STATE_SHIFT;
  if (verdict & ABP_TASK_ABORT) p->runs = 0;
  if (verdict & ABP_TASK_REPLACE && holds(CANCEL_REPLACES_END)) drop_end(p);
  if (verdict & ABP_TASK_COMMIT) {
    const int word = is_end(state) ? (int)abp_task_fate(p->tasks, p->task) : ABP_FATE_NONE;
    if (!holds(COMMIT_THEN_TELL)) tell(p, state, word);
    if (!holds(INDEX_FROM_THE_LOG) && is_end(state))
      require(end_of_log() == state, "a list shows what the log says");
    const uint8_t kind = state == ABP_TASK_WORKING ? RUN : STATE;
    enqueue(p, (struct record){.kind = kind, .state = (uint8_t)state, .word = (uint8_t)word});
  }
  if (verdict & ABP_TASK_LEARN && holds(LEARNT_IS_STORED)) {
    const uint8_t word = (uint8_t)abp_task_fate(p->tasks, p->task);
    enqueue(p, (struct record){.kind = OUTCOME, .word = word});
  }
  if (verdict & ABP_TASK_START) {
    if (now.left.clocks && !p->left && holds(LOST_FOR_GOOD))
      verdict |= abp_task_lost(p->tasks, p->task);
    else
      start(p);
  }
  if (verdict & ABP_TASK_FORGET) release(p);
}

/* The task comes into the table of a process that is to own it. */
static void adopt(struct process *p, int state) {
  p->owns = 1;
  p->epoch = (uint8_t)(p->seen_epoch + 1);
  p->left = VALID;
  require(abp_task_add(p->tasks, "t", 1, (enum abp_task_state)state, &p->task) == ABP_OK,
          "a task is in a table once");
  require(p->epoch < EPOCHS, "there is room for what runs have come to");
  const int others = p->seen_run && holds(OTHERS_ARE_UNKNOWN);
  abp_task_own(p->tasks, p->task, p->epoch, others);
}

/* --- The log ---------------------------------------------------------------------------------- */

/* What a word says is what executors did. It speaks of the latest run that has begun. */
static void check_word(const struct record *record) {
  int latest = 0, taken = 0;
  for (int epoch = 1; epoch < EPOCHS; epoch++)
    if (now.effects[epoch]) latest = epoch;
  for (int i = 0; i < now.stored; i++)
    taken |= now.log[i].kind == RUN && now.log[i].epoch != record->epoch;
  const enum effect effect = (enum effect)now.effects[latest];
  const int own = latest == record->epoch || effect == ASKED;
  switch (record->word) {
  case ABP_FATE_NONE:
    require(record->state == ABP_TASK_COMPLETED, "it is said what became of the work");
    break;
  case ABP_FATE_UNSTARTED: require(!effect, "what never began has not begun"); break;
  case ABP_FATE_STOPPED:
    require(own && (effect == BROKE_OFF || effect == ASKED), "what has stopped was broken off");
    break;
  case ABP_FATE_FINISHED: require(own && effect == RAN_OUT, "what has finished ran out"); break;
  case ABP_FATE_RUNNING: require(own && effect && effect != ASKED, "what runs has begun"); break;
  case ABP_FATE_UNKNOWN: require(taken, "only the work of another owner is unknown"); break;
  default: require(0, "no executor fails here");
  }
}

static void store(const struct publish *publish) {
  const struct record *record = &publish->record;
  if (holds(EXPECTED_SEQUENCE) && !now.left.file && publish->expected != now.stored) return;
  int epoch = 0;
  for (int i = 0; i < now.stored; i++) {
    const struct record *before = &now.log[i];
    if (before->epoch > epoch) epoch = before->epoch;
    require(before->by != record->by || before->id != record->id, "a record is stored once");
    if (before->kind == WISH && record->kind == STATE && is_end(record->state))
      require(record->state == ABP_TASK_CANCELED || now.left.grace,
              "a cancel that was stored first decides");
  }
  if (record->kind == OUTCOME)
    require(word_of_log() == ABP_FATE_RUNNING, "a word that is not `running` stays");
  else
    require(!end_of_log(), "nothing comes after the end");
  require(!record->epoch || record->epoch >= epoch, "who was replaced writes no more");
  if (record->kind == OUTCOME || is_end(record->state)) check_word(record);
  if (record->kind == STATE && record->state == ABP_TASK_COMPLETED) {
    int artifacts = 0;
    for (int i = 0; i < now.stored; i++)
      artifacts += now.log[i].kind == ARTIFACT && now.log[i].by == record->by;
    require(artifacts == now.p[record->by].emitted || now.p[record->by].epoch != record->epoch,
            "the end comes after all artifacts");
  }
  if (now.stored < LOG)
    now.log[now.stored++] = *record;
  else
    require(0, "the log has room");
}

static int asks(const struct process *p) { return p->seen_state == ABP_TASK_INPUT_REQUIRED; }

static int decides(const struct process *p) {
  for (int i = 0; i < p->outs; i++)
    if (p->out[i].kind != WISH) return 1;
  return 0;
}

/* A task that has ended, or asks for something, is nobody's; unless its executor has not returned,
 * or more has been decided. */
static void leave(struct process *p) {
  const int over = is_end(p->seen_state) || (holds(NOBODY_OWNS_A_QUESTION) && asks(p));
  if (p->owns && over && !p->works && !decides(p)) act(p, abp_task_lost(p->tasks, p->task));
}

static void receive(struct process *p, const struct record *record, int own) {
  const int spoken_for = record->kind == OUTCOME && holds(SPOKEN_FOR_IS_LOST);
  const int what = (own ? ABP_RECORD_OWN : 0) | (spoken_for ? ABP_RECORD_OUTCOME : 0);
  const abp_task task = spoken_for || holds(TAKEN_IS_LOST) ? p->task : 0;
  const int verdict = abp_task_read(p->tasks, task, p->seen_epoch, record->epoch, what);
  act(p, verdict);
  if (verdict & ABP_TASK_TAKEN) {
    p->seen_epoch = record->epoch;
    p->seen_owner = record->by;
    p->quiet = 0;
  }
  if (record->kind == STATE || record->kind == RUN) {
    p->seen_state = record->state;
    p->seen_run = record->kind == RUN;
  }
  if (record->kind == ARTIFACT)
    require(!now.left.large || now.object, "what a record refers to is there");
  if (record->kind == WISH) {
    p->seen_wish = 1;
    if (p->owns) act(p, abp_task_wish(p->tasks, p->task, now.left.grace));
  } else if (record->kind == OUTCOME) {
    if (p->word == ABP_FATE_RUNNING) p->word = record->word;
    /* Another has noticed that the owner is gone. */
    if (!own && !p->owns) keep_only(p, WISH);
  } else if (own && p->owns && record->kind != ARTIFACT) {
    act(p, abp_task_committed(p->tasks, p->task, (enum abp_task_state)record->state));
  }
  if (record->kind == STATE && is_end(record->state)) {
    tell(p, record->state, record->word);
    p->message = 0;
    keep_only(p, OUTCOME);
  }
  leave(p);
}

static void read_next(struct process *p) {
  const struct record *record = &now.log[p->read++];
  const int self = (int)(p - now.p);
  if (now.left.old && self == 1 && record->kind == WISH && record->by != self) {
    if (holds(VERSION_IN_RECORDS)) p->blind = 1;
    return;
  }
  const int own = p->outs && record->by == self && record->id == p->out[0].id;
  if (own) {
    memmove(p->out, p->out + 1, (OUT - 1) * sizeof *p->out);
    p->out[OUT - 1] = (struct record){0};
    p->outs--;
    p->awaited = 0;
  }
  receive(p, record, own);
}

/* --- Moves ------------------------------------------------------------------------------------ */

enum move {
  SEND,
  READ,
  ACKNOWLEDGE,
  SILENCE,
  DONE,
  FINISH, /* an executor that was told to stop runs to its end, */
  STOP,   /* or stops */
  EMIT,
  PUT,
  QUESTION,
  ANSWER,
  CANCEL,
  NO_RESPONDERS,
  TAKE,
  NOTICE,
  RENEW,
  RENEWED,
  RENEWAL_ACKNOWLEDGED,
  SKIP,
  PUSH,
  PAUSE,
  WAKE,
  CRASH,
  DELIVER, /* a publish; of either process */
  TICK,
  MOVES
};
static const char *const MOVE_NAMES[MOVES] = {
    "send",   "read",  "acknowledge", "silence",     "done",   "finish",        "stop",
    "emit",   "put",   "question",    "answer",      "cancel", "no-responders", "take",
    "notice", "renew", "renewed",     "renewal-ack", "skip",   "push",          "pause",
    "wake",   "crash", "deliver",     "tick"};

static int on_wire(const struct process *p) {
  for (int i = 0; i < NET; i++)
    if (now.net[i].record.kind && now.net[i].record.by == p - now.p &&
        now.net[i].record.id == p->awaited)
      return 1;
  return 0;
}

static int wire_is_full(void) {
  for (int i = 0; i < NET; i++)
    if (!now.net[i].record.kind) return 0;
  return 1;
}

static int knows_all(const struct process *p) { return p->read == now.stored; }

/* The lease of who owns the task was not renewed for a term. */
static int is_orphan(const struct process *p) {
  if (p->seen_owner == p - now.p) return 1;
  if (!now.left.clocks) return now.p[p->seen_owner].dead || now.p[p->seen_owner].paused;
  return p->quiet >= (holds(FULL_TERM) ? TERM : 1);
}

/* A file is open once; the system closes it for who is dead. */
static int may_open(int at) {
  return !now.left.file || at == 0 || now.p[0].dead || !holds(ONE_PROCESS_A_FILE);
}

static int can(enum move move, int at) {
  const struct process *p = &now.p[at];
  if (move == DELIVER) return 0; /* see below */
  if (move == TICK) return now.left.clocks && at == 0;
  if (move == RENEWED) return p->renewing == 1;
  if (p->dead) return 0;
  if (move == WAKE) return p->paused;
  if (p->paused || !may_open(at)) return 0;
  switch (move) {
  case SEND:
    return p->outs && !p->awaited && knows_all(p) && !wire_is_full() && !p->blind &&
           (!is_end(p->seen_state) || p->out[0].kind == OUTCOME);
  case READ: return !knows_all(p);
  case ACKNOWLEDGE: return p->awaited && !on_wire(p);
  case SILENCE: return p->awaited && now.left.silences;
  case DONE: return p->runs && !p->putting && !now.left.clocks;
  case FINISH:
  case STOP: return p->works && !p->runs && !now.left.clocks;
  case EMIT: return p->runs && !p->putting && now.left.artifacts && p->outs < OUT - 2;
  case PUT: return p->putting;
  case QUESTION: return p->runs && now.left.questions;
  case ANSWER:
    return now.left.answers && asks(p) && knows_all(p) && !p->message && !p->blind &&
           !(p->seen_wish && holds(TAKER_HONOURS_WISH)) &&
           (!p->owns || !holds(NOBODY_OWNS_A_QUESTION));
  case CANCEL:
    return now.left.cancels && p->seen_epoch && !p->cancel && !p->blind && p->outs < OUT - 1;
  case NO_RESPONDERS:
    return !holds(WISH_IS_A_RECORD) && p->cancel == 1 && now.p[!at].paused && !p->owns;
  case TAKE:
    return (!now.left.clocks || now.left.takes) && !p->owns && knows_all(p) && !p->blind &&
           p->seen_epoch && !is_end(p->seen_state) &&
           (asks(p) ? p->seen_wish : holds(ORPHANS_ARE_SOUGHT) && is_orphan(p));
  case NOTICE:
    return p->word == ABP_FATE_RUNNING && !p->owns && !p->outs && knows_all(p) && !p->blind &&
           p->seen_owner != at && is_orphan(p) && holds(SILENT_ARE_UNKNOWN);
  case RENEW:
    return now.left.clocks && p->owns && !p->renewing && (p->left || !holds(LOST_FOR_GOOD));
  case RENEWAL_ACKNOWLEDGED: return p->renewing == 2;
  case SKIP: return !holds(READ_FROM_A_NUMBER) && !knows_all(p) && !p->owns && !p->outs;
  case PUSH: return now.left.pushes && (p->pushing || now.noted < p->read);
  case PAUSE: return now.left.pauses;
  case CRASH: return now.left.crashes;
  default: return 0;
  }
}

static void take(struct process *p) {
  const int asked = asks(p);
  now.left.takes -= now.left.clocks;
  adopt(p, asked ? ABP_TASK_INPUT_REQUIRED : ABP_TASK_SUBMITTED);
  if (p->seen_wish && holds(TAKER_HONOURS_WISH))
    act(p, abp_task_wish(p->tasks, p->task, now.left.grace));
  else if (now.left.saved || !holds(RUN_AGAIN_IF_SAVED))
    act(p, abp_task_start(p->tasks, p->task));
  else
    act(p, abp_task_says(p->tasks, p->task, 0, ABP_TASK_FAILED, 0));
  if (!holds(TAKEOVER_IS_A_RECORD) && p->outs && p->out[p->outs - 1].kind == RUN) {
    p->out[--p->outs] = (struct record){0};
    p->epoch = p->seen_epoch;
    act(p, abp_task_committed(p->tasks, p->task, ABP_TASK_WORKING));
  }
}

/* An executor returns. */
static void end_run(struct process *p, enum effect effect, enum abp_task_return how) {
  p->runs = p->works = 0;
  now.effects[p->epoch] = (uint8_t)effect;
  act(p, abp_task_returns(p->tasks, p->task, p->run, how));
  leave(p);
}

static void pass_time(void) {
  for (int at = 0; at < PROCESSES; at++) {
    struct process *p = &now.p[at];
    if (p->renewing && p->age < VALID) p->age++;
    if (p->left) p->left--;
    if (p->dead || p->paused) continue;
    if (p->owns && !p->left) act(p, abp_task_lost(p->tasks, p->task));
    for (int i = 0; p->runs && i < now.stored; i++)
      require(now.log[i].epoch <= p->epoch, "who runs a task owns it, unless it sleeps");
    if (p->quiet < TERM) p->quiet++;
  }
}

static void make(enum move move, int at) {
  struct process *p = &now.p[at];
  switch (move) {
  case SEND:
    for (int i = 0; i < NET; i++) {
      if (now.net[i].record.kind) continue;
      now.net[i] = (struct publish){p->out[0], p->read};
      p->awaited = p->out[0].id;
      break;
    }
    break;
  case READ: read_next(p); break;
  case ACKNOWLEDGE: p->awaited = 0; break;
  case SILENCE:
    now.left.silences--;
    p->awaited = 0;
    if (holds(LOOK_AFTER_SILENCE)) break;
    /* It believes that what it sent is stored. */
    if (p->out[0].kind == STATE) tell(p, p->out[0].state, p->out[0].word);
    break;
  case DONE:
  case FINISH: end_run(p, RAN_OUT, ABP_TASK_RETURNED); break;
  case STOP: end_run(p, BROKE_OFF, ABP_TASK_STOPPED); break;
  case EMIT: {
    uint32_t place;
    now.left.artifacts--;
    if (now.left.large && !now.object) {
      p->putting = 1;
      if (holds(OBJECT_BEFORE_RECORD)) break;
    }
    if (abp_task_artifact(p->tasks, p->task, p->run, "a", 1, 1, &place) <= 0) break;
    p->emitted++;
    enqueue(p, (struct record){.kind = ARTIFACT});
    break;
  }
  case PUT: {
    uint32_t place;
    now.object = 1;
    p->putting = 0;
    if (!holds(OBJECT_BEFORE_RECORD) || !p->runs) break;
    if (abp_task_artifact(p->tasks, p->task, p->run, "a", 1, 1, &place) <= 0) break;
    p->emitted++;
    enqueue(p, (struct record){.kind = ARTIFACT});
    break;
  }
  case QUESTION:
    now.left.questions--;
    act(p, abp_task_says(p->tasks, p->task, p->run, ABP_TASK_INPUT_REQUIRED, 0));
    end_run(p, ASKED, ABP_TASK_RETURNED);
    break;
  case ANSWER:
    now.left.answers--;
    p->message = 1;
    if (!holds(NOBODY_OWNS_A_QUESTION) && !p->owns) break; /* it waits for the owner */
    if (!p->owns) adopt(p, ABP_TASK_INPUT_REQUIRED);
    act(p, abp_task_start(p->tasks, p->task));
    p->message = 0;
    break;
  case CANCEL:
    now.left.cancels--;
    p->cancel = 1;
    if (p->told)
      tell(p, p->told, p->word);
    else if (holds(WISH_IS_A_RECORD))
      enqueue(p, (struct record){.kind = WISH});
    else if (p->owns)
      act(p, abp_task_cancel(p->tasks, p->task, 0, 1));
    break;
  case NO_RESPONDERS: tell(p, ABP_TASK_CANCELED, ABP_FATE_UNKNOWN); break;
  case TAKE: take(p); break;
  case NOTICE: enqueue(p, (struct record){.kind = OUTCOME, .word = ABP_FATE_UNKNOWN}); break;
  case RENEW:
    p->renewing = 1;
    p->age = 0;
    break;
  case RENEWED:
    p->renewing = 2;
    now.p[!at].quiet = 0;
    break;
  case RENEWAL_ACKNOWLEDGED: {
    const uint8_t before = p->left;
    p->renewing = 0;
    if (!holds(LEASE_FROM_SENDING))
      p->left = VALID;
    else if (VALID - p->age > p->left)
      p->left = (uint8_t)(VALID - p->age);
    if (!p->owns || (!before && holds(LOST_FOR_GOOD))) p->left = 0;
    break;
  }
  case SKIP: p->read = now.stored; break;
  case PUSH:
    if (!p->pushing && holds(PUSH_THEN_NOTE)) {
      now.delivered |= (uint8_t)is_end(now.log[now.noted].state);
      p->pushing = (uint8_t)(now.noted + 1);
    } else if (p->pushing && holds(PUSH_THEN_NOTE)) {
      if (now.noted < p->pushing) now.noted = p->pushing;
      p->pushing = 0;
    } else if (!p->pushing) {
      p->pushing = ++now.noted;
    } else {
      now.delivered |= (uint8_t)is_end(now.log[p->pushing - 1].state);
      p->pushing = 0;
    }
    break;
  case PAUSE:
    now.left.pauses--;
    p->paused = 1;
    break;
  case WAKE: p->paused = 0; break;
  case CRASH:
    now.left.crashes--;
    memset(p, 0, offsetof(struct process, tasks));
    /* What a process writes to a file is there or not. */
    for (int i = 0; now.left.file && i < NET; i++)
      if (now.net[i].record.by == at) now.net[i] = (struct publish){0};
    p->dead = 1;
    break;
  case DELIVER: {
    const struct publish publish = now.net[at];
    now.net[at] = (struct publish){0};
    store(&publish);
    break;
  }
  case TICK: pass_time(); break;
  default: break;
  }
}

/* Nothing but time is left to pass: whoever lives knows how the task ended. */
static void check_rest(void) {
  if (now.p[0].dead && now.p[1].dead) return;
  if (now.left.clocks) return; /* its executors go on */
  for (int at = 0; at < PROCESSES; at++) {
    const struct process *p = &now.p[at];
    if (p->dead || p->blind || !may_open(at)) continue;
    const int parked = asks(p) && !p->message && p->cancel != 1 && knows_all(p);
    require(p->seen_epoch == 0 || is_end(end_of_log()) || parked || now.p[!at].blind,
            "a task does not lie about");
    require(!end_of_log() || p->told == end_of_log(), "everybody is told how it ended");
    require(!end_of_log() || p->word == word_of_log(), "everybody tells the same of the work");
    require(word_of_log() != ABP_FATE_RUNNING, "it is learnt what became of the work");
    require(p->cancel != 1 || parked, "every cancel is answered");
    require(!now.left.pushes || !end_of_log() || now.delivered, "the end is pushed");
  }
}

/* --- The search ------------------------------------------------------------------------------- */

static uint64_t *seen;
static size_t seen_room, seen_count;

static size_t size_now(void) { return offsetof(struct state, arena) + now.used; }

static uint64_t hash(void) {
  uint64_t sum = 0, word;
  for (size_t i = 0; i + sizeof word <= size_now(); i += sizeof word) {
    memcpy(&word, (const char *)&now + i, sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return sum ? sum : 1;
}

static int put(uint64_t key) {
  if (seen_count * 2 >= seen_room) {
    uint64_t *old = seen;
    const size_t room = seen_room;
    seen_room = room ? room * 2 : 1 << 16;
    seen = calloc(seen_room, sizeof *seen);
    if (!seen) exit(2);
    seen_count = 0;
    for (size_t i = 0; i < room; i++)
      if (old[i]) put(old[i]);
    free(old);
  }
  size_t i = key & (seen_room - 1);
  for (; seen[i]; i = (i + 1) & (seen_room - 1))
    if (seen[i] == key) return 0;
  seen[i] = key;
  seen_count++;
  return 1;
}

enum { MAX_DEPTH = 1 << 16 };
static struct {
  enum move move;
  int at;
} trace[MAX_DEPTH];
static int length;

static int can_deliver(int at) { return at < NET && now.net[at].record.kind; }

static void explore(int depth) {
  if (depth == MAX_DEPTH) {
    fprintf(stderr, "it goes on for ever\n");
    exit(2);
  }
  const size_t size = size_now();
  struct state *before = malloc(size);
  if (!before) exit(2);
  memcpy(before, &now, size);
  int moved = 0;
  for (int move = 0; move < MOVES; move++) {
    for (int at = 0; at < NET; at++) {
      const int fine =
          move == DELIVER ? can_deliver(at) : at < PROCESSES && can((enum move)move, at);
      if (!fine) continue;
      trace[depth].move = (enum move)move;
      trace[depth].at = at;
      arena.on = 1;
      make((enum move)move, at);
      arena.on = 0;
      const int changed = size_now() != size || memcmp(&now, before, size) != 0;
      const int bounded = move == PAUSE || move == CRASH || move == CANCEL || move == ANSWER;
      moved |= changed && !bounded;
      if (violation) {
        length = depth + 1;
        free(before);
        return;
      }
      if (changed && put(hash())) explore(depth + 1);
      if (violation) {
        free(before);
        return;
      }
      memcpy(&now, before, size);
    }
  }
  free(before);
  if (moved) return;
  check_rest();
  if (violation) length = depth;
}

/* The task is in the log; its first record is process 0's. */
static void begin(const struct config *config) {
  memset(&now, 0, sizeof now);
  now.left = config->budget;
  arena.on = 1;
  for (int at = 0; at < PROCESSES; at++) {
    const abp_tasks_config tasks = {.seed = {1}, .commits = 1, .remembered = 8};
    now.p[at].tasks = abp_tasks_new(&tasks, 0);
  }
  adopt(&now.p[0], ABP_TASK_SUBMITTED);
  act(&now.p[0], abp_task_start(now.p[0].tasks, now.p[0].task));
  arena.on = 0;
}

static uint64_t states;

static int search(enum rule rule, int show) {
  without = rule;
  for (size_t i = 0; i < sizeof CONFIGURATIONS / sizeof *CONFIGURATIONS; i++) {
    violation = NULL;
    free(seen);
    seen = NULL;
    seen_room = seen_count = 0;
    begin(&CONFIGURATIONS[i]);
    explore(0);
    states += seen_count;
    if (show) {
      printf("  %-34s %9zu states\n", CONFIGURATIONS[i].name, seen_count);
      fflush(stdout);
    }
    if (!violation) continue;
    printf("  without \"%s\", %s: violated: %s", RULE_NAMES[rule], CONFIGURATIONS[i].name,
           violation);
    if (show) {
      printf("\n   ");
      for (int step = 0; step < length; step++)
        printf(" %s:%d", MOVE_NAMES[trace[step].move], trace[step].at);
    }
    printf("\n");
    return 1;
  }
  return 0;
}

/* Leaves out each rule of a point. Returns whether all were missed. */
static int search_without(const struct point *point) {
  int missed = 1;
  printf("%s\n", point->name);
  for (int i = 0; i < POINT_RULES && point->rules[i] != ALL_RULES; i++) {
    if (search(point->rules[i], 1)) continue;
    printf("  without \"%s\": nothing goes wrong\n", RULE_NAMES[point->rules[i]]);
    missed = 0;
  }
  return missed;
}

/* Whether some point has the rule. */
static int is_of_a_point(enum rule rule) {
  for (int at = 0; at < POINT_COUNT * POINT_RULES; at++)
    if (POINTS[at / POINT_RULES].rules[at % POINT_RULES] == rule) return 1;
  return 0;
}

int main(int argc, char **argv) {
  arena = (struct arena){0, now.arena, ARENA, &now.used};
  for (int rule = ALL_RULES + 1; rule < RULES; rule++)
    if (!is_of_a_point((enum rule)rule)) return 2;
  const int point = argc > 1 ? atoi(argv[1]) : 0;
  if (point < 0 || point > POINT_COUNT) return 2;
  const int wrong = point ? !search_without(&POINTS[point - 1]) : search(ALL_RULES, 1);
  printf("%llu states\n", (unsigned long long)states);
  free(seen);
  return wrong;
}
