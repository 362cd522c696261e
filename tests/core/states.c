/*
 * Prints the tables of call_state.c, session.c and task_state.c as diagrams: the site has a page of
 * them. A row that no diagram has is an error.
 */
#include "call_state.h"
#include "session.h"
#include "task_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char document[1 << 16];
static size_t length;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  length += (size_t)vsnprintf(document + length, sizeof document - length, format, arguments);
  va_end(arguments);
  if (length >= sizeof document) {
    fprintf(stderr, "the document is too small\n");
    exit(2);
  }
}

/* --- Tables alike ----------------------------------------------------------------------------- */

enum { MAX_STATES = 32, MAX_EVENTS = 32 };
_Static_assert((int)CALL_STATES <= MAX_STATES && (int)TASK_STATES <= MAX_STATES, "room");
_Static_assert((int)CALL_EVENTS <= MAX_EVENTS && (int)TASK_EVENTS <= MAX_EVENTS, "room");

/* A row: where it leads, and what it says beside that, 0 for nothing. */
struct row {
  int next;
  uint32_t says;
};

struct table {
  int states, events;
  const char *const *state_names, *const *event_names;
  struct row (*row)(int state, int event);
  void (*put_says)(uint32_t says);
  uint32_t shown;             /* of what a row says, in bits */
  uint32_t drawn[MAX_STATES]; /* events, a bit each */
};

static const char *name_of(const char *const *names, int at) {
  if (names[at]) return names[at];
  fprintf(stderr, "a state or an event has no name here: number %d\n", at);
  exit(2);
}

static int is_row(const struct table *table, int state, int event) {
  const struct row row = table->row(state, event);
  return row.next != state || row.says;
}

/* The arrow from a state to another, with every event that goes along it. */
static void draw_arrow(struct table *table, int from, int to, uint32_t events) {
  int arrows = 0;
  for (int event = 0; event < table->events; event++) {
    if (!(events >> event & 1) || !is_row(table, from, event)) continue;
    const struct row row = table->row(from, event);
    if (row.next != to) continue;
    table->drawn[from] |= 1u << event;
    if (!arrows++)
      put("  %s --> %s: ", name_of(table->state_names, from), name_of(table->state_names, to));
    else
      put("<br/>");
    put("%s", name_of(table->event_names, event));
    if (row.says & table->shown) {
      put(" (");
      table->put_says(row.says);
      put(")");
    }
  }
  if (arrows) put("\n");
}

/* The arrows from these states by these events, as far as the first leads there. */
static void draw(struct table *table, int first, uint32_t states, uint32_t events) {
  uint32_t reached = 1u << first, before = 0;
  while (reached != before) {
    before = reached;
    for (int state = 0; state < table->states; state++) {
      if (!(reached >> state & 1)) continue;
      for (int event = 0; event < table->events; event++)
        if (events >> event & 1) reached |= 1u << table->row(state, event).next;
    }
  }
  put("```mermaid\nstateDiagram-v2\n  [*] --> %s\n", name_of(table->state_names, first));
  for (int from = 0; from < table->states; from++) {
    for (int to = 0; reached & states & 1u << from && to < table->states; to++)
      draw_arrow(table, from, to, events);
  }
  put("```\n");
}

static void check_all_drawn(const struct table *table, uint32_t states) {
  for (int state = 0; state < table->states; state++) {
    if (!(states >> state & 1)) continue;
    for (int event = 0; event < table->events; event++) {
      if (table->drawn[state] >> event & 1 || !is_row(table, state, event)) continue;
      fprintf(stderr, "a row is in no diagram: %s, %s\n", table->state_names[state],
              table->event_names[event]);
      exit(2);
    }
  }
}

/* The names of the bits that are set. */
static void put_bits(uint32_t bits, const char *const *names, int count) {
  const char *comma = "";
  for (int bit = 0; bit < count; bit++) {
    if (!(bits >> bit & 1)) continue;
    put("%s%s", comma, name_of(names, bit));
    comma = ", ";
  }
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* What a step of a call says: what it owes, then what became of the work. */
enum { FATES_AT = 16 };

static struct row call_row(int state, int event) {
  const struct call_step step = call_step((enum call_state)state, (enum call_event)event);
  return (struct row){step.next, step.owed | (uint32_t)step.fate << FATES_AT};
}

static void put_owed(uint32_t owed) {
  static const char *const NAMES[] = {
      "queued",         "start",           "request", "answer true", "answer false",
      "answer unknown", "answer declined", "cancel",  "abort",       "result",
      "settle",         "chunk",           "credit",  "resume",      "answer later"};
  const char *fate = abp_fate_name((int)(owed >> FATES_AT));
  owed &= (1u << FATES_AT) - 1;
  put_bits(owed, NAMES, sizeof NAMES / sizeof *NAMES);
  if (*fate) put("%s*%s*", owed ? ", " : "", fate);
}

static const char *const CALL_STATE_NAMES[CALL_STATES] = {
    [FREE] = "FREE",           [QUEUED] = "QUEUED",         [PREPARING] = "PREPARING",
    [RUNNING] = "RUNNING",     [ASKED] = "ASKED",           [CANCELLING] = "CANCELLING",
    [UNWINDING] = "UNWINDING", [UNANSWERED] = "UNANSWERED", [RETURNED] = "RETURNED",
    [UNWOUND] = "UNWOUND",     [WAITING] = "WAITING",       [STOPPING] = "STOPPING",
    [STOPPED] = "STOPPED",     [DETACHED] = "DETACHED",     [COMPLETED] = "COMPLETED",
    [CANCELLED] = "CANCELLED", [UNKNOWN] = "UNKNOWN",       [SETTLED] = "SETTLED"};
static const char *const CALL_EVENT_NAMES[CALL_EVENTS] = {[EV_START] = "start",
                                                          [EV_POSTPONE] = "postpone",
                                                          [EV_BEGIN] = "begin",
                                                          [EV_CANCEL] = "cancel",
                                                          [EV_CANCEL_BY_ID] = "cancel by id",
                                                          [EV_ACKNOWLEDGED] = "acknowledged",
                                                          [EV_TIMER] = "timer",
                                                          [EV_ASK] = "ask",
                                                          [EV_GOES_ON] = "goes on",
                                                          [EV_ACCEPTED] = "accepted",
                                                          [EV_DECLINED] = "declined",
                                                          [EV_UNKNOWN] = "unknown",
                                                          [EV_PEER_ABANDONED] = "peer abandoned",
                                                          [EV_COMPLETE] = "complete",
                                                          [EV_FAIL] = "fail",
                                                          [EV_ERROR] = "error",
                                                          [EV_UNSENT] = "unsent",
                                                          [EV_CANCELLED] = "cancelled",
                                                          [EV_CHILDREN_DONE] = "children done",
                                                          [EV_CANCEL_NO_WAIT] = "cancel, no wait",
                                                          [EV_STOP_SILENTLY] = "stop silently",
                                                          [EV_DETACH] = "detach",
                                                          [EV_CHUNK] = "chunk",
                                                          [EV_READ] = "read",
                                                          [EV_CREDIT] = "credit",
                                                          [EV_CLOSE] = "close",
                                                          [EV_LOST] = "lost"};
static struct table calls = {
    CALL_STATES, CALL_EVENTS, CALL_STATE_NAMES, CALL_EVENT_NAMES, call_row, put_owed, ~0u, {0}};

/* --- Sessions --------------------------------------------------------------------------------- */

enum { SESSION_STATES = ABP_SESSION_LOST + 1 };

/* What a step says: the messages, then (from bit 16 on) a refusal, then what every call gets. */
static struct row session_row(int state, int event) {
  const struct session_step step = abp_session_step((abp_session)state, (enum session_event)event);
  return (struct row){step.next, step.sends | (step.refuse ? 1u << 16 : 0) |
                                     (step.calls == EV_CLOSE + 1  ? 1u << 17
                                      : step.calls == EV_LOST + 1 ? 1u << 18
                                                                  : 0)};
}

static void put_sends(uint32_t says) {
  static const char *const NAMES[] = {[ABP_MSG_INITIALIZE] = "send initialize",
                                      [ABP_MSG_INITIALIZE_RESULT] = "send initialize-result",
                                      [ABP_MSG_CANCEL] = NULL,
                                      [ABP_MSG_CANCEL_RESULT] = NULL,
                                      [ABP_MSG_SHUTDOWN] = "send shutdown",
                                      [ABP_MSG_PING] = NULL,
                                      [ABP_MSG_PONG] = NULL,
                                      [ABP_MSG_BYE] = "send bridge/bye",
                                      [16] = "refuse",
                                      [17] = "close every call",
                                      [18] = "lose every call"};
  put_bits(says, NAMES, sizeof NAMES / sizeof *NAMES);
}

static const char *const SESSION_STATE_NAMES[SESSION_STATES] = {
    [ABP_SESSION_NONE] = "NONE",     [ABP_SESSION_CONNECTING] = "CONNECTING",
    [ABP_SESSION_READY] = "READY",   [ABP_SESSION_FAILED] = "FAILED",
    [ABP_SESSION_CLOSED] = "CLOSED", [ABP_SESSION_LOST] = "LOST"};
static const char *const SESSION_EVENT_NAMES[SESSION_EVENTS] = {
    [SE_CONNECT] = "connect",
    [SE_INITIALIZE] = "initialize",
    [SE_INITIALIZE_AGAIN] = "the same initialize",
    [SE_INITIALIZE_OTHER] = "another initialize",
    [SE_ACCEPTED] = "accepted",
    [SE_BUSY] = "busy",
    [SE_REFUSED] = "refused",
    [SE_TIMEOUT] = "timeout",
    [SE_SHUTDOWN] = "shutdown",
    [SE_CLOSE] = "close",
    [SE_STOP] = "stop",
    [SE_LEAVE] = "leave",
    [SE_LOST] = "lost",
    [SE_EXPIRED] = "expired",
    [SE_SILENT] = "silent"};

/* --- Tasks ------------------------------------------------------------------------------------ */

static struct row task_row(int state, int event) {
  const struct task_step step = abp_task_step((enum abp_task_state)state, (enum task_event)event);
  return (struct row){step.next, step.owed | (uint32_t)step.fate << FATES_AT};
}

static void put_fate(uint32_t says) { put("*%s*", abp_fate_name((int)(says >> FATES_AT))); }

static const char *const TASK_STATE_NAMES[TASK_STATES] = {
    [ABP_TASK_UNKNOWN] = "UNKNOWN",
    [ABP_TASK_SUBMITTED] = "SUBMITTED",
    [ABP_TASK_WORKING] = "WORKING",
    [ABP_TASK_COMPLETED] = "COMPLETED",
    [ABP_TASK_FAILED] = "FAILED",
    [ABP_TASK_CANCELED] = "CANCELED",
    [ABP_TASK_INPUT_REQUIRED] = "INPUT_REQUIRED",
    [ABP_TASK_REJECTED] = "REJECTED",
    [ABP_TASK_AUTH_REQUIRED] = "AUTH_REQUIRED",
    [TASK_CANCELING] = "CANCELING",
    [TASK_COMMITTING] = "COMMITTING"};
static const char *const TASK_EVENT_NAMES[TASK_EVENTS] = {
    [TE_SAYS] = "says nothing",
    [TE_SAYS_SUBMITTED] = "says submitted",
    [TE_SAYS_WORKING] = "says working",
    [TE_SAYS_COMPLETED] = "says completed",
    [TE_SAYS_FAILED] = "says failed",
    [TE_SAYS_CANCELED] = "says canceled",
    [TE_SAYS_INPUT_REQUIRED] = "says input-required",
    [TE_SAYS_REJECTED] = "says rejected",
    [TE_SAYS_AUTH_REQUIRED] = "says auth-required",
    [TE_START] = "message",
    [TE_RETURN] = "returns",
    [TE_THROW] = "throws",
    [TE_STOP] = "stops",
    [TE_UNSURE] = "is unsure",
    [TE_CANCEL] = "cancel",
    [TE_ASK] = "ask",
    [TE_GRACE] = "grace period",
    [TE_WISH] = "a cancel came first"};

/* --- The document ----------------------------------------------------------------------------- */

#define BIT(event) (1u << (event))

static void write_document(void) {
  static struct table sessions = {SESSION_STATES,
                                  SESSION_EVENTS,
                                  SESSION_STATE_NAMES,
                                  SESSION_EVENT_NAMES,
                                  session_row,
                                  put_sends,
                                  ~0u,
                                  {0}};
  static struct table tasks = {TASK_STATES, TASK_EVENTS, TASK_STATE_NAMES, TASK_EVENT_NAMES,
                               task_row,    put_fate,    ~0u << FATES_AT,  {0}};
  const uint32_t both = BIT(EV_START) | BIT(EV_POSTPONE) | BIT(EV_BEGIN) | BIT(EV_COMPLETE) |
                        BIT(EV_CANCELLED) | BIT(EV_CLOSE) | BIT(EV_LOST);
  put("# States\n\n"
      "Printed from the tables of `src/call_state.c`, `src/session.c` and `src/task_state.c` by\n"
      "`tests/core/states.c`.\n\n"
      "An arrow names its events. Brackets have the actions that an event owes the outside, and\n"
      "italics the outcome of the handler's work (`metadata.outcome`). An event that a state does\n"
      "not have changes nothing. `src/call_state.h`, `src/session.h` and `src/task_state.h` "
      "define\n"
      "the states and the events.\n\n"
      "## A call\n\n### The callee in ABP\n\n"
      "The callee decides how a call ends, and it decides once: an acknowledged cancel and a "
      "success\n"
      "never both happen.\n\n");
  draw(&calls, QUEUED, ~0u,
       both | BIT(EV_CANCEL) | BIT(EV_TIMER) | BIT(EV_ERROR) | BIT(EV_GOES_ON) | BIT(EV_CHUNK) |
           BIT(EV_CREDIT));
  put("\n### The callee in ABP, for a foreign app\n\n"
      "A cancel asks the app to stop the call, and the app decides. The answer to the cancel "
      "waits for\n"
      "the app (answer later). If the app does not answer in time, the outcome is unknown.\n\n");
  draw(&calls, QUEUED, ~0u,
       both | BIT(EV_CANCEL) | BIT(EV_TIMER) | BIT(EV_ASK) | BIT(EV_ACCEPTED) | BIT(EV_DECLINED) |
           BIT(EV_UNKNOWN) | BIT(EV_ERROR) | BIT(EV_CHILDREN_DONE) | BIT(EV_CHUNK) |
           BIT(EV_CREDIT));
  put("\n### The callee in JSON-RPC\n\n"
      "In ACP and LSP the handler's answer decides (ask); MCP takes no answer to what it "
      "cancelled\n"
      "(peer abandoned).\n\n");
  draw(&calls, QUEUED, ~0u,
       both | BIT(EV_FAIL) | BIT(EV_ASK) | BIT(EV_PEER_ABANDONED) | BIT(EV_CHILDREN_DONE));
  put("\n### The caller\n\nThe caller asks and waits; it never decides.\n\n");
  draw(&calls, WAITING, ~0u, ~0u);
  put("\n## A session\n\n### The agent's side\n\n");
  const uint32_t ends = BIT(SE_SHUTDOWN) | BIT(SE_LEAVE) | BIT(SE_LOST);
  draw(&sessions, ABP_SESSION_NONE, ~0u,
       ends | BIT(SE_CONNECT) | BIT(SE_ACCEPTED) | BIT(SE_BUSY) | BIT(SE_REFUSED) |
           BIT(SE_TIMEOUT) | BIT(SE_CLOSE) | BIT(SE_EXPIRED));
  put("\n### The app's side\n\n");
  draw(&sessions, ABP_SESSION_NONE, ~0u,
       ends | BIT(SE_INITIALIZE) | BIT(SE_INITIALIZE_AGAIN) | BIT(SE_INITIALIZE_OTHER) |
           BIT(SE_STOP) | BIT(SE_SILENT));
  put("\n## A task of A2A\n\n### At its agent\n\n"
      "`says` is the executor; `cancel` stops the task now, `ask` lets the executor say how.\n\n");
  draw(&tasks, ABP_TASK_SUBMITTED, ~0u, ~0u);
  put("\n### At an agent that stores each state before it reports it\n\n"
      "An event that ends the task leads to COMMITTING instead, until the log has the end.\n\n");
  draw(&tasks, TASK_COMMITTING, ~0u, ~0u);
  put("\n### At a client\n\nA client learns the task's state from its agent. Later reports lead "
      "on as above.\n\n");
  draw(&tasks, ABP_TASK_UNKNOWN, BIT(ABP_TASK_UNKNOWN), BIT(TE_START) - 1);
  check_all_drawn(&calls, ~0u);
  /* In the others each role has events that never come to it: only an agent fails. */
  check_all_drawn(&sessions, BIT(ABP_SESSION_CONNECTING) | BIT(ABP_SESSION_READY));
  check_all_drawn(&tasks, ~0u);
}

int main(void) {
  write_document();
  return fwrite(document, 1, length, stdout) != length;
}
