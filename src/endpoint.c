/*
 * Every input: find the slot, step the table, note what is owed. What is owed is handed out by
 * abp_next.
 *
 * Nothing is queued that could overflow: a call's slot has bits for what it owes and a link to the
 * next debtor; all else an input can cause is one field each, because inputs are drained one by
 * one.
 */
#include "abp_internal.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_MS 0x7fffffffu /* longer timers fire at once in JavaScript */
#define DEEPEST 32             /* local calls within local calls */

static const struct {
  const char *name, *message;
  int retryable;
} ERRORS[ABP_ERROR_COUNT] = {
    [ABP_NO_ERROR] = {"", "", 0},
    [ABP_NOT_INITIALIZED] = {"NOT_INITIALIZED", "There is no session: send initialize first", 1},
    [ABP_ALREADY_INITIALIZED] = {"ALREADY_INITIALIZED",
                                 "There is a session already: end it with shutdown first", 0},
    [ABP_UNKNOWN_CAPABILITY] = {"UNKNOWN_CAPABILITY", "This app has no such capability", 0},
    [ABP_CAPABILITY_UNAVAILABLE] = {"CAPABILITY_UNAVAILABLE",
                                    "This capability is not available at the moment", 1},
    [ABP_REQUIREMENT_NOT_MET] = {"REQUIREMENT_NOT_MET",
                                 "A requirement of this capability is not met", 1},
    [ABP_INVALID_PARAMS] = {"INVALID_PARAMS", "The parameters are not of the form expected", 0},
    [ABP_DUPLICATE_CALL] = {"INVALID_PARAMS",
                            "A call with this callId is in flight: choose another", 0},
    [ABP_INVALID_ID] = {"INVALID_PARAMS",
                        "The callId is empty, too long, not a string or not well-formed", 0},
    [ABP_RATE_LIMITED] = {"RATE_LIMITED",
                          "Too many calls are in flight: retry when some have ended", 1},
    [ABP_NOT_SUPPORTED] = {"NOT_SUPPORTED", "The other side does not support this", 0},
    [ABP_OPERATION_FAILED] = {"OPERATION_FAILED", "The operation failed", 0},
    [ABP_CANCELLED_ERROR] = {"CANCELLED", "The operation was cancelled", 0},
    [ABP_TIMEOUT_ERROR] = {"TIMEOUT", "The operation took longer than its timeout", 1},
    [ABP_DISCONNECTED_ERROR] = {"DISCONNECTED", "The other side is gone: reconnect", 1},
    [ABP_INTERNAL_ERROR] = {"INTERNAL_ERROR", "The bridge failed", 1},
    [ABP_PERMISSION_DENIED] = {"PERMISSION_DENIED", "This is not allowed here", 0},
};

static int known_error(int error) { return error > 0 && error < ABP_ERROR_COUNT ? error : 0; }
const char *abp_error_name(int error) { return ERRORS[known_error(error)].name; }
const char *abp_error_message(int error) { return ERRORS[known_error(error)].message; }
int abp_error_retryable(int error) { return ERRORS[known_error(error)].retryable; }

/* --- Endpoint --------------------------------------------------------------------------------- */

static void set_default(uint32_t *limit, uint32_t value) {
  if (*limit == 0) *limit = value;
}

abp_endpoint *abp_new(const abp_config *config, uint64_t now) {
  abp_endpoint *ep = calloc(1, sizeof *ep);
  if (!ep) return NULL;
  ep->config = *config;
  set_default(&ep->config.max_calls, 4096);
  set_default(&ep->config.max_concurrent, ep->config.max_calls);
  set_default(&ep->config.remembered, 1024);
  set_default(&ep->config.remember_ms, 300000);
  set_default(&ep->config.grace_ms, config->role == ABP_APP ? 3000 : 5000);
  set_default(&ep->config.max_id, 256);
  if (ep->config.max_id > UINT16_MAX) ep->config.max_id = UINT16_MAX;
  set_default(&ep->config.max_text, 1 << 20);
  set_default(&ep->config.heartbeat_ms, 15000);
  ep->session.wanted = config->features;
  ep->now = now;
  ep->debts = ep->last_debt = NO_CALL;
  table_init(&ep->table, config->seed);
  return ep;
}

void abp_free(abp_endpoint *ep) {
  if (!ep) return;
  if (ep->free_wire) ep->free_wire(ep->wire);
  table_free(&ep->table);
  for (int i = 0; i < DESCRIPTIONS; i++)
    free(ep->about[i].json);
  free(ep->session.id);
  free(ep);
}

int abp_describe(abp_endpoint *ep, const char *member, const char *json, size_t length) {
  int i = 0;
  while (i < DESCRIPTIONS && ep->about[i].json && strcmp(ep->about[i].name, member) != 0)
    i++;
  if (i == DESCRIPTIONS || strlen(member) >= sizeof ep->about[i].name) return ABP_E_LIMIT;
  char *copy = malloc(length + 1);
  if (!copy) return ABP_E_MEMORY;
  memcpy(copy, json, length);
  copy[length] = 0;
  free(ep->about[i].json);
  memcpy(ep->about[i].name, member, strlen(member) + 1);
  ep->about[i].json = copy;
  ep->about[i].length = length;
  return ABP_OK;
}

void endpoint_count(abp_endpoint *ep, abp_counter counter) { ep->counts[counter]++; }

uint32_t abp_count(const abp_endpoint *ep, abp_counter counter) {
  if (counter == ABP_IN_FLIGHT_IN) return ep->in_flight[0];
  if (counter == ABP_IN_FLIGHT_OUT) return ep->in_flight[1];
  if (counter == ABP_REMEMBERED) return ep->table.memory.count;
  return ep->counts[counter];
}

uint32_t abp_features(const abp_endpoint *ep) {
  return ep->session.state == ABP_SESSION_READY ? ep->session.agreed : 0;
}

abp_session abp_session_state(const abp_endpoint *ep) { return ep->session.state; }

/* --- Ids and handles -------------------------------------------------------------------------- */

int utf8_valid(const char *text, size_t length) {
  const uint8_t *s = (const uint8_t *)text, *end = s + length;
  while (s < end) {
    /* Eight plain characters at once: most ids have no others. */
    uint64_t eight;
    if (end - s >= 8) {
      memcpy(&eight, s, 8);
      if (!((eight | (eight - 0x0101010101010101u)) & 0x8080808080808080u)) {
        s += 8;
        continue;
      }
    }
    const uint8_t lead = *s++;
    if (lead == 0) return 0;
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || end - s < more) return 0;
    uint32_t point = lead & (0x3fu >> more);
    for (int i = 0; i < more; i++) {
      if ((s[i] & 0xc0) != 0x80) return 0;
      point = point << 6 | (s[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    s += more;
  }
  return 1;
}

static int id_ok(const abp_endpoint *ep, const abp_id *id) {
  if (!id->text) return id->number != 0;
  return id->length > 0 && id->length <= ep->config.max_id && utf8_valid(id->text, id->length);
}

static const char *prefix_of(const abp_endpoint *ep, uint32_t own, size_t *length) {
  *length = own ? strlen(ep->prefix) : ep->session.id_length;
  return own ? ep->prefix : ep->session.id;
}

/* The one place that reads "P.n" as the number n. Only the canonical decimal, so that no two texts
 * are one id. */
static abp_id canonical(const abp_endpoint *ep, const abp_id *id, uint32_t own) {
  size_t skip;
  const char *prefix = prefix_of(ep, own, &skip);
  if (!id->text || !skip || id->length < skip + 2 || id->length > skip + 11) return *id;
  if (id->text[skip] != '.' || memcmp(id->text, prefix, skip) != 0) return *id;
  uint64_t number = 0;
  for (uint32_t i = (uint32_t)skip + 1; i < id->length; i++) {
    const char digit = id->text[i];
    if (digit < '0' || digit > '9' || (digit == '0' && number == 0)) return *id;
    number = number * 10 + (uint64_t)(digit - '0');
  }
  return number > UINT32_MAX ? *id : (abp_id){NULL, 0, (uint32_t)number};
}

static uint32_t find(const abp_endpoint *ep, const abp_id *id, uint32_t direction) {
  const abp_id key = canonical(ep, id, direction);
  return table_find(&ep->table, &key, table_hash(&ep->table, &key, direction), direction);
}

static abp_call handle(const abp_endpoint *ep, uint32_t slot) {
  return (uint32_t)table_call(&ep->table, slot)->generation << SLOT_BITS | slot;
}

uint32_t endpoint_slot(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = call & ((1u << SLOT_BITS) - 1);
  if (slot >= ep->table.slab_count * SLAB_CALLS) return NO_CALL;
  const struct call *c = table_call(&ep->table, slot);
  return c->state != FREE && c->generation == call >> SLOT_BITS ? slot : NO_CALL;
}

static uint32_t live_slot(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = endpoint_slot(ep, call);
  if (slot == NO_CALL || call_is_over(table_call(&ep->table, slot)->state)) return NO_CALL;
  return slot;
}

static char *print_number(char *end, uint32_t number) {
  do
    *--end = (char)('0' + number % 10);
  while (number /= 10);
  return end;
}

size_t abp_id_text(const abp_endpoint *ep, abp_call call, char *buffer, size_t size) {
  const uint32_t slot = endpoint_slot(ep, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&ep->table, slot);
  char digits[11];
  size_t length = c->id_length, digits_length = 0;
  const char *text = digits;
  if (c->number) {
    text = prefix_of(ep, c->flags & (CALL_OUT | CALL_LOCAL), &length);
    char *first = print_number(digits + sizeof digits, c->number);
    *--first = '.';
    digits_length = (size_t)(digits + sizeof digits - first);
    if (length + digits_length <= size) memcpy(buffer + length, first, digits_length);
  } else if (length) {
    text = table_id(&ep->table, slot);
  }
  if (length + digits_length <= size) memcpy(buffer, text, length);
  return length + digits_length;
}

uint32_t abp_number(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = endpoint_slot(ep, call);
  return slot == NO_CALL ? 0 : table_call(&ep->table, slot)->number;
}

/* Unguessable, since the seed is secret, and new with each session, so that an answer to an older
 * one finds nothing. */
static void new_prefix(abp_endpoint *ep) {
  char *p = ep->prefix;
  for (int i = 0; i < 10; i++) {
    *p++ = "0123456789abcdef"[ep->config.seed[i] >> 4];
    *p++ = "0123456789abcdef"[ep->config.seed[i] & 15];
  }
  *p++ = '-';
  char digits[10];
  const char *first = print_number(digits + sizeof digits, ++ep->session.serial);
  const size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(p, first, length);
  p[length] = 0;
}

static uint32_t mint(abp_endpoint *ep) {
  abp_id id = {NULL, 0, 0};
  do {
    id.number = ++ep->minted;
    if (id.number == 0) ep->wrapped = 1;
  } while (id.number == 0 || (ep->wrapped && find(ep, &id, CALL_OUT) != NO_CALL));
  return id.number;
}

/* --- Steps ------------------------------------------------------------------------------------ */

static void owe(abp_endpoint *ep, uint32_t slot, uint32_t owed) {
  struct call *call = table_call(&ep->table, slot);
  if (!owed) return;
  if (!call->owed) {
    call->debtor = NO_CALL;
    if (ep->debts == NO_CALL)
      ep->debts = slot;
    else
      table_call(&ep->table, ep->last_debt)->debtor = slot;
    ep->last_debt = slot;
  }
  call->owed |= (uint16_t)owed;
}

static void forget(abp_endpoint *ep, uint32_t slot) {
  list_remove(&ep->table, &ep->table.memory, slot);
  table_release(&ep->table, slot);
}

static void forget_old(abp_endpoint *ep, uint32_t most) {
  struct call_list *memory = &ep->table.memory;
  while (memory->count > most ||
         (memory->count &&
          ep->now - table_call(&ep->table, memory->head)->deadline > ep->config.remember_ms))
    forget(ep, memory->head);
}

/* A call is over and has paid what it owed: only its id and its fate are kept. */
static void remember(abp_endpoint *ep, uint32_t slot) {
  struct call *call = table_call(&ep->table, slot);
  call->deadline = ep->now;
  list_push(&ep->table, &ep->table.memory, slot);
  if (call->flags & CALL_INDEXED)
    forget_old(ep, ep->config.remembered);
  else
    forget(ep, slot);
}

static abp_outcome cause_of(enum call_event event) {
  switch (event) {
  case EV_TIMER: return ABP_TIMED_OUT;
  case EV_LOST: return ABP_DISCONNECTED;
  case EV_COMPLETE: return ABP_COMPLETED;
  default: return ABP_CANCELLED;
  }
}

static uint32_t step(abp_endpoint *ep, uint32_t slot, enum call_event event);

/* What a handler began ends with it: the tree below a call that stops is stopped first. */
static void cascade(abp_endpoint *ep, struct call *parent) {
  for (uint32_t slot = parent->child; slot != NO_CALL; slot = parent->child) {
    struct call *child = table_call(&ep->table, slot);
    table_orphan(&ep->table, slot);
    child->cause = child->cause                    ? child->cause
                   : parent->cause > ABP_COMPLETED ? parent->cause
                                                   : ABP_CANCELLED;
    step(ep, slot, child->flags & CALL_NO_CANCEL ? EV_ABANDON : EV_CANCEL);
  }
}

static void admit(abp_endpoint *ep) {
  while (ep->running < ep->config.max_concurrent && ep->table.queue.head != NO_CALL)
    step(ep, ep->table.queue.head, EV_START);
}

static uint32_t step(abp_endpoint *ep, uint32_t slot, enum call_event event) {
  struct call *call = table_call(&ep->table, slot);
  const enum call_state before = call->state;
  const struct call_step taken = call_step(before, event);
  const enum call_state after = taken.next;
  uint32_t owed = taken.owed & ~(uint32_t)(OWE_ACK | OWE_NAK);
  if (after == before) return taken.owed;
  /* Whoever is lost, the handler that made a local call is here and waits for its answer. */
  if (event == EV_LOST && call->flags & CALL_LOCAL) owed |= OWE_RESULT;
  call->state = taken.next;
  /* The first cause stands; for a caller, an outcome outweighs its own wish. */
  if (event != EV_START &&
      (!call->cause || (call->flags & CALL_OUT && call_is_over(after) &&
                        cause_of(event) != ABP_CANCELLED && cause_of(event) != ABP_TIMED_OUT)))
    call->cause = (uint8_t)cause_of(event);
  if (event != EV_START && call->child != NO_CALL) cascade(ep, call);
  if (call->flags & CALL_LISTED) {
    call->flags &= (uint8_t)~CALL_LISTED;
    list_remove(&ep->table, &ep->table.queue, slot);
  }
  if (after == CANCELLING || after == STOPPING)
    table_set_timer(&ep->table, slot, ep->now + ep->config.grace_ms);
  else if (after != RUNNING)
    table_clear_timer(&ep->table, slot);
  owe(ep, slot, owed);
  /* What has settled needs no cancel any more, and when it is sent there may be no such call. */
  if (after == SETTLED) call->owed &= (uint16_t)~OWE_CANCEL;
  ep->running += (uint32_t)(call_has_handler(after) - call_has_handler(before));
  if (call_is_over(after)) {
    ep->in_flight[call->flags & CALL_OUT]--;
    table_orphan(&ep->table, slot);
    if (!call->owed) remember(ep, slot);
  }
  if (call_has_handler(before) && call_is_over(after)) admit(ep);
  return taken.owed;
}

static void step_all(abp_endpoint *ep, enum call_event event) {
  const uint32_t slots = ep->table.slab_count * SLAB_CALLS;
  for (uint32_t slot = 0; slot < slots; slot++) {
    const enum call_state state = table_call(&ep->table, slot)->state;
    if (state != FREE && !call_is_over(state)) step(ep, slot, event);
  }
}

/* --- Actions ---------------------------------------------------------------------------------- */

static uint64_t earliest(const abp_endpoint *ep) {
  const uint64_t due = ep->session.due;
  if (!ep->table.timer_count) return due;
  const uint64_t timer = table_call(&ep->table, ep->table.timers[0])->deadline;
  return due && due < timer ? due : timer;
}

static int wake_owed(const abp_endpoint *ep) {
  const uint64_t at = earliest(ep);
  return at && (!ep->wake || at < ep->wake);
}

int endpoint_undrained(const abp_endpoint *ep) {
  return ep->debts != NO_CALL || ep->sends ||
         (ep->refuse | ep->reporting | ep->answer | ep->session_event) || wake_owed(ep);
}

/* Why a call is stopped, as far as anybody said. */
static void give_reason(const abp_endpoint *ep, const struct call *call, abp_action *action) {
  action->text = ep->reason;
  action->length = ep->reason_length;
  if (!ep->reason && call->cause == ABP_TIMED_OUT) {
    action->text = "Timeout";
    action->length = strlen(action->text);
  }
}

static void pay(abp_endpoint *ep, abp_action *action) {
  const uint32_t slot = ep->debts;
  struct call *call = table_call(&ep->table, slot);
  const uint32_t debt = call->owed & -(uint32_t)call->owed;
  call->owed &= (uint16_t)~debt;
  action->call = handle(ep, slot);
  action->arg = call->state == COMPLETED ? ABP_COMPLETED : call->cause;
  action->released = call_is_over(call->state) && !call->owed;
  switch (debt) {
  case OWE_QUEUED: action->kind = ABP_QUEUED; break;
  case OWE_START: action->kind = ABP_START; break;
  case OWE_REQUEST: action->kind = ABP_REQUEST; break;
  case OWE_CANCEL:
    action->kind = ABP_SEND;
    action->arg = ABP_MSG_CANCEL;
    give_reason(ep, call, action);
    break;
  case OWE_ABORT:
    action->kind = ABP_ABORT;
    give_reason(ep, call, action);
    break;
  case OWE_RESULT: action->kind = ABP_RESULT; break;
  default: action->kind = ABP_SETTLE; break;
  }
  if (!call->owed) {
    ep->debts = call->debtor;
    if (action->released) remember(ep, slot);
  }
}

int abp_next(abp_endpoint *ep, abp_action *action) {
  action->kind = ABP_NONE;
  action->arg = 0;
  action->call = 0;
  action->released = 0;
  action->text = NULL;
  action->length = 0;
  if (ep->refuse) {
    action->kind = ABP_REFUSE;
    action->arg = ep->refuse;
    ep->refuse = 0;
  } else if (ep->reporting) {
    action->kind = ABP_REPORT;
    action->call = ep->report;
    ep->reporting = 0;
  } else if (ep->answer) {
    /* An acknowledgement precedes whatever the cancel does to the call. */
    action->kind = ABP_SEND;
    action->arg = ABP_MSG_CANCEL_RESULT;
    ep->answered = ep->answer;
    ep->answer = ANSWER_NONE;
  } else if (ep->debts != NO_CALL) {
    pay(ep, action);
  } else if (ep->sends) {
    action->kind = ABP_SEND;
    while (!(ep->sends & 1u << action->arg))
      action->arg++;
    ep->sends &= ~(1u << action->arg);
  } else if (ep->session_event) {
    action->kind = ABP_SESSION;
    action->arg = ep->session_event;
    ep->session_event = 0;
  } else if (wake_owed(ep)) {
    action->kind = ABP_WAKE;
    action->at = ep->wake = earliest(ep);
  }
  return action->kind != ABP_NONE;
}

/* --- The session ------------------------------------------------------------------------------ */

/* What an older session left is not found any more; handlers that still unwind keep their place. */
static void forget_session(abp_endpoint *ep) {
  const uint32_t slots = ep->table.slab_count * SLAB_CALLS;
  for (uint32_t slot = 0; slot < slots; slot++) {
    if (table_call(&ep->table, slot)->state != FREE) table_unindex(&ep->table, slot);
  }
  forget_old(ep, 0);
}

static void change_session(abp_endpoint *ep, enum session_event event) {
  struct session *session = &ep->session;
  const struct session_step taken = session_step(session->state, event);
  ep->refuse = taken.refuse;
  ep->sends |= taken.sends;
  if (taken.calls) step_all(ep, (enum call_event)(taken.calls - 1));
  if (taken.next == session->state) return;
  session->state = (abp_session)taken.next;
  ep->session_event = taken.next;
  session->due = 0;
  session->suspended = 0;
  if (taken.next == ABP_SESSION_CONNECTING || event == SE_INITIALIZE) {
    forget_session(ep);
    new_prefix(ep);
  }
  if (taken.next == ABP_SESSION_CONNECTING) ep->session_event = 0;
}

/* Every input begins with it: one copy is a tenth less of the module, and no slower. */
__attribute__((noinline)) int endpoint_enter(abp_endpoint *ep) {
  if (endpoint_undrained(ep)) return ABP_E_UNDRAINED;
  ep->reason = NULL;
  ep->reason_length = 0;
  ep->target = NULL;
  return ABP_OK;
}

int abp_connect(abp_endpoint *ep, uint32_t timeout_ms) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const abp_session state = ep->session.state;
  if (state == ABP_SESSION_CONNECTING || state == ABP_SESSION_READY) return ABP_E_STATE;
  change_session(ep, SE_CONNECT);
  set_default(&timeout_ms, 10000);
  ep->session.pause = 50;
  ep->session.give_up = ep->now + timeout_ms;
  ep->session.due = ep->now + (timeout_ms < 50 ? timeout_ms : 50);
  return ABP_OK;
}

static int keep_session_id(abp_endpoint *ep, const char *id, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return ABP_E_MEMORY;
  memcpy(copy, id, length);
  copy[length] = 0;
  free(ep->session.id);
  ep->session.id = copy;
  ep->session.id_length = (uint32_t)length;
  return ABP_OK;
}

int endpoint_initialize(abp_endpoint *ep, const char *id, size_t length, int number_id,
                        const char *version, size_t version_length, uint32_t features) {
  struct session *session = &ep->session;
  const int ready = session->state == ABP_SESSION_READY;
  const int valid = length > 0 && length <= ep->config.max_id;
  const int again = ready && number_id == session->number_id && length == session->id_length &&
                    memcmp(id, session->id, length) == 0;
  const int stays = ready && (again || !ep->config.restart);
  const int accepted = valid && !stays && session_version_ok(version, version_length);
  if (accepted && keep_session_id(ep, id, length) != ABP_OK) return ABP_E_MEMORY;
  session_heard(session, ep->now);
  if (accepted) {
    if (ready) change_session(ep, SE_SHUTDOWN);
    session->number_id = (uint8_t)number_id;
    change_session(ep, SE_INITIALIZE);
    session->agreed = session->wanted & (features | ABP_DYNAMIC_CAPABILITIES);
    session_start_heartbeat(session, ep->now, ep->config.heartbeat_ms);
  } else if (valid && stays) {
    change_session(ep, again ? SE_INITIALIZE_AGAIN : SE_INITIALIZE_OTHER);
  } else {
    ep->refuse = valid ? ABP_NOT_SUPPORTED : ABP_INVALID_ID;
  }
  return ABP_OK;
}

int endpoint_initialized(abp_endpoint *ep, const char *session_id, size_t length, int accepted,
                         int busy, uint32_t features) {
  struct session *session = &ep->session;
  if (session->state != ABP_SESSION_CONNECTING) {
    endpoint_count(ep, ABP_LATE);
    if (accepted) change_session(ep, SE_ACCEPTED);
    return ABP_OK;
  }
  if (accepted) {
    if (keep_session_id(ep, session_id, length <= ep->config.max_id ? length : 0) != ABP_OK)
      return ABP_E_MEMORY;
    session->agreed = features & (session->wanted | ABP_DYNAMIC_CAPABILITIES);
  }
  change_session(ep, accepted ? SE_ACCEPTED : busy ? SE_BUSY : SE_REFUSED);
  if (accepted) session_start_heartbeat(session, ep->now, ep->config.heartbeat_ms);
  return ABP_OK;
}

int abp_close(abp_endpoint *ep) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t liveness = abp_features(ep) & ABP_LIVENESS;
  ep->session.staying = 0;
  change_session(ep, SE_CLOSE);
  /* An app has no shutdown to send. */
  if (ep->config.role == ABP_APP && ep->sends) ep->sends = liveness ? 1u << ABP_MSG_BYE : 0;
  return ABP_OK;
}

int abp_lost(abp_endpoint *ep) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  change_session(ep, SE_LOST);
  return ABP_OK;
}

int abp_leave(abp_endpoint *ep, int persisted) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (abp_features(ep) & ABP_LIVENESS) ep->sends |= 1u << ABP_MSG_BYE;
  ep->session.staying = persisted != 0;
  if (!persisted) change_session(ep, SE_LOST);
  return ABP_OK;
}

int endpoint_shutdown(abp_endpoint *ep) {
  change_session(ep, SE_SHUTDOWN);
  return ABP_OK;
}

int endpoint_bye(abp_endpoint *ep, int persisted) {
  if (!(abp_features(ep) & ABP_LIVENESS)) {
    endpoint_count(ep, ABP_UNKNOWN_TYPE);
  } else if (persisted) {
    ep->session.suspended = 1;
    ep->session.due = 0;
  } else {
    change_session(ep, SE_LOST);
  }
  return ABP_OK;
}

int endpoint_ping(abp_endpoint *ep, int pong) {
  session_heard(&ep->session, ep->now);
  if (!(abp_features(ep) & ABP_LIVENESS))
    endpoint_count(ep, ABP_UNKNOWN_TYPE);
  else if (!pong)
    ep->sends |= 1u << ABP_MSG_PONG;
  return ABP_OK;
}

int abp_advance(abp_endpoint *ep, uint64_t now) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (now > ep->now) ep->now = now;
  if (ep->wake && ep->now >= ep->wake) ep->wake = 0;
  struct call_table *table = &ep->table;
  while (table->timer_count && table_call(table, table->timers[0])->deadline <= ep->now) {
    const uint32_t slot = table->timers[0];
    struct call *call = table_call(table, slot);
    table_clear_timer(table, slot);
    if (!call->cause) call->cause = ABP_TIMED_OUT;
    step(ep, slot, call->flags & CALL_NO_CANCEL ? EV_ABANDON : EV_TIMER);
  }
  const enum session_event event =
      session_tick(&ep->session, ep->now, ep->config.heartbeat_ms, &ep->sends);
  if (event != SESSION_EVENTS) change_session(ep, event);
  forget_old(ep, ep->config.remembered);
  return ABP_OK;
}

/* --- The caller ------------------------------------------------------------------------------- */

static void set_deadline(abp_endpoint *ep, uint32_t slot, uint32_t timeout_ms) {
  if (timeout_ms)
    table_set_timer(&ep->table, slot,
                    ep->now + (timeout_ms < LONGEST_MS ? timeout_ms : LONGEST_MS));
}

static int make_call(abp_endpoint *ep, const abp_id *id, uint32_t flags, uint32_t *slot) {
  if (ep->in_flight[1] >= ep->config.max_calls) return ABP_E_LIMIT;
  abp_id key = {NULL, 0, 0};
  uint32_t hash;
  if (id) {
    if (!id_ok(ep, id)) return ABP_E_ID;
    key = canonical(ep, id, CALL_OUT);
    hash = table_hash(&ep->table, &key, CALL_OUT);
    const uint32_t same = table_find(&ep->table, &key, hash, CALL_OUT);
    if (same != NO_CALL && !call_is_over(table_call(&ep->table, same)->state))
      return ABP_E_DUPLICATE;
    if (same != NO_CALL) forget(ep, same);
    /* A number that the caller chose is not minted again. */
    if (key.number > ep->minted) ep->minted = key.number;
  } else {
    key.number = mint(ep);
    hash = table_hash(&ep->table, &key, CALL_OUT);
  }
  const int status = table_add(&ep->table, &key, hash, flags | CALL_OUT, slot);
  if (status != ABP_OK) return status;
  table_call(&ep->table, *slot)->state = WAITING;
  ep->in_flight[1]++;
  return ABP_OK;
}

static int adoptable(const abp_endpoint *ep, abp_call parent, uint32_t *slot) {
  *slot = live_slot(ep, parent);
  return *slot != NO_CALL && table_call(&ep->table, *slot)->state == RUNNING;
}

int abp_request(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                abp_call parent, abp_call *call) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t slot, above = NO_CALL;
  if (ep->session.state != ABP_SESSION_READY || (parent && !adoptable(ep, parent, &above)))
    return ABP_E_STATE;
  const int status = make_call(ep, id,
                               (ep->config.role == ABP_APP ? CALL_NO_CANCEL : 0u) |
                                   (flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0u),
                               &slot);
  if (status != ABP_OK) return status;
  if (above != NO_CALL) table_adopt(&ep->table, above, slot);
  set_deadline(ep, slot, timeout_ms);
  owe(ep, slot, OWE_REQUEST);
  *call = handle(ep, slot);
  return ABP_OK;
}

int abp_cancel(abp_endpoint *ep, abp_call call, const char *reason, size_t length) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = live_slot(ep, call);
  if (slot == NO_CALL) return ABP_OK;
  ep->reason = reason;
  ep->reason_length = length;
  step(ep, slot, table_call(&ep->table, slot)->flags & CALL_NO_CANCEL ? EV_ABANDON : EV_CANCEL);
  return ABP_OK;
}

int abp_cancel_by_id(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length,
                     abp_call *request) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (ep->session.state != ABP_SESSION_READY) return ABP_E_STATE;
  if (!id->text || !id_ok(ep, id)) return ABP_E_ID;
  const uint32_t target = find(ep, id, CALL_OUT);
  uint32_t slot;
  const int status = make_call(ep, NULL, CALL_NO_CANCEL | CALL_IS_CANCEL, &slot);
  if (status != ABP_OK) return status;
  ep->reason = reason;
  ep->reason_length = length;
  ep->target = id;
  /* The call is now waiting for this cancel: its own signal need not send another. */
  struct call *call = target == NO_CALL ? NULL : table_call(&ep->table, target);
  if (call && call->state == WAITING && !(call->flags & CALL_NO_CANCEL)) {
    step(ep, target, EV_CANCEL);
    call->owed &= (uint16_t)~OWE_CANCEL;
    ep->debts = call->debtor;
  }
  set_deadline(ep, slot, ep->config.grace_ms);
  owe(ep, slot, OWE_CANCEL);
  *request = handle(ep, slot);
  return ABP_OK;
}

static int answered(abp_endpoint *ep, const abp_id *id, uint32_t is_cancel, abp_outcome outcome) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->now);
  const uint32_t slot = find(ep, id, CALL_OUT);
  if (slot == NO_CALL) {
    endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->table, slot);
  if ((call->flags & CALL_IS_CANCEL) != is_cancel || call_is_over(call->state)) {
    endpoint_count(ep, call_is_over(call->state) ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  if (outcome == ABP_TIMED_OUT) call->cause = ABP_TIMED_OUT;
  step(ep, slot, outcome == ABP_COMPLETED ? EV_COMPLETE : EV_CANCELLED);
  return ABP_OK;
}

int abp_result_received(abp_endpoint *ep, const abp_id *id, abp_outcome outcome) {
  return answered(ep, id, 0, outcome);
}

int endpoint_cancel_result(abp_endpoint *ep, const abp_id *id, int cancelled) {
  /* A signal's cancel is acknowledged, too, but its call waits for the result, not for this. */
  const size_t length = strlen(ep->prefix);
  if (id->text && id->length > length + 1 && memcmp(id->text, ep->prefix, length) == 0 &&
      memcmp(id->text + length, ".c", 2) == 0)
    return ABP_OK;
  return answered(ep, id, CALL_IS_CANCEL, cancelled ? ABP_CANCELLED : ABP_COMPLETED);
}

int abp_unsent(abp_endpoint *ep, abp_call call) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = live_slot(ep, call);
  if (slot == NO_CALL) return ABP_OK;
  if (!(table_call(&ep->table, slot)->flags & CALL_OUT)) return ABP_E_STATE;
  /* The peer never heard of it: there is nothing to wait for and nothing to remember. */
  table_unindex(&ep->table, slot);
  step(ep, slot, EV_COMPLETE);
  return ABP_OK;
}

int abp_progress_received(abp_endpoint *ep, const abp_id *id) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->now);
  const uint32_t slot = find(ep, id, CALL_OUT);
  const int over = slot != NO_CALL && call_is_over(table_call(&ep->table, slot)->state);
  if (over || !(abp_features(ep) & ABP_PROGRESS)) {
    endpoint_count(ep, over ? ABP_LATE : ABP_STRAY);
    return ABP_OK;
  }
  ep->reporting = 1;
  ep->report = slot == NO_CALL ? 0 : handle(ep, slot);
  return ABP_OK;
}

/* --- The callee ------------------------------------------------------------------------------- */

static void refuse(abp_endpoint *ep, abp_error error) {
  ep->refuse = (uint8_t)error;
  endpoint_count(ep, ABP_REFUSED);
}

static void accept(abp_endpoint *ep, uint32_t slot, uint32_t timeout_ms) {
  table_call(&ep->table, slot)->state = QUEUED;
  ep->in_flight[0]++;
  set_deadline(ep, slot, timeout_ms);
  struct call *call = table_call(&ep->table, slot);
  /* A local call starts at once: its parent, which has a place, may be waiting for it. */
  if (ep->running < ep->config.max_concurrent || call->flags & CALL_LOCAL) {
    step(ep, slot, EV_START);
  } else {
    call->flags |= CALL_LISTED;
    list_push(&ep->table, &ep->table.queue, slot);
    owe(ep, slot, OWE_QUEUED);
  }
}

static abp_error add_received(abp_endpoint *ep, const abp_id *id, uint32_t flags, abp_error fault,
                              uint32_t *slot) {
  abp_id key = {0};
  uint32_t same = NO_CALL, hash = 0;
  if (ep->session.state != ABP_SESSION_READY) return ABP_NOT_INITIALIZED;
  if (id) {
    if (!id_ok(ep, id)) return ABP_INVALID_ID;
    key = canonical(ep, id, 0);
    hash = table_hash(&ep->table, &key, 0);
    same = table_find(&ep->table, &key, hash, 0);
  }
  if (same != NO_CALL && !call_is_over(table_call(&ep->table, same)->state))
    return ABP_DUPLICATE_CALL;
  if (fault) return fault;
  if (ep->in_flight[0] >= ep->config.max_calls) return ABP_RATE_LIMITED;
  if (same != NO_CALL) forget(ep, same);
  switch (table_add(&ep->table, id ? &key : NULL, hash, flags, slot)) {
  case ABP_OK: return ABP_NO_ERROR;
  case ABP_E_LIMIT: return ABP_RATE_LIMITED;
  default: return ABP_INTERNAL_ERROR;
  }
}

int abp_call_received(abp_endpoint *ep, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                      abp_error fault) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  session_heard(&ep->session, ep->now);
  uint32_t slot;
  const abp_error error =
      add_received(ep, id, flags & ABP_WANTS_PROGRESS ? CALL_PROGRESS : 0, fault, &slot);
  if (error)
    refuse(ep, error);
  else
    accept(ep, slot, timeout_ms);
  return ABP_OK;
}

int abp_call_local(abp_endpoint *ep, abp_call parent, uint32_t timeout_ms, abp_error fault) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  uint32_t above, slot;
  if (!adoptable(ep, parent, &above)) return ABP_E_STATE;
  const uint8_t depth = (uint8_t)(table_call(&ep->table, above)->depth + 1);
  const abp_error error =
      depth > DEEPEST ? ABP_RATE_LIMITED : add_received(ep, NULL, CALL_LOCAL, fault, &slot);
  if (error) {
    refuse(ep, error);
    return ABP_OK;
  }
  struct call *call = table_call(&ep->table, slot);
  call->depth = depth;
  call->number = mint(ep);
  table_adopt(&ep->table, above, slot);
  accept(ep, slot, timeout_ms);
  return ABP_OK;
}

int abp_finish(abp_endpoint *ep, abp_call call, abp_outcome outcome) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = live_slot(ep, call);
  if (slot == NO_CALL || !call_has_handler(table_call(&ep->table, slot)->state)) return ABP_E_STATE;
  step(ep, slot, outcome == ABP_COMPLETED ? EV_COMPLETE : EV_CANCELLED);
  return ABP_OK;
}

int abp_progress_wanted(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = live_slot(ep, call);
  if (slot == NO_CALL || !(abp_features(ep) & ABP_PROGRESS)) return 0;
  const struct call *c = table_call(&ep->table, slot);
  return c->state == RUNNING && c->flags & CALL_PROGRESS;
}

int endpoint_cancel(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length) {
  session_heard(&ep->session, ep->now);
  ep->reason = reason;
  ep->reason_length = length;
  const int ready = ep->session.state == ABP_SESSION_READY;
  const uint32_t slot = ready && id_ok(ep, id) ? find(ep, id, 0) : NO_CALL;
  if (slot == NO_CALL) {
    ep->answer = !ready ? ANSWER_NOT_INITIALIZED : id->text ? ANSWER_NOT_FOUND : ANSWER_INVALID;
    return ABP_OK;
  }
  const uint32_t owed = step(ep, slot, EV_CANCEL);
  ep->answer = owed & OWE_ACK ? ANSWER_CANCELLED : owed & OWE_NAK ? ANSWER_COMPLETED : ANSWER_NONE;
  return ABP_OK;
}

int abp_cancel_received(abp_endpoint *ep, const abp_id *id, const char *reason, size_t length) {
  if (endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  endpoint_cancel(ep, id, reason, length);
  ep->answer = ANSWER_NONE;
  return ABP_OK;
}
