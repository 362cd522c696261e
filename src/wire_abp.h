/* Shared by the files of ABP's wire form. */
#ifndef ABP_WIRE_ABP_H
#define ABP_WIRE_ABP_H

#include "endpoint.h"
#include "json.h"

/* Types that a shim knows. Their messages are bounded like any value, and the shim itself writes
 * and reads the ordinary messages of three of them. */
#define ABP_TYPE_CALL "capabilities/call"
#define ABP_TYPE_CALL_RESULT "capabilities/call-result"
#define ABP_TYPE_ANSWER "elicitation/response"
#define ABP_TYPE_QUESTION "elicitation/request"
/* Types that code outside of the core looks for. */
#define ABP_TYPE_INITIALIZE "initialize"
#define ABP_TYPE_INITIALIZE_RESULT "initialize-result"
#define ABP_TYPE_SHUTDOWN "shutdown"
#define ABP_TYPE_CHUNK "bridge/chunk"

struct wire {
  json_value *message;       /* the current one: its strings are borrowed until the next input */
  char *text;                /* a copy of its source */
  abp_body body;             /* its parts */
  struct cancel_text cancel; /* the parts that the answer to a cancel repeats; target NULL: none */
  struct json_text printed;  /* the message last printed, or the one being printed */
};

/* The kinds of messages: those of abp_message, then these. An int holds either. */
enum message_kind {
  /* An app's cancel of its agent's stream, or of a question; the cancel of an agent's call is
   * ABP_MSG_CANCEL. */
  KIND_STREAM_CANCEL = ABP_MSG_PROBE + 1,
  KIND_CALL,
  KIND_RESULT, /* of a call */
  KIND_ANSWER, /* to a question */
  KIND_NOTIFICATION,
  KIND_PROGRESS,
  KIND_QUESTION,
  KIND_CHUNK,
  KIND_CREDIT,
  KIND_UNKNOWN /* or not for this side: an agent that receives an agent's message receives an echo
                */
};

struct wire *abp_wire_of(abp_endpoint *endpoint);
/* Parses a text from the peer, and counts malformed texts. Free the value with abp_json_free(). */
int abp_wire_parse(abp_endpoint *endpoint, const char *text, size_t length, json_value **value);
/* Parses a message; abp_wire_kind() then returns its kind. */
int abp_wire_open(abp_endpoint *endpoint, const char *text, size_t length);
int abp_wire_kind(const abp_endpoint *endpoint);

/* The control plane, in and out. Printing returns the kind of the message. */
int abp_wire_control(abp_endpoint *endpoint, int kind, const json_value *payload, const abp_id *id);
int abp_wire_print_control(const abp_endpoint *endpoint, const abp_action *action);

/* The source of a value of the message; NULL and 0 if it is NULL. */
void abp_wire_source(const struct wire *wire, const json_value *value, const char **text,
                     size_t *length);
/* An id is a string, or the digits of a number. */
void abp_wire_id(const struct wire *wire, const json_value *value, abp_id *id);
/* An id that must be a string. */
abp_id abp_wire_id_of(const char *text);
/* A part of a window that a caller has sent: 0 is none, and so is UINT64_MAX (not a whole number).
 */
uint32_t abp_wire_window(uint64_t count);
/* The window in a call or a handshake: 0 is none. */
struct window abp_wire_read_window(const json_value *from);
void abp_wire_add_window(struct json_text *out, uint32_t chunks, uint64_t bytes);
/* The response to a call of this side arrived. */
int abp_wire_take_response(abp_endpoint *endpoint, const json_value *payload, const abp_id *id);
/* The error of a payload; ABP_NO_ERROR if it has none, or an unknown code. */
abp_error abp_wire_error(const json_value *payload);
/* Begins a message: its payload comes first. */
void abp_wire_begin(struct json_text *out);
void abp_wire_add_text(struct json_text *out, const char *name, const char *text);
/* The response of a call that did not succeed. */
struct failure {
  const char *code;
  struct json_slice message;
  int retryable, cancelled;
  abp_fate fate;
};
struct failure abp_wire_failure(abp_error error, abp_fate fate);
/* The failure of a call; `payload` is told->response. */
struct failure abp_wire_failure_told(const abp_endpoint *endpoint, const abp_action *action,
                                     const abp_told *told, const json_value *payload);
/* 1 for the result of a call: the answer to a question has no fate. */
int abp_wire_tells_fate(const abp_endpoint *endpoint, const abp_action *action);
/* Adds a response without success. */
void abp_wire_add_failure(struct json_text *out, const struct failure *failure);
void abp_wire_add_call_id(const abp_endpoint *endpoint, const char *name, abp_call call);
void abp_wire_add_reply_id(const abp_endpoint *endpoint, const abp_body *body, abp_call call);
/* As abp_print(), for any action but an ABP_RESULT: a shim writes its responses itself. */
const char *abp_wire_print(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                           uint64_t unix_ms, size_t *length);
/* The message's text, or NULL when memory was short. */
const char *abp_wire_finish(abp_endpoint *endpoint, int kind, uint64_t unix_ms, size_t *length);

#endif
