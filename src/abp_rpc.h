/*
 * abp_rpc.h - one side of a JSON-RPC 2.0 connection whose requests can be cancelled: ACP, LSP or
 * MCP, without I/O.
 *
 * This header is the manual of JSON-RPC; abp.h is that of the library, and what it says of inputs,
 * actions, return codes, handles, lifetimes and ownership holds here. A *peer* is one side of one
 * connection; both sides are alike. A peer's *request* is a call of abp.h.
 *
 *   1. Create it:         abp_peer_new(), once for each connection.
 *   2. Feed it:           an input says what happened: a message came, time passed.
 *   3. Drain it:          abp_peer_next() until it returns 0.
 *
 * Only ids, numbers and flags come in here, never params, results or whole messages: whoever
 * carries the messages reads their shape, and puts a message together from an action (see
 * ABP_REQUEST, ABP_RESULT, ABP_REFUSE and ABP_SEND below). What becomes of a request is decided
 * here:
 *
 *   ABP_QUEUED   a request just received is taken in; abp_peer_start() starts it. Keep its id and
 *                its params: nothing gives them back, and its answer repeats the id as it came.
 *   ABP_START    run its handler, then abp_peer_finish().
 *   ABP_ABORT    fire its signal; `text` is the reason, if one was given.
 *   ABP_RESULT   answer it. `arg` ABP_COMPLETED: with what its handler made of it; ABP_CANCELLED or
 *                ABP_DISCONNECTED: with the error ABP_RPC_CANCELLED or ABP_RPC_CLOSED. In ACP the
 *                former carries the id, too: `data: {"requestId": id}`. A subscription whose
 *                handler still runs when this side closes is ABP_COMPLETED. ABP_STOPPED_BY_NAME: as
 *                the dialect answers what was stopped by the name of what it belongs to; in ACP
 *                with a result, in LSP as ABP_CANCELLED.
 *   ABP_REFUSE   answer what was just received with the error `arg`, an abp_rpc_error.
 *   ABP_DROP     ignore what was just received: `arg` is ABP_LATE, ABP_STRAY or ABP_MALFORMED.
 *   ABP_REQUEST  send a request, for the first time or again; abp_peer_number() is its id.
 *   ABP_SEND     send the dialect's cancel of a request; `text` is the reason, if one is due.
 *   ABP_SETTLE   a request made here has ended. `arg` ABP_COMPLETED: with what was just received.
 *                ABP_CANCELLED: it was stopped, and the error just received, if any, is why.
 *                ABP_TIMED_OUT: its own clock stopped it, whatever was just received; `at` is the
 *                limit that passed, in ms. ABP_DISCONNECTED: the connection is closed.
 *   ABP_REPORT   hand what was just received to a request: progress, or what its peer needs first.
 *   ABP_SESSION  `arg` is ABP_SESSION_LOST: the peer has ended its half of the line, and all that
 *                it asked for is answered. Call abp_peer_lost().
 *   ABP_WAKE     call abp_peer_advance() at `at`.
 */
#ifndef ABP_RPC_H
#define ABP_RPC_H

#include "abp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abp_peer abp_peer;

/* What a dialect of JSON-RPC says about cancelling. */
typedef enum abp_dialect {
  ABP_ACP, /* `$/cancel_request`: a cancelled request is answered, as its handler decides */
  ABP_LSP, /* `$/cancelRequest`: likewise */
  ABP_MCP, /* `notifications/cancelled`: a cancelled request is not answered */
  ABP_DIALECTS
} abp_dialect;

/* The errors that a peer answers with by itself, and those that callers are told.
 * abp_rpc_error_code() gives the number on the wire, abp_rpc_error_message() the words. */
typedef enum abp_rpc_error {
  ABP_RPC_NO_ERROR,
  ABP_RPC_PARSE,           /* what came is no JSON; answered with `id: null` */
  ABP_RPC_INVALID_REQUEST, /* it is no message; answered with `id: null` */
  ABP_RPC_BATCH,           /* it is a batch; answered once, with `id: null` */
  ABP_RPC_NUMBER_ID, /* its id is a number beyond 2^53 - 1, which is another's too; `id: null` */
  ABP_RPC_TEXT_ID,   /* its id is too long, or not well-formed */
  ABP_RPC_DUPLICATE_ID,
  ABP_RPC_METHOD_NOT_FOUND,
  ABP_RPC_INTERNAL,
  ABP_RPC_BUSY, /* as many requests are in flight as the limits allow */
  ABP_RPC_CANCELLED,
  ABP_RPC_TIMEOUT,
  ABP_RPC_CLOSED,
  ABP_RPC_ERRORS
} abp_rpc_error;

/* The defaults of limits that the configuration leaves at 0; all others are as in abp_default. */
enum abp_peer_default { ABP_PEER_DEFAULT_GRACE_MS = 5000 };

typedef struct abp_peer_config {
  abp_dialect dialect;
  uint8_t seed[16]; /* secret and random: hashes come from it */

  /* Limits; 0 takes the default (abp_peer_default, abp_default). */
  uint32_t max_calls;      /* requests in flight in each direction */
  uint32_t max_concurrent; /* handlers running at once (default: max_calls); more requests wait */
  uint32_t remembered;     /* ended requests that abp_peer_became() and late answers still find */
  uint32_t remember_ms;    /* and for how long */
  uint32_t grace_ms;       /* how long a cancelled request is waited for */
  uint32_t max_id;         /* bytes of an id that is a text, at most 65535 */

  /* The id of the first request that is made here; 0 and 1 are 1. For tests: after 2^32-1 the ids
   * begin again. */
  uint32_t first_number;
} abp_peer_config;

/* A new peer, or NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_peer_free(). */
abp_peer *abp_peer_new(const abp_peer_config *config, uint64_t now);
/* Frees the peer and everything that it owns. NULL is allowed. */
void abp_peer_free(abp_peer *peer);

/* Takes the next action into *action. Returns 1, or 0 when nothing is left. */
int abp_peer_next(abp_peer *peer, abp_action *action);
/* 1 if something is left, else 0. */
int abp_peer_undrained(const abp_peer *peer);

/* An id as it stands in a message. Ids are told apart by type and value: 7 is not "7", and 0 and ""
 * are ids like any other. */
typedef enum abp_id_type { ABP_ID_OTHER, ABP_ID_TEXT, ABP_ID_NUMBER, ABP_ID_NULL } abp_id_type;
typedef struct abp_rpc_id {
  abp_id_type type;
  const char *text; /* ABP_ID_TEXT: UTF-8, not terminated */
  uint32_t length;  /* bytes */
  double number;    /* ABP_ID_NUMBER */
} abp_rpc_id;

/* --- Both sides ------------------------------------------------------------------------------- */

/* Time has passed: `now` is monotonic, in ms. What is due happens. Errors: ABP_E_UNDRAINED. */
int abp_peer_advance(abp_peer *peer, uint64_t now);
/* What follows happens at `now`, and what is due waits for abp_peer_advance(). Say so before each
 * message that has come: an answer that is in hand counts although its time is up. Errors:
 * ABP_E_UNDRAINED. */
int abp_peer_now(abp_peer *peer, uint64_t now);
/* Something came that is not a request, notification or response: ABP_RPC_PARSE,
 * ABP_RPC_INVALID_REQUEST or ABP_RPC_BATCH. It is answered or counted, as the dialect does; a batch
 * is answered in every dialect, since its sender waits for what is in it. Errors: ABP_E_UNDRAINED.
 */
int abp_peer_malformed(abp_peer *peer, abp_rpc_error fault);
/* 1 if messages without `jsonrpc: "2.0"` are taken, else 0. */
int abp_peer_unversioned(const abp_peer *peer);
/* Ends the connection in good order: what is pending is cancelled and settles as ABP_DISCONNECTED;
 * handlers are aborted, and their requests answered. Then nothing is taken in any more. Errors:
 * ABP_E_UNDRAINED. */
int abp_peer_close(abp_peer *peer);
/* The connection is gone: the same, but there is nobody to tell. Errors: ABP_E_UNDRAINED. */
int abp_peer_lost(abp_peer *peer);
/* The peer will say nothing more, but it may still read: what is pending settles as
 * ABP_DISCONNECTED, since nobody answers it; handlers go on, and what they answer is sent. A
 * subscription, which no handler ends, is cancelled as if the peer had asked for it. Nothing is
 * taken in any more; ABP_SESSION follows when all is answered. Errors: ABP_E_UNDRAINED. */
int abp_peer_half_closed(abp_peer *peer);

/* 1 once nothing is taken in any more: this side has closed, the connection is gone, or the peer
 * has ended its half of the line; else 0. */
int abp_peer_closed(const abp_peer *peer);

/* --- The caller ------------------------------------------------------------------------------- */

enum abp_request_flag {
  ABP_RESETS = 1,        /* progress begins its timeout anew */
  ABP_WAITS = 2,         /* once cancelled, it waits for the answer: ACP's and LSP's default */
  ABP_LEAVES = 4,        /* once cancelled, it settles at once and drops the answer: MCP's */
  ABP_HANDSHAKE = 8,     /* it must not be cancelled on the wire: see abp_peer_handshake() */
  ABP_REPORTS = 16,      /* its progress was asked for, by its id */
  ABP_SUBSCRIPTION = 32, /* the peer may end it by the dialect's cancel: abp_peer_subscription() */
  ABP_ROUNDS = 64 /* the peer may need something first: ABP_INPUT_REQUIRED, abp_peer_retry() */
};

/* Makes a request. Its timeout (0: none) cancels it; so does `longest_ms` (0: none), which progress
 * does not put off. `parent` is the received request on whose behalf this is made, or 0: when that
 * is cancelled, so is this, and its answer waits for this one's, for the grace period at most.
 * `flags` are abp_request_flags. The handle is in *call. Errors: ABP_E_UNDRAINED, ABP_E_STATE when
 * closed or when the parent is cancelled or has ended, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_peer_request(abp_peer *peer, uint32_t timeout_ms, uint32_t longest_ms, uint32_t flags,
                     abp_call parent, abp_call *call);
/* The id of a request made here, 1 and up; 0 for any other. */
uint32_t abp_peer_number(const abp_peer *peer, abp_call call);
/* Asks a request to stop, as its signal does. One cancel is sent however often it is asked.
 * `reason` may be NULL. A request that has ended, or a void handle, is left alone and says ABP_OK.
 * Errors: ABP_E_UNDRAINED, ABP_E_STATE for a request that was received. */
int abp_peer_cancel(abp_peer *peer, abp_call call, const char *reason, size_t length);
/* A request could not be sent: it settles as ABP_COMPLETED, with the error that you found. A
 * request that has ended, or a void handle, is left alone and says ABP_OK. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE for a request that was received. */
int abp_peer_send_failed(abp_peer *peer, abp_call call);
/* What a response says. */
typedef enum abp_answer {
  ABP_ANSWER_RESULT,
  ABP_ANSWER_ERROR,
  ABP_INPUT_REQUIRED, /* a result that names what the peer needs before it can answer (MCP) */
  ABP_ANSWER_STOPPED  /* a result that says that the work was stopped (ACP) */
} abp_answer;

/* A response has come. One to no request, or to one that was settled before, is counted. With
 * ABP_INPUT_REQUIRED a request that has ABP_ROUNDS is not settled but reported: nothing of it is on
 * its way until abp_peer_retry(). Meanwhile its clocks, its cancel and the end of the connection
 * settle it like any other, only without a word to the peer; abp_peer_send_failed() gives it up.
 * Errors: ABP_E_UNDRAINED. */
int abp_peer_response(abp_peer *peer, const abp_rpc_id *id, abp_answer answer);
/* The peer gets what it needed: ABP_REQUEST follows, with a new id. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE for a request that has ended or whose peer needs nothing, ABP_E_MEMORY. */
int abp_peer_retry(abp_peer *peer, abp_call call);
/* Progress has come; `token` is the id of the request that it is for. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE when it names none of this side's with ABP_REPORTS, but maybe something that is not
 * known here. */
int abp_peer_progress(abp_peer *peer, const abp_rpc_id *token);

/* --- The callee ------------------------------------------------------------------------------- */

/* What ABP_RESULT says beside an abp_outcome. */
enum abp_peer_outcome { ABP_STOPPED_BY_NAME = 7 };

/* How a handler ended. */
typedef enum abp_ending {
  ABP_RETURNED, /* with a value */
  ABP_THREW,    /* with an error */
  ABP_GAVE_UP,  /* with an error that says by itself that it was cancelled */
  ABP_RAN_OUT,  /* with an error that says that its time ran out */
  ABP_ENDED     /* told to stop, it came to its end all the same, and has no value for an answer */
} abp_ending;

/* A request has come. `fault` is what its receiver found wrong with it (ABP_RPC_METHOD_NOT_FOUND),
 * or 0; `flags` is ABP_SUBSCRIPTION for a subscription, else 0. ABP_QUEUED or ABP_REFUSE follows,
 * or nothing where the dialect does not answer what is malformed, or when closed; want of memory is
 * a refusal. Errors: ABP_E_UNDRAINED. */
int abp_peer_received(abp_peer *peer, const abp_rpc_id *id, abp_rpc_error fault, uint32_t flags);
/* Starts what was received, as far as there is room. Call it when all that came together has been
 * taken in: a request cancelled before that never starts. Errors: ABP_E_UNDRAINED. */
int abp_peer_start(abp_peer *peer);
/* The dialect's cancel has come. `id` is the request that it names. `reason` may be NULL.
 * `readable` is 0 if its reason is not what the dialect says, so that the cancel does not count
 * where reasons do. A request made here that is an ABP_SUBSCRIPTION settles as ABP_CANCELLED.
 * Errors: ABP_E_UNDRAINED. */
int abp_peer_cancel_received(abp_peer *peer, const abp_rpc_id *id, const char *reason,
                             size_t length, int readable);
/* The dialect's other notification that stops requests has come (abp_peer_stop_word()), and `call`
 * is one that belongs to what it names: the same as its cancel, but for how it is answered. A
 * request that has ended, or a void handle, is left alone and says ABP_OK. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE for a request that was made here. */
int abp_peer_stop_received(abp_peer *peer, abp_call call);
/* This side has sent that notification, and with it takes back its answer to `call`, a request of
 * the other side (ABP_STOP_WITHDRAWS): its signal fires, and ABP_RESULT follows at once, whatever
 * its handler makes of it later. The rest is as with abp_peer_stop_received(). */
int abp_peer_withdraw(abp_peer *peer, abp_call call);
/* As abp_postpone() and abp_begin(): what the handler of a started request needs is not there yet,
 * and until it begins, whatever ends the request ends it at once, as ABP_FATE_UNSTARTED. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE. */
int abp_peer_postpone(abp_peer *peer, abp_call call);
int abp_peer_begin(abp_peer *peer, abp_call call);
/* The handler has settled. What the other side hears is in the ABP_RESULT that follows, at once or
 * when the requests made on its behalf have been answered; none follows where the dialect wants
 * none. Errors: ABP_E_UNDRAINED, ABP_E_STATE when no handler of this request runs. */
int abp_peer_finish(abp_peer *peer, abp_call call, abp_ending ending);
/* 1 while a request has not ended, else 0; 0 for a void handle. */
int abp_peer_pending(const abp_peer *peer, abp_call call);
/* 1 while its handler works or, of a request made here, it has no answer, and nobody has asked it
 * to stop, else 0. Progress of a handler may be sent so long. */
int abp_peer_running(const abp_peer *peer, abp_call call);

/* What became of a request that was received, by its id as it stands in a message, as long as it is
 * remembered (`remembered`, `remember_ms`). An id that was used again names the newest request.
 * ABP_FATE_RUNNING if its handler has not returned, or not begun: then its handle is in *call, else
 * 0. ABP_FATE_NONE if no such request is known. *outcome is how it ended, or will, because
 * it was told to stop; ABP_PENDING if it runs and was not. Changes nothing; it may be asked before
 * abp_peer_next() has returned 0, and after the end of the connection. */
abp_fate abp_peer_became(abp_peer *peer, const abp_rpc_id *id, abp_outcome *outcome,
                         abp_call *call);

/* --- The dialect's words, and looking in ------------------------------------------------------ */

/* Every text that these return is static. */

/* The method of the dialect's cancel, and the member of its params that names the request. */
const char *abp_peer_cancel_method(const abp_peer *peer);
const char *abp_peer_cancel_key(const abp_peer *peer);
/* The method of a request that must not be cancelled; "" for none. */
const char *abp_peer_handshake(const abp_peer *peer);
/* The method of a request that is a subscription; "" for none. */
const char *abp_peer_subscription(const abp_peer *peer);
/* The words of another notification that stops requests. It names no request but what requests
 * belong to: the member ABP_STOP_KEY of its params is what they have in the member
 * ABP_STOP_MEMBER of theirs. */
typedef enum abp_stop_word {
  ABP_STOP_METHOD, /* of the notification; "" where the dialect has none */
  ABP_STOP_KEY,
  ABP_STOP_REQUESTS, /* the method of the requests that it stops; "" for any method */
  ABP_STOP_MEMBER,
  ABP_STOP_CREATES, /* a request made on behalf of another, whose ABP_STOP_KEY then belongs to that;
                       "" for none */
  ABP_STOP_WITHDRAWS, /* the method of requests that were made on behalf of those, and which the
                         side that stops them answers itself; "" for none */
  ABP_STOP_WORDS
} abp_stop_word;
const char *abp_peer_stop_word(const abp_peer *peer, abp_stop_word word);
/* The version of the dialect that has batches: each message in one is taken by itself; "" for none.
 */
const char *abp_peer_batch_version(const abp_peer *peer);
/* The number of an abp_rpc_error on the wire, in a dialect, and its words; 0 and "" for anything
 * else. */
int32_t abp_rpc_error_code(abp_dialect dialect, int error);
const char *abp_rpc_error_message(int error);
/* 1 if its answer goes to `id: null`, since what it answers has no id that could be repeated, else
 * 0. */
int abp_rpc_error_has_no_id(int error);
/* Counters of abp.h: in flight, remembered, late, stray, malformed, refused. */
uint32_t abp_peer_count(const abp_peer *peer, abp_counter counter);

#ifdef __cplusplus
}
#endif
#endif
