/* JSON for the files wire_*.c. json.c is the only file that uses cJSON. */
#ifndef ABP_JSON_H
#define ABP_JSON_H

#include <stddef.h>
#include <stdint.h>

typedef struct cJSON json_value;

struct json_slice {
  const char *text;
  size_t length;
};

/* Parses a document, or returns NULL: *memory is 1 if memory was short, 0 if the text is not strict
 * JSON (an object, depth at most 64, UTF-8 without NUL). Free with abp_json_free. */
json_value *abp_json_parse(const char *text, size_t length, int *memory);
void abp_json_free(json_value *value);

/* The member, or NULL if it is missing, occurs twice, or `object` is not an object. */
const json_value *abp_json_member(const json_value *object, const char *name);
/* The text of a string, else NULL and length 0. */
struct json_slice abp_json_string(const json_value *value);
/* The text of a member that is a string, terminated, else NULL. */
const char *abp_json_member_text(const json_value *object, const char *name);
int abp_json_is_true(const json_value *value);
int abp_json_is_false(const json_value *value);
int abp_json_is_null(const json_value *value);
int abp_json_is_number(const json_value *value);
/* A number as whole ms in 0..2^31-1, rounded up; 0 for anything else. */
uint32_t abp_json_ms(const json_value *value);
/* A whole number in 0..2^53, or UINT64_MAX for anything else. */
uint64_t abp_json_count(const json_value *value);
uint64_t abp_json_whole(double number);
/* The source of a value in the text from which `document` was parsed. */
struct json_slice abp_json_source(const json_value *document, const char *text,
                                  const json_value *value);

/* An object being written as text, from abp_json_begin to abp_json_end. A lack of memory is
 * remembered, so that only abp_json_end() needs a check. Names are literals that need no escapes;
 * texts are copied. Initialise it with zeros. */
struct json_text {
  char *text;
  size_t length, room;
  int failed;
};

/* Begins a new object; the previous text is freed. */
void abp_json_begin(struct json_text *out);
/* Begins an object within the object; abp_json_close ends it. */
void abp_json_open(struct json_text *out, const char *name);
void abp_json_close(struct json_text *out);
void abp_json_add_string(struct json_text *out, const char *name, const char *text, size_t length);
/* Adds nothing for NULL. */
void abp_json_add_raw(struct json_text *out, const char *name, const char *json, size_t length);
/* Adds the members of another object, given as JSON from its `{` to its `}`. */
void abp_json_add_members(struct json_text *out, const char *json, size_t length);
void abp_json_add_bool(struct json_text *out, const char *name, int value);
void abp_json_add_number(struct json_text *out, const char *name, uint64_t number);
/* The text, terminated and owned by `out`, or NULL when memory was short. */
const char *abp_json_end(struct json_text *out, size_t *length);

#endif
