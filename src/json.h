/* JSON in the core: what wire_*.c need of it. json.c is the only file that knows cJSON. */
#ifndef ABP_JSON_H
#define ABP_JSON_H

#include <stddef.h>
#include <stdint.h>

typedef struct cJSON json_value;

struct json_slice {
  const char *text;
  size_t length;
};

/* A document, or NULL: *memory tells whether for lack of memory, or because the text is not strict
 * JSON (an object, depth at most 64, UTF-8 without NUL). Free with json_free. */
json_value *json_parse(const char *text, size_t length, int *memory);
void json_free(json_value *value);

/* The member, or NULL if it is missing, stands there twice, or `object` is no object. */
const json_value *json_member(const json_value *object, const char *name);
/* The text of a string, else NULL and length 0. */
struct json_slice json_string(const json_value *value);
int json_is_true(const json_value *value);
int json_is_null(const json_value *value);
int json_is_number(const json_value *value);
/* A number as whole ms in 0..2^31-1; 0 for anything else. */
uint32_t json_ms(const json_value *value);
/* Where a value stands in the text that `document` was parsed from. */
struct json_slice json_source(const json_value *document, const char *text,
                              const json_value *value);

/* A message under construction. Adding to NULL fails, so that only the end needs a look: each
 * returns 0 when memory was short. Names are literals; texts are copied. */
json_value *json_new(void);
json_value *json_add_object(json_value *object, const char *name);
int json_add_string(json_value *object, const char *name, const char *text, size_t length);
int json_add_raw(json_value *object, const char *name, const char *json, size_t length);
int json_add_bool(json_value *object, const char *name, int value);
int json_add_number(json_value *object, const char *name, uint64_t number);
/* The text, to be freed with json_free_text, or NULL when memory is short. */
char *json_print(const json_value *object);
void json_free_text(char *text);

#endif
