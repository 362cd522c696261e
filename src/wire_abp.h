/* What the two halves of ABP's wire form share. */
#ifndef ABP_WIRE_ABP_H
#define ABP_WIRE_ABP_H

#include "endpoint.h"
#include "json.h"

/* Types of messages of which a shim writes, and reads, the ordinary ones itself. */
#define ABP_TYPE_CALL "capabilities/call"
#define ABP_TYPE_CALL_RESULT "capabilities/call-result"
#define ABP_TYPE_ANSWER "elicitation/response"

struct wire {
  json_value *message; /* the one being worked on: its strings are borrowed until the next input */
  const char *text;    /* and where it was parsed from */
  abp_body body;       /* its parts, for native users */
  struct json_slice target; /* a cancel's callId as JSON */
  struct json_text printed; /* the message last printed, or the one being printed */
};

/* A type of message, and who may receive it: an agent that hears an agent's message hears an echo.
 */
struct message_type {
  const char *type;
  uint8_t to;   /* 1 << abp_role of each */
  uint8_t kind; /* for whoever looks it up */
};
#define TO_AGENT (1 << ABP_AGENT)
#define TO_APP (1 << ABP_APP)

/* What wire_kind says of a type that is not in the list. */
#define NOT_MINE (-1)

struct wire *wire_of(abp_endpoint *endpoint);
/* Parses a text from the peer, and counts what is none. Free it with json_free(). */
int wire_parse(abp_endpoint *endpoint, const char *text, size_t length, json_value **value);
/* Parses a message; then its type decides which of the lists it is in. */
int wire_open(abp_endpoint *endpoint, const char *text, size_t length);
int wire_kind(const abp_endpoint *endpoint, const struct message_type *types, size_t count);
int wire_control(abp_endpoint *endpoint);

/* The control plane alone, in and out: all that a shim needs that carries calls and results itself.
 */
int wire_receive_control(abp_endpoint *endpoint, const char *text, size_t length);
const char *wire_print_control(abp_endpoint *endpoint, const abp_action *action, uint64_t unix_ms,
                               size_t *length);

struct json_slice wire_source(const struct wire *wire, const json_value *value);
/* An id is a string; of a number, its digits are the id. */
abp_id wire_id(const struct wire *wire, const json_value *value);
/* The code of a payload's error; none if it has none. */
struct json_slice wire_error_code(const json_value *payload);
/* What is printed: a message begins with its payload. */
void wire_begin(struct json_text *out);
void wire_add_text(struct json_text *out, const char *name, const char *text);
/* What became of the work, in the payload; nothing for ABP_FATE_NONE. */
void wire_add_fate(struct json_text *out, abp_fate fate);
/* `message` NULL is the code's own. `repeatable`: whether what it is about may be done again. */
void wire_add_error(struct json_text *out, abp_error code, const char *message, int repeatable);
void wire_add_call_id(const abp_endpoint *endpoint, const char *name, abp_call call);
void wire_add_reply_id(const abp_endpoint *endpoint, const abp_body *body, abp_call call);
/* The message's text, or NULL when memory was short. */
const char *wire_finish(abp_endpoint *endpoint, const char *type, uint64_t unix_ms, size_t *length);

#endif
