/* The storage of calls. call_table.h has a drawing of it. */
#include "call_table.h"

#include "call_state.h"
#include "siphash.h"

#include <stdlib.h>
#include <string.h>

COLD void abp_table_init(struct call_table *table, const uint8_t seed[16]) {
  memset(table, 0, sizeof *table);
  table->key[0] = abp_siphash_derive(seed, "index 0");
  table->key[1] = abp_siphash_derive(seed, "index 1");
  const struct call_list none = {NO_CALL, NO_CALL, 0};
  table->queue = table->memory = none;
  table->free = NO_CALL;
}

ONE_COPY struct call_slab *abp_table_slab(const struct call_table *table, uint32_t slot) {
  return (struct call_slab *)table_call(table, slot - slot % SLAB_CALLS);
}

static char *id_cell(const struct call_table *table, uint32_t slot) {
  return abp_table_slab(table, slot)->ids[slot % SLAB_CALLS];
}

const char *abp_table_id(const struct call_table *table, uint32_t slot) {
  const char *cell = id_cell(table, slot);
  if (table_call(table, slot)->id_length <= ID_CELL) return cell;
  const char *text;
  memcpy(&text, cell, sizeof text);
  return text;
}

ONE_COPY static void free_long_id(struct call_table *table, uint32_t slot) {
  if (table_call(table, slot)->id_length > ID_CELL)
    free((void *)(uintptr_t)abp_table_id(table, slot));
}

COLD void abp_table_free(struct call_table *table) {
  for (uint32_t i = 0; i < table->slab_count; i++) {
    for (uint32_t j = 0; j < SLAB_CALLS; j++)
      free_long_id(table, i * SLAB_CALLS + j);
    struct call_slab *slab = abp_table_slab(table, i * SLAB_CALLS);
    free(slab->ids);
    free(slab->streams);
    free(slab);
  }
  free(table->slabs);
  free(table->index.entries);
  free(table->timers);
}

/* --- Lists ------------------------------------------------------------------------------------ */

void abp_list_push(struct call_table *table, struct call_list *list, uint32_t slot) {
  struct call *call = table_call(table, slot);
  call->next = NO_CALL;
  call->prev = list->tail;
  if (list->tail == NO_CALL)
    list->head = slot;
  else
    table_call(table, list->tail)->next = slot;
  list->tail = slot;
  list->count++;
}

void abp_list_remove(struct call_table *table, struct call_list *list, uint32_t slot) {
  struct call *call = table_call(table, slot);
  if (call->prev == NO_CALL)
    list->head = call->next;
  else
    table_call(table, call->prev)->next = call->next;
  if (call->next == NO_CALL)
    list->tail = call->prev;
  else
    table_call(table, call->next)->prev = call->prev;
  list->count--;
}

/* --- Index ------------------------------------------------------------------------------------ */

/* A keyed hash, so that a peer cannot choose ids that collide; the limit on calls also bounds the
 * length of a run of collisions. */
uint32_t abp_table_hash_text(const struct call_table *table, const abp_id *id, uint32_t direction) {
  return (uint32_t)abp_siphash_text(table->key, id->text, id->length,
                                    (uint8_t)(id->length << 1 | direction));
}

/*
 * Numbers are consecutive. Eight in a row share a cache line. The 512 groups of eight in a block of
 * 4,096 are spread evenly (by the golden ratio), from a place that depends on the key. That place
 * is kept for the latest block of each direction.
 */
uint32_t abp_table_hash(struct call_table *table, const abp_id *id, uint32_t direction) {
  if (id->text) return abp_table_hash_text(table, id, direction);
  const uint32_t block = id->number >> 12;
  struct call_block *latest = &table->latest[direction];
  if (latest->block != block + 1) {
    const uint64_t word = (uint64_t)block << 1 | direction;
    *latest = (struct call_block){block + 1, (uint32_t)abp_siphash_word(table->key, word)};
  }
  return ((latest->start + (id->number >> 3) * 0x9e3779b1u) & ~7u) | (id->number & 7);
}

/* The place where an entry belongs: the first bits of the hash select a group of eight places, its
 * last three bits one of them. */
static uint32_t home(uint32_t hash, uint32_t shift) { return (hash >> shift & ~7u) | (hash & 7); }

static int same_id(const struct call_table *table, uint32_t slot, const abp_id *id,
                   uint32_t direction) {
  const struct call *call = table_call(table, slot);
  if ((call->flags & (CALL_OUT | CALL_PAST)) != direction) return 0;
  if (!id->text) return call->number == id->number;
  return call->number == 0 && call->id_length == id->length &&
         memcmp(abp_table_id(table, slot), id->text, id->length) == 0;
}

/* Robin Hood hashing: among entries that want the same place, those farther from home come first.
 * So a search ends where nearer entries begin, and the entries after a gap move back only until one
 * is at home. */
static uint32_t distance(const struct call_index *index, uint32_t place, uint32_t hash) {
  return (place - home(hash, index->shift)) & index->mask;
}

uint32_t abp_table_find(const struct call_table *table, const abp_id *id, uint32_t hash,
                        uint32_t direction) {
  const struct call_index *index = &table->index;
  if (!index->entries) return NO_CALL;
  uint32_t place = home(hash, index->shift);
  for (uint32_t far = 0;; far++) {
    const struct index_entry entry = index->entries[place];
    if (!entry.slot || distance(index, place, entry.hash) < far) return NO_CALL;
    if (entry.hash == hash && same_id(table, entry.slot - 1, id, direction)) return entry.slot - 1;
    place = (place + 1) & index->mask;
  }
}

ONE_COPY static void index_put(struct call_index *index, uint32_t hash, uint32_t slot) {
  struct index_entry entry = {hash, slot + 1};
  uint32_t place = home(hash, index->shift), far = 0;
  for (; index->entries[place].slot; place = (place + 1) & index->mask, far++) {
    const struct index_entry other = index->entries[place];
    const uint32_t others = distance(index, place, other.hash);
    if (others >= far) continue;
    index->entries[place] = entry;
    entry = other;
    far = others;
  }
  index->entries[place] = entry;
  index->count++;
}

COLD static int index_grow(struct call_index *index) {
  const struct call_index old = *index;
  const uint32_t room = old.entries ? (old.mask + 1) * 2 : 64;
  struct index_entry *entries = calloc(room, sizeof *entries);
  if (!entries) return ABP_E_MEMORY;
  *index = (struct call_index){entries, room - 1, 32, 0, room / 2};
  for (uint32_t i = room; i > 1; i /= 2)
    index->shift--;
  for (uint32_t i = 0; i < old.max_count * 2; i++) {
    if (old.entries[i].slot) index_put(index, old.entries[i].hash, old.entries[i].slot - 1);
  }
  free(old.entries);
  return ABP_OK;
}

/* Leaves no tombstone, so look-ups stay short, however many calls come and go. */
void abp_table_unindex(struct call_table *table, uint32_t slot) {
  struct call *call = table_call(table, slot);
  if (!(call->flags & CALL_INDEXED)) return;
  call->flags &= (uint16_t)~CALL_INDEXED;
  struct call_index *index = &table->index;
  index->count--;
  uint32_t gap = home(call->hash, index->shift);
  while (index->entries[gap].slot != slot + 1)
    gap = (gap + 1) & index->mask;
  for (;;) {
    const uint32_t next = (gap + 1) & index->mask;
    const struct index_entry entry = index->entries[next];
    if (!entry.slot || !distance(index, next, entry.hash)) break;
    index->entries[gap] = entry;
    gap = next;
  }
  index->entries[gap].slot = 0;
}

COLD int abp_table_renumber(struct call_table *table, uint32_t slot, uint32_t number) {
  struct call *call = table_call(table, slot);
  if (table->index.count == table->index.max_count && index_grow(&table->index) != ABP_OK)
    return ABP_E_MEMORY;
  const abp_id id = {NULL, 0, number};
  call->number = number;
  call->hash = abp_table_hash(table, &id, call->flags & CALL_OUT);
  call->flags |= CALL_INDEXED;
  index_put(&table->index, call->hash, slot);
  return ABP_OK;
}

/* --- Slots ------------------------------------------------------------------------------------ */

/* The slot freed last is used first: it is still in the cache. */
static void push_free(struct call_table *table, uint32_t slot) {
  table_call(table, slot)->next = table->free;
  table->free = slot;
}

COLD static int add_slab(struct call_table *table) {
  const uint32_t calls = (table->slab_count + 1) * SLAB_CALLS;
  if (calls > 1u << SLOT_BITS) return ABP_E_LIMIT;
  if (table->slab_count == table->slab_room) {
    uint32_t room = table->slab_room ? table->slab_room * 2 : 4;
    uintptr_t *slabs = realloc(table->slabs, room * sizeof *slabs);
    if (!slabs) return ABP_E_MEMORY;
    table->slabs = slabs;
    /* A cancel must not fail, and it needs a timer. So there is room for a timer of every call. */
    uint32_t *timers = realloc(table->timers, room * SLAB_CALLS * sizeof *timers);
    if (!timers) return ABP_E_MEMORY;
    table->timers = timers;
    table->slab_room = room;
  }
  struct call_slab *slab = calloc(1, sizeof *slab);
  if (!slab) return ABP_E_MEMORY;
  const uint32_t first = calls - SLAB_CALLS;
  slab->previous = table->last;
  table->last = slab;
  table->slabs[table->slab_count++] = (uintptr_t)slab - first * sizeof(struct call);
  for (uint32_t slot = first; slot < calls; slot++) {
    table_call(table, slot)->generation = 1;
    push_free(table, slot);
  }
  return ABP_OK;
}

ONE_COPY static int store_id(struct call_table *table, uint32_t slot, const abp_id *id) {
  struct call_slab *slab = abp_table_slab(table, slot);
  if (!slab->ids) {
    slab->ids = malloc(sizeof *slab->ids * SLAB_CALLS);
    if (!slab->ids) return ABP_E_MEMORY;
  }
  char *cell = id_cell(table, slot);
  if (id->length > ID_CELL) {
    char *text = malloc(id->length);
    if (!text) return ABP_E_MEMORY;
    memcpy(cell, &text, sizeof text);
    cell = text;
  }
  memcpy(cell, id->text, id->length);
  table_call(table, slot)->id_length = (uint16_t)id->length;
  return ABP_OK;
}

COLD void abp_table_age(struct call_table *table, uint32_t slot, const abp_id *id) {
  struct call *call = table_call(table, slot);
  const uint32_t hash = abp_table_hash_text(table, id, 0);
  const uint32_t same = abp_table_find(table, id, hash, CALL_PAST);
  if (same != NO_CALL) abp_table_unindex(table, same);
  abp_table_unindex(table, slot);
  if (id->length > UINT16_MAX || (call->number && store_id(table, slot, id) != ABP_OK)) return;
  call->number = 0;
  call->hash = hash;
  call->flags |= CALL_INDEXED | CALL_PAST;
  index_put(&table->index, hash, slot);
}

COLD static int add_streams(struct call_slab *slab) {
  if (!slab->streams) slab->streams = calloc(SLAB_CALLS, sizeof *slab->streams);
  return slab->streams ? ABP_OK : ABP_E_MEMORY;
}

int abp_table_add(struct call_table *table, const abp_id *id, uint32_t hash, uint32_t flags,
                  uint32_t *added) {
  int status = ABP_OK;
  if (table->index.count == table->index.max_count) status = index_grow(&table->index);
  if (status == ABP_OK && table->free == NO_CALL) status = add_slab(table);
  if (status != ABP_OK) return status;
  const uint32_t slot = table->free;
  struct call *call = table_call(table, slot);
  call->id_length = 0;
  if (flags & CALL_STREAM && add_streams(abp_table_slab(table, slot)) != ABP_OK)
    return ABP_E_MEMORY;
  if (id && id->text && store_id(table, slot, id) != ABP_OK) return ABP_E_MEMORY;
  table->free = call->next;
  call->number = id && !id->text ? id->number : 0;
  call->deadline = 0;
  call->timer = 0;
  call->parent = call->child = call->sibling = NO_CALL;
  call->owed = 0;
  call->cause = ABP_PENDING;
  call->depth = 0;
  call->fate = call->child_fate = call->repeats = call->awaits_children = ABP_FATE_NONE;
  call->flags = (uint16_t)flags;
  if (id) {
    call->hash = hash;
    call->flags |= CALL_INDEXED;
    index_put(&table->index, hash, slot);
  }
  *added = slot;
  return ABP_OK;
}

void abp_table_release(struct call_table *table, uint32_t slot) {
  struct call *call = table_call(table, slot);
  abp_table_unindex(table, slot);
  abp_table_clear_timer(table, slot);
  free_long_id(table, slot);
  call->id_length = 0;
  call->state = FREE;
  /* 10 bits, never 0, so that no handle is 0. */
  call->generation = call->generation == 1023 ? 1 : (uint16_t)(call->generation + 1);
  push_free(table, slot);
}

/* --- Timers ----------------------------------------------------------------------------------- */

static uint64_t timer_at(const struct call_table *table, uint32_t place) {
  return table_call(table, table->timers[place])->deadline;
}

static void timer_put(struct call_table *table, uint32_t place, uint32_t slot) {
  table->timers[place] = slot;
  table_call(table, slot)->timer = place + 1;
}

COLD static void timer_sift(struct call_table *table, uint32_t place) {
  const uint32_t slot = table->timers[place];
  const uint64_t deadline = table_call(table, slot)->deadline;
  for (; place && timer_at(table, (place - 1) / 2) > deadline; place = (place - 1) / 2)
    timer_put(table, place, table->timers[(place - 1) / 2]);
  for (;;) {
    uint32_t child = place * 2 + 1;
    if (child >= table->timer_count) break;
    if (child + 1 < table->timer_count && timer_at(table, child + 1) < timer_at(table, child))
      child++;
    if (timer_at(table, child) >= deadline) break;
    timer_put(table, place, table->timers[child]);
    place = child;
  }
  timer_put(table, place, slot);
}

COLD static void remove_timer(struct call_table *table, uint32_t slot) {
  struct call *call = table_call(table, slot);
  const uint32_t place = call->timer - 1;
  const uint32_t last = table->timers[--table->timer_count];
  call->timer = 0;
  call->deadline = 0;
  if (last == slot) return;
  timer_put(table, place, last);
  timer_sift(table, place);
}

void abp_table_clear_timer(struct call_table *table, uint32_t slot) {
  if (table_call(table, slot)->timer) remove_timer(table, slot);
}

COLD void abp_table_set_timer(struct call_table *table, uint32_t slot, uint64_t deadline) {
  abp_table_clear_timer(table, slot);
  table_call(table, slot)->deadline = deadline;
  timer_put(table, table->timer_count, slot);
  timer_sift(table, table->timer_count++);
}

/* --- Parents and children --------------------------------------------------------------------- */

COLD void abp_table_adopt(struct call_table *table, uint32_t parent, uint32_t child) {
  table_call(table, child)->parent = parent;
  table_call(table, child)->sibling = table_call(table, parent)->child;
  table_call(table, parent)->child = child;
}

COLD void abp_table_orphan(struct call_table *table, uint32_t child) {
  struct call *call = table_call(table, child);
  if (call->parent == NO_CALL) return;
  uint32_t *link = &table_call(table, call->parent)->child;
  while (*link != child)
    link = &table_call(table, *link)->sibling;
  *link = call->sibling;
  call->parent = NO_CALL;
}
