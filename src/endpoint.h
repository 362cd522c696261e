/* Shared by the files of an endpoint. */
#ifndef ABP_ENDPOINT_H
#define ABP_ENDPOINT_H

#include "calls.h"
#include "session.h"

#define PREFIX 32 /* bytes of the prefix of this side's ids */
#define DESCRIPTIONS 4

/* The possible answers to a cancel. */
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

/* An endpoint's obligations beside messages (1 << abp_message). OUT_FIRST is handed out before the
 * obligations of calls: an acknowledgement precedes the effects of the cancel. */
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

/* The parts of a cancel that its answer repeats, as JSON: the id of the message, and the callId. */
struct cancel_text {
  const char *id, *target;
  size_t id_length, target_length;
};

struct abp_endpoint {
  struct calls calls; /* first, with its table first in it, since most code uses that */
  struct session session;
  abp_config config;
  uint32_t outbox; /* obligations beside those of calls: see enum outbox */
  abp_call report;
  abp_id target;  /* of abp_cancel_by_id; its text is borrowed until the next input */
  uint8_t refuse; /* abp_error */
  uint8_t answer; /* enum cancel_answer */
  struct held_cancel *held, *due, *answered; /* see endpoint_cancels.c */
  size_t held_bytes;
  uint8_t has_message; /* the input being drained is a message that the wire has parsed, or
                          MESSAGE_READ: abp_take() is still to come */
  char prefix[PREFIX + 1];
  uint32_t prefix_length;
  struct {
    char name[24];
    char *json;
    size_t length;
  } about[DESCRIPTIONS];
  uint32_t counts[ABP_COUNTERS];
  struct wire *wire; /* of wire_abp.c; freed through free_wire, so that the core links without it */
  void (*free_wire)(struct wire *wire);
};

/* Inputs of the control plane, called by the wire after abp_endpoint_enter(). */
int abp_endpoint_initialize(abp_endpoint *endpoint, const char *id, size_t length, int number_id,
                            const char *version, size_t version_length, uint32_t features);
int abp_endpoint_initialized(abp_endpoint *endpoint, const char *session_id, size_t length,
                             int accepted, int busy, uint32_t features);
int abp_endpoint_cancel(abp_endpoint *endpoint, const abp_id *id, const char *reason, size_t length,
                        const struct cancel_text *from);
/* `call`: the call whose signal or clock asked for the cancel. 0: the cancel is a request with the
 * id `id`. */
int abp_endpoint_cancel_result(abp_endpoint *endpoint, const abp_id *id, abp_call call,
                               int cancelled);
int abp_endpoint_shutdown(abp_endpoint *endpoint);
int abp_endpoint_bye(abp_endpoint *endpoint, int persisted);
int abp_endpoint_ping(abp_endpoint *endpoint, int pong);
/* A notification arrived, of an event that has a name. */
int abp_endpoint_notified(abp_endpoint *endpoint);
/* A call or, with `about`, a question arrived: the common part of abp_call_received() and similar
 * inputs. */
int abp_endpoint_receive(abp_endpoint *endpoint, const abp_id *id, uint32_t timeout_ms,
                         uint32_t flags, uint32_t chunks, uint32_t bytes, const abp_id *about,
                         abp_error fault);
/* Copies the parts of a cancel that its answer repeats; NULL if too much is kept already. The copy
 * is freed by the caller, or held until the call's handler answers. Errors: ABP_E_MEMORY. */
int abp_endpoint_copy_cancel(abp_endpoint *endpoint, const struct cancel_text *from,
                             struct held_cancel **cancel);
void abp_endpoint_hold_cancel(abp_endpoint *endpoint, struct held_cancel *cancel, uint32_t slot);
/* The answer to a cancel for a step with these obligations. */
enum cancel_answer abp_endpoint_answer(uint32_t owed);
/* A call owes the answer to its cancels: they are handed out next, one by one. */
void abp_endpoint_take_answers(abp_endpoint *endpoint, const abp_action *owed);
void abp_endpoint_next_answer(abp_endpoint *endpoint, abp_action *action);
/* The peer is gone: no cancel is answered any more. */
void abp_endpoint_forget_held(abp_endpoint *endpoint);
void abp_endpoint_forget_answered(abp_endpoint *endpoint);
void abp_endpoint_free_cancels(abp_endpoint *endpoint);
/* Agent: the app answered with this error, or with ABP_NO_ERROR. Returns 1 if the error means that
 * the app has no session, which is then lost; 0 otherwise, and for an app. */
int abp_endpoint_refused(abp_endpoint *endpoint, abp_error error);
/* The answer to ABP_MSG_PROBE arrived. */
int abp_endpoint_probed(abp_endpoint *endpoint, abp_error error);
/* An id in the table's form: the number of a call that was numbered here (`own`) or by the peer. */
abp_id abp_endpoint_canonical(const abp_endpoint *endpoint, const abp_id *id, uint32_t own);
/* The session is over and another begins: calls that were received in it are found as CALL_PAST. */
void abp_endpoint_age(abp_endpoint *endpoint);
/* The slot of a call, or NO_CALL. */
uint32_t abp_endpoint_find(abp_endpoint *endpoint, const abp_id *id, uint32_t direction);
/* The slot of a call that was received in this session or an older one, or NO_CALL. */
uint32_t abp_endpoint_remembered(abp_endpoint *endpoint, const abp_id *id);
/* CALL_STREAM if streams were agreed on, else 0. */
uint32_t abp_endpoint_streams(const abp_endpoint *endpoint);
/* Begins a stream, with a window of at most this size. */
void abp_endpoint_open_window(abp_endpoint *endpoint, uint32_t slot, uint32_t chunks,
                              uint32_t bytes);
/* The same for a requested stream: the window is not larger than the peer's. 0 bytes: as much as
 * the limits allow. */
void abp_endpoint_request_window(abp_endpoint *endpoint, uint32_t slot, uint32_t bytes);
void abp_endpoint_count(abp_endpoint *endpoint, abp_counter counter);
void abp_endpoint_refuse(abp_endpoint *endpoint, abp_error error);
/* The prefix of the number in the ids of calls made here (`own`) or received. */
const char *abp_endpoint_prefix(const abp_endpoint *endpoint, uint32_t own, uint32_t *length);
/* Begins an input. Returns ABP_E_UNDRAINED while actions of the last input are left. */
int abp_endpoint_enter(abp_endpoint *endpoint);
int abp_endpoint_undrained(const abp_endpoint *endpoint);

#endif
