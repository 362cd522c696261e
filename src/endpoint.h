/* What the files of an endpoint share. */
#ifndef ABP_ENDPOINT_H
#define ABP_ENDPOINT_H

#include "calls.h"
#include "session.h"

#define PREFIX 32 /* bytes of the text that this side's ids begin with */
#define DESCRIPTIONS 4

/* How a cancel is answered. */
enum cancel_answer {
  ANSWER_NONE,
  ANSWER_CANCELLED,
  ANSWER_COMPLETED,
  ANSWER_UNKNOWN,
  ANSWER_DECLINED,
  ANSWER_BUSY,
  ANSWER_NOT_FOUND,
  ANSWER_NOT_INITIALIZED,
  ANSWER_INVALID
};

/* What an endpoint owes beside messages (1 << abp_message). OUT_FIRST is handed out before what
 * calls owe: an acknowledgement precedes whatever the cancel does to the call. */
enum outbox {
  OUT_SESSION = 1 << 16,
  OUT_REFUSE = 1 << 17,
  OUT_REPORT = 1 << 18,
  OUT_NOTIFY = 1 << 19,
  OUT_FIRST = OUT_REFUSE | OUT_REPORT | OUT_NOTIFY | 1 << ABP_MSG_CANCEL_RESULT
};
_Static_assert(ABP_MSG_PROBE < 16, "the outbox's own bits are above the messages'");

enum { MESSAGE_TAKEN = 1, MESSAGE_READ };

struct wire;
struct held_cancel;

/* What the answer to a cancel repeats, as JSON: the id of its message, and its callId. */
struct cancel_text {
  const char *id, *target;
  size_t id_length, target_length;
};

struct abp_endpoint {
  struct calls calls; /* first, and its table first in it: most code works there */
  struct session session;
  abp_config config;
  uint32_t outbox; /* what is owed beside what calls owe: see enum outbox */
  abp_call report;
  abp_id target;  /* of abp_cancel_by_id; its text is borrowed until the next input */
  uint8_t refuse; /* abp_error */
  uint8_t answer; /* enum cancel_answer */
  struct held_cancel *held, *due, *answered; /* endpoint_cancels.c's */
  size_t held_bytes;
  uint8_t has_message; /* the input being drained is a message that the wire has parsed, or
                          MESSAGE_READ: it is still to be taken in */
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

/* Inputs of the control plane, which the wire calls after abp_endpoint_enter(). */
int abp_endpoint_initialize(abp_endpoint *endpoint, const char *id, size_t length, int number_id,
                            const char *version, size_t version_length, uint32_t features);
int abp_endpoint_initialized(abp_endpoint *endpoint, const char *session_id, size_t length,
                             int accepted, int busy, uint32_t features);
int abp_endpoint_cancel(abp_endpoint *endpoint, const abp_id *id, const char *reason, size_t length,
                        const struct cancel_text *from);
/* `call`: the call whose signal or clock asked for the cancel; 0: the cancel is a request, `id`. */
int abp_endpoint_cancel_result(abp_endpoint *endpoint, const abp_id *id, abp_call call,
                               int cancelled);
int abp_endpoint_shutdown(abp_endpoint *endpoint);
int abp_endpoint_bye(abp_endpoint *endpoint, int persisted);
int abp_endpoint_ping(abp_endpoint *endpoint, int pong);
/* A notification has come, of an event that has a name. */
int abp_endpoint_notified(abp_endpoint *endpoint);
/* A call or, with `about`, a question has come: what abp_call_received() and its like have in
 * common.
 */
int abp_endpoint_receive(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                         uint32_t flags, uint32_t chunks, uint32_t bytes, const abp_id *about,
                         abp_error fault);
/* Keeps what the answer to a cancel repeats; NULL if too much is kept already. The cancel is freed,
 * or held until the word of its call. Errors: ABP_E_MEMORY. */
int abp_endpoint_copy_cancel(abp_endpoint *endpoint, const struct cancel_text *from,
                             struct held_cancel **cancel);
void abp_endpoint_hold_cancel(abp_endpoint *endpoint, struct held_cancel *cancel, uint32_t slot);
/* What a step that owes this answers. */
enum cancel_answer abp_endpoint_answer(uint32_t owed);
/* A call owes the answer to its cancels: they are handed out next, one by one. */
void abp_endpoint_take_answers(abp_endpoint *endpoint, const abp_action *owed);
void abp_endpoint_next_answer(abp_endpoint *endpoint, abp_action *action);
/* The peer is gone: nobody is answered. */
void abp_endpoint_forget_held(abp_endpoint *endpoint);
void abp_endpoint_forget_answered(abp_endpoint *endpoint);
void abp_endpoint_free_cancels(abp_endpoint *endpoint);
/* Agent: the app answers with this error, or with none. Returns whether it says that it knows no
 * session, which is lost then; 0 for an app. */
int abp_endpoint_refused(abp_endpoint *endpoint, abp_error error);
/* The answer to ABP_MSG_PROBE. */
int abp_endpoint_probed(abp_endpoint *endpoint, abp_error error);
/* An id as the table keeps it: the number of a call that was numbered here (`own`) or there. */
abp_id abp_endpoint_canonical(const abp_endpoint *endpoint, const abp_id *id, uint32_t own);
/* The session is over and another one begins: what was received in it is found as CALL_PAST. */
void abp_endpoint_age(abp_endpoint *endpoint);
/* The slot of a call, or NO_CALL. */
uint32_t abp_endpoint_find(abp_endpoint *endpoint, const abp_id *id, uint32_t direction);
/* The slot of a call that was received, in this session or an older one, or NO_CALL. */
uint32_t abp_endpoint_remembered(abp_endpoint *endpoint, const abp_id *id);
/* CALL_STREAM if calls may be streams, else 0. */
uint32_t abp_endpoint_streams(const abp_endpoint *endpoint);
/* Begins a stream, through a window of at most this much. */
void abp_endpoint_open_window(abp_endpoint *endpoint, uint32_t slot, uint32_t chunks,
                              uint32_t bytes);
/* The same of one that is requested: the peer keeps to no larger one. 0 bytes is what the limits
 * allow. */
void abp_endpoint_request_window(abp_endpoint *endpoint, uint32_t slot, uint32_t bytes);
void abp_endpoint_count(abp_endpoint *endpoint, abp_counter counter);
void abp_endpoint_refuse(abp_endpoint *endpoint, abp_error error);
/* What precedes the number in the ids of calls made here (`own`) or received. */
const char *abp_endpoint_prefix(const abp_endpoint *endpoint, uint32_t own, uint32_t *length);
/* Begins an input: ABP_E_UNDRAINED while actions of the last one are left. */
int abp_endpoint_enter(abp_endpoint *endpoint);
int abp_endpoint_undrained(const abp_endpoint *endpoint);

#endif
