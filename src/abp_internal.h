/*
 * What the files of the core share. Arrows point one way:
 *   wire_abp -> json, endpoint -> session, calls;  rpc -> calls;  calls -> call_table, call_state.
 */
#ifndef ABP_INTERNAL_H
#define ABP_INTERNAL_H

#include "abp.h"

/* What happens to few calls: compiled for size, and out of the way of what happens to all. */
#define COLD __attribute__((cold))

/* --- call_state.c: what happens to a call ----------------------------------------------------- */

enum call_state {
  FREE,       /* the slot holds no call */
  QUEUED,     /* callee: accepted, its handler has not started */
  RUNNING,    /* callee: the handler works */
  ASKED,      /* callee: somebody wants it to stop; the handler's answer decides */
  CANCELLING, /* callee: cancelled, and said so; the handler has not unwound */
  UNWINDING,  /* callee: the result is out or nobody wants it; the handler still has not unwound */
  RETURNED,   /* callee: asked to stop, it has a value; requests of its own are unanswered */
  UNWOUND,    /* callee: asked to stop, it did; requests of its own are unanswered */
  WAITING,    /* caller: sent, nothing heard */
  STOPPING,   /* caller: sent, and a cancel after it */
  COMPLETED,  /* callee, remembered: the handler's outcome stands */
  CANCELLED,  /* callee, remembered: the cancel stands */
  SETTLED,    /* caller, remembered: so that late answers are known for what they are */
  CALL_STATES
};

enum call_event {
  EV_START,    /* callee: there is room for the handler to run */
  EV_CANCEL,   /* somebody asks the call to stop: the peer (callee), this side (caller), a parent */
  EV_TIMER,    /* its deadline passed or, once it is cancelled, its grace period */
  EV_ASK,      /* callee: the peer asks, and the handler's answer is to decide */
  EV_DROP,     /* callee: the peer takes no answer any more */
  EV_COMPLETE, /* there is an outcome: the handler settled (callee), the result came (caller) */
  EV_FAIL,     /* it is an error, where errors and values are told apart */
  EV_CANCELLED, /* there is an outcome, and it says: cancelled */
  EV_ALONE,     /* callee: no request made on its behalf is unanswered any more */
  EV_LEAVE,     /* caller: stop, say so, and wait for nothing */
  EV_ABANDON,   /* caller: stop, and the protocol has no message to say so */
  EV_CLOSE,     /* the session ends in good order */
  EV_LOST,      /* the peer is gone */
  CALL_EVENTS
};

/* What a step owes the outside. Paid in the order of the bits. */
enum {
  OWE_QUEUED = 1 << 0,
  OWE_START = 1 << 1,
  OWE_REQUEST = 1 << 2,
  OWE_ACK = 1 << 3, /* the cancel is answered: true */
  OWE_NAK = 1 << 4, /* the cancel is answered: false, already completed */
  OWE_CANCEL = 1 << 5,
  OWE_ABORT = 1 << 6,
  OWE_RESULT = 1 << 7,
  OWE_SETTLE = 1 << 8
};

struct call_step {
  uint8_t next;
  uint16_t owed;
};

/* Where an event leads from a state; FREE stands for: nowhere. */
extern const struct call_step call_steps[CALL_STATES][CALL_EVENTS];

static inline struct call_step call_step(enum call_state state, enum call_event event) {
  struct call_step step = call_steps[state][event];
  if (step.next == FREE) step.next = (uint8_t)state;
  return step;
}
/* 1 if the call has ended and only its memory is left. */
static inline int call_is_over(enum call_state state) { return state >= COMPLETED; }
/* 1 if a handler has been started and has not returned. */
static inline int call_has_handler(enum call_state state) {
  return state >= RUNNING && state <= UNWINDING;
}

/* --- call_table.c: where calls are kept ------------------------------------------------------- */

/*
 * A call's slot, 56 bytes. Slots live in slabs that never move:
 *
 *   slabs ──▶ [slab 0][slab 1]…          slab: 256 slots, and 256 id cells once a text id needs one
 *
 *   index: open addressing, {hash, slot + 1}, a power of two, at most half full
 *   timers: binary heap of slots by deadline; slot.timer is the place in it, so leaving costs log n
 *   lists: queue (accepted calls in order); memory (ended calls, oldest first)
 *
 *   handle = generation << 20 | slot: 30 bits, so that it is a small integer in JavaScript
 */
struct call {
  uint32_t number; /* the id, or 0 when it is text and stands in the slab's cell */
  uint32_t hash;
  uint64_t deadline; /* of the timer; once the call is over: when it ended */
  uint32_t timer;    /* place in the heap + 1, or 0 */
  uint32_t next, prev;
  uint32_t debtor; /* next call that owes something */
  uint32_t parent, child, sibling;
  uint16_t generation;
  uint16_t id_length;
  uint16_t owed;
  uint8_t state;
  uint8_t cause; /* abp_outcome: why it was cancelled */
  uint8_t flags;
  uint8_t depth; /* of local calls within local calls */
};

enum {
  CALL_OUT = 1,     /* made here; else received */
  CALL_INDEXED = 2, /* found by its id */
  CALL_PROGRESS = 4,
  CALL_LOCAL = 8,      /* made by a handler here to a handler here */
  CALL_NO_CANCEL = 16, /* there is no message to cancel it with */
  CALL_IS_CANCEL = 32, /* is itself a `capabilities/cancel` waiting for its answer */
  CALL_LISTED = 64,    /* waits in the queue */
  CALL_NO_WAIT = 128   /* its caller waits for no answer once it has cancelled it */
};

#define NO_CALL UINT32_MAX
#define SLOT_BITS 20
#ifndef SLAB_CALLS /* the exploration takes small ones */
#define SLAB_CALLS 256
#endif
#define ID_CELL 40 /* holds a UUID; longer ids are allocated */

struct call_list {
  uint32_t head, tail, count;
};

struct call_slab {
  struct call calls[SLAB_CALLS];
  char (*ids)[ID_CELL];
};

struct index_entry {
  uint32_t hash, slot; /* slot + 1; 0: nobody's place */
};

struct call_index {
  struct index_entry *entries;
  uint32_t mask, shift; /* of a hash, to a place */
  uint32_t most, count;
};

struct call_table {
  struct call_slab **slabs;
  uint32_t slab_count, slab_room;
  struct call_index index;
  uint32_t *timers;
  uint32_t timer_count;
  struct call_list queue, memory;
  uint32_t free;
  uint64_t seed, multiplier;
};

void table_init(struct call_table *table, const uint8_t seed[16]);
void table_free(struct call_table *table);
static inline struct call *table_call(const struct call_table *table, uint32_t slot) {
  return &table->slabs[slot / SLAB_CALLS]->calls[slot % SLAB_CALLS];
}
const char *table_id(const struct call_table *table, uint32_t slot);
/* The hash of an id, which finding and adding take, so that it is reckoned once. */
uint32_t table_hash(const struct call_table *table, const abp_id *id, uint32_t direction);
uint32_t table_find(const struct call_table *table, const abp_id *id, uint32_t hash,
                    uint32_t direction);
/* A slot for a new call, indexed by `id` unless that is NULL. All that the call will need is
 * allocated here, or nothing is: ABP_E_MEMORY, ABP_E_LIMIT. */
int table_add(struct call_table *table, const abp_id *id, uint32_t hash, uint32_t flags,
              uint32_t *slot);
void table_unindex(struct call_table *table, uint32_t slot);
void table_release(struct call_table *table, uint32_t slot);
void table_set_timer(struct call_table *table, uint32_t slot, uint64_t deadline);
void table_clear_timer(struct call_table *table, uint32_t slot);
void table_adopt(struct call_table *table, uint32_t parent, uint32_t child);
void table_orphan(struct call_table *table, uint32_t child);
void list_push(struct call_table *table, struct call_list *list, uint32_t slot);
void list_remove(struct call_table *table, struct call_list *list, uint32_t slot);

/* --- calls.c: what every protocol does with calls --------------------------------------------- */

struct call_limits { /* as in abp_config; 0 takes the default */
  uint32_t max_calls, max_concurrent, remembered, remember_ms, grace_ms;
};

struct calls {
  struct call_limits limits;
  struct call_table table;
  uint64_t now;
  uint64_t wake; /* when the outside was told to come back, or 0 */
  uint32_t minted, running, debts, last_debt;
  uint32_t in_flight[2]; /* received, made */
  const char *reason;    /* of a cancel, borrowed until the next input */
  size_t reason_length;
  const char *timeout_reason; /* what is said when the clock asked */
  uint8_t wrapped;            /* the numbers minted have begun again */
};

static inline void set_default(uint32_t *limit, uint32_t value) {
  if (*limit == 0) *limit = value;
}

void calls_init(struct calls *calls, const struct call_limits *limits, const uint8_t seed[16],
                uint64_t now);
abp_call calls_handle(const struct calls *calls, uint32_t slot);
/* The slot of a call, remembered or live, or NO_CALL; of a live one only. */
uint32_t calls_slot(const struct calls *calls, abp_call call);
uint32_t calls_live(const struct calls *calls, abp_call call);
uint32_t calls_find(const struct calls *calls, const abp_id *key, uint32_t direction);
/* A number for a call made here, which no call has. */
uint32_t calls_mint(struct calls *calls);

/* Takes a step and notes what it owes, of this call and of those below and above it. Returns what
 * the table says is owed, a cancel's answer included. */
uint32_t calls_step(struct calls *calls, uint32_t slot, enum call_event event);
/* There is an outcome: ABP_COMPLETED, or that it was cancelled. */
void calls_settle(struct calls *calls, uint32_t slot, abp_outcome outcome);
/* Asks a call to end, because of EV_CANCEL or EV_TIMER, in the way that is open to it. */
uint32_t calls_stop(struct calls *calls, uint32_t slot, enum call_event why);
/* The first slot from `slot` on whose call is not over, or NO_CALL. */
uint32_t calls_next_live(const struct calls *calls, uint32_t slot);
void calls_step_all(struct calls *calls, enum call_event event);
void calls_owe(struct calls *calls, uint32_t slot, uint32_t owed);
/* Starts the handlers of waiting calls for which there is room. */
void calls_admit(struct calls *calls);
/* What was made on behalf of this call goes on without it. */
void calls_disown(struct calls *calls, uint32_t slot);
void calls_forget_old(struct calls *calls, uint32_t most);
void calls_forget_all(struct calls *calls);

/* The next thing owed by a call; some are left while calls->debts is not NO_CALL. */
void calls_pay(struct calls *calls, abp_action *action);
/* The first of all timers and `due` (0: none), or 0; whether the outside must be told; telling it.
 */
uint64_t calls_earliest(const struct calls *calls, uint64_t due);
int calls_wake_owed(const struct calls *calls, uint64_t due);
void calls_wake(struct calls *calls, uint64_t due, abp_action *action);

void calls_advance(struct calls *calls, uint64_t now);
void calls_set_deadline(struct calls *calls, uint32_t slot, uint32_t timeout_ms);
/* A call made here: WAITING. `id` NULL mints one. An abp_status. */
int calls_make(struct calls *calls, const abp_id *id, uint32_t flags, uint32_t *slot);
/* A call that came in: QUEUED, but in no queue. `id` NULL: nobody else names it. An abp_status, or
 * `fault` if its receiver found one. */
int calls_receive(struct calls *calls, const abp_id *id, uint32_t flags, int fault, uint32_t *slot);
/* Lets it wait for its turn; or starts it, if there is room. */
void calls_queue(struct calls *calls, uint32_t slot);
void calls_accept(struct calls *calls, uint32_t slot);
/* Whether a call may be made on behalf of `parent`, whose slot is in *slot. */
int calls_adoptable(const struct calls *calls, abp_call parent, uint32_t *slot);
/* A call made here could not be sent, and is over. An abp_status. */
int calls_unsent(struct calls *calls, abp_call call);
/* A counter: what is counted here, or what its owner counted. */
uint32_t calls_count(const struct calls *calls, const uint32_t counts[ABP_COUNTERS],
                     abp_counter counter);
int utf8_valid(const char *text, size_t length);
/* Writes a number in front of `end`. Returns where it begins. */
static inline char *print_number(char *end, uint64_t number) {
  do
    *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

/* --- rpc.c: for those who check it from inside -------------------------------------------------
 */

struct abp_peer;
const struct calls *abp_peer_calls(const struct abp_peer *peer);

/* --- session.c: the handshake, versions, features, the heartbeat ------------------------------ */

enum session_event {
  SE_CONNECT,
  SE_INITIALIZE,       /* app: the agent says hello */
  SE_INITIALIZE_AGAIN, /* app: the same hello */
  SE_INITIALIZE_OTHER, /* app: another hello while the session lasts */
  SE_ACCEPTED,         /* agent: the app says yes */
  SE_BUSY,             /* agent: the app has a session that has not ended yet */
  SE_REFUSED,
  SE_TIMEOUT,
  SE_SHUTDOWN, /* the peer ends it */
  SE_CLOSE,    /* this side ends it */
  SE_LOST,
  SESSION_EVENTS
};

struct session_step {
  uint8_t next;
  uint8_t calls;  /* 1 + the call_event that every call gets, or 0 */
  uint8_t refuse; /* abp_error that the peer is answered */
  uint8_t sends;  /* 1 << abp_message */
};

struct session {
  abp_session state;
  uint32_t wanted, agreed; /* features */
  uint64_t heard;          /* when the peer last said something */
  uint64_t due;            /* when the session's own timer runs out, or 0 */
  uint64_t give_up;        /* agent: end of the handshake */
  uint32_t pause;          /* agent: until `initialize` is sent again */
  uint8_t asked;           /* a ping is out */
  uint8_t suspended;       /* the peer said that it is frozen */
  uint8_t staying;         /* this side says `bye`, but may come back */
  uint8_t number_id;       /* `initialize` had a number as its id */
  uint32_t serial;         /* of this side's sessions */
  char *id;                /* `initialize`'s id, as text */
  uint32_t id_length;
};

struct session_step session_step(abp_session state, enum session_event event);
/* 1 if `version` reads major.minor. */
int session_version_ok(const char *version, size_t length);
/* Runs the session's clock. Returns the event that it caused, or SESSION_EVENTS; sends are or'ed
 * into *sends. */
enum session_event session_tick(struct session *session, uint64_t now, uint32_t heartbeat_ms,
                                uint32_t *sends);
void session_heard(struct session *session, uint64_t now);
void session_start_heartbeat(struct session *session, uint64_t now, uint32_t heartbeat_ms);

/* --- endpoint.c and endpoint_calls.c ---------------------------------------------------------- */

#define PREFIX 32 /* bytes of the text that this side's ids begin with */
#define DESCRIPTIONS 4

/* How a cancel is answered. */
enum cancel_answer {
  ANSWER_NONE,
  ANSWER_CANCELLED,
  ANSWER_COMPLETED,
  ANSWER_NOT_FOUND,
  ANSWER_NOT_INITIALIZED,
  ANSWER_INVALID
};

/* What an endpoint owes beside messages (1 << abp_message), and what of all comes before that which
 * calls owe: an acknowledgement precedes whatever the cancel does to the call. */
enum outbox {
  OUT_SESSION = 1 << 16,
  OUT_REFUSE = 1 << 17,
  OUT_REPORT = 1 << 18,
  OUT_FIRST = OUT_REFUSE | OUT_REPORT | 1 << ABP_MSG_CANCEL_RESULT
};

struct wire;

struct abp_endpoint {
  abp_config config;
  struct calls calls;
  struct session session;
  uint32_t outbox; /* what is owed beside what calls owe: see enum outbox */
  abp_call report;
  const abp_id *target; /* of abp_cancel_by_id, borrowed until the next input */
  uint8_t refuse;       /* abp_error */
  uint8_t answer;       /* enum cancel_answer */
  char prefix[PREFIX + 1];
  uint32_t prefix_length;
  struct {
    char name[24];
    char *json;
    size_t length;
  } about[DESCRIPTIONS];
  uint32_t counts[ABP_COUNTERS];
  struct wire *wire; /* wire_abp.c's; freed through free_wire, so that the core links without it */
  void (*free_wire)(struct wire *wire);
};

/* Inputs of the control plane, called by the wire. */
int endpoint_initialize(abp_endpoint *endpoint, const char *id, size_t length, int number_id,
                        const char *version, size_t version_length, uint32_t features);
int endpoint_initialized(abp_endpoint *endpoint, const char *session_id, size_t length,
                         int accepted, int busy, uint32_t features);
int endpoint_cancel(abp_endpoint *endpoint, const abp_id *id, const char *reason, size_t length);
int endpoint_cancel_result(abp_endpoint *endpoint, const abp_id *id, int cancelled);
int endpoint_shutdown(abp_endpoint *endpoint);
int endpoint_bye(abp_endpoint *endpoint, int persisted);
int endpoint_ping(abp_endpoint *endpoint, int pong);
void endpoint_count(abp_endpoint *endpoint, abp_counter counter);
void endpoint_refuse(abp_endpoint *endpoint, abp_error error);
/* What precedes the number in the ids of calls made here (`own`) or received. */
const char *endpoint_prefix(const abp_endpoint *endpoint, uint32_t own, uint32_t *length);
/* Begins an input: ABP_E_UNDRAINED while actions of the last one are left. */
int endpoint_enter(abp_endpoint *endpoint);
int endpoint_undrained(const abp_endpoint *endpoint);

#endif
