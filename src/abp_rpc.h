/*
 * abp_rpc.h - one side of a JSON-RPC 2.0 connection whose requests can be cancelled: ACP, LSP or
 * MCP, without I/O.
 *
 * This header is the manual of JSON-RPC; abp.h is that of the library, and its rules for inputs,
 * actions, return codes, handles, lifetimes and ownership hold here. A *peer* is one side of one
 * connection; both sides are alike. A peer's *request* is a call of abp.h.
 *
 *   1. Create it:         abp_peer_new(), once for each connection.
 *   2. Feed it:           an input reports an event: a message arrived, time passed.
 *   3. Drain it:          abp_peer_next() until it returns 0.
 *
 * Inputs take only ids, numbers and flags, never params, results or whole messages. You read the
 * form of the messages, and write a message for an action (see ABP_REQUEST, ABP_RESULT, ABP_REFUSE
 * and ABP_SEND below). This library decides the outcome of requests:
 *
 *   ABP_QUEUED   a request just received was accepted; abp_peer_start() starts it. Keep its id and
 *                its params: nothing returns them, and its answer repeats the id as it arrived.
 *   ABP_START    run its handler, then abp_peer_finish().
 *   ABP_ABORT    fire its signal; `text` is the reason, if one was given.
 *   ABP_RESULT   answer it. `arg` ABP_COMPLETED: with its handler's result or error; ABP_CANCELLED
 *                or ABP_DISCONNECTED: with the error ABP_RPC_CANCELLED or ABP_RPC_CLOSED. In ACP
 *                the former has the id, too: `data: {"requestId": id}`. A subscription whose
 *                handler still runs when this side closes is ABP_COMPLETED. ABP_STOPPED_BY_NAME:
 *                with the dialect's answer to a request that was stopped by name; in ACP a result,
 *                in LSP as for ABP_CANCELLED.
 *   ABP_REFUSE   answer what was just received with the error `arg`, an abp_rpc_error.
 *   ABP_DROP     ignore what was just received: `arg` is ABP_LATE, ABP_STRAY or ABP_MALFORMED.
 *   ABP_REQUEST  send a request, for the first time or again; abp_peer_number() is its id.
 *   ABP_SEND     send the dialect's cancel of a request; `text` is the reason, if one is due.
 *   ABP_SETTLE   a request made here has ended. `arg` ABP_COMPLETED: with the response just
 *                received. ABP_CANCELLED: it was cancelled; if an error was just received, that is
 *                the reason. ABP_TIMED_OUT: its own timeout cancelled it, whatever was just
 *                received; `at` is the limit that passed, in ms. ABP_DISCONNECTED: the connection
 *                is closed.
 *   ABP_REPORT   pass the message just received to a request: progress, or a request for input.
 *   ABP_SESSION  `arg` is ABP_SESSION_LOST: the peer has ended its half of the connection, and all
 *                its requests are answered. Call abp_peer_lost().
 *   ABP_WAKE     call abp_peer_advance() at `at`.
 */
#ifndef ABP_RPC_H
#define ABP_RPC_H

#include "abp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abp_peer abp_peer;

/* A dialect of JSON-RPC; they differ in how they cancel. */
typedef enum abp_dialect {
  ABP_ACP, /* `$/cancel_request`: a cancelled request is answered, with its handler's decision */
  ABP_LSP, /* `$/cancelRequest`: as in ACP */
  ABP_MCP, /* `notifications/cancelled`: a cancelled request is not answered */
  ABP_DIALECTS
} abp_dialect;

/* The errors that a peer answers with by itself, and those for callers. abp_rpc_error_code()
 * returns the number on the wire, abp_rpc_error_message() the message. */
typedef enum abp_rpc_error {
  ABP_RPC_NO_ERROR,
  ABP_RPC_PARSE,           /* the input is not JSON; answered with `id: null` */
  ABP_RPC_INVALID_REQUEST, /* the input is not a message; answered with `id: null` */
  ABP_RPC_BATCH,           /* the input is a batch; answered once, with `id: null` */
  ABP_RPC_NUMBER_ID,       /* the id is a number beyond 2^53 - 1, so not unique; `id: null` */
  ABP_RPC_TEXT_ID,         /* the id is too long, or not well-formed */
  ABP_RPC_DUPLICATE_ID,
  ABP_RPC_METHOD_NOT_FOUND,
  ABP_RPC_INTERNAL,
  ABP_RPC_BUSY, /* too many requests are in flight */
  ABP_RPC_CANCELLED,
  ABP_RPC_TIMEOUT,
  ABP_RPC_CLOSED,
  ABP_RPC_ERRORS
} abp_rpc_error;

/* Defaults of the limits that the configuration leaves at 0; all others are as in abp_default. */
enum abp_peer_default { ABP_PEER_DEFAULT_GRACE_MS = 5000 };

typedef struct abp_peer_config {
  abp_dialect dialect;
  uint8_t seed[16]; /* secret and random: hashes are derived from it */

  /* Limits; 0 takes the default (abp_peer_default, abp_default). */
  uint32_t max_calls;      /* requests in flight in each direction */
  uint32_t max_concurrent; /* handlers running at once (default: max_calls); more requests wait */
  uint32_t remembered;     /* ended requests that are remembered: abp_peer_became(), late answers */
  uint32_t remember_ms;    /* how long they are remembered */
  uint32_t grace_ms;       /* how long a cancel waits for its request to end */
  uint32_t max_id;         /* bytes of a text id, at most 65535 */

  /* The id of the first request that is made here; 0 means 1. For tests: after 2^32-1 the ids start
   * again. */
  uint32_t first_number;
} abp_peer_config;

/* Creates a peer. Returns NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_peer_free(). */
abp_peer *abp_peer_new(const abp_peer_config *config, uint64_t now);
/* Frees the peer and everything that it owns. NULL is allowed. */
void abp_peer_free(abp_peer *peer);

/* Takes the next action into *action. Returns 1, or 0 when nothing is left. */
int abp_peer_next(abp_peer *peer, abp_action *action);
/* 1 if actions are left, else 0. */
int abp_peer_undrained(const abp_peer *peer);

/* An id in a message. Ids are compared by type and value: 7 is not "7", and 0 and "" are ordinary
 * ids. */
typedef enum abp_id_type { ABP_ID_OTHER, ABP_ID_TEXT, ABP_ID_NUMBER, ABP_ID_NULL } abp_id_type;
typedef struct abp_rpc_id {
  abp_id_type type;
  const char *text; /* ABP_ID_TEXT: UTF-8, not terminated */
  uint32_t length;  /* bytes */
  double number;    /* ABP_ID_NUMBER */
} abp_rpc_id;

/* --- Both sides ------------------------------------------------------------------------------- */

/* Time has passed: `now` is monotonic, in ms. Timers that are due fire. Errors: ABP_E_UNDRAINED. */
int abp_peer_advance(abp_peer *peer, uint64_t now);
/* Sets the time of the next inputs to `now`, without firing timers: these wait for
 * abp_peer_advance(). Call it before each received message: then a response that has arrived counts
 * even if its timeout has passed. Errors: ABP_E_UNDRAINED. */
int abp_peer_now(abp_peer *peer, uint64_t now);
/* An input arrived that is not a request, notification or response: ABP_RPC_PARSE,
 * ABP_RPC_INVALID_REQUEST or ABP_RPC_BATCH. It is answered or counted, depending on the dialect; a
 * batch is answered in every dialect, since its sender waits for the answers in it. Errors:
 * ABP_E_UNDRAINED. */
int abp_peer_malformed(abp_peer *peer, abp_rpc_error fault);
/* 1 if messages without `jsonrpc: "2.0"` are accepted, else 0. */
int abp_peer_unversioned(const abp_peer *peer);
/* Ends the connection in good order: pending requests are cancelled and settle as ABP_DISCONNECTED;
 * handlers are aborted, and their requests answered. Later messages are ignored. Errors:
 * ABP_E_UNDRAINED. */
int abp_peer_close(abp_peer *peer);
/* The connection is lost: the same, but nothing is sent. Errors: ABP_E_UNDRAINED. */
int abp_peer_lost(abp_peer *peer);
/* The peer sends nothing more, but may still read. Pending requests settle as ABP_DISCONNECTED,
 * since they will not be answered; handlers continue, and their answers are sent. A subscription,
 * which no handler ends, is cancelled as if by the peer. Later messages are ignored; ABP_SESSION
 * follows when all requests are answered. Errors: ABP_E_UNDRAINED. */
int abp_peer_half_closed(abp_peer *peer);

/* 1 once messages are ignored: this side has closed, the connection is lost, or the peer has ended
 * its half of it; else 0. */
int abp_peer_closed(const abp_peer *peer);

/* --- The caller ------------------------------------------------------------------------------- */

enum abp_request_flag {
  ABP_RESETS = 1,        /* progress restarts its timeout */
  ABP_WAITS = 2,         /* after a cancel it waits for the answer: the default of ACP and LSP */
  ABP_LEAVES = 4,        /* after a cancel it settles at once and drops the answer: that of MCP */
  ABP_HANDSHAKE = 8,     /* it must not be cancelled on the wire: see abp_peer_handshake() */
  ABP_REPORTS = 16,      /* its progress was requested, with its id as the token */
  ABP_SUBSCRIPTION = 32, /* the peer may end it by the dialect's cancel: abp_peer_subscription() */
  ABP_ROUNDS = 64        /* the peer may need input first: ABP_INPUT_REQUIRED, abp_peer_retry() */
};

/* Makes a request. Its timeout (0: none) cancels it; so does `longest_ms` (0: none), which progress
 * does not extend. `parent` is the received request on whose behalf this one is made, or 0: a
 * cancel of the parent cancels it, too, and the parent's answer waits for this one's, at most for
 * the grace period. `flags` are abp_request_flags. The handle is in *call. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE when closed or when the parent is cancelled or has ended, ABP_E_LIMIT, ABP_E_MEMORY.
 */
int abp_peer_request(abp_peer *peer, uint32_t timeout_ms, uint32_t longest_ms, uint32_t flags,
                     abp_call parent, abp_call *call);
/* The id of a request made here, from 1; 0 for other requests. */
uint32_t abp_peer_number(const abp_peer *peer, abp_call call);
/* Cancels a request, as its signal does. Repeated cancels send one message. `reason` may be NULL.
 * For a request that has ended, or a void handle, it does nothing and returns ABP_OK. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE for a request that was received. */
int abp_peer_cancel(abp_peer *peer, abp_call call, const char *reason, size_t length);
/* A request could not be sent: it settles as ABP_COMPLETED, with the error that you found. For a
 * request that has ended, or a void handle, it does nothing and returns ABP_OK. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE for a request that was received. */
int abp_peer_send_failed(abp_peer *peer, abp_call call);
/* The kind of a response. */
typedef enum abp_answer {
  ABP_ANSWER_RESULT,
  ABP_ANSWER_ERROR,
  ABP_INPUT_REQUIRED, /* a result that asks for input before the peer can answer (MCP) */
  ABP_ANSWER_STOPPED  /* a result that means that the work was stopped (ACP) */
} abp_answer;

/* A response arrived. A response to an unknown request, or to one that has settled, is counted.
 * With ABP_INPUT_REQUIRED a request that has ABP_ROUNDS is not settled but reported: until
 * abp_peer_retry() no message of it is under way. Meanwhile its timeouts, its cancel and the end of
 * the connection settle it like any other request, but without a message to the peer;
 * abp_peer_send_failed() gives it up. Errors: ABP_E_UNDRAINED. */
int abp_peer_response(abp_peer *peer, const abp_rpc_id *id, abp_answer answer);
/* The input for the peer is ready: ABP_REQUEST follows, with a new id. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE for a request that has ended or whose peer needs no input, ABP_E_MEMORY. */
int abp_peer_retry(abp_peer *peer, abp_call call);
/* Progress arrived; `token` is the id of its request. Errors: ABP_E_UNDRAINED, ABP_E_STATE when it
 * matches no request of this side with ABP_REPORTS; it may belong to something that is not known
 * here. */
int abp_peer_progress(abp_peer *peer, const abp_rpc_id *token);

/* --- The callee ------------------------------------------------------------------------------- */

/* A further value of `arg` of ABP_RESULT, beside those of abp_outcome. */
enum abp_peer_outcome { ABP_STOPPED_BY_NAME = 7 };

/* How a handler ended. */
typedef enum abp_ending {
  ABP_RETURNED, /* with a value */
  ABP_THREW,    /* with an error */
  ABP_GAVE_UP,  /* with an error that means that it was cancelled */
  ABP_RAN_OUT,  /* with an error that means that its time ran out */
  ABP_ENDED     /* it was cancelled but ran to its end, and has no value to answer with */
} abp_ending;

/* A request arrived. `fault` is an error that you found in it (ABP_RPC_METHOD_NOT_FOUND), or 0;
 * `flags` is ABP_SUBSCRIPTION for a subscription, else 0. ABP_QUEUED or ABP_REFUSE follows, or
 * nothing if the dialect does not answer malformed requests, or when closed; if memory is short,
 * ABP_REFUSE. Errors: ABP_E_UNDRAINED. */
int abp_peer_received(abp_peer *peer, const abp_rpc_id *id, abp_rpc_error fault, uint32_t flags);
/* Starts received requests, as far as there is room. Call it when all messages that arrived
 * together have been passed in: a request that was cancelled before never starts. Errors:
 * ABP_E_UNDRAINED. */
int abp_peer_start(abp_peer *peer);
/* The dialect's cancel arrived. `id` is the request that it names. `reason` may be NULL. `readable`
 * is 0 if the form of its reason is wrong; in dialects with reasons the cancel is then dropped. A
 * request made here with ABP_SUBSCRIPTION settles as ABP_CANCELLED. Errors: ABP_E_UNDRAINED. */
int abp_peer_cancel_received(abp_peer *peer, const abp_rpc_id *id, const char *reason,
                             size_t length, int readable);
/* The dialect's other notification that stops requests arrived (abp_peer_stop_word()), and `call`
 * is a request that belongs to the name in it. The same as its cancel, but with another answer. For
 * a request that has ended, or a void handle, it does nothing and returns ABP_OK. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE for a request that was made here. */
int abp_peer_stop_received(abp_peer *peer, abp_call call);
/* This side has sent that notification, and with it withdraws its answer to `call`, a request of
 * the other side (ABP_STOP_WITHDRAWS). The request's signal fires, and ABP_RESULT follows at once,
 * whatever its handler returns later. Otherwise as abp_peer_stop_received(). */
int abp_peer_withdraw(abp_peer *peer, abp_call call);
/* As abp_postpone() and abp_begin(): the handler of a started request has to wait. Until it begins,
 * anything that ends the request ends it at once, as ABP_FATE_UNSTARTED. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE. */
int abp_peer_postpone(abp_peer *peer, abp_call call);
int abp_peer_begin(abp_peer *peer, abp_call call);
/* The handler has settled. The ABP_RESULT that follows has the outcome for the other side: it
 * follows at once, or when the requests made on its behalf have been answered; there is none if the
 * dialect requires no answer. Errors: ABP_E_UNDRAINED, ABP_E_STATE when no handler of this request
 * runs. */
int abp_peer_finish(abp_peer *peer, abp_call call, abp_ending ending);
/* 1 if a request has not ended, else 0; 0 for a void handle. */
int abp_peer_pending(const abp_peer *peer, abp_call call);
/* 1 while a request was not asked to stop and its handler works or, if it was made here, it has no
 * answer; else 0. A handler's progress may be sent for as long. */
int abp_peer_running(const abp_peer *peer, abp_call call);

/* The fate of a received request, by its id in the message, for as long as it is remembered
 * (`remembered`, `remember_ms`). If an id was used again, it names the newest request.
 * ABP_FATE_RUNNING: its handler has not returned, or not begun; then its handle is in *call, else
 * *call is 0. ABP_FATE_NONE: the request is unknown. *outcome is how it ended, or will end because
 * it was asked to stop; ABP_PENDING if it runs and was not asked. This function changes nothing;
 * you can call it before abp_peer_next() has returned 0, and after the end of the connection. */
abp_fate abp_peer_became(abp_peer *peer, const abp_rpc_id *id, abp_outcome *outcome,
                         abp_call *call);

/* --- The dialect's words, and counters -------------------------------------------------------- */

/* All texts that these functions return are static. */

/* The method of the dialect's cancel, and the member of its params that names the request. */
const char *abp_peer_cancel_method(const abp_peer *peer);
const char *abp_peer_cancel_key(const abp_peer *peer);
/* The method of a request that must not be cancelled; "" if there is none. */
const char *abp_peer_handshake(const abp_peer *peer);
/* The method of a request that is a subscription; "" if there is none. */
const char *abp_peer_subscription(const abp_peer *peer);
/* The words of another notification that stops requests. It does not name a request, but something
 * that requests belong to: the member ABP_STOP_KEY of its params equals the member ABP_STOP_MEMBER
 * of theirs. */
typedef enum abp_stop_word {
  ABP_STOP_METHOD, /* of the notification; "" if the dialect has none */
  ABP_STOP_KEY,
  ABP_STOP_REQUESTS, /* the method of the requests that it stops; "" for any method */
  ABP_STOP_MEMBER,
  ABP_STOP_CREATES,   /* the method of a request made on behalf of another request: its
                         ABP_STOP_KEY then belongs to that other one; "" if there is none */
  ABP_STOP_WITHDRAWS, /* the method of requests made on behalf of the stopped ones: the side that
                         sends the notification answers them itself; "" if there is none */
  ABP_STOP_WORDS
} abp_stop_word;
const char *abp_peer_stop_word(const abp_peer *peer, abp_stop_word word);
/* The version of the dialect that has batches, in which each message is read by itself; "" if there
 * is none. */
const char *abp_peer_batch_version(const abp_peer *peer);
/* The number of an abp_rpc_error on the wire in a dialect, and its message; 0 and "" for other
 * numbers. */
int32_t abp_rpc_error_code(abp_dialect dialect, int error);
const char *abp_rpc_error_message(int error);
/* 1 if the error is answered with `id: null`, since the message has no id that could be repeated,
 * else 0. */
int abp_rpc_error_has_no_id(int error);
/* A counter of abp.h: in flight, remembered, late, stray, malformed, refused. */
uint32_t abp_peer_count(const abp_peer *peer, abp_counter counter);

#ifdef __cplusplus
}
#endif
#endif
