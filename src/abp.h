/*
 * abp.h - one side of an agent-app connection: the Agentic Browser Protocol (ABP) 0.1 without I/O.
 *
 * This header is the manual. An *endpoint* is one side of one connection: the agent, which calls,
 * or the app, which runs the calls. It reads no clock, draws no random numbers, does no I/O and
 * keeps no globals: you pass in time and entropy. Messages go in and out as JSON text or, on the
 * fast path, as ids and numbers.
 *
 *   1. Create it:         abp_new(), once for each connection.
 *   2. Feed it:           an *input* reports an event: a message arrived, time passed.
 *   3. Drain it:          abp_next() until it returns 0. Each *action* is one thing for you to do.
 *   4. Send its messages: abp_print() returns the text of an action that sends something.
 *
 * Drain the endpoint completely before its next input, which otherwise returns ABP_E_UNDRAINED. If
 * carrying out an action causes an input, do it after draining.
 *
 * Lifetimes. The endpoint uses the structs that you pass (abp_config, abp_id, abp_body) and your
 * pointers to results only before the function returns, so these may be on the stack. Keep the text
 * that you pass to an input, also inside a struct, until the next input: actions may repeat it. The
 * endpoint owns everything that it returns: an action's text, and abp_received(), are valid until
 * the next input, a printed text until the next input or print. You free nothing but the endpoint.
 *
 * Inputs return ABP_OK or a negative code; each comment lists the codes that its function can
 * return. A negative code means a mistake of yours, a limit, or too little memory, and nothing has
 * changed. Mistakes of the *peer* are never return codes: they are answered, or counted
 * (abp_count).
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

/* A handle of a call. It is valid from the input that made the call until the action that has
 * `released` set. After that it is void: it never matches another call. 0 is no call. */
typedef uint32_t abp_call;

/* --- Codes ------------------------------------------------------------------------------------ */

/* Return values of inputs. */
enum abp_status {
  ABP_OK = 0,
  ABP_E_MEMORY = -1,    /* an allocation failed; free something and try again */
  ABP_E_LIMIT = -2,     /* too many calls are in flight; try again when one has ended */
  ABP_E_STATE = -3,     /* there is no session, or no such call, or the call has ended */
  ABP_E_ID = -4,        /* an id is empty, too long, not UTF-8, or contains NUL */
  ABP_E_DUPLICATE = -5, /* a call with this id is in flight; choose another */
  ABP_E_TEXT = -6,      /* the text is not JSON, or larger or deeper than the limits allow */
  ABP_E_UNDRAINED = -7, /* actions are left: call abp_next() until it returns 0 */
  ABP_FOLLOWS = -8      /* not an error: the call is answered later, see abp_finish() */
};

/* The protocol's error codes that the core sends or reads. abp_error_name() returns their text. */
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
  ABP_SESSION_EXPIRED, /* sent only by apps of other libraries, as is the next one */
  ABP_SESSION_INVALID,
  ABP_ERROR_COUNT
} abp_error;

/* The code's name on the wire, such as "INVALID_PARAMS"; "" if `error` is not such a code. Static
 * text. */
const char *abp_error_name(int error);
/* The error with this name, or ABP_NO_ERROR. Where several errors are sent under one name, the
 * first. */
abp_error abp_error_of(const char *name, size_t length);
/* A sentence that says what was wrong and what to do; "" if `error` is not such a code. Static
 * text. */
const char *abp_error_message(int error);
/* 1 if the same request may succeed later, else 0: the protocol's `retryable`. A response says
 * false all the same if the work of its call may have been done. */
int abp_error_retryable(int error);

/* How a call ended. */
typedef enum abp_outcome {
  ABP_PENDING,
  ABP_COMPLETED,    /* with the handler's value or its error */
  ABP_CANCELLED,    /* on request */
  ABP_TIMED_OUT,    /* because its deadline passed */
  ABP_DISCONNECTED, /* because the peer is gone */
  ABP_UNKNOWN, /* for abp_finish() only: the handler does not know whether its work has stopped */
  ABP_FAILED   /* in inputs: ABP_COMPLETED with an error. Actions say ABP_COMPLETED */
} abp_outcome;

/* The fate of the handler's work: `metadata.outcome` of a result that is not a success. */
typedef enum abp_fate {
  ABP_FATE_NONE,      /* not known here: the call succeeded, or has not ended */
  ABP_FATE_UNSTARTED, /* it never ran: the call can be made again */
  ABP_FATE_STOPPED,   /* it ended because of the cancel, before its end */
  ABP_FATE_FINISHED,  /* it ran to its end: its effects stand, even if its data was dropped */
  ABP_FATE_RUNNING,   /* it had not returned when the result was sent */
  ABP_FATE_UNKNOWN,   /* the peer is gone, or did not report it */
  ABP_FATE_FAILED     /* it failed by itself */
} abp_fate;

/* The fate's word on the wire, such as "unstarted"; "" for ABP_FATE_NONE and for other numbers.
 * Static text. */
const char *abp_fate_name(int fate);

/* --- Endpoint --------------------------------------------------------------------------------- */

typedef enum abp_role { ABP_AGENT, ABP_APP } abp_role;

/* Features of a session. Each side announces those that it wants; the session has those that both
 * want. The last six are not in the published protocol: a peer that does not know them never agrees
 * to them. */
enum abp_feature {
  ABP_NOTIFICATIONS = 1,
  ABP_PROGRESS = 2,
  ABP_ELICITATION = 4,
  ABP_DYNAMIC_CAPABILITIES = 8, /* of the app only: announced, not negotiated */
  ABP_PORT = 16,                /* `bridge.port`: the app offers a channel of its own */
  ABP_FRAMES = 32,              /* `bridge.frames`: many messages in one array, calls by number */
  ABP_LIVENESS = 64,            /* `bridge.liveness`: bridge/ping, bridge/pong, bridge/bye */
  ABP_STREAMS = 128,  /* `bridge.streams`: chunks before a result: bridge/chunk, bridge/credit; to
                        cancel an app's request to its agent, bridge/cancel */
  ABP_OUTCOMES = 256, /* `bridge.outcomes`: an agent may ask for the outcome of a call, later or in
                         another session, and give a call a key so that it never runs twice */
  ABP_TEXT = 512      /* `bridge.text`: small values of frames as JSON text */
};

/* Defaults of the limits that the configuration leaves at 0. */
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
  uint32_t features; /* enum abp_feature, or'ed together */

  /* Limits; 0 takes the default (enum abp_default). */
  uint32_t max_calls;      /* calls in flight in each direction, at most 2^20 - 2 in all */
  uint32_t max_concurrent; /* handlers running at once (default: max_calls); more calls wait */
  uint32_t remembered;     /* finished calls that are remembered: abp_became() */
  uint32_t remember_ms;    /* how long they are remembered */
  uint32_t grace_ms;       /* how long a cancel waits for its call to end */
  uint32_t max_id;         /* bytes of an id, at most 65535 */
  uint32_t max_text;       /* bytes of a control message */
  uint32_t heartbeat_ms;   /* silence after which the endpoint pings the peer */
  uint32_t probe_ms;       /* agent: how long an app without a heartbeat may take: abp_suspect() */
  uint32_t restart; /* app: 1 lets a new `initialize` replace the session; else it is refused */
  /* 1: the handlers pass calls on to a foreign app, and that app decides whether a cancel succeeds.
   * ABP_ABORT asks the handler to stop; the answers to the cancels wait for abp_cancel_answered()
   * or abp_finish(). Without either within grace_ms, the answers say `cancelled: false` and that
   * the outcome is unknown, and so does the result. Waiting cancels take at most max_text bytes;
   * further ones are answered RATE_LIMITED at once. */
  uint32_t foreign;

  /* The number of the first call that is made here; 0 means 1. For tests: after 2^32-1 the numbers
   * start again. */
  uint32_t first_number;

  /* The window of a stream: how many chunks and bytes may be sent before the reader has read them.
   * The smaller window of the two sides applies. 0 takes the default. */
  uint32_t stream_chunks;
  uint32_t stream_bytes;
} abp_config;

/* Creates an endpoint. Returns NULL when memory is short. `now` is a monotonic time in ms. Free it
 * with abp_free(). */
abp_endpoint *abp_new(const abp_config *config, uint64_t now);
/* Frees the endpoint and everything that it owns. NULL is allowed. */
void abp_free(abp_endpoint *endpoint);

/* Sets a member of this side's handshake message, from JSON text that is sent as it is: "agent"
 * (required of agents), "app" and "capabilities" (required of apps), "requestedCapabilities",
 * "agentCapabilities". Name and text are copied. Errors: ABP_E_MEMORY, ABP_E_LIMIT for a fifth name
 * or one of more than 23 bytes. */
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
  ABP_REPORT,  /* caller: pass the progress just received to the call; 0: the call is unknown */
  ABP_SEND,    /* send this control message: abp_print() gives its text; `arg` is an abp_message */
  ABP_SESSION, /* the session changed; `arg` is an abp_session */
  ABP_WAKE,    /* call abp_advance() at `at`, in ms; a later ABP_WAKE replaces an earlier one */
  ABP_DROP,    /* JSON-RPC: what was just received is dropped; `arg` is the abp_counter for it */
  ABP_CHUNK,   /* of a stream, `at` is its size. Callee: send the chunk. Caller: hand the chunk just
                  received to the call's reader */
  ABP_CREDIT,  /* caller: grant the peer what was read: `chunks` chunks, `at` bytes */
  ABP_RESUME,  /* callee: half of the stream's window is free again: send the waiting chunk */
  ABP_NOTIFY   /* agent: pass the notification just received to its listener: abp_received() */
} abp_kind;

/* Control messages: abp_action.arg of an ABP_SEND. */
typedef enum abp_message {
  ABP_MSG_INITIALIZE,
  ABP_MSG_INITIALIZE_RESULT, /* `offer` a port with it when abp_features() has ABP_PORT */
  ABP_MSG_CANCEL,
  ABP_MSG_CANCEL_RESULT,
  ABP_MSG_SHUTDOWN,
  ABP_MSG_PING,
  ABP_MSG_PONG,
  ABP_MSG_BYE,
  ABP_MSG_PROBE /* agent: cancels an id that is never used, only to get an answer */
} abp_message;

typedef enum abp_session {
  ABP_SESSION_NONE,
  ABP_SESSION_CONNECTING,
  ABP_SESSION_READY,  /* the handshake is done: abp_features() returns the agreed features */
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
  abp_fate fate;   /* ABP_RESULT, ABP_SETTLE: the fate of the work. For an ABP_SETTLE whose result
                      has an error, a fate in that result outweighs this one */
  uint32_t number; /* ABP_REQUEST: the call's id, if that is a number, else 0: abp_number() */
} abp_action;

/* Takes the next action into *action. Returns 1, or 0 when nothing is left. */
int abp_next(abp_endpoint *endpoint, abp_action *action);

/* --- Inputs for both sides -------------------------------------------------------------------- */

/* Time has passed: `now` is monotonic, in ms. Deadlines, grace periods and the heartbeat depend on
 * this input alone. Call it at the time of the last ABP_WAKE, and with each batch of messages. Time
 * does not go back: an earlier `now` counts as the last one. Errors: ABP_E_UNDRAINED. */
int abp_advance(abp_endpoint *endpoint, uint64_t now);

/* Ends the session in good order. An agent sends `shutdown`; an app sends `bridge/bye` if that was
 * agreed on. Pending calls settle as cancelled; running handlers are aborted and their calls
 * answered. Without a session it does nothing. Errors: ABP_E_UNDRAINED. */
int abp_close(abp_endpoint *endpoint);
/* The connection is lost. Pending calls settle as ABP_DISCONNECTED, handlers are aborted. Errors:
 * ABP_E_UNDRAINED. */
int abp_lost(abp_endpoint *endpoint);
/* A frame arrived that cannot be read. It may have held calls, results, cancels or chunks, so the
 * two sides no longer know the same. The session is lost, as by abp_lost(), and the peer is
 * notified: by `shutdown` or, from an app, by a `bridge/bye` with the error ABP_PARSE_ERROR. If
 * frames were not agreed on, the frame counts as ABP_MALFORMED and nothing else happens. Errors:
 * ABP_E_UNDRAINED. */
int abp_unread(abp_endpoint *endpoint);
/* The peer may be a new one: an iframe fired `load`, for example, which it does for a new document,
 * but also for a step back in its history. The endpoint checks: it sends a ping or, to a plain app,
 * ABP_MSG_PROBE. If the answer shows that the peer has no session, or nothing arrives for
 * `heartbeat_ms` or `probe_ms`, the session is lost, as by abp_refused(). Until then nothing
 * changes. During a handshake `initialize` is sent again at once. Errors: ABP_E_UNDRAINED. */
int abp_suspect(abp_endpoint *endpoint);
/* Agent: the app answered a call with an error of this code. If the code means that the app has no
 * session, the session is lost: `shutdown` is sent, in case the app still keeps some of it, and
 * pending calls settle as ABP_DISCONNECTED. abp_receive() does this by itself. Errors:
 * ABP_E_UNDRAINED. */
int abp_refused(abp_endpoint *endpoint, const char *code, size_t length);
/* This side's document goes away: it sends `bridge/bye` if that was agreed on (an agent that still
 * connects sends `shutdown`) and answers nothing more; the peer's pending calls settle as
 * ABP_DISCONNECTED. `persisted`: the document is only frozen (a page in the back/forward cache).
 * Then the session lasts, and the peer's heartbeat stops until this side sends again. Errors:
 * ABP_E_UNDRAINED. */
int abp_leave(abp_endpoint *endpoint, int persisted);

/* An id is text or, for short, a number. With "P" as the id of `initialize` (agent), or the id of
 * its first session (app), number n stands for the text "P.n". */
typedef struct abp_id {
  const char *text; /* UTF-8, not terminated; NULL: the id is `number` */
  uint32_t length;  /* bytes */
  uint32_t number;  /* from 1 */
} abp_id;

/* Writes a call's id as text to `buffer`, not terminated, if all of it fits into `size` bytes.
 * Returns its length in any case; 0 for a void handle. */
size_t abp_id_text(const abp_endpoint *endpoint, abp_call call, char *buffer, size_t size);
/* The number of a call whose id is a number; 0 for a call with another id and for a void handle. */
uint32_t abp_number(const abp_endpoint *endpoint, abp_call call);

/* --- The caller: an agent's calls, an app's elicitations -------------------------------------- */

enum abp_call_flag {
  ABP_WANTS_PROGRESS = 1, /* the call has a progress token */
  ABP_WANTS_STREAM = 2,   /* the call is a stream, if ABP_STREAMS was agreed on. An app uses it to
                             read the input of a call, which its agent streams: `bridge/input` */
  ABP_ASIDE = 4 /* callee: the call is about other calls, perhaps a running one: it starts at
                   once and does not count for `max_concurrent` */
};

/* Makes a call (agent) or an elicitation (app). `id` NULL: the endpoint chooses one. `timeout_ms`
 * 0: no timeout; more than 2^31-1 counts as that. `flags` are abp_call_flags. `parent` is the
 * received call on whose behalf this one is made, or 0: a cancel of the parent cancels it, too; and
 * while an elicitation that is not a stream waits for its answer, the deadlines of the parent and
 * of the calls above it stand still. For that, call abp_advance() before this, and before you pass
 * in the answer. The handle is in *call. Errors: ABP_E_UNDRAINED, ABP_E_STATE without a session or
 * when the parent's handler does not run or was asked to stop, ABP_E_LIMIT, ABP_E_ID,
 * ABP_E_DUPLICATE, ABP_E_MEMORY. */
int abp_request(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                abp_call parent, abp_call *call);

/* Cancels a call, as its signal does. Repeated cancels send one message; the call settles with the
 * answer, or after the grace period. `reason` may be NULL; one that is not UTF-8 or contains NUL is
 * not sent. For a call that has ended, or a void handle, it does nothing and returns ABP_OK.
 * Errors: ABP_E_UNDRAINED. */
int abp_cancel(abp_endpoint *endpoint, abp_call call, const char *reason, size_t length);

/* Agent: sends `capabilities/cancel` for any id that is text, known here or not, and waits for the
 * app's answer: *request settles as ABP_CANCELLED if that is `cancelled: true`, as ABP_COMPLETED if
 * it is false, as ABP_TIMED_OUT without an answer within the grace period. `reason` as for
 * abp_cancel(). Errors: ABP_E_UNDRAINED, ABP_E_STATE without a session, ABP_E_ID, ABP_E_LIMIT,
 * ABP_E_MEMORY. */
int abp_cancel_by_id(abp_endpoint *endpoint, const abp_id *id, const char *reason, size_t length,
                     abp_call *request);

/* A result arrived with this outcome: ABP_COMPLETED, ABP_FAILED, ABP_CANCELLED or ABP_TIMED_OUT. If
 * the app says why it stopped the call, that outweighs the reason assumed here. Once the app has
 * accepted this side's cancel, the call settles as ABP_CANCELLED or ABP_TIMED_OUT, whatever its
 * result says. A result for an unknown call, or for one that has settled, is counted. Errors:
 * ABP_E_UNDRAINED. */
int abp_result_received(abp_endpoint *endpoint, const abp_id *id, abp_outcome outcome);
/* The same, for a result that reports the fate of the work; ABP_FATE_NONE if it does not. */
int abp_result_with_fate(abp_endpoint *endpoint, const abp_id *id, abp_outcome outcome,
                         abp_fate fate);
/* A call could not be sent, because its parameters cannot be cloned, for example. It settles as
 * ABP_COMPLETED, with the error that you found; the peer never learns of it. For a call that has
 * ended, or a void handle, it does nothing and returns ABP_OK. Errors: ABP_E_UNDRAINED, ABP_E_STATE
 * for a call that was received. */
int abp_send_failed(abp_endpoint *endpoint, abp_call call);
/* Progress arrived for the operation with this id: ABP_REPORT follows if it may be passed on.
 * Progress that is late, or was not agreed on, is counted. Errors: ABP_E_UNDRAINED. */
int abp_progress_received(abp_endpoint *endpoint, const abp_id *id);

/* --- The callee: an app's handlers, an agent's elicitation handler ---------------------------- */

/* A call arrived. `timeout_ms` and `flags` as for abp_request(). `fault` is an error that you found
 * in it (an unknown capability, for example), or 0. ABP_START, ABP_QUEUED or ABP_REFUSE follows; if
 * memory is short, ABP_REFUSE. Errors: ABP_E_UNDRAINED. */
int abp_call_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms, uint32_t flags,
                      abp_error fault);
/* Agent: an elicitation arrived that is made on behalf of a call, `about`. If that is a call of
 * this side that waits for its result, its deadline stands still until abp_finish(), or until the
 * elicitation is cancelled; a cancel of the call cancels the elicitation. App: a call arrived that
 * repeats an earlier one, `about`, which may have run. If the repeat never runs, abp_became()
 * returns ABP_FATE_NONE for it: the fate of the work is then that of the earlier call. Otherwise as
 * abp_call_received(). */
int abp_question_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                          const abp_id *about, abp_error fault);
/* A cancel arrived that needs no answer: the call's own result reports the outcome. If the call is
 * unknown, or has ended, nothing happens. `reason` may be NULL. Errors: ABP_E_UNDRAINED. */
int abp_cancel_received(abp_endpoint *endpoint, const abp_id *id, const char *reason,
                        size_t length);
/* A handler calls another capability of its own app. The call runs like any other, but its
 * ABP_RESULT or ABP_REFUSE goes to that handler and is not printed. Calls nested more than 32 deep
 * are refused. Errors: ABP_E_UNDRAINED, ABP_E_STATE when the parent's handler does not run or was
 * asked to stop. */
int abp_call_local(abp_endpoint *endpoint, abp_call parent, uint32_t timeout_ms, abp_error fault);
/* The handler of a started call has to wait: its params are still being checked, or its code is
 * being loaded. Until abp_begin() its work has not begun. Anything that ends the call before then
 * ends it at once, as ABP_FATE_UNSTARTED, and frees its place: after an ABP_ABORT no abp_finish()
 * is needed. If the preparation fails, report that with abp_finish(); the fate is the same. Until
 * abp_begin() the handler can make no calls and send no chunks. Errors: ABP_E_UNDRAINED,
 * ABP_E_STATE when the handler does not run or was asked to stop. */
int abp_postpone(abp_endpoint *endpoint, abp_call call);
/* The handler begins its work now; it may have begun already. Errors: ABP_E_UNDRAINED, ABP_E_STATE
 * when the call has ended or was asked to stop: then the handler must not begin. */
int abp_begin(abp_endpoint *endpoint, abp_call call);
/* The handler has settled: with a value (ABP_COMPLETED), with an error (ABP_FAILED), because it
 * stopped by itself (ABP_CANCELLED), or without knowing whether its work has stopped (ABP_UNKNOWN).
 * The ABP_RESULT that follows has the outcome for the peer: a call whose cancel was accepted stays
 * cancelled. Errors: ABP_E_UNDRAINED, ABP_E_STATE when no handler of this call runs. */
int abp_finish(abp_endpoint *endpoint, abp_call call, abp_outcome outcome);
/* The same, for a handler that passed the call on and learned the fate of the work. If that is
 * ABP_FATE_RUNNING, and a local call of this handler still runs, the call takes over that call's
 * fate when it returns.
 *
 * For both functions: a call that is being stopped, or stops by itself, is over only when its local
 * calls are over. It ends with the fate of its own handler, or with ABP_FATE_UNKNOWN if one of the
 * local calls ended with that. Until then it counts as running, and the ABP_RESULT says so if the
 * grace period ends first. The same holds for a call that fails by itself after its latest local
 * call was answered as still running. ABP_FOLLOWS means that an ABP_RESULT is still to come, unless
 * the session ends first. */
int abp_finish_with_fate(abp_endpoint *endpoint, abp_call call, abp_outcome outcome, abp_fate fate);
/* For a `foreign` endpoint: the app answers the request to stop a call before the call ends. If it
 * `accepted` the cancel, the call is cancelled from here on, whatever the handler returns. If not,
 * the waiting cancels are answered `cancelled: false` with this `reason` (NULL: a default text),
 * the call runs on, and the next cancel asks again with ABP_ABORT. For a call that was not asked to
 * stop, or a void handle, it does nothing and returns ABP_OK. Errors: ABP_E_UNDRAINED. */
int abp_cancel_answered(abp_endpoint *endpoint, abp_call call, int accepted, const char *reason,
                        size_t length);
/* The work of a call goes on somewhere else, and its handler no longer waits for it. The call ends
 * as cancelled for its caller, with ABP_FATE_RUNNING, without waiting for the end of the grace
 * period. abp_finish() still ends it on this side. For a call whose result was sent, or a void
 * handle, it does nothing and returns ABP_OK. Errors: ABP_E_UNDRAINED. */
int abp_goes_on(abp_endpoint *endpoint, abp_call call);
/* 1 if the handler of a call has begun its work, even if it has ended since, else 0; 0 for a void
 * handle. */
int abp_has_begun(const abp_endpoint *endpoint, abp_call call);
/* 1 if the handler of a call has returned or will never run, else 0; 1 for a void handle. */
int abp_has_ended(const abp_endpoint *endpoint, abp_call call);
/* 1 if progress may be sent for this call now, else 0; 0 for a void handle. */
int abp_progress_wanted(const abp_endpoint *endpoint, abp_call call);
/* The fate of a received call, of this session or an older one of this endpoint, for as long as the
 * call is remembered (`remembered`, `remember_ms`), also after the session has ended. If an id was
 * used again, it names the newest call.
 *
 * - ABP_FATE_RUNNING: the handler has not returned, or has not begun. *call is its handle, or that
 *   of the local call whose fate it takes over. In all other cases *call is 0.
 * - ABP_FATE_NONE: the call is unknown; or it never ran and repeats one that may have run (then
 *   *outcome is not ABP_PENDING).
 *
 * *outcome is how the call ended, or will end because it was asked to stop; ABP_PENDING if it runs
 * and was not asked. A call that ended with its session, lost or closed, ended as ABP_DISCONNECTED,
 * whatever its handler returned. This function changes nothing; you can call it before abp_next()
 * has returned 0. */
abp_fate abp_became(abp_endpoint *endpoint, const abp_id *id, abp_outcome *outcome, abp_call *call);

/* --- Streams ---------------------------------------------------------------------------------- */

/*
 * A stream is a call whose handler sends chunks before its result. Like any call it has one
 * outcome, and ends in the same ways. Chunks sent before the outcome arrive before it; none follows
 * it.
 *
 * The caller states with its request how much may be under way (the window). It grants again what
 * its reader has read: after half of the window and, if the peer did not announce its own window in
 * the handshake, whenever it has read everything that arrived. So at most the window waits at the
 * reader, and one chunk at the handler. A chunk may be sent while fewer chunks and fewer bytes than
 * the window are under way; so one chunk may exceed it.
 *
 * The sender states the size of a chunk, at most 2^53; a larger one counts as that.
 */

/* Callee: as abp_call_received(), for a call whose caller reads a stream through a window of
 * `chunks` and `bytes`. If either is 0, or streams were not agreed on, the call is not a stream. */
int abp_stream_received(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                        uint32_t flags, uint32_t chunks, uint32_t bytes, abp_error fault);
/* Caller: as abp_request(); with ABP_WANTS_STREAM in `flags`, the window is at most `bytes`. 0
 * means as much as the limits of both sides allow; so does more than that. */
int abp_stream_request(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                       uint32_t flags, uint32_t bytes, abp_call parent, abp_call *call);
/* 1 if the call was received and is a stream, else 0: then collect the handler's chunks into its
 * result. 0 for a void handle. */
int abp_stream_wanted(const abp_endpoint *endpoint, abp_call call);
/* Callee: the handler has a chunk of this size. ABP_CHUNK follows. Errors: ABP_E_UNDRAINED;
 * ABP_E_LIMIT while the window is full: keep the chunk and try again after ABP_RESUME; ABP_E_STATE
 * if the call is not a stream, or its caller takes no more chunks: drop the chunk. */
int abp_chunk(abp_endpoint *endpoint, abp_call call, uint64_t size);
/* Callee: the caller reports that it has read this much. More than was sent is counted and ignored.
 * Errors: ABP_E_UNDRAINED. */
int abp_credit_received(abp_endpoint *endpoint, const abp_id *id, uint64_t chunks, uint64_t bytes);
/* Caller: a chunk arrived. ABP_CHUNK follows if its stream still takes chunks. A chunk that does
 * not fit into the window is counted. The stream would have a gap, so the call is cancelled and
 * settles at once, as ABP_COMPLETED, with an error that you make. Errors: ABP_E_UNDRAINED. */
int abp_chunk_received(abp_endpoint *endpoint, const abp_id *id, uint64_t size);
/* The same, with the size that you have measured: `seen`. Bytes beyond the stated sizes count, too:
 * once they exceed a second window of bytes, the chunk does not fit. */
int abp_chunk_measured(abp_endpoint *endpoint, const abp_id *id, uint64_t size, uint64_t seen);
/* Caller: the reader has taken a chunk of this size. For a call that has ended, or a void handle,
 * it returns ABP_OK. Errors: ABP_E_UNDRAINED, ABP_E_STATE if the call is not a stream or no such
 * chunk arrived. */
int abp_chunk_read(abp_endpoint *endpoint, abp_call call, uint64_t size);

/* --- The session ------------------------------------------------------------------------------ */

/* Agent: begins the handshake. `initialize` is sent again, with the same id and growing pauses,
 * until it is answered or `timeout_ms` (0: ABP_DEFAULT_CONNECT_MS) is over. Errors:
 * ABP_E_UNDRAINED, ABP_E_STATE if there is a session or one is being opened. */
int abp_connect(abp_endpoint *endpoint, uint32_t timeout_ms);
/* The features that both sides agreed on, or'ed together (enum abp_feature); 0 without a session.
 */
uint32_t abp_features(const abp_endpoint *endpoint);
/* The state of the session: that of the last ABP_SESSION, or ABP_SESSION_CONNECTING. */
abp_session abp_session_state(const abp_endpoint *endpoint);

/* --- Text: any message, in and out ------------------------------------------------------------ */

/* The parts of a message of the data plane, as unchanged slices of its text. */
typedef struct abp_body {
  /* The capability, event or elicitation method, without quotes and escapes. */
  const char *name;
  size_t name_length;
  /* JSON: params of a call, a result's ABPResponse, a notification's data, a chunk. */
  const char *payload;
  size_t payload_length;
  const char *id; /* JSON: the message's id. The call's answer needs it: keep it with the call */
  size_t id_length;
  const char *token; /* JSON: the progressToken of a call, NULL if it has none. Keep it, too */
  size_t token_length;
  const char *key; /* JSON: the idempotencyKey of a call, NULL if it has none */
  size_t key_length;
  const char *repeats; /* JSON: the callId of the call that this one repeats, NULL if it is new */
  size_t repeats_length;
  uint32_t timeout_ms; /* of a call or a question, 0 if it has none */
  int input; /* 1: the caller of a call streams to its handler; the answer to a question is a
                stream */
} abp_body;

/* A message arrived as JSON text. Unknown types, echoes and answers to unknown requests are
 * counted. Errors: ABP_E_UNDRAINED, ABP_E_MEMORY, ABP_E_TEXT if the text is not a message; the
 * connection stays usable. */
int abp_receive(abp_endpoint *endpoint, const char *text, size_t length);
/* The same in two steps, to look at a call before the endpoint takes it in. abp_read() reads the
 * message and changes nothing; abp_received() returns its parts. Returns 1 if it is a call or a
 * question, else ABP_OK. Errors as for abp_receive(). */
int abp_read(abp_endpoint *endpoint, const char *text, size_t length);
/* Takes in the message that abp_read() has read. `flags` (ABP_ASIDE) and `fault`, as for
 * abp_call_received(), apply to a call or a question. Errors: ABP_E_UNDRAINED, ABP_E_MEMORY,
 * ABP_E_STATE if another input came since: read it again. */
int abp_take(abp_endpoint *endpoint, uint32_t flags, abp_error fault);
/* The parts of the message that was the last input; all empty if the last input was not a message.
 */
const abp_body *abp_received(const abp_endpoint *endpoint);
/* A result arrived with this ABPResponse, as JSON. Its outcome and fate are read as in
 * abp_receive(). If it cannot be read, the call has failed. Errors: ABP_E_UNDRAINED, ABP_E_MEMORY.
 */
int abp_response_received(abp_endpoint *endpoint, const abp_id *id, const char *json,
                          size_t length);
/* A handler has settled with this ABPResponse, as JSON: as abp_finish_with_fate(), with the outcome
 * and fate in the response. One that cannot be read is a failure. Errors: as there, and
 * ABP_E_MEMORY. */
int abp_finish_with_response(abp_endpoint *endpoint, abp_call call, const char *json,
                             size_t length);

/* The text of the message that an action sends: terminated, its length in *length. NULL when memory
 * is short (try again). Print before the next input. `body` has the parts that only you know: for
 * an ABP_REQUEST name, params and the call's other members; for an ABP_CHUNK the chunk (payload);
 * for an ABP_RESULT the id of its call's message and, if the outcome is ABP_COMPLETED, the
 * ABPResponse. It is NULL for ABP_SEND, ABP_REFUSE and ABP_CREDIT. `unix_ms` becomes the timestamp.
 */
const char *abp_print(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                      uint64_t unix_ms, size_t *length);
/* The text of an ABP_RESULT whose handler failed: as abp_print(), with this error in place of an
 * ABPResponse. `body` has the id of the call's message. `message`, terminated, says what was wrong
 * and what to do; NULL, or text that is not UTF-8, means abp_error_message(). If the outcome is not
 * ABP_COMPLETED, the outcome is sent instead of the error. */
const char *abp_print_error(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                            abp_error error, const char *message, uint64_t unix_ms, size_t *length);
/* Details of a call that ended without success, beside its outcome. */
typedef struct abp_told {
  const char *response; /* JSON: the ABPResponse of its handler or of the peer, or NULL */
  size_t response_length;
  /* UTF-8: why it was cancelled or lost, as given with the cancel; empty if no reason was
   * given. NULL if this side did not cancel it: then the response has the reason. */
  const char *reason;
  size_t reason_length;
  int expired;    /* 1: the reason is that time ran out: the error is TIMEOUT */
  int repeatable; /* 1: its capability may run twice, so the error may be `retryable` */
} abp_told;

/* The ABPResponse of a call that ended without success (ABP_RESULT, ABP_SETTLE), or never began: it
 * was received and refused (ABP_REFUSE), or could not be made (ABP_REQUEST, with an abp_error as
 * its arg); then `reason`, if not NULL, is its message. It has success, cancelled, error and
 * metadata.outcome. Add other members of `told->response`, such as error.details and a report,
 * yourself. As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_response(abp_endpoint *endpoint, const abp_action *action,
                               const abp_told *told, size_t *length);
/* The content of abp_print_response() as one number, for two sides that both have a core and need
 * no text between them: the error, flags, and from ABP_FAILURE_FATE_SHIFT on the abp_fate. The
 * message is that of the error (abp_error_message) unless a flag says otherwise. 0 is not a
 * failure. */
typedef uint32_t abp_failure;
enum {
  ABP_FAILURE_ERROR = 255,     /* an abp_error */
  ABP_FAILURE_RETRYABLE = 256, /* the error's `retryable` */
  ABP_FAILURE_CANCELLED = 512, /* `cancelled` */
  ABP_FAILURE_THEIRS = 1024,   /* the message is that of the given response */
  ABP_FAILURE_REASON = 2048,   /* the message is the reason given on this side */
  ABP_FAILURE_FATE_SHIFT = 12
};

/* The outcome in an ABPResponse as one number, without its texts. The lower bits are those of an
 * abp_failure: the error, ABP_FAILURE_RETRYABLE, ABP_FAILURE_CANCELLED and the fate. A response
 * without a code has ABP_OPERATION_FAILED, one with an unknown code ABP_NO_ERROR. The flags below
 * are added. 0 means that there is no response. */
typedef uint32_t abp_response;
enum {
  ABP_RESPONSE_GIVEN = 65536,     /* there is a response */
  ABP_RESPONSE_FORMED = 131072,   /* its `success` is true or false */
  ABP_RESPONSE_SUCCEEDS = 262144, /* it is true */
  ABP_RESPONSE_FAILS = 524288,    /* it has an error */
  ABP_RESPONSE_CODED = 1048576,   /* its error has a code */
  ABP_RESPONSE_PACKED = 1769472   /* all but SUCCEEDS, for an abp_failure that came as a number */
};

/* As abp_print_response(), but as a number. `response` replaces told->response. Of told->reason
 * only the length is read. With ABP_FAILURE_THEIRS, ABP_NO_ERROR stands for the code of the
 * response; if the response has no message, that is abp_response_message(). */
abp_failure abp_failure_told(const abp_endpoint *endpoint, const abp_action *action,
                             const abp_told *told, abp_response response);
/* The message of a response that has neither a message nor a code. Static text. */
const char *abp_response_message(abp_response response);
/* A result arrived as a number: as abp_response_received() with the text that it stands for. A
 * number without ABP_RESPONSE_GIVEN counts as a response that cannot be read. Errors:
 * ABP_E_UNDRAINED. */
int abp_outcome_received(abp_endpoint *endpoint, const abp_id *id, abp_response response);
/* A handler has settled with this response, as a number: as abp_finish_with_response(). */
int abp_finish_with_outcome(abp_endpoint *endpoint, abp_call call, abp_response response);
/* The error of a call that an input rejected with this negative code. `parent`: 1 if the call was
 * to be made on behalf of another. */
abp_error abp_status_error(const abp_endpoint *endpoint, int status, int parent);
/* The text of progress of a received call, under its id. `progress` is a JSON number, or an object
 * with members of the protocol's ProgressInfo, such as {"progress":3,"total":10}. Send it if
 * abp_progress_wanted(). As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_progress(abp_endpoint *endpoint, abp_call call, const char *progress,
                               size_t progress_length, uint64_t unix_ms, size_t *length);
/* The same under the token that the caller chose, as the protocol requires: `body` has the token of
 * the call's message and, as its payload, the progress. Without a token the call's id replaces it;
 * callers of this library use the id as their token. */
const char *abp_print_progress_token(abp_endpoint *endpoint, abp_call call, const abp_body *body,
                                     uint64_t unix_ms, size_t *length);
/* The text of a notification: `body` has event (name) and data (payload). Send it if abp_features()
 * has ABP_NOTIFICATIONS. As abp_print(): terminated, NULL when memory is short. */
const char *abp_print_notification(abp_endpoint *endpoint, const abp_body *body, uint64_t unix_ms,
                                   size_t *length);

/* --- Counters --------------------------------------------------------------------------------- */

typedef enum abp_counter {
  ABP_IN_FLIGHT_OUT, /* calls made and not settled */
  ABP_IN_FLIGHT_IN,  /* calls received whose handler has not settled */
  ABP_REMEMBERED,    /* finished calls still remembered */
  ABP_LATE,          /* answers to calls that were settled before */
  ABP_STRAY,         /* answers to, and progress of, calls that were not made here */
  ABP_MALFORMED,     /* messages that could not be read */
  ABP_UNKNOWN_TYPE,
  ABP_REFUSED, /* calls answered with an error by the core */
  ABP_OVERRUN, /* chunks that did not fit into the window, and grants for more than was sent */
  ABP_COUNTERS
} abp_counter;
/* A counter's value. Counters of errors start again at 0 after 2^32-1. */
uint32_t abp_count(const abp_endpoint *endpoint, abp_counter counter);

#ifdef __cplusplus
}
#endif
#endif
