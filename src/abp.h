/*
 * abp.h - one side of an agent-app connection: the Agentic Browser Protocol (ABP) 0.1 without I/O.
 *
 * This header is the manual. An *endpoint* is one side of one connection: the agent, which calls,
 * or the app, which runs what is called. It reads no clock, draws no random numbers, opens nothing
 * and keeps no globals: time and entropy come in as arguments, messages go in and out as JSON text
 * or, on the fast path, as ids and numbers.
 *
 *   1. Create it:         abp_new(), once for each connection.
 *   2. Feed it:           an *input* says what happened: a message came, time passed.
 *   3. Drain it:          abp_next() until it returns 0. Each *action* says what to do now.
 *   4. Send what it says: abp_print() gives the text of an action that sends something.
 *
 * Drain completely before the next input; then act.
 *
 * Lifetimes. A struct that you pass (abp_config, abp_id, abp_body) and where you want a handle are
 * used before the function returns, so they may be on the stack. The text that an input gets, a
 * struct's included, must stay until the next input: actions may say it again. What a function
 * hands to you is the endpoint's: an action's text, and abp_received(), are valid until the next
 * input, a printed text until the next input or print. You free nothing but the endpoint.
 *
 * Inputs return ABP_OK or a negative code; each names below those that it can return. A negative
 * code is your mistake, a limit or a lack of memory, and nothing has changed. What the *peer* does
 * wrong is never a return code: it becomes an answer to the peer or is counted (abp_count).
 *
 * Endpoints share nothing, so each may live in a thread of its own; one endpoint takes one input at
 * a time. A complete program is demo/examples/two_endpoints.c.
 */
#ifndef ABP_H
#define ABP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct abp_endpoint abp_endpoint;

/* Names a call from the input that made it until the action that has `released` set. 0 is no call.
 * A handle that outlived its call is void: it is recognised, and is never another call's. */
typedef uint32_t abp_call;

/* --- Codes ------------------------------------------------------------------------------------ */

/* What an input returns. */
enum abp_status {
  ABP_OK = 0,
  ABP_E_MEMORY = -1, /* an allocation failed; free something and try again */
  ABP_E_LIMIT = -2,  /* as many calls are in flight as the limits allow; retry when one has ended */
  ABP_E_STATE = -3,  /* there is no session, or not that call; a finished call says this too */
  ABP_E_ID = -4,     /* an id is empty, too long, not UTF-8, or contains NUL */
  ABP_E_DUPLICATE = -5, /* a call with this id is in flight; choose another */
  ABP_E_TEXT = -6,      /* the text is not JSON, or larger or deeper than the limits allow */
  ABP_E_UNDRAINED = -7, /* actions are left: call abp_next() until it returns 0 */
  ABP_FOLLOWS = -8      /* no error: the call is answered later, see abp_finish() */
};

/* The protocol's error codes, as far as the core sends or reads them. Their text:
 * abp_error_name(). */
typedef enum abp_error {
  ABP_NO_ERROR,
  ABP_NOT_INITIALIZED,
  ABP_ALREADY_INITIALIZED,
  ABP_UNKNOWN_CAPABILITY,
  ABP_CAPABILITY_UNAVAILABLE,
  ABP_REQUIREMENT_NOT_MET,
  ABP_INVALID_PARAMS,
  ABP_DUPLICATE_CALL, /* sent as INVALID_PARAMS */
  ABP_INVALID_ID,     /* sent as INVALID_PARAMS */
  ABP_RATE_LIMITED,
  ABP_NOT_SUPPORTED,
  ABP_OPERATION_FAILED,
  ABP_CANCELLED_ERROR, /* sent as CANCELLED */
  ABP_TIMEOUT_ERROR,   /* sent as TIMEOUT */
  ABP_DISCONNECTED_ERROR,
  ABP_INTERNAL_ERROR,
  ABP_PERMISSION_DENIED,
  ABP_PARSE_ERROR,
  ABP_SESSION_EXPIRED, /* said by apps of other libraries, as the next one is */
  ABP_SESSION_INVALID,
  ABP_ERROR_COUNT
} abp_error;

/* The code's name on the wire, such as "INVALID_PARAMS"; "" for anything else. The text is static.
 */
const char *abp_error_name(int error);
/* The error whose code has this name, the first of those that are sent by one; ABP_NO_ERROR if
 * there is none. */
abp_error abp_error_of(const char *name, size_t length);
/* A sentence that says what was wrong and what to do; "" for anything else. The text is static. */
const char *abp_error_message(int error);
/* 1 if the same request may succeed later (the protocol's `retryable`, which is false all the same
 * where the work of a call may have been done), else 0. */
int abp_error_retryable(int error);

/* How a call ended. */
typedef enum abp_outcome {
  ABP_PENDING,
  ABP_COMPLETED,    /* with the handler's value or its error */
  ABP_CANCELLED,    /* because somebody asked */
  ABP_TIMED_OUT,    /* because its deadline passed */
  ABP_DISCONNECTED, /* because the peer is gone */
  ABP_UNKNOWN,      /* of abp_finish() alone: nobody knows whether it has stopped */
  ABP_FAILED        /* said in place of ABP_COMPLETED, of an error; it ends as ABP_COMPLETED */
} abp_outcome;

/* What became of the handler's work: `metadata.outcome` of a result that is no success. */
typedef enum abp_fate {
  ABP_FATE_NONE,      /* nothing is said: it succeeded, or has not ended */
  ABP_FATE_UNSTARTED, /* it never ran: the same call may be made again */
  ABP_FATE_STOPPED,   /* it ended because of the cancel, before its end */
  ABP_FATE_FINISHED,  /* it ran to its end: its effects stand, whatever became of its data */
  ABP_FATE_RUNNING,   /* it had not returned when the result was sent */
  ABP_FATE_UNKNOWN,   /* the peer is gone, or did not say */
  ABP_FATE_FAILED     /* it failed by itself */
} abp_fate;

/* Its word on the wire, such as "unstarted"; "" for ABP_FATE_NONE and anything else. The text is
 * static. */
const char *abp_fate_name(int fate);

/* --- Endpoint --------------------------------------------------------------------------------- */

typedef enum abp_role { ABP_AGENT, ABP_APP } abp_role;

/* What a session can do. Both sides say what they want; the session has what both have. The last
 * six are not in the published protocol: a peer that does not know them never agrees to them. */
enum abp_feature {
  ABP_NOTIFICATIONS = 1,
  ABP_PROGRESS = 2,
  ABP_ELICITATION = 4,
  ABP_DYNAMIC_CAPABILITIES = 8, /* the app's alone: it is announced, not negotiated */
  ABP_PORT = 16,                /* `bridge.port`: the app offers a channel of its own */
  ABP_FRAMES = 32,              /* `bridge.frames`: many messages in one array, calls by number */
  ABP_LIVENESS = 64,            /* `bridge.liveness`: bridge/ping, bridge/pong, bridge/bye */
  ABP_STREAMS = 128,  /* `bridge.streams`: chunks before a result: bridge/chunk, bridge/credit; of
                        what an app asks its agent for, bridge/cancel */
  ABP_OUTCOMES = 256, /* `bridge.outcomes`: an agent may ask what became of a call, later or in
                         another session, and give a call a key so that it never runs twice */
  ABP_TEXT = 512      /* `bridge.text`: small values of frames as JSON text */
};

/* What a limit is that the configuration leaves at 0. */
enum abp_default {
  ABP_DEFAULT_MAX_CALLS = 4096,
  ABP_DEFAULT_REMEMBERED = 1024,
  ABP_DEFAULT_REMEMBER_MS = 300000,
  ABP_DEFAULT_APP_GRACE_MS = 3000,
  ABP_DEFAULT_AGENT_GRACE_MS = 5000,
  ABP_DEFAULT_MAX_ID = 256,
  ABP_DEFAULT_MAX_TEXT = 1048576,
  ABP_DEFAULT_HEARTBEAT_MS = 15000,
  ABP_DEFAULT_PROBE_MS = 10000,
  ABP_DEFAULT_CONNECT_MS = 10000,
  ABP_DEFAULT_STREAM_CHUNKS = 64,
  ABP_DEFAULT_STREAM_BYTES = 1048576
};

typedef struct abp_config {
  abp_role role;
  uint8_t seed[16];  /* secret and random: ids and hashes are derived from it; it is never sent */
  uint32_t features; /* enum abp_feature, or'ed */

  /* Limits; 0 takes the default (enum abp_default). */
  uint32_t max_calls;      /* calls in flight in each direction, at most 2^20 - 2 in all */
  uint32_t max_concurrent; /* handlers running at once (default: max_calls); more calls wait */
  uint32_t remembered;     /* finished calls whose fate can still be asked for */
  uint32_t remember_ms;    /* and for how long */
  uint32_t grace_ms;       /* how long a cancel waits for its call to end */
  uint32_t max_id;         /* bytes of an id, at most 65535 */
  uint32_t max_text;       /* bytes of a control message */
  uint32_t heartbeat_ms;   /* silence after which the peer is asked for a sign of life */
  uint32_t probe_ms;       /* agent: for an app without a heartbeat to answer abp_suspect() */
  uint32_t restart; /* app: 1 lets a new `initialize` replace the session; else it is refused */
  /* 1: the handlers pass calls on to an app that is not ours, whose word decides what becomes of a
   * cancel. A handler that is to stop is asked (ABP_ABORT), and the answers to its cancels wait for
   * what it says: abp_cancel_answered() or abp_finish(). If it says nothing within grace_ms, they
   * say `cancelled: false` and that nobody knows, and so does the result. The cancels that wait are
   * kept in at most max_text bytes; further ones are answered RATE_LIMITED at once. */
  uint32_t foreign;

  /* The number of the first call that is made here; 0 and 1 are 1. For tests: after 2^32-1 the
   * numbers begin again. */
  uint32_t first_number;

  /* The window of a stream: chunks and bytes under way that its reader has not read. The smaller
   * one of the two sides counts. 0 takes the default. */
  uint32_t stream_chunks;
  uint32_t stream_bytes;
} abp_config;

/* A new endpoint, or NULL when memory is short. `now` is a monotonic time in ms. Free it with
 * abp_free(). */
abp_endpoint *abp_new(const abp_config *config, uint64_t now);
/* Frees the endpoint and everything that it owns. NULL is allowed. */
void abp_free(abp_endpoint *endpoint);

/* Sets a member of what this side says of itself in the handshake, from JSON text that is sent as
 * it is: "agent" (required of agents), "app" and "capabilities" (required of apps),
 * "requestedCapabilities", "agentCapabilities". Name and text are copied. Errors: ABP_E_MEMORY,
 * ABP_E_LIMIT for a fifth name or one of more than 23 bytes. */
int abp_describe(abp_endpoint *endpoint, const char *member, const char *json, size_t length);

/* --- Actions ---------------------------------------------------------------------------------- */

typedef enum abp_kind {
  ABP_NONE,
  ABP_QUEUED,  /* callee: the call just received was accepted and waits for its turn: keep its
                  payload */
  ABP_START,   /* callee: run the handler, then abp_finish() */
  ABP_ABORT,   /* callee: fire the call's signal; `text` is the reason, if one was given */
  ABP_RESULT,  /* callee: send the call's result; `arg` is an abp_outcome */
  ABP_REFUSE,  /* callee: answer what was just received with the error `arg` and forget it */
  ABP_REQUEST, /* caller: send the call */
  ABP_SETTLE,  /* caller: the call has ended; `arg` is an abp_outcome */
  ABP_REPORT,  /* caller: hand the progress just received to the call; 0 is a call nobody knows */
  ABP_SEND,    /* send this control message: abp_print() gives its text; `arg` is an abp_message */
  ABP_SESSION, /* the session changed; `arg` is an abp_session */
  ABP_WAKE,    /* call abp_advance() at `at`, in ms; a later ABP_WAKE replaces an earlier one */
  ABP_DROP,    /* JSON-RPC: what was just received is dropped; `arg` is the abp_counter of such */
  ABP_CHUNK,   /* of a stream, `at` is its size. Callee: send the chunk. Caller: hand the chunk just
                  received to the call's reader */
  ABP_CREDIT,  /* caller: tell the peer that `chunks` chunks, `at` bytes, were read */
  ABP_RESUME,  /* callee: half of the stream's window is free again, for a chunk that had to wait */
  ABP_NOTIFY   /* agent: hand the notification just received to its listener: abp_received() */
} abp_kind;

/* Control messages; abp_action.arg of an ABP_SEND. */
typedef enum abp_message {
  ABP_MSG_INITIALIZE,
  ABP_MSG_INITIALIZE_RESULT, /* `offer` a port with it when abp_features() has ABP_PORT */
  ABP_MSG_CANCEL,
  ABP_MSG_CANCEL_RESULT,
  ABP_MSG_SHUTDOWN,
  ABP_MSG_PING,
  ABP_MSG_PONG,
  ABP_MSG_BYE,
  ABP_MSG_PROBE /* agent: a cancel of an id that is never used, for its answer alone */
} abp_message;

typedef enum abp_session {
  ABP_SESSION_NONE,
  ABP_SESSION_CONNECTING,
  ABP_SESSION_READY,  /* the handshake is done: abp_features() tells what both sides agreed on */
  ABP_SESSION_FAILED, /* the app refused it, or did not answer in time */
  ABP_SESSION_CLOSED, /* by shutdown, from either side */
  ABP_SESSION_LOST    /* the peer is gone */
} abp_session;

typedef struct abp_action {
  abp_kind kind;
  uint32_t arg;
  abp_call call;
  int released;     /* 1: `call` is over on this side, the handle is void after this action */
  uint64_t at;      /* ABP_WAKE; a timeout of JSON-RPC; bytes of a stream */
  const char *text; /* reason of an ABP_ABORT or ABP_MSG_CANCEL: not terminated, valid until the
                       next input; NULL if none. Of an ABP_MSG_CANCEL_RESULT, abp_print()'s */
  size_t length;
  uint32_t chunks; /* ABP_CREDIT; of an ABP_REQUEST that is a stream, the window (and `at`: its
                      bytes), else 0 */
  abp_fate fate;   /* ABP_RESULT, ABP_SETTLE: what became of the work. Of an ABP_SETTLE whose result
                      has an error, what the result says, if you read it, outweighs this */
  uint32_t number; /* ABP_REQUEST: the call's id, if that is a number, else 0: abp_number() */
} abp_action;

/* Takes the next action into *action. Returns 1, or 0 when nothing is left. */
int abp_next(abp_endpoint *endpoint, abp_action *action);

/* --- Inputs for both sides -------------------------------------------------------------------- */

/* Time has passed: `now` is monotonic, in ms. Deadlines, grace periods and the heartbeat run on
 * this alone. Call it when ABP_WAKE says so, and with each batch of messages. A time that is
 * earlier than the last one counts as that. Errors: ABP_E_UNDRAINED. */
int abp_advance(abp_endpoint *endpoint, uint64_t now);

/* Ends the session in good order. An agent sends `shutdown`; an app says `bridge/bye` where that
 * was agreed. Calls still pending settle as cancelled; running handlers are aborted and their calls
 * answered. Without a session nothing happens. Errors: ABP_E_UNDRAINED. */
int abp_close(abp_endpoint *endpoint);
/* The connection is gone. Pending calls settle as ABP_DISCONNECTED, handlers are aborted. Errors:
 * ABP_E_UNDRAINED. */
int abp_lost(abp_endpoint *endpoint);
/* A frame has come that cannot be read. It may have held calls, results, cancels or chunks, so
 * after it neither side knows what the other one knows. The session is lost, as by abp_lost(), and
 * the peer is told: by `shutdown` or, from an app, by a `bridge/bye` that has the error
 * ABP_PARSE_ERROR. Where no frames were agreed on, it counts as ABP_MALFORMED and nothing else
 * happens. Errors: ABP_E_UNDRAINED. */
int abp_unread(abp_endpoint *endpoint);
/* The peer may be another one than before: an iframe fired `load`, say, which it does for a new
 * document and for a step back in its history, too. The peer is asked: by a ping, or a plain app by
 * ABP_MSG_PROBE. If its answer shows that it knows no session, or nothing comes for `heartbeat_ms`
 * or `probe_ms`, the session is lost, as by abp_refused(). Until then nothing changes. In a
 * handshake `initialize` is sent again at once. Errors: ABP_E_UNDRAINED. */
int abp_suspect(abp_endpoint *endpoint);
/* Agent: the app has answered a call with an error of this code. If that says that it knows no
 * session, the session is lost: the app is told `shutdown`, for what it may still have of it, and
 * pending calls settle as ABP_DISCONNECTED. abp_receive() does this by itself. Errors:
 * ABP_E_UNDRAINED. */
int abp_refused(abp_endpoint *endpoint, const char *code, size_t length);
/* This side's document is going away: it says `bridge/bye` where that was agreed (an agent that
 * still connects: `shutdown`) and answers nothing more; the peer settles what it has pending as
 * ABP_DISCONNECTED. `persisted`: it is only frozen (a page in the back/forward cache), the session
 * lasts and its heartbeat stops until it is heard again. Errors: ABP_E_UNDRAINED. */
int abp_leave(abp_endpoint *endpoint, int persisted);

/* An id is a text or, for short, a number: number n of a side whose `initialize` had id (agent) or
 * whose first session had id (app) "P" stands for the text "P.n". */
typedef struct abp_id {
  const char *text; /* UTF-8, not terminated; NULL when number is meant */
  uint32_t length;  /* bytes */
  uint32_t number;  /* 1 and up */
} abp_id;

/* Writes a call's id as text to `buffer`, not terminated, as far as the whole of it fits into
 * `size` bytes. Returns its length, whatever `size` is; 0 for a void handle. */
size_t abp_id_text(const abp_endpoint *endpoint, abp_call call, char *buffer, size_t size);
/* The number of a call whose id is one; 0 for a call with another id and for a void handle. */
uint32_t abp_number(const abp_endpoint *endpoint, abp_call call);

/* --- The caller: an agent's calls, an app's elicitations -------------------------------------- */

enum abp_call_flag {
  ABP_WANTS_PROGRESS = 1, /* the call has a progress token */
  ABP_WANTS_STREAM = 2,   /* the call is a stream, if ABP_STREAMS was agreed on. An app asks so for
                             what its agent streams, the input of a call: `bridge/input` */
  ABP_ASIDE = 4 /* callee: it asks about other calls, perhaps about one that runs: it starts at
                   once, and takes the place of no other (`max_concurrent`) */
};

/* Makes a call (agent) or an elicitation (app). `id` NULL mints one. `timeout_ms` 0 is none; over
 * 2^31-1 is clamped. `flags` are abp_call_flags. `parent` is the received call on whose behalf this
 * is made, or 0: when that is cancelled, so is this; and while an elicitation that is no stream is
 * not answered, the deadlines of the parent and of the calls above it stand still. Say what time it
 * is before, and before the answer: abp_advance(). The handle is in *call. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE without a session or when the parent's handler does not run or was
 * asked to stop, ABP_E_LIMIT, ABP_E_ID, ABP_E_DUPLICATE, ABP_E_MEMORY. */
int abp_request(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                abp_call parent, abp_call *call);

/* Asks for a call to stop, as its signal does. Sends one cancel however often it is asked; the call
 * settles with the answer, or after the grace period. `reason` may be NULL; one that is not UTF-8
 * or contains NUL is not sent. A call that has ended, or a void handle, is left alone and says
 * ABP_OK. Errors: ABP_E_UNDRAINED. */
int abp_cancel(abp_endpoint *endpoint, abp_call call, const char *reason, size_t length);

/* Agent: sends `capabilities/cancel` for whatever id, a text, known here or not, and waits for the
 * app's word: *request settles as ABP_CANCELLED if the app said `cancelled: true`, ABP_COMPLETED if
 * false, ABP_TIMED_OUT if it said nothing within the grace period. `reason` as for abp_cancel().
 * Errors: ABP_E_UNDRAINED, ABP_E_STATE without a session, ABP_E_ID, ABP_E_LIMIT, ABP_E_MEMORY. */
int abp_cancel_by_id(abp_endpoint *endpoint, const abp_id *id, const char *reason, size_t length,
                     abp_call *request);

/* A result has come, and says: ABP_COMPLETED, ABP_FAILED, ABP_CANCELLED or ABP_TIMED_OUT. The app's
 * word on why it stopped the call outweighs this side's guess. Once the app has accepted this
 * side's cancel, the call settles as ABP_CANCELLED or ABP_TIMED_OUT whatever its result says. A
 * result for no call, or for one that was settled before, is counted. Errors: ABP_E_UNDRAINED. */
int abp_result_received(abp_endpoint *endpoint, const abp_id *id, abp_outcome outcome);
/* The same, for a result that says what became of the work; ABP_FATE_NONE if it does not. */
int abp_result_with_fate(abp_endpoint *endpoint, const abp_id *id, abp_outcome outcome,
                         abp_fate fate);
/* A call could not be sent (its parameters cannot be cloned, say): it settles as ABP_COMPLETED,
 * with the error that you found, and the peer never hears of it. A call that has ended, or a void
 * handle, is left alone and says ABP_OK. Errors: ABP_E_UNDRAINED, ABP_E_STATE for a call that was
 * received. */
int abp_send_failed(abp_endpoint *endpoint, abp_call call);
/* Progress has come for the operation with this id: ABP_REPORT follows if it may be handed on. What
 * comes too late, or was not agreed on, is counted. Errors: ABP_E_UNDRAINED. */
int abp_progress_received(abp_endpoint *endpoint, const abp_id *id);

/* --- The callee: an app's handlers, an agent's elicitation handler ---------------------------- */

/* A call has come. `timeout_ms` and `flags` as for abp_request(). `fault` is what its receiver
 * found wrong with it (an unknown capability, say), or 0. ABP_START, ABP_QUEUED or ABP_REFUSE
 * follows; want of memory is a refusal. Errors: ABP_E_UNDRAINED. */
int abp_call_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                      abp_error fault);
/* Agent: an elicitation has come that says on behalf of which call it is made: `about`. If that is
 * a call of this side which waits for its result, its deadline stands still from here until
 * abp_finish() or until the elicitation is to stop, and the elicitation is to stop when the call
 * does. App: a call has come that repeats an earlier one, `about`, which may have run: if this one
 * never does, abp_became() leaves what to say of the work to those who know that one. Otherwise as
 * abp_call_received(). */
int abp_question_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                          const abp_id *about, abp_error fault);
/* A cancel has come whose answer nobody waits for: the call's own result says what became of it. If
 * the call is not known, or has ended, nothing happens. `reason` may be NULL. Errors:
 * ABP_E_UNDRAINED. */
int abp_cancel_received(abp_endpoint *endpoint, const abp_id *id, const char *reason,
                        size_t length);
/* A handler calls another capability of its own app. It runs like any call, but its ABP_RESULT or
 * ABP_REFUSE goes to that handler and is not printed. Beyond 32 calls within calls it is refused.
 * Errors: ABP_E_UNDRAINED, ABP_E_STATE when the parent's handler does not run or was asked to stop.
 */
int abp_call_local(abp_endpoint *endpoint, abp_call parent, uint32_t timeout_ms, abp_error fault);
/* What the handler of a started call needs is not there yet: params are still being checked, code
 * is loaded. Until abp_begin() its work has not begun. Whatever ends the call meanwhile ends it at
 * once, as ABP_FATE_UNSTARTED, and frees its place: after an ABP_ABORT no abp_finish() is needed.
 * If what was waited for fails, abp_finish() says so, and the fate is the same. Nothing may be
 * asked, called or streamed on its behalf before abp_begin(). Errors: ABP_E_UNDRAINED, ABP_E_STATE
 * when its handler does not run or was asked to stop. */
int abp_postpone(abp_endpoint *endpoint, abp_call call);
/* The handler begins its work now, which it may have done already. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE when the call has ended or was asked to stop: then the handler must not begin. */
int abp_begin(abp_endpoint *endpoint, abp_call call);
/* The handler has settled: with a value (ABP_COMPLETED), with an error (ABP_FAILED), saying by
 * itself that it was cancelled (ABP_CANCELLED), or that it cannot know what became of its work
 * (ABP_UNKNOWN). What the
 * peer hears is in the ABP_RESULT that follows: a call whose cancel was accepted stays cancelled.
 * Errors: ABP_E_UNDRAINED, ABP_E_STATE when no handler of this call runs. */
int abp_finish(abp_endpoint *endpoint, abp_call call, abp_outcome outcome);
/* The same, for a handler that passed the call on and was told what became of its work. If that is
 * ABP_FATE_RUNNING, and a local call of its own still runs, the call takes that one's word when it
 * returns.
 *
 * Of both: a call that was to stop, or stops by itself, is over when its local calls are, too. It
 * says then how its handler settled, or ABP_FATE_UNKNOWN if that became of one of them; until then
 * it runs, and its ABP_RESULT says so once the grace period is over. The same holds for a call that
 * fails by itself after its latest local call was told to be running. ABP_FOLLOWS says that an
 * ABP_RESULT is still to come, unless the session ends first. */
int abp_finish_with_fate(abp_endpoint *endpoint, abp_call call, abp_outcome outcome, abp_fate fate);
/* Of a `foreign` endpoint: the app that was asked to stop a call answers before the call ends. If
 * it has `accepted` the cancel, the call is cancelled from here on, whatever the handler says. If
 * not, the cancels that wait are answered `cancelled: false` with this `reason` (NULL: one of
 * ours), the call runs on, and the next cancel asks again: ABP_ABORT. A call that was not asked, or
 * a void handle, is left alone and says ABP_OK. Errors: ABP_E_UNDRAINED. */
int abp_cancel_answered(abp_endpoint *endpoint, abp_call call, int accepted, const char *reason,
                        size_t length);
/* The handler of a call says that its work goes on somewhere else: the call ends as cancelled for
 * its caller, which need not wait until a grace period is over, and is told ABP_FATE_RUNNING.
 * abp_finish() still ends it. A call whose result is out, or a void handle, is left alone and says
 * ABP_OK. Errors: ABP_E_UNDRAINED. */
int abp_goes_on(abp_endpoint *endpoint, abp_call call);
/* 1 if the handler of a call has begun its work, which it may have ended, else 0; 0 for a void
 * handle. */
int abp_has_begun(const abp_endpoint *endpoint, abp_call call);
/* 1 if the handler of a call has returned or will never run, else 0; 1 for a void handle. */
int abp_has_ended(const abp_endpoint *endpoint, abp_call call);
/* 1 if progress may be sent for this call now, else 0; 0 for a void handle. */
int abp_progress_wanted(const abp_endpoint *endpoint, abp_call call);
/* What became of a call that was received: in this session or in an older one of this endpoint, as
 * long as it is remembered (`remembered`, `remember_ms`), also after the session has ended. An id
 * that was used again names the newest call. ABP_FATE_RUNNING if its handler has not returned, or
 * not begun: then its handle is in *call, or that of the local call whose word it takes, else 0.
 * ABP_FATE_NONE if no such call is known, or if it never ran and repeats one that may have run
 * (then there is an *outcome). *outcome is how it ended, or will, because it was told to stop;
 * ABP_PENDING if it runs and was not. A call that ended with its session, lost or closed, ended as
 * ABP_DISCONNECTED, whatever its handler returned.
 * Changes nothing; it may be asked before abp_next() has returned 0. */
abp_fate abp_became(abp_endpoint *endpoint, const abp_id *id, abp_outcome *outcome, abp_call *call);

/* --- Streams ---------------------------------------------------------------------------------- */

/*
 * A stream is a call whose handler sends chunks before its result. It has one outcome, like any
 * call, and ends in the same ways; no chunk follows the outcome, and those sent before it arrive
 * before it.
 *
 * The caller says with its request how much may be under way (the window). What it reads it grants
 * again: after half of the window and, if the peer has not said in the handshake which windows it
 * keeps to, whenever it has read all that came. So whatever is streamed,
 * no more than the window waits at the reader, and one chunk at the handler. A chunk may be sent
 * while fewer chunks and fewer bytes than the window are under way; so one may exceed it.
 *
 * A size is what the sender says, at most 2^53; more counts as that.
 */

/* Callee: as abp_call_received(), for a call whose caller reads a stream through a window of
 * `chunks` and `bytes`. If either is 0, or streams were not agreed on, it is no stream. */
int abp_stream_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                        uint32_t flags, uint32_t chunks, uint32_t bytes, abp_error fault);
/* Caller: as abp_request(), whose flags are to have ABP_WANTS_STREAM, through a window of at most
 * `bytes`. 0, and what is more than the limits of the two sides, is as much as these allow. */
int abp_stream_request(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                       uint32_t flags, uint32_t bytes, abp_call parent, abp_call *call);
/* 1 if the call was received and is a stream, else 0: then the handler's chunks are collected into
 * its result. 0 for a void handle. */
int abp_stream_wanted(const abp_endpoint *endpoint, abp_call call);
/* Callee: the handler has a chunk of this size. ABP_CHUNK follows. Errors: ABP_E_UNDRAINED;
 * ABP_E_LIMIT while the window is full: keep the chunk and say it again after ABP_RESUME;
 * ABP_E_STATE if the call is no stream, or nobody waits for chunks any more: drop it. */
int abp_chunk(abp_endpoint *endpoint, abp_call call, uint64_t size);
/* Callee: the caller says that it has read this much. More than was sent is counted and ignored.
 * Errors: ABP_E_UNDRAINED. */
int abp_credit_received(abp_endpoint *endpoint, const abp_id *id, uint64_t chunks, uint64_t bytes);
/* Caller: a chunk has come. ABP_CHUNK follows, if it belongs to a stream that waits for chunks. One
 * that the window has no room for is counted, and its call cancelled and settled at once, since the
 * stream would have a gap: as ABP_COMPLETED, with an error that you make. Errors: ABP_E_UNDRAINED.
 */
int abp_chunk_received(abp_endpoint *endpoint, const abp_id *id, uint64_t size);
/* The same, for who has measured the chunk, too: `seen`. What was not said has no room either once
 * it is more than another window of bytes. */
int abp_chunk_measured(abp_endpoint *endpoint, const abp_id *id, uint64_t size, uint64_t seen);
/* Caller: the reader has taken a chunk of this size. A call that has ended, or a void handle, says
 * ABP_OK. Errors: ABP_E_UNDRAINED, ABP_E_STATE if the call is no stream or no such chunk came. */
int abp_chunk_read(abp_endpoint *endpoint, abp_call call, uint64_t size);

/* --- The session ------------------------------------------------------------------------------ */

/* Agent: begins the handshake. `initialize` is sent again, with the same id and growing pauses,
 * until it is answered or `timeout_ms` (0: ABP_DEFAULT_CONNECT_MS) is over. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE when there is a session or one is being opened. */
int abp_connect(abp_endpoint *endpoint, uint32_t timeout_ms);
/* What both sides agreed on, abp_features or'ed; 0 without a session. */
uint32_t abp_features(const abp_endpoint *endpoint);
/* Where the session stands; the last ABP_SESSION said so, but for ABP_SESSION_CONNECTING. */
abp_session abp_session_state(const abp_endpoint *endpoint);

/* --- Text: any message, in and out ------------------------------------------------------------ */

/* The parts of a message of the data plane, as slices of its text, untouched. */
typedef struct abp_body {
  /* The capability, event or elicitation method, without quotes and escapes. */
  const char *name;
  size_t name_length;
  /* JSON: params of a call, a result's ABPResponse, a notification's data, a chunk. */
  const char *payload;
  size_t payload_length;
  const char *id; /* JSON: the message's id. A call's answer goes to it: keep it with the call */
  size_t id_length;
  const char *token; /* JSON: the progressToken of a call, NULL if it has none. Keep it, too */
  size_t token_length;
  const char *key; /* JSON: the idempotencyKey of a call, NULL if it has none */
  size_t key_length;
  const char *repeats; /* JSON: the callId of the call that this one repeats, NULL if it is new */
  size_t repeats_length;
  uint32_t timeout_ms; /* of a call or a question, 0 if it has none */
  int input; /* 1: the caller of a call streams to its handler; a question is to be answered by a
                stream */
} abp_body;

/* A message has come, as JSON text. Unknown types, echoes and answers to nothing are counted.
 * Errors: ABP_E_UNDRAINED, ABP_E_MEMORY, ABP_E_TEXT if it is no message at all; the connection is
 * as good as before. */
int abp_receive(abp_endpoint *endpoint, const char *text, size_t length);
/* The same in two steps, for who looks at a call before it is taken in. abp_read() reads the
 * message and changes nothing; abp_received() has its parts. Returns 1 if it is a call or a
 * question, else ABP_OK. Errors as of abp_receive(). */
int abp_read(abp_endpoint *endpoint, const char *text, size_t length);
/* Takes in what abp_read() has read. `flags` (ABP_ASIDE) and `fault`, as for abp_call_received(),
 * are about a call or a question. Errors: ABP_E_UNDRAINED, ABP_E_MEMORY, ABP_E_STATE if there was
 * another input since: read it again. */
int abp_take(abp_endpoint *endpoint, uint32_t flags, abp_error fault);
/* The parts of the message that the last input was; all empty if it was another input. */
const abp_body *abp_received(const abp_endpoint *endpoint);
/* A result has come, and this is its ABPResponse, as JSON: what it says of the call is read as
 * abp_receive() reads it. One that cannot be read says that the call has failed. Errors:
 * ABP_E_UNDRAINED, ABP_E_MEMORY. */
int abp_response_received(abp_endpoint *endpoint, const abp_id *id, const char *json,
                          size_t length);
/* A handler has settled, and gives this ABPResponse, as JSON: as abp_finish_with_fate(), with what
 * it says. One that cannot be read is a failure. Errors: those, ABP_E_MEMORY. */
int abp_finish_with_response(abp_endpoint *endpoint, abp_call call, const char *json,
                             size_t length);

/* The text of the message that an action sends, terminated, its length in *length; or NULL when
 * memory is short (try again). Print before the next input. `body` is what only you know, NULL for
 * ABP_SEND, ABP_REFUSE and ABP_CREDIT: name and params of an ABP_REQUEST, and what else its call
 * has; the chunk (payload) that an ABP_CHUNK sends; for an ABP_RESULT the id of its call's message
 * and, if the outcome is ABP_COMPLETED, the ABPResponse. `unix_ms` becomes the timestamp. */
const char *abp_print(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length);
/* An ABP_RESULT whose handler failed: as abp_print(), with this error in place of an ABPResponse.
 * `body` has the id of the call's message. `message`, terminated, says what was wrong and what to
 * do; NULL, or text that is not UTF-8, is abp_error_message(). Where the outcome is another than
 * ABP_COMPLETED, that is what is said. */
const char *abp_print_error(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                            abp_error error, const char *message, uint64_t unix_ms, size_t *length);
/* What is known of a call that ended without success, beside its outcome. */
typedef struct abp_told {
  const char *response; /* JSON: the ABPResponse that its handler gave, or the peer; NULL if none */
  size_t response_length;
  /* UTF-8: why it was cancelled or lost, in the words of who did that; empty if that had none. NULL
   * if this side did not cancel it: then the response says why. */
  const char *reason;
  size_t reason_length;
  int expired;    /* 1: the reason is that time ran out: the error is TIMEOUT */
  int repeatable; /* 1: its capability may run twice, so that the error may say `retryable` */
} abp_told;

/* The ABPResponse of a call that ended without success (ABP_RESULT, ABP_SETTLE), or never began: it
 * was received and refused (ABP_REFUSE), or could not be made (ABP_REQUEST, with an abp_error for
 * its arg); `reason`, if there is one, is its message then. It says success, cancelled, error and
 * metadata.outcome. What else `told->response` has, such as error.details and a report, is for you
 * to add. As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_response(abp_endpoint *endpoint, const abp_action *action,
                               const abp_told *told, size_t *length);
/* What abp_print_response() says, as one number, for two sides that both have a core and so need no
 * text between them: the error, flags, and from ABP_FAILURE_FATE_SHIFT on the abp_fate. The message
 * is the error's own (abp_error_message) unless a flag says otherwise. 0 is no failure. */
typedef uint32_t abp_failure;
enum {
  ABP_FAILURE_ERROR = 255,     /* an abp_error */
  ABP_FAILURE_RETRYABLE = 256, /* the error's `retryable` */
  ABP_FAILURE_CANCELLED = 512, /* `cancelled` */
  ABP_FAILURE_THEIRS = 1024,   /* the message is that of the response that was given */
  ABP_FAILURE_REASON = 2048,   /* the message is the reason that was given here */
  ABP_FAILURE_FATE_SHIFT = 12
};

/* What an ABPResponse says of its call, as one number without its texts. The lower bits are those
 * of an abp_failure: the error, ABP_FAILURE_RETRYABLE, ABP_FAILURE_CANCELLED and the fate. A
 * response without a code has ABP_OPERATION_FAILED, and one whose code is not known here
 * ABP_NO_ERROR. The flags below are added to that. 0 means that there is no response. */
typedef uint32_t abp_response;
enum {
  ABP_RESPONSE_GIVEN = 65536,     /* there is a response */
  ABP_RESPONSE_FORMED = 131072,   /* its `success` is true or false */
  ABP_RESPONSE_SUCCEEDS = 262144, /* it is true */
  ABP_RESPONSE_FAILS = 524288,    /* it has an error, */
  ABP_RESPONSE_CODED = 1048576,   /* and that has a code */
  ABP_RESPONSE_PACKED = 1769472   /* all but SUCCEEDS, for an abp_failure that came as a number */
};

/* As abp_print_response(), but as a number. In place of told->response it takes `response`. Of
 * told->reason only the length is read. With ABP_FAILURE_THEIRS, ABP_NO_ERROR is the code that the
 * response has, and where that has no message it is abp_response_message(). */
abp_failure abp_failure_told(const abp_endpoint *endpoint, const abp_action *action,
                             const abp_told *told, abp_response response);
/* What is said of a response that has neither a message nor a code: static. */
const char *abp_response_message(abp_response response);
/* A result has come, as a number: as abp_response_received() with the text that it stands for. One
 * that stands for none counts as a response that cannot be read. Errors: ABP_E_UNDRAINED. */
int abp_outcome_received(abp_endpoint *endpoint, const abp_id *id, abp_response response);
/* A handler has settled with what this says: as abp_finish_with_response(). */
int abp_finish_with_outcome(abp_endpoint *endpoint, abp_call call, abp_response response);
/* The error of a call that an input has rejected with this negative code; `parent`: whether it was
 * to be made on behalf of another. */
abp_error abp_status_error(const abp_endpoint *endpoint, int status, int parent);
/* Progress of a received call, under its id: `progress` is a JSON number, or an object with members
 * of the protocol's ProgressInfo, such as {"progress":3,"total":10}. Send it if
 * abp_progress_wanted(). As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_progress(abp_endpoint *endpoint, abp_call call, const char *progress,
                               size_t progress_length, uint64_t unix_ms, size_t *length);
/* The same under the token that the caller chose, as the protocol wants it: `body` has the token of
 * the call's message and, as its payload, the progress. Without a token the call's id stands for
 * it; that is also the token that this library's callers choose. */
const char *abp_print_progress_token(abp_endpoint *endpoint, abp_call call, const abp_body *body,
                                     uint64_t unix_ms, size_t *length);
/* A notification: `body` has event (name) and data (payload). Send it if abp_features() has
 * ABP_NOTIFICATIONS. As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_notification(abp_endpoint *endpoint, const abp_body *body, uint64_t unix_ms,
                                   size_t *length);

/* --- Looking in ------------------------------------------------------------------------------- */

typedef enum abp_counter {
  ABP_IN_FLIGHT_OUT, /* calls made and not settled */
  ABP_IN_FLIGHT_IN,  /* calls received whose handler has not settled */
  ABP_REMEMBERED,    /* finished calls still remembered */
  ABP_LATE,          /* answers to calls that were settled before */
  ABP_STRAY,         /* answers to, and progress of, calls that nobody made */
  ABP_MALFORMED,     /* messages that could not be read */
  ABP_UNKNOWN_TYPE,
  ABP_REFUSED, /* calls answered with an error by the core */
  ABP_OVERRUN, /* chunks for which the window had no room, and grants of what was not sent */
  ABP_COUNTERS
} abp_counter;
/* A counter's value; those of what went wrong begin again after 2^32-1. */
uint32_t abp_count(const abp_endpoint *endpoint, abp_counter counter);

#ifdef __cplusplus
}
#endif
#endif
