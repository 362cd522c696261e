/* What the files of ABP's wire form share. */
#ifndef ABP_WIRE_ABP_H
#define ABP_WIRE_ABP_H

#include "endpoint.h"
#include "json.h"

/* Types that a shim knows: their messages are no longer bounded than any value, and it writes, and
 * reads, the ordinary ones of three of them itself. */
#define ABP_TYPE_CALL "capabilities/call"
#define ABP_TYPE_CALL_RESULT "capabilities/call-result"
#define ABP_TYPE_ANSWER "elicitation/response"
#define ABP_TYPE_QUESTION "elicitation/request"
/* Types that are looked for on the way to or from a core. */
#define ABP_TYPE_INITIALIZE "initialize"
#define ABP_TYPE_INITIALIZE_RESULT "initialize-result"
#define ABP_TYPE_SHUTDOWN "shutdown"
#define ABP_TYPE_CHUNK "bridge/chunk"

struct wire {
  json_value *message; /* the one being worked on: its strings are borrowed until the next input */
  char *text;          /* a copy of what it was parsed from */
  abp_body body;       /* its parts */
  struct cancel_text cancel; /* what the answer to a cancel repeats; target NULL: nothing */
  struct json_text printed;  /* the message last printed, or the one being printed */
};

/* The kinds of messages: those of abp_message, then these. An int holds either. */
enum message_kind {
  /* By which an app leaves a stream of its agent's, or withdraws a question; what an agent's calls
   * need is ABP_MSG_CANCEL. */
  KIND_STREAM_CANCEL = ABP_MSG_PROBE + 1,
  KIND_CALL,
  KIND_RESULT, /* of a call */
  KIND_ANSWER, /* to a question */
  KIND_NOTIFICATION,
  KIND_PROGRESS,
  KIND_QUESTION,
  KIND_CHUNK,
  KIND_CREDIT,
  KIND_UNKNOWN /* or not for this side: an agent that hears an agent's message hears an echo */
};

struct wire *abp_wire_of(abp_endpoint *endpoint);
/* Parses a text from the peer, and counts what is none. Free it with abp_json_free(). */
int abp_wire_parse(abp_endpoint *endpoint, const char *text, size_t length, json_value **value);
/* Parses a message; then it has a kind. */
int abp_wire_open(abp_endpoint *endpoint, const char *text, size_t length);
int abp_wire_kind(const abp_endpoint *endpoint);

/* The control plane, in and out. Of what is printed, the kind is returned. */
int abp_wire_control(abp_endpoint *endpoint, int kind, const json_value *payload, const abp_id *id);
int abp_wire_print_control(const abp_endpoint *endpoint, const abp_action *action);

/* Where a value of the message stands; NULL and 0 if it is NULL. */
void abp_wire_source(const struct wire *wire, const json_value *value, const char **text,
                     size_t *length);
/* An id is a string; of a number, its digits are the id. */
void abp_wire_id(const struct wire *wire, const json_value *value, abp_id *id);
/* An id that must be a string. */
abp_id abp_wire_id_of(const char *text);
/* What a caller says of a window: 0 is none, and so is what is no whole number (UINT64_MAX). */
uint32_t abp_wire_window(uint64_t count);
/* The window that a call or a handshake says: 0 is none. */
struct window abp_wire_read_window(const json_value *from);
void abp_wire_add_window(struct json_text *out, uint32_t chunks, uint64_t bytes);
/* The response of a call of this side's has come. */
int abp_wire_take_response(abp_endpoint *endpoint, const json_value *payload, const abp_id *id);
/* The error of a payload; ABP_NO_ERROR if it has none, or one whose code is not known here. */
abp_error abp_wire_error(const json_value *payload);
/* What is printed: a message begins with its payload. */
void abp_wire_begin(struct json_text *out);
void abp_wire_add_text(struct json_text *out, const char *name, const char *text);
/* What is said of a call that did not succeed. */
struct failure {
  const char *code;
  struct json_slice message;
  int retryable, cancelled;
  abp_fate fate;
};
struct failure abp_wire_failure(abp_error error, abp_fate fate);
/* What is told of a call; `payload` is told->response. */
struct failure abp_wire_failure_told(const abp_endpoint *endpoint, const abp_action *action,
                                     const abp_told *told, const json_value *payload);
/* 1 of a call's result: of a question nobody asks what became of it. */
int abp_wire_tells_fate(const abp_endpoint *endpoint, const abp_action *action);
/* A response without success. */
void abp_wire_add_failure(struct json_text *out, const struct failure *failure);
void abp_wire_add_call_id(const abp_endpoint *endpoint, const char *name, abp_call call);
void abp_wire_add_reply_id(const abp_endpoint *endpoint, const abp_body *body, abp_call call);
/* As abp_print(), of any action but an ABP_RESULT: a shim writes its responses itself. */
const char *abp_wire_print(abp_endpoint *endpoint, const abp_action *action, const abp_body *body,
                           uint64_t unix_ms, size_t *length);
/* The message's text, or NULL when memory was short. */
const char *abp_wire_finish(abp_endpoint *endpoint, int kind, uint64_t unix_ms, size_t *length);

#endif
