/*
 * Two endpoints of the core, joined by in-order channels, and a naive model of what each must do.
 *
 * A *move* is one thing that can happen: a call is made, a signal fires, a handler settles, a
 * message arrives, a clock runs on, the line breaks. world_do() makes it happen to the real
 * endpoint and to the model, drains the endpoint, and compares: every action must be one that the
 * model expects of that very call, and nothing that it expects may be missing. So a move that
 * touches another call, a second settlement, a message that the protocol does not allow or a
 * forgotten one is found in the move that causes it. After each move the two must also hold the
 * same: as many calls, timers, places in the queue and memories, so that nothing is left at rest.
 *
 * The model knows nothing of the core's states. It keeps plain facts about each call (who stopped
 * it and why, whether its handler runs, whether it was answered) in arrays, and searches those from
 * end to end.
 *
 * The *laws* are stated apart from the model, on what is seen from outside alone:
 *   - a call settles once, has one result, and its handler starts at most once;
 *   - a handler does not start after a cancel that was answered `true`;
 *   - a cancel answered `true` and a success never both happen, in either order;
 *   - each cancel is answered once, before its call's result;
 *   - every cancel of a call gets the same answer while the call is remembered;
 *   - no call waits for an answer that nobody can send any more, at either side;
 *   - no session is left that only the app still has;
 *   - what either side says became of the work is what the handler did, and what it never starts if
 *     it was said that it did not; whoever asks later, in a new session too, is told the same;
 *   - of a call that was cancelled nothing is said to be over while a local call that its handler
 *     made works on;
 *   - no chunk is handed over once the call has settled, and all that were sent before a success
 * are handed over before it;
 *   - no clock of a call runs while a person is asked on its behalf, and none stands still
 * otherwise;
 *   - what waits for a reader is never more than its window;
 *   - no handler waits for room in a stream of which everything was read.
 *
 * To the core, a handler that fails has completed: the messages carry a mark for success, so that
 * the laws can tell.
 */
#ifndef WORLD_H
#define WORLD_H

#include "endpoint.h"

#ifndef WORLD_CALLS
#define WORLD_CALLS 8
#define WORLD_CHANNEL 24
#define MAX_HELD 4 /* cancels of a call that wait */
#endif

enum side { AGENT, APP };

enum { GRACE_MS = 7, REMEMBER_MS = 100, CHUNK_SIZE = 2, TOO_MANY = 9 };

enum move_kind {
  CONNECT,
  CONNECT_UNREADABLE, /* with a version that is none: the app refuses */
  CALL,
  CALL_TIMED, /* both sides watch its deadline */
  CALL_UNSENT,
  CALL_WITHDRAWN, /* and is cancelled before that is known */
  SIGNAL,         /* of a call: its caller's signal fires */
  ASK,            /* of a call: `cancel(callId)`, whether it has ended or not */
  POSTPONE,       /* of a running call: its handler waits for what it needs before it begins */
  BEGIN,          /* and has it */
  COMPLETE,
  FAIL,
  THROW_ABORT,
  LOSE_TRACK, /* of a running call: its handler settles, and does not know what became of its work
               */
  ACCEPT,     /* of a call that was asked to stop: an app that is not ours accepts the cancel */
  DECLINE,    /* and does not */
  GO_ON,      /* of a running call: its handler says that its work goes on after a cancel */
  PASS_ON,    /* its handler returns that a local call of its own still runs */
  PROGRESS,
  STREAM, /* a call whose caller reads chunks */
  YIELD,  /* of a running stream: its handler has a chunk */
  READ,   /* of a stream: its reader takes a chunk */
  GRANT,  /* of a stream: its caller grants what was never sent */
  ELICIT, /* of a running call: its handler asks the agent */
  INPUT,  /* of a running call: its handler asks the agent for a stream */
  LOCAL,  /* of a running call: its handler calls another of the app */
  DELIVER,
  TICK,  /* of a side: its clock reaches its next deadline */
  SLEEP, /* of a side: its clock jumps ahead of all deadlines and of what is remembered */
  CLOSE,
  LEAVE, /* of a side: its document goes away, and says so */
  CUT,   /* the line breaks; what is under way is lost */
  LEARN, /* of a side: it hears that the line broke */
  MOVE_KINDS
};

struct move {
  enum move_kind kind;
  int at; /* a place in calls[], or a side */
};

#define ANY UINT32_MAX

/* How many calls there are and how often each move may be made. */
struct bounds {
  const char *name;
  uint32_t calls, max_calls, max_concurrent, remembered, restart; /* max_calls 0: no limit */
  uint32_t foreign;             /* the app is not ours: its word decides */
  uint32_t mute;                /* no result says what became of the work: a plain peer's */
  uint32_t heedless;            /* the app answers with a value what it has said to be cancelled */
  uint32_t greedy;              /* it sends chunks for which there is no room */
  uint32_t liar;                /* its questions are about other calls than they say */
  uint32_t chunks[2], bytes[2]; /* the window of each side; 0: the default */
  uint32_t told;                /* each side says how large its windows are: chunks[] are given */
  uint32_t moves[MOVE_KINDS];
};

/* Number n of the session `serial` of the side that it belongs to; 0 names the session itself. */
struct id {
  uint32_t owner, serial, number;
};

/* What one side knows of a call. */
struct part {
  enum { NOT_HERE, WAITS, RUNS, OVER } phase; /* OVER: and still remembered */
  uint8_t known;                              /* found by its id: 1, or 2 in an older session */
  uint8_t stopped;                            /* abp_outcome: somebody wants it to end, and why */
  uint8_t asked;     /* abp_outcome: the same, but the app's word decides, and has not come */
  uint8_t closed;    /* callee: it ends because its session was closed */
  uint8_t unknown;   /* it will never come */
  uint8_t follows;   /* its handler has returned, and local calls below work on */
  uint8_t word;      /* and abp_fate: what it has said of its own work; RUNNING: what they say */
  uint8_t below;     /* abp_fate of the latest of these that returned after its answer */
  uint8_t prepares;  /* its handler has not begun, and waits for what it needs */
  uint8_t answered;  /* callee: its result is out, or nobody wants it */
  uint8_t accepted;  /* caller: it was told that the cancel stands */
  uint8_t outcome;   /* once it is over */
  uint8_t fate;      /* abp_fate: what became of the work, once that is said */
  uint8_t under_way; /* of a stream, chunks: sent or come, and not granted again */
  uint8_t unread, unreported; /* caller: of these, not read; read, and not granted */
  abp_call handle;
  uint64_t deadline; /* or 0 */
  uint64_t left;     /* of a deadline that stands still, or 0 */
};

/* A call, wherever it is remembered. */
struct ghost {
  enum { NOBODY, A_CALL, AN_ELICITATION, A_LOCAL, A_CANCEL } kind;
  struct id id;
  int parent;  /* at the app, or -1 */
  int about;   /* of a question: 1 + the agent's call that it is about, or 0 */
  int made_by; /* of a local call: 1 + the call whose handler made it, ended or not; 0: forgotten */
  uint32_t
      order; /* among those of its parent that were there when it was made: the latest is last */
  uint8_t swept; /* it was stopped because its parent was */
  uint32_t depth;
  uint32_t owed; /* bits 1 << abp_kind that must come out now */
  uint8_t progress, stream;
  /* Cancels that wait for the app's word, the earliest first; and how they are to be answered now.
   */
  struct id held[MAX_HELD];
  uint8_t holds, answer;
  /* What was seen. */
  uint8_t did;  /* abp_fate: how the handler ended */
  uint8_t told; /* it was said that it never ran */
  uint8_t started, results, settled, said_true, said_false, said_unknown, succeeded, yielded,
      handed;
  struct part part[2];
};

struct message {
  enum {
    INITIALIZE,
    INITIALIZE_RESULT,
    REQUEST,
    RESULT,
    REPORT,
    CHUNK,
    CREDIT,
    CANCEL,
    CANCEL_RESULT,
    SHUTDOWN,
    BYE
  } kind;
  uint8_t arg; /* what it says */
  uint8_t success;
  uint8_t fate; /* of a result */
  uint32_t timeout;
  uint32_t chunks, bytes; /* a window, or a grant */
  struct id id;           /* that its answer goes to */
  struct id about;        /* the call that a cancel or a question is about; the app's session */
};

struct channel {
  int count;
  struct message messages[WORLD_CHANNEL];
};

struct peer {
  abp_endpoint *endpoint;
  abp_session session;
  uint64_t now;
  struct window window;                   /* what it says of its own */
  uint32_t serial, peer_serial;           /* of the sessions, this side's count and the other's */
  uint64_t resend, give_up;               /* while it connects */
  uint32_t late, stray, refused, overrun; /* counted */
  int remembered;                         /* ended calls, the oldest first */
  struct memory {
    int at;
    uint64_t since;
  } memory[WORLD_CALLS];
  uint32_t sends; /* bits 1 << abp_message that must come out now */
  uint8_t refuse, answer, session_event, report;
  int torn; /* the line broke, and it does not know */
};

struct world {
  struct bounds bounds; /* what is left of them */
  uint8_t ending;       /* several calls end: those that wait start after that */
  const char *violation;
  int violation_at; /* the call that it is about, or -1 */
  int line;         /* the two are joined */
  uint8_t unreadable;
  int ghosts;              /* 1 + the last place in use */
  struct message received; /* in this move */
  struct id asked;         /* in this move, to be cancelled */
  struct peer peer[2];
  struct channel to[2];
  struct ghost calls[WORLD_CALLS];
};

void world_open(struct world *world, const struct bounds *bounds);
void world_close(struct world *world);
/* 1 if the move is possible. */
int world_can(const struct world *world, struct move move);
/* Makes it. 0 if something was violated: world->violation says what. */
int world_do(struct world *world, struct move move);
/* "signal 1", as traces print it, and back; parsing returns 0 for what is no move. */
const char *move_text(struct move move);
int move_parse(const char *text, struct move *move);
/* How many things this kind of move can be done to. */
int move_places(const struct world *world, enum move_kind kind);

#endif
