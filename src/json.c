/*
 * The only file that includes cJSON. Text is admitted before cJSON sees it, because cJSON cuts a
 * string at \u0000, passes on bytes that are not UTF-8, and takes what follows the document and the
 * first of two equal keys without a word; and what it makes of a number is never sent on: raw text
 * is.
 */
#include "json.h"

#include "abp_internal.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 64

/* Four hex digits that are not NUL: cJSON takes what is no digit for 0. */
static int escape_ok(const char *text, size_t length) {
  if (length < 4 || memcmp(text, "0000", 4) == 0) return 0;
  for (int i = 0; i < 4; i++) {
    const char c = text[i];
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return 0;
  }
  return 1;
}

/* One pass over the text: depth, NUL in strings, control characters, which cJSON takes for space.
 * Well-formedness is cJSON's. */
static int admissible(const char *text, size_t length) {
  size_t depth = 0;
  int in_string = 0;
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    if ((uint8_t)c < 0x20 && (in_string || (c != '\t' && c != '\n' && c != '\r'))) return 0;
    if (in_string) {
      if (c == '"') in_string = 0;
      if (c != '\\') continue;
      if (++i < length && text[i] == 'u' && !escape_ok(text + i + 1, length - i - 1)) return 0;
    } else if (c == '"') {
      in_string = 1;
    } else if (c == '{' || c == '[') {
      if (++depth > DEEPEST) return 0;
    } else if ((c == '}' || c == ']') && depth-- == 0) {
      return 0;
    }
  }
  return depth == 0 && !in_string;
}

static size_t skip_space(const char *text, size_t at, size_t length) {
  while (at < length &&
         (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
    at++;
  return at;
}

json_value *json_parse(const char *text, size_t length, int *memory) {
  *memory = 0;
  const size_t start = skip_space(text, 0, length);
  if (start == length || text[start] != '{' || !admissible(text, length) ||
      !utf8_valid(text, length))
    return NULL;
  const char *end = NULL;
  cJSON *value = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  /* cJSON does not say why. If memory was short for a moment, the text is good the second time. */
  if (!value) value = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  if (!value) {
    void *probe = cJSON_malloc(length);
    *memory = probe == NULL;
    cJSON_free(probe);
  } else if (skip_space(text, (size_t)(end - text), length) != length) {
    cJSON_Delete(value);
    return NULL;
  }
  return value;
}

void json_free(json_value *value) { cJSON_Delete(value); }

const json_value *json_member(const json_value *object, const char *name) {
  const cJSON *found = NULL;
  if (!cJSON_IsObject(object)) return NULL;
  for (const cJSON *member = object->child; member; member = member->next) {
    if (strcmp(member->string, name) != 0) continue;
    if (found) return NULL;
    found = member;
  }
  return found;
}

struct json_slice json_string(const json_value *value) {
  if (!cJSON_IsString(value)) return (struct json_slice){NULL, 0};
  return (struct json_slice){value->valuestring, strlen(value->valuestring)};
}

int json_is_true(const json_value *value) { return cJSON_IsTrue(value); }

int json_is_null(const json_value *value) { return cJSON_IsNull(value); }

int json_is_number(const json_value *value) { return cJSON_IsNumber(value); }

uint32_t json_ms(const json_value *value) {
  if (!cJSON_IsNumber(value) || !(value->valuedouble >= 1)) return 0;
  return value->valuedouble < 2147483647.0 ? (uint32_t)value->valuedouble : 2147483647u;
}

/* --- Where a value stands --------------------------------------------------------------------- */

static size_t skip_string(const char *text, size_t at) {
  for (at++; text[at] != '"'; at++) {
    if (text[at] == '\\') at++;
  }
  return at + 1;
}

/* `text` is known to be well-formed, so that skipping needs no grammar. */
static size_t skip_value(const char *text, size_t at, size_t length) {
  size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    at++;
  } while (at < length && (depth || !strchr(",]} \t\r\n", text[at])));
  return at;
}

/* cJSON keeps no positions, but it keeps the order: the nth child is the nth value in the text. */
static size_t find_source(const cJSON *parent, const char *text, size_t at, size_t length,
                          const cJSON *wanted, struct json_slice *found) {
  at = skip_space(text, at, length);
  if (parent == wanted) {
    *found = (struct json_slice){text + at, skip_value(text, at, length) - at};
    return at;
  }
  if (!parent->child) return skip_value(text, at, length);
  for (const cJSON *child = parent->child; child && !found->text; child = child->next) {
    at = skip_space(text, at + 1, length);
    if (cJSON_IsObject(parent)) at = skip_space(text, skip_string(text, at), length) + 1;
    at = skip_space(text, find_source(child, text, at, length, wanted, found), length);
  }
  return at + 1;
}

struct json_slice json_source(const json_value *document, const char *text,
                              const json_value *value) {
  struct json_slice found = {NULL, 0};
  if (value) find_source(document, text, 0, SIZE_MAX, value, &found);
  return found;
}

/* --- Printing --------------------------------------------------------------------------------- */

json_value *json_new(void) { return cJSON_CreateObject(); }

json_value *json_add_object(json_value *object, const char *name) {
  return cJSON_AddObjectToObject(object, name);
}

static char *terminated(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

int json_add_string(json_value *object, const char *name, const char *text, size_t length) {
  char *copy = terminated(text, length);
  const int added = copy && cJSON_AddStringToObject(object, name, copy);
  free(copy);
  return added;
}

int json_add_raw(json_value *object, const char *name, const char *json, size_t length) {
  char *copy = terminated(json, length);
  const int added = copy && cJSON_AddRawToObject(object, name, copy);
  free(copy);
  return added;
}

int json_add_bool(json_value *object, const char *name, int value) {
  return cJSON_AddBoolToObject(object, name, value) != NULL;
}

int json_add_number(json_value *object, const char *name, uint64_t number) {
  char digits[20], *first = digits + sizeof digits;
  do
    *--first = (char)('0' + number % 10);
  while (number /= 10);
  return json_add_raw(object, name, first, (size_t)(digits + sizeof digits - first));
}

char *json_print(const json_value *object) { return cJSON_PrintUnformatted(object); }

void json_free_text(char *text) { cJSON_free(text); }
