/* What the two halves of ABP's wire form share. */
#ifndef ABP_WIRE_ABP_H
#define ABP_WIRE_ABP_H

#include "abp_internal.h"
#include "json.h"

struct wire {
  json_value *message; /* the one being worked on: its strings are borrowed until the next input */
  const char *text;    /* and where it was parsed from */
  abp_body body;       /* its parts, for native users */
  struct json_slice target; /* a cancel's callId as JSON */
  char *printed;
};

struct message_type {
  const char *type;
  abp_role to; /* who may be told it */
  int both;    /* 1: either side may */
  int (*read)(abp_endpoint *, struct wire *, const json_value *payload, const abp_id *id);
};

/* What wire_dispatch says of a type that is not in the list. */
#define NOT_MINE 1

struct wire *wire_of(abp_endpoint *endpoint);
/* Parses a message; then its type decides which of the lists has its reader. */
int wire_open(abp_endpoint *endpoint, const char *text, size_t length);
int wire_dispatch(abp_endpoint *endpoint, const struct message_type *types, size_t count);
int wire_control(abp_endpoint *endpoint);

/* The control plane alone, in and out: all that a shim needs that carries calls and results itself.
 */
int wire_receive_control(abp_endpoint *endpoint, const char *text, size_t length);
const char *wire_print_control(abp_endpoint *endpoint, const abp_action *action, uint64_t unix_ms,
                               size_t *length);

struct json_slice wire_source(const struct wire *wire, const json_value *value);
abp_id wire_id(const struct wire *wire, const json_value *value);
int wire_add_text(json_value *object, const char *name, const char *text);
int wire_add_error(json_value *payload, abp_error code);
int wire_add_call_id(abp_endpoint *endpoint, json_value *object, const char *name, abp_call call);
int wire_add_reply_id(abp_endpoint *endpoint, json_value *envelope, const abp_body *body,
                      abp_call call);
const char *wire_finish(abp_endpoint *endpoint, json_value *envelope, const char *type,
                        uint64_t unix_ms, size_t *length);

#endif
