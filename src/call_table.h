/* The storage of calls: slots, the index of their ids, timers, lists, parents and children. */
#ifndef ABP_CALL_TABLE_H
#define ABP_CALL_TABLE_H

#include "abp.h"
#include "base.h"

/*
 * A call's slot, 56 bytes. Slots live in slabs that never move:
 *
 *   slabs ──▶ [slab 0][slab 1]…          slab: 256 slots; 256 id cells, once an id is text;
 *                                        256 windows, once a call is a stream
 *
 *   index: open addressing, {hash, slot + 1}, a power of two, at most half full
 *   timers: binary heap of slots by deadline; slot.timer is the place in it, so removal costs log n
 *   lists: queue (accepted calls in order); memory (ended calls, oldest first)
 *
 *   handle = generation << 20 | slot: 30 bits, so that it is a small integer in JavaScript
 */
struct call {
  uint32_t number; /* the id, or 0 if the id is text: then the slab's cell has it */
  uint32_t hash;
  uint64_t deadline; /* when its timer fires; if the timer stands still: the time left; for a call
                        that is over: when it ended; else 0 */
  uint32_t timer;    /* place in the heap + 1, or 0 */
  uint32_t next, prev;
  uint32_t debtor; /* the next call that owes something */
  uint32_t parent, child;
  union {
    uint32_t sibling;
    abp_call target; /* for CALL_IS_CANCEL, which has no parent: the call made here that it
                        cancels, or 0 */
  };
  uint16_t generation;
  uint16_t id_length;
  uint16_t owed;
  uint16_t flags;
  uint8_t state;
  uint8_t cause;               /* abp_outcome: why it was cancelled; or CAUSE_CLOSED */
  uint8_t depth;               /* nesting of local calls */
  uint8_t fate : 3;            /* abp_fate of its handler's work */
  uint8_t child_fate : 3;      /* abp_fate of its latest local child that was answered as running
                                  and has returned since; or 0 */
  uint8_t repeats : 1;         /* received: repeats a call that may have run */
  uint8_t awaits_children : 1; /* its handler has returned, but local children still run.
                                  It ends with `child_fate`: RUNNING until that is known */
};

enum {
  CALL_OUT = 1,     /* made here; else received */
  CALL_INDEXED = 2, /* found by its id */
  CALL_PROGRESS = 4,
  CALL_LOCAL = 8,          /* made by a handler here to a handler here */
  CALL_NAMED = 8,          /* JSON-RPC, received: was cancelled by a name that it belongs to */
  CALL_NO_CANCEL = 16,     /* there is no message to cancel it with */
  CALL_IS_CANCEL = 32,     /* is itself a `capabilities/cancel` waiting for its answer */
  CALL_SUBSCRIPTION = 32,  /* JSON-RPC, which has no such calls: the peer may end it by a cancel */
  CALL_LISTED = 64,        /* waits in the queue */
  CALL_NO_WAIT = 128,      /* its caller waits for no answer after a cancel */
  CALL_STREAM = 256,       /* chunks precede its result */
  CALL_ROUNDS = 512,       /* JSON-RPC: its peer may need input before it can answer */
  CALL_ASIDE = 512,        /* ABP, received: is about other calls, and takes no place */
  CALL_HELD = 1024,        /* JSON-RPC: its peer needs input first; it has no id until then */
  CALL_HAS_CANCELS = 2048, /* cancels of it wait for its handler's answer */
  CALL_SWEPT = 4096,       /* was stopped because its parent was */
  CALL_PAST = 8192,        /* of an older session: found only by questions about its outcome */
  CALL_QUESTION = 16384,   /* is a question to a person without an answer yet */
  CALL_PAUSED = 32768      /* a child waits for a person: its clock stands still */
};

/* The amount of a stream that is under way. */
struct stream {
  uint64_t bytes;      /* of chunks that were sent or have arrived, and not granted again */
  uint64_t read_bytes; /* caller: those of them that were read */
  uint64_t unsaid;     /* caller: bytes beyond the stated sizes, since everything was read */
  uint32_t chunks, read_chunks;
  uint32_t max_chunks, max_bytes; /* the window: when it is full, no chunk is sent */
};

_Static_assert(CALL_OUT == 1, "call_table.latest has a place for each direction");

/* A call's cause: its session ended in good order. The peer gets the outcome `cancelled`; for later
 * questions the call ended as ABP_DISCONNECTED. */
enum { CAUSE_CLOSED = ABP_FAILED + 1 };

#define NO_CALL UINT32_MAX
#define SLOT_BITS 20
#ifndef SLAB_CALLS /* the exploration uses small slabs */
#define SLAB_CALLS 256
#endif
#define ID_CELL 40 /* holds a UUID; longer ids are allocated */

struct call_list {
  uint32_t head, tail, count;
};

struct call_slab {
  struct call calls[SLAB_CALLS];
  char (*ids)[ID_CELL];
  struct stream *streams;
  struct call_slab *previous;
};

struct index_entry {
  uint32_t hash, slot; /* slot + 1; 0: the place is free */
};

struct call_index {
  struct index_entry *entries;
  uint32_t mask, shift; /* convert a hash to a place */
  uint32_t count, max_count;
};

struct call_table {
  /* For each slab the address that slot 0 would have if it were in this slab. So one multiplication
   * finds a slot. */
  uintptr_t *slabs;
  struct call_slab *last; /* leak detectors follow real addresses, which `slabs` has not */
  uint32_t slab_count, slab_room;
  struct call_index index;
  uint32_t *timers;
  uint32_t timer_count;
  struct call_list queue, memory;
  uint32_t free;
  uint64_t key[2]; /* the key of the hash */
  struct call_block {
    uint32_t block, start; /* block + 1; 0: none yet */
  } latest[2]; /* received, made: where the latest block of 4,096 numbers begins in the index */
};

void abp_table_init(struct call_table *table, const uint8_t seed[16]);
void abp_table_free(struct call_table *table);
static inline struct call *table_call(const struct call_table *table, uint32_t slot) {
  return (struct call *)(table->slabs[slot / SLAB_CALLS] + slot * sizeof(struct call));
}
/* The slab of a slot. */
struct call_slab *abp_table_slab(const struct call_table *table, uint32_t slot);
const char *abp_table_id(const struct call_table *table, uint32_t slot);
/* Only for a call with CALL_STREAM. */
static inline struct stream *table_stream(const struct call_table *table, uint32_t slot) {
  return &abp_table_slab(table, slot)->streams[slot % SLAB_CALLS];
}
/* The hash of an id. It is computed once and passed to abp_table_find and abp_table_add. */
uint32_t abp_table_hash(struct call_table *table, const abp_id *id, uint32_t direction);
/* The same, for an id that is text. */
uint32_t abp_table_hash_text(const struct call_table *table, const abp_id *id, uint32_t direction);
/* `direction`: 0 for a call that was received, CALL_OUT or CALL_PAST. */
uint32_t abp_table_find(const struct call_table *table, const abp_id *id, uint32_t hash,
                        uint32_t direction);
/* Takes a slot for a new call, indexed by `id` unless that is NULL. All memory that the call will
 * need is allocated here. Errors, after which nothing has changed: ABP_E_MEMORY, ABP_E_LIMIT. */
int abp_table_add(struct call_table *table, const abp_id *id, uint32_t hash, uint32_t flags,
                  uint32_t *slot);
void abp_table_unindex(struct call_table *table, uint32_t slot);
/* Gives a call that is not indexed a number as its id. Errors, after which nothing has changed:
 * ABP_E_MEMORY. */
int abp_table_renumber(struct call_table *table, uint32_t slot, uint32_t number);
/* The call's session is over: from now on it has CALL_PAST, and this text as its id. If memory is
 * short, or the id is too long, it is no longer found. */
void abp_table_age(struct call_table *table, uint32_t slot, const abp_id *id);
void abp_table_release(struct call_table *table, uint32_t slot);
void abp_table_set_timer(struct call_table *table, uint32_t slot, uint64_t deadline);
void abp_table_clear_timer(struct call_table *table, uint32_t slot);
void abp_table_adopt(struct call_table *table, uint32_t parent, uint32_t child);
void abp_table_orphan(struct call_table *table, uint32_t child);
void abp_list_push(struct call_table *table, struct call_list *list, uint32_t slot);
void abp_list_remove(struct call_table *table, struct call_list *list, uint32_t slot);

#endif
