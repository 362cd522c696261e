/*
 * The inputs of JSON-RPC: find the request, step the table (calls.c), note the obligations.
 * DIALECTS has all differences between the dialects.
 */
#include "rpc.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SAFE_INTEGER 9007199254740991.0 /* 2^53 - 1: larger ids are not unique */

struct dialect {
  const char *cancel_method, *cancel_key;
  const char *handshake;     /* the method of requests that must not be cancelled */
  const char *subscription;  /* the method of requests that a cancel of the receiver ends, too */
  const char *batch_version; /* the version with batches */
  const char *timeout_reason;
  /* A notification that stops requests, beside the cancel. It names something they belong to. */
  const char *stop[ABP_STOP_WORDS];
  int32_t closed_code;
  uint8_t on_cancel; /* the call_event of a cancel from the peer */
  uint8_t gives_up;  /* a handler can cancel its request by its error */
  uint8_t runs_out;  /* and a timeout error does so, too */
  uint8_t closing;   /* the abp_outcome of received requests when this side closes */
  uint8_t no_wait;   /* CALL_NO_WAIT if callers do not wait for answers to cancelled requests */
  uint8_t reasons;   /* a cancel has a reason */
  uint8_t null_ids, fraction_ids;
  uint8_t answers_malformed;
  uint8_t unversioned; /* `jsonrpc` may be missing */
};

static const struct dialect DIALECTS[ABP_DIALECTS] = {
    [ABP_ACP] = {.cancel_method = "$/cancel_request",
                 .cancel_key = "requestId",
                 .handshake = "",
                 .subscription = "",
                 .batch_version = "",
                 .timeout_reason = "",
                 .stop = {[ABP_STOP_METHOD] = "session/cancel",
                          [ABP_STOP_KEY] = "sessionId",
                          [ABP_STOP_REQUESTS] = "session/prompt",
                          [ABP_STOP_MEMBER] = "sessionId",
                          [ABP_STOP_CREATES] = "",
                          [ABP_STOP_WITHDRAWS] = "session/request_permission"},
                 .closed_code = -32097,
                 .on_cancel = EV_ASK,
                 .gives_up = 1,
                 .runs_out = 1,
                 .closing = ABP_CANCELLED,
                 .null_ids = 1,
                 .fraction_ids = 1,
                 .answers_malformed = 1},
    [ABP_LSP] = {.cancel_method = "$/cancelRequest",
                 .cancel_key = "id",
                 .handshake = "",
                 .subscription = "",
                 .batch_version = "",
                 .timeout_reason = "",
                 .stop = {[ABP_STOP_METHOD] = "window/workDoneProgress/cancel",
                          [ABP_STOP_KEY] = "token",
                          [ABP_STOP_REQUESTS] = "",
                          [ABP_STOP_MEMBER] = "workDoneToken",
                          [ABP_STOP_CREATES] = "window/workDoneProgress/create",
                          [ABP_STOP_WITHDRAWS] = ""},
                 .closed_code = -32097,
                 .on_cancel = EV_ASK,
                 .gives_up = 1,
                 .closing = ABP_CANCELLED,
                 .fraction_ids = 1,
                 .unversioned = 1},
    [ABP_MCP] = {.cancel_method = "notifications/cancelled",
                 .cancel_key = "requestId",
                 .handshake = "initialize",
                 .subscription = "subscriptions/listen",
                 .batch_version = "2025-03-26",
                 /* The text of MCP's SDK, so that it is found in logs. */
                 .timeout_reason = "McpError: MCP error -32001: Request timed out",
                 .stop = {"", "", "", "", "", ""},
                 .closed_code = -32000,
                 .on_cancel = EV_PEER_ABANDONED,
                 .closing = ABP_DISCONNECTED,
                 .no_wait = CALL_NO_WAIT,
                 .reasons = 1},
};

static const struct {
  int32_t code;
  const char *message;
  int has_no_id;
} ERRORS[ABP_RPC_ERRORS] = {
    [ABP_RPC_NO_ERROR] = {0, "", 0},
    [ABP_RPC_PARSE] = {-32700, "Parse error", 1},
    [ABP_RPC_INVALID_REQUEST] = {-32600, "Invalid request", 1},
    [ABP_RPC_BATCH] = {-32600, "Invalid request: JSON-RPC batches are not supported", 1},
    [ABP_RPC_NUMBER_ID] = {-32600, "Invalid request: the id is a number beyond 2^53 - 1", 1},
    [ABP_RPC_TEXT_ID] = {-32600, "Invalid request: the id is too long or not well-formed", 0},
    [ABP_RPC_DUPLICATE_ID] = {-32600, "Invalid request: a request with this id is in flight", 0},
    [ABP_RPC_METHOD_NOT_FOUND] = {-32601, "Method not found", 0},
    [ABP_RPC_INTERNAL] = {-32603, "Internal error", 0},
    [ABP_RPC_BUSY] = {-32005, "Too many requests are in flight: retry later", 0},
    [ABP_RPC_CANCELLED] = {-32800, "Request cancelled", 0},
    [ABP_RPC_TIMEOUT] = {-32001, "Request timed out", 0},
    [ABP_RPC_CLOSED] = {0, "Connection closed", 0}, /* its code depends on the dialect */
};

/* The timeouts of a request; by slot. */
struct patience {
  uint64_t latest;     /* the end of longest_ms; 0: none */
  uint32_t timeout_ms; /* 0: progress does not restart it */
  uint32_t longest_ms;
  uint32_t limit_ms; /* the one of the two that ends first */
};

struct abp_peer {
  const struct dialect *dialect;
  struct calls calls;
  uint32_t max_id;
  struct patience *patience;
  uint32_t patience_room;
  abp_call report;
  uint8_t refuse; /* abp_rpc_error */
  uint8_t drop;   /* abp_counter + 1 */
  uint8_t closed;
  uint8_t draining; /* the peer has ended its half of the connection, but still gets answers */
  uint32_t counts[ABP_COUNTERS];
};

static const struct dialect *dialect_of(abp_dialect dialect) {
  return &DIALECTS[dialect < ABP_DIALECTS ? dialect : ABP_ACP];
}

abp_peer *abp_peer_new(const abp_peer_config *config, uint64_t now) {
  abp_peer *peer = calloc(1, sizeof *peer);
  if (!peer) return NULL;
  const struct call_limits limits = {
      config->max_calls, config->max_concurrent, config->remembered, config->remember_ms,
      config->grace_ms ? config->grace_ms : ABP_PEER_DEFAULT_GRACE_MS};
  abp_calls_init(&peer->calls, &limits, config->seed, now);
  calls_number_from(&peer->calls, config->first_number);
  peer->dialect = dialect_of(config->dialect);
  peer->calls.timeout_reason = peer->dialect->timeout_reason;
  peer->calls.children_detach = 1;
  peer->max_id = config->max_id;
  set_default(&peer->max_id, ABP_DEFAULT_MAX_ID);
  if (peer->max_id > UINT16_MAX) peer->max_id = UINT16_MAX;
  return peer;
}

void abp_peer_free(abp_peer *peer) {
  if (!peer) return;
  abp_table_free(&peer->calls.table);
  free(peer->patience);
  free(peer);
}

const struct calls *abp_peer_calls(const abp_peer *peer) { return &peer->calls; }

const char *abp_peer_cancel_method(const abp_peer *peer) { return peer->dialect->cancel_method; }
const char *abp_peer_cancel_key(const abp_peer *peer) { return peer->dialect->cancel_key; }
const char *abp_peer_handshake(const abp_peer *peer) { return peer->dialect->handshake; }
const char *abp_peer_subscription(const abp_peer *peer) { return peer->dialect->subscription; }
const char *abp_peer_batch_version(const abp_peer *peer) { return peer->dialect->batch_version; }
const char *abp_peer_stop_word(const abp_peer *peer, abp_stop_word word) {
  return word < ABP_STOP_WORDS ? peer->dialect->stop[word] : "";
}
int abp_peer_unversioned(const abp_peer *peer) { return peer->dialect->unversioned; }

static int known_error(int error) { return error > 0 && error < ABP_RPC_ERRORS ? error : 0; }
int32_t abp_rpc_error_code(abp_dialect dialect, int error) {
  return error == ABP_RPC_CLOSED ? dialect_of(dialect)->closed_code
                                 : ERRORS[known_error(error)].code;
}
const char *abp_rpc_error_message(int error) { return ERRORS[known_error(error)].message; }
int abp_rpc_error_has_no_id(int error) { return ERRORS[known_error(error)].has_no_id; }

uint32_t abp_peer_count(const abp_peer *peer, abp_counter counter) {
  return abp_calls_count(&peer->calls, peer->counts, counter);
}

/* --- Actions ---------------------------------------------------------------------------------- */

/* 1 if the peer has ended its half of the connection, and all its requests are answered. */
static int has_drained(const abp_peer *peer) { return peer->draining && !peer->calls.in_flight[0]; }

int abp_peer_undrained(const abp_peer *peer) {
  return peer->calls.debts != NO_CALL || peer->refuse || peer->drop || peer->report ||
         has_drained(peer) || abp_calls_wake_owed(&peer->calls, 0);
}

int abp_peer_next(abp_peer *peer, abp_action *action) {
  *action = (abp_action){.kind = ABP_NONE};
  if (peer->refuse) {
    action->kind = ABP_REFUSE;
    action->arg = peer->refuse;
    peer->refuse = 0;
  } else if (peer->drop) {
    action->kind = ABP_DROP;
    action->arg = peer->drop - 1u;
    peer->drop = 0;
  } else if (peer->report) {
    action->kind = ABP_REPORT;
    action->call = peer->report;
    peer->report = 0;
  } else if (peer->calls.debts != NO_CALL) {
    abp_calls_pay(&peer->calls, action);
    if (action->kind == ABP_SEND && !peer->dialect->reasons) {
      action->text = NULL;
      action->length = 0;
    }
    const uint32_t slot = action->call & ((1u << SLOT_BITS) - 1);
    if (action->kind == ABP_SETTLE && action->arg == ABP_TIMED_OUT && slot < peer->patience_room)
      action->at = peer->patience[slot].limit_ms;
    _Static_assert((int)ABP_STOPPED_BY_NAME == (int)ABP_FAILED + 1, "it is not an abp_outcome");
    if (action->kind == ABP_RESULT && action->arg == ABP_CANCELLED &&
        table_call(&peer->calls.table, slot)->flags & CALL_NAMED)
      action->arg = ABP_STOPPED_BY_NAME;
  } else if (has_drained(peer)) {
    peer->draining = 0;
    action->kind = ABP_SESSION;
    action->arg = ABP_SESSION_LOST;
  } else if (abp_calls_wake_owed(&peer->calls, 0)) {
    abp_calls_wake(&peer->calls, 0, action);
  }
  return action->kind != ABP_NONE;
}

__attribute__((noinline)) static int enter(abp_peer *peer) {
  if (abp_peer_undrained(peer)) return ABP_E_UNDRAINED;
  peer->calls.reason = NULL;
  peer->calls.reason_length = 0;
  return ABP_OK;
}

static int refuse(abp_peer *peer, abp_rpc_error error) {
  peer->refuse = (uint8_t)error;
  peer->counts[ABP_REFUSED]++;
  return ABP_OK;
}

static int drop(abp_peer *peer, abp_counter counter) {
  peer->counts[counter]++;
  peer->drop = (uint8_t)(counter + 1);
  return ABP_OK;
}

/* --- Ids -------------------------------------------------------------------------------------- */

/* An id in the table's form: a number from 1 to 2^32-1 as a number, any other id as bytes. The
 * bytes of an id other than text begin with 0xff, which UTF-8 never contains, so that different ids
 * have different keys. */
struct key {
  abp_id id;
  char bytes[1 + sizeof(double)];
};

static const abp_id *key_of(const abp_rpc_id *id, struct key *key) {
  key->bytes[0] = (char)0xff;
  key->id = (abp_id){key->bytes, 1, 0}; /* null */
  if (id->type == ABP_ID_TEXT) {
    key->id = (abp_id){id->text, id->length, 0};
  } else if (id->type == ABP_ID_NUMBER) {
    const uint32_t counted = id->number >= 1 && id->number <= UINT32_MAX ? (uint32_t)id->number : 0;
    const double number = id->number + 0.0; /* -0 is 0 */
    memcpy(key->bytes + 1, &number, sizeof number);
    key->id.length = sizeof key->bytes;
    if ((double)counted == id->number && counted) key->id = (abp_id){NULL, 0, counted};
  }
  return &key->id;
}

/* The error of a request's id; ABP_RPC_INVALID_REQUEST: it is not an id in this dialect. */
static abp_rpc_error id_fault(const abp_peer *peer, const abp_rpc_id *id) {
  const struct dialect *dialect = peer->dialect;
  switch (id->type) {
  case ABP_ID_TEXT:
    return id->length <= peer->max_id && abp_utf8_valid(id->text, id->length) ? ABP_RPC_NO_ERROR
                                                                              : ABP_RPC_TEXT_ID;
  case ABP_ID_NUMBER:
    if (!(id->number >= -MAX_SAFE_INTEGER && id->number <= MAX_SAFE_INTEGER))
      return ABP_RPC_NUMBER_ID;
    return dialect->fraction_ids || (double)(int64_t)id->number == id->number
               ? ABP_RPC_NO_ERROR
               : ABP_RPC_INVALID_REQUEST;
  case ABP_ID_NULL: return dialect->null_ids ? ABP_RPC_NO_ERROR : ABP_RPC_INVALID_REQUEST;
  default: return ABP_RPC_INVALID_REQUEST;
  }
}

static uint32_t find(abp_peer *peer, const abp_rpc_id *id, uint32_t direction) {
  struct key key;
  if (id_fault(peer, id)) return NO_CALL;
  return abp_calls_find(&peer->calls, key_of(id, &key), direction);
}

/* --- Both sides ------------------------------------------------------------------------------- */

int abp_peer_advance(abp_peer *peer, uint64_t now) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  abp_calls_advance(&peer->calls, now);
  return ABP_OK;
}

int abp_peer_now(abp_peer *peer, uint64_t now) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  if (now > peer->calls.now) peer->calls.now = now;
  abp_calls_forget_old(&peer->calls, peer->calls.limits.remembered);
  return ABP_OK;
}

static int malformed(abp_peer *peer, abp_rpc_error fault) {
  return peer->dialect->answers_malformed ? refuse(peer, fault) : drop(peer, ABP_MALFORMED);
}

int abp_peer_malformed(abp_peer *peer, abp_rpc_error fault) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  if (peer->closed) return ABP_OK;
  return fault == ABP_RPC_BATCH ? refuse(peer, fault) : malformed(peer, fault);
}

/* Steps the requests with these flags, made here (CALL_OUT) or received. */
static void step_each(struct calls *calls, uint32_t flags, enum call_event event) {
  abp_calls_keep_places(calls);
  for (uint32_t slot = 0; (slot = abp_calls_next_live(calls, slot)) != NO_CALL; slot++) {
    struct call *call = table_call(&calls->table, slot);
    if ((call->flags & (CALL_OUT | flags)) != flags) continue;
    /* When the connection is lost, no request waits for its children. */
    if (event == EV_LOST) abp_calls_disown(calls, slot);
    abp_calls_step(calls, slot,
                   call->flags & (CALL_NO_CANCEL | CALL_HELD) ? EV_STOP_SILENTLY : event);
  }
  abp_calls_give_places(calls);
}

static void give_cause(struct calls *calls, uint32_t flags, uint8_t cause) {
  for (uint32_t slot = 0; (slot = abp_calls_next_live(calls, slot)) != NO_CALL; slot++) {
    struct call *call = table_call(&calls->table, slot);
    if ((call->flags & (CALL_OUT | flags)) == flags && !call->cause) call->cause = cause;
  }
}

/* Requests made here come first: once they have settled, no received request waits for them. */
int abp_peer_close(abp_peer *peer) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  peer->closed = 1;
  peer->draining = 0;
  give_cause(&peer->calls, CALL_OUT, ABP_DISCONNECTED);
  give_cause(&peer->calls, CALL_SUBSCRIPTION, ABP_COMPLETED);
  give_cause(&peer->calls, 0, peer->dialect->closing);
  step_each(&peer->calls, CALL_OUT, EV_CANCEL_NO_WAIT);
  step_each(&peer->calls, 0, EV_CLOSE);
  return ABP_OK;
}

int abp_peer_lost(abp_peer *peer) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  peer->closed = 1;
  peer->draining = 0;
  step_each(&peer->calls, 0, EV_LOST);
  give_cause(&peer->calls, CALL_OUT, ABP_DISCONNECTED);
  step_each(&peer->calls, CALL_OUT, EV_LOST);
  return ABP_OK;
}

int abp_peer_half_closed(abp_peer *peer) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  peer->draining = !peer->closed;
  peer->closed = 1;
  give_cause(&peer->calls, CALL_OUT, ABP_DISCONNECTED);
  step_each(&peer->calls, CALL_OUT, EV_LOST);
  step_each(&peer->calls, CALL_SUBSCRIPTION, (enum call_event)peer->dialect->on_cancel);
  return ABP_OK;
}

int abp_peer_closed(const abp_peer *peer) { return peer->closed; }

/* --- The caller ------------------------------------------------------------------------------- */

/* Makes room for the slot of the next request. */
static int reserve_patience(abp_peer *peer) {
  const struct call_table *table = &peer->calls.table;
  const uint32_t slabs =
      table->free == NO_CALL ? table->slab_count + 1 : table->free / SLAB_CALLS + 1;
  const uint32_t room = slabs * SLAB_CALLS;
  if (room <= peer->patience_room) return ABP_OK;
  struct patience *grown = realloc(peer->patience, room * sizeof *grown);
  if (!grown) return ABP_E_MEMORY;
  memset(grown + peer->patience_room, 0, (room - peer->patience_room) * sizeof *grown);
  peer->patience = grown;
  peer->patience_room = room;
  return ABP_OK;
}

int abp_peer_request(abp_peer *peer, uint32_t timeout_ms, uint32_t longest_ms, uint32_t flags,
                     abp_call parent, abp_call *made) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  struct calls *calls = &peer->calls;
  uint32_t slot, parent_slot = NO_CALL;
  if (peer->closed || (parent && !abp_calls_adoptable(calls, parent, &parent_slot)))
    return ABP_E_STATE;
  if ((timeout_ms || longest_ms) && reserve_patience(peer) != ABP_OK) return ABP_E_MEMORY;
  uint32_t no_wait = peer->dialect->no_wait;
  if (flags & (ABP_WAITS | ABP_LEAVES)) no_wait = flags & ABP_LEAVES ? CALL_NO_WAIT : 0;
  const int status = abp_calls_make(calls, NULL,
                                    no_wait | (flags & ABP_HANDSHAKE ? CALL_NO_CANCEL : 0u) |
                                        (flags & ABP_REPORTS ? CALL_PROGRESS : 0u) |
                                        (flags & ABP_SUBSCRIPTION ? CALL_SUBSCRIPTION : 0u) |
                                        (flags & ABP_ROUNDS ? CALL_ROUNDS : 0u),
                                    &slot);
  if (status != ABP_OK) return status;
  if (parent_slot != NO_CALL) abp_table_adopt(&calls->table, parent_slot, slot);
  const int longest_first = longest_ms && (!timeout_ms || longest_ms < timeout_ms);
  const uint32_t limit_ms = longest_first ? longest_ms : timeout_ms;
  if (slot < peer->patience_room)
    peer->patience[slot] =
        (struct patience){longest_ms ? calls->now + longest_ms : 0,
                          flags & ABP_RESETS ? timeout_ms : 0, longest_ms, limit_ms};
  abp_calls_set_deadline(calls, slot, limit_ms);
  abp_calls_owe(calls, slot, OWE_REQUEST);
  *made = abp_calls_handle(calls, slot);
  return ABP_OK;
}

uint32_t abp_peer_number(const abp_peer *peer, abp_call call) {
  const uint32_t slot = abp_calls_slot(&peer->calls, call);
  if (slot == NO_CALL) return 0;
  const struct call *c = table_call(&peer->calls.table, slot);
  return c->flags & CALL_OUT ? c->number : 0;
}

int abp_peer_cancel(abp_peer *peer, abp_call call, const char *reason, size_t length) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&peer->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  if (!(table_call(&peer->calls.table, slot)->flags & CALL_OUT)) return ABP_E_STATE;
  peer->calls.reason = reason;
  peer->calls.reason_length = length;
  abp_calls_stop(&peer->calls, slot, EV_CANCEL);
  return ABP_OK;
}

int abp_peer_send_failed(abp_peer *peer, abp_call call) {
  return enter(peer) == ABP_OK ? abp_calls_send_failed(&peer->calls, call) : ABP_E_UNDRAINED;
}

/* A message that matches no pending request: late or stray. */
static int not_pending(abp_peer *peer, uint32_t slot) {
  return drop(peer, slot == NO_CALL ? ABP_STRAY : ABP_LATE);
}

static int is_pending(const abp_peer *peer, uint32_t slot) {
  return slot != NO_CALL && !call_is_over(table_call(&peer->calls.table, slot)->state);
}

int abp_peer_response(abp_peer *peer, const abp_rpc_id *id, abp_answer answer) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = find(peer, id, CALL_OUT);
  if (!is_pending(peer, slot)) return not_pending(peer, slot);
  const struct call *call = table_call(&peer->calls.table, slot);
  /* The request has settled before: only its parent waits for this. */
  if (call->state == DETACHED) drop(peer, ABP_LATE);
  const int needs_input = answer == ABP_INPUT_REQUIRED && call->flags & CALL_ROUNDS;
  if (needs_input && abp_calls_hold(&peer->calls, slot)) {
    peer->report = abp_calls_handle(&peer->calls, slot);
    return ABP_OK;
  }
  /* A value does not help a request whose time has run out, nor does a request for input help a
   * cancelled one. */
  const int fails = needs_input || answer == ABP_ANSWER_ERROR || call->cause == ABP_TIMED_OUT;
  abp_calls_settle(&peer->calls, slot, fails ? EV_FAIL : EV_COMPLETE,
                   fails && answer == ABP_ANSWER_RESULT    ? ABP_FATE_FINISHED
                   : fails && answer == ABP_ANSWER_STOPPED ? ABP_FATE_STOPPED
                                                           : ABP_FATE_NONE);
  return ABP_OK;
}

int abp_peer_retry(abp_peer *peer, abp_call call) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&peer->calls, call);
  return slot == NO_CALL ? ABP_E_STATE : abp_calls_retry(&peer->calls, slot);
}

int abp_peer_progress(abp_peer *peer, const abp_rpc_id *token) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  struct calls *calls = &peer->calls;
  const uint32_t slot = find(peer, token, CALL_OUT);
  if (slot == NO_CALL || !(table_call(&calls->table, slot)->flags & CALL_PROGRESS))
    return ABP_E_STATE;
  if (!is_pending(peer, slot) || table_call(&calls->table, slot)->state == DETACHED)
    return not_pending(peer, slot);
  peer->report = abp_calls_handle(calls, slot);
  if (slot >= peer->patience_room) return ABP_OK;
  struct patience *patience = &peer->patience[slot];
  /* After a cancel its timer is that of the grace period. */
  if (!patience->timeout_ms || table_call(&calls->table, slot)->state != WAITING) return ABP_OK;
  const uint64_t until = calls->now + patience->timeout_ms;
  const int latest_first = patience->latest && patience->latest < until;
  patience->limit_ms = latest_first ? patience->longest_ms : patience->timeout_ms;
  abp_table_set_timer(&calls->table, slot, latest_first ? patience->latest : until);
  return ABP_OK;
}

/* --- The callee ------------------------------------------------------------------------------- */

int abp_peer_received(abp_peer *peer, const abp_rpc_id *id, abp_rpc_error fault, uint32_t flags) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  if (peer->closed) return ABP_OK;
  const abp_rpc_error bad_id = id_fault(peer, id);
  if (bad_id == ABP_RPC_INVALID_REQUEST) return malformed(peer, bad_id);
  if (bad_id) return refuse(peer, bad_id);
  struct key key;
  uint32_t slot;
  const uint32_t kept = flags & ABP_SUBSCRIPTION ? CALL_SUBSCRIPTION : 0;
  switch (abp_calls_receive(&peer->calls, key_of(id, &key), kept, (int)fault, &slot)) {
  case ABP_OK: abp_calls_queue(&peer->calls, slot); return ABP_OK;
  case ABP_E_DUPLICATE: return refuse(peer, ABP_RPC_DUPLICATE_ID);
  case ABP_E_LIMIT: return refuse(peer, ABP_RPC_BUSY);
  case ABP_E_MEMORY: return refuse(peer, ABP_RPC_INTERNAL);
  default: return refuse(peer, fault);
  }
}

int abp_peer_start(abp_peer *peer) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  abp_calls_admit(&peer->calls);
  return ABP_OK;
}

int abp_peer_cancel_received(abp_peer *peer, const abp_rpc_id *id, const char *reason,
                             size_t length, int readable) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  if (id->type == ABP_ID_OTHER || (peer->dialect->reasons && !readable))
    return drop(peer, ABP_MALFORMED);
  const uint32_t slot = find(peer, id, 0);
  if (!is_pending(peer, slot)) {
    const uint32_t ours = find(peer, id, CALL_OUT);
    if (!is_pending(peer, ours) ||
        !(table_call(&peer->calls.table, ours)->flags & CALL_SUBSCRIPTION))
      return not_pending(peer, slot);
    abp_calls_step(&peer->calls, ours, EV_CANCELLED);
    return ABP_OK;
  }
  if (peer->dialect->reasons) {
    peer->calls.reason = reason;
    peer->calls.reason_length = length;
  }
  abp_calls_step(&peer->calls, slot, (enum call_event)peer->dialect->on_cancel);
  return ABP_OK;
}

/* Steps a received request that is stopped by name. */
static int stop_named(abp_peer *peer, abp_call call, enum call_event event) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&peer->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  struct call *c = table_call(&peer->calls.table, slot);
  if (c->flags & CALL_OUT) return ABP_E_STATE;
  c->flags |= CALL_NAMED;
  abp_calls_step(&peer->calls, slot, event);
  return ABP_OK;
}

int abp_peer_stop_received(abp_peer *peer, abp_call call) {
  return stop_named(peer, call, (enum call_event)peer->dialect->on_cancel);
}

int abp_peer_withdraw(abp_peer *peer, abp_call call) { return stop_named(peer, call, EV_CLOSE); }

int abp_peer_postpone(abp_peer *peer, abp_call call) {
  return enter(peer) == ABP_OK ? abp_calls_postpone(&peer->calls, call) : ABP_E_UNDRAINED;
}

int abp_peer_begin(abp_peer *peer, abp_call call) {
  return enter(peer) == ABP_OK ? abp_calls_begin(&peer->calls, call) : ABP_E_UNDRAINED;
}

int abp_peer_finish(abp_peer *peer, abp_call call, abp_ending ending) {
  if (enter(peer) != ABP_OK) return ABP_E_UNDRAINED;
  struct calls *calls = &peer->calls;
  const uint32_t slot = abp_calls_live(calls, call);
  if (slot == NO_CALL) return ABP_E_STATE;
  const struct call *c = table_call(&calls->table, slot);
  if (!call_has_handler(c->state)) return ABP_E_STATE;
  const int ended = ending == ABP_ENDED;
  enum call_event event = ending == ABP_RETURNED || ended ? EV_COMPLETE : EV_FAIL;
  if ((ending == ABP_GAVE_UP && peer->dialect->gives_up) ||
      (ending == ABP_RAN_OUT && peer->dialect->runs_out)) {
    /* The handler has cancelled its own request, and so the requests that it made. */
    abp_calls_step(calls, slot, EV_ASK);
    event = EV_CANCELLED;
  } else if ((ending == ABP_GAVE_UP || ended) && c->state > RUNNING) {
    event = EV_CANCELLED; /* it has stopped, though the dialect has no message for that */
  }
  /* If a handler ends by itself, its own requests continue: they were not cancelled. */
  const int by_itself = c->state <= RUNNING;
  if (by_itself) abp_calls_disown(calls, slot);
  abp_calls_settle(calls, slot, event, ended ? ABP_FATE_FINISHED : ABP_FATE_NONE);
  if (!by_itself && c->child == NO_CALL) abp_calls_step(calls, slot, EV_CHILDREN_DONE);
  return ABP_OK;
}

int abp_peer_pending(const abp_peer *peer, abp_call call) {
  return abp_calls_live(&peer->calls, call) != NO_CALL;
}

int abp_peer_running(const abp_peer *peer, abp_call call) {
  const uint32_t slot = abp_calls_live(&peer->calls, call);
  if (slot == NO_CALL) return 0;
  const uint8_t state = table_call(&peer->calls.table, slot)->state;
  return state == RUNNING || state == WAITING;
}

abp_fate abp_peer_became(abp_peer *peer, const abp_rpc_id *id, abp_outcome *outcome,
                         abp_call *call) {
  return abp_calls_became(&peer->calls, find(peer, id, 0), outcome, call);
}
