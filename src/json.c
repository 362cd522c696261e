/*
 * The only file that includes cJSON. Text is checked before cJSON parses it, because cJSON cuts a
 * string at \u0000, passes on bytes that are not UTF-8, and silently accepts text after the
 * document and the first of two equal keys. Numbers are sent on as raw text, never as cJSON's
 * values.
 */
#include "json.h"

#include "base.h"
#include "utf8.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

/* 1 for four hex digits other than 0000: cJSON would read any other character as the digit 0. */
static int escape_ok(const char *text, size_t length) {
  if (length < 4 || memcmp(text, "0000", 4) == 0) return 0;
  for (int i = 0; i < 4; i++) {
    const char c = text[i];
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return 0;
  }
  return 1;
}

/* One pass over the text: checks depth, NUL in strings, and control characters, which cJSON would
 * accept as space. cJSON checks the syntax. */
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
      if (++depth > MAX_DEPTH) return 0;
    } else if ((c == '}' || c == ']') && depth-- == 0) {
      return 0;
    }
  }
  return depth == 0 && !in_string;
}

/* In checked text, no other character is below space. */
static int is_space(char c) { return (uint8_t)c <= ' '; }

static size_t skip_space(const char *text, size_t at, size_t length) {
  while (at < length && is_space(text[at]))
    at++;
  return at;
}

json_value *abp_json_parse(const char *text, size_t length, int *memory) {
  *memory = 0;
  const size_t start = skip_space(text, 0, length);
  if (start == length || text[start] != '{' || !admissible(text, length) ||
      !abp_utf8_valid(text, length))
    return NULL;
  const char *end = NULL;
  cJSON *value = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  /* cJSON gives no reason. If memory was short for a moment, the second attempt succeeds. */
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

void abp_json_free(json_value *value) { cJSON_Delete(value); }

const json_value *abp_json_member(const json_value *object, const char *name) {
  const cJSON *found = NULL;
  if (!cJSON_IsObject(object)) return NULL;
  for (const cJSON *member = object->child; member; member = member->next) {
    if (strcmp(member->string, name) != 0) continue;
    if (found) return NULL;
    found = member;
  }
  return found;
}

struct json_slice abp_json_string(const json_value *value) {
  if (!cJSON_IsString(value)) return (struct json_slice){NULL, 0};
  return (struct json_slice){value->valuestring, strlen(value->valuestring)};
}

const char *abp_json_member_text(const json_value *object, const char *name) {
  return cJSON_GetStringValue(abp_json_member(object, name));
}

int abp_json_is_true(const json_value *value) { return cJSON_IsTrue(value); }

int abp_json_is_false(const json_value *value) { return cJSON_IsFalse(value); }

int abp_json_is_null(const json_value *value) { return cJSON_IsNull(value); }

int abp_json_is_number(const json_value *value) { return cJSON_IsNumber(value); }

uint32_t abp_json_ms(const json_value *value) {
  if (!cJSON_IsNumber(value) || !(value->valuedouble > 0)) return 0;
  if (value->valuedouble >= 2147483647.0) return 2147483647u;
  const uint32_t whole = (uint32_t)value->valuedouble;
  return whole + ((double)whole < value->valuedouble);
}

uint64_t abp_json_count(const json_value *value) {
  return abp_json_whole(cJSON_IsNumber(value) ? value->valuedouble : -1);
}

uint64_t abp_json_whole(double number) {
  if (!(number >= 0 && number <= 9007199254740992.0)) return UINT64_MAX;
  const uint64_t count = (uint64_t)number;
  return (double)count < number ? UINT64_MAX : count;
}

/* --- The source of a value -------------------------------------------------------------------- */

static size_t skip_string(const char *text, size_t at) {
  for (at++; text[at] != '"'; at++) {
    if (text[at] == '\\') at++;
  }
  return at + 1;
}

/* `text` is known to be well-formed, so skipping needs no grammar. */
static size_t skip_value(const char *text, size_t at, size_t length) {
  size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
    } else {
      depth += c == '{' || c == '[';
      depth -= c == '}' || c == ']';
      at++;
    }
  } while (at < length && (depth || !(text[at] == ',' || text[at] == ']' || text[at] == '}' ||
                                      is_space(text[at]))));
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

struct json_slice abp_json_source(const json_value *document, const char *text,
                                  const json_value *value) {
  struct json_slice found = {NULL, 0};
  if (value) find_source(document, text, 0, SIZE_MAX, value, &found);
  return found;
}

/* --- Writing ---------------------------------------------------------------------------------- */

#define ROOM 256 /* a little more than most control messages take */

static void put(struct json_text *out, const char *text, size_t length) {
  if (length > out->room - out->length) {
    const size_t least = out->length + length + ROOM;
    const size_t room = 2 * out->room > least ? 2 * out->room : least;
    char *grown = out->failed ? NULL : malloc(room);
    if (!grown) {
      out->failed = 1;
      return;
    }
    if (out->length) memcpy(grown, out->text, out->length);
    free(out->text);
    out->text = grown;
    out->room = room;
  }
  if (length) memcpy(out->text + out->length, text, length);
  out->length += length;
}

static void put_string(struct json_text *out, const char *text, size_t length) {
  put(out, "\"", 1);
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    char escape[] = {'\\', c, '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
    if (c == '"' || c == '\\') {
      put(out, escape, 2);
    } else if ((uint8_t)c >= ' ') {
      put(out, &c, 1);
    } else if (c >= '\b' && c <= '\r' && c != '\v') {
      escape[1] = "btnvfr"[c - '\b'];
      put(out, escape, 2);
    } else {
      escape[1] = 'u';
      put(out, escape, 6);
    }
  }
  put(out, "\"", 1);
}

static void put_name(struct json_text *out, const char *name) {
  if (out->length && out->text[out->length - 1] != '{') put(out, ",", 1);
  put_string(out, name, strlen(name));
  put(out, ":", 1);
}

void abp_json_begin(struct json_text *out) {
  free(out->text);
  *out = (struct json_text){0};
  put(out, "{", 1);
}

void abp_json_open(struct json_text *out, const char *name) { abp_json_add_raw(out, name, "{", 1); }

void abp_json_close(struct json_text *out) { put(out, "}", 1); }

void abp_json_add_string(struct json_text *out, const char *name, const char *text, size_t length) {
  put_name(out, name);
  put_string(out, text, length);
}

void abp_json_add_raw(struct json_text *out, const char *name, const char *json, size_t length) {
  if (!json) return;
  put_name(out, name);
  put(out, json, length);
}

void abp_json_add_members(struct json_text *out, const char *json, size_t length) {
  size_t first = 1;
  while (first < length && strchr(" \t\r\n", json[first]))
    first++;
  if (first >= length || json[first] == '}') return;
  if (out->length && out->text[out->length - 1] != '{') put(out, ",", 1);
  put(out, json + first, length - first - 1);
}

void abp_json_add_bool(struct json_text *out, const char *name, int value) {
  abp_json_add_raw(out, name, value ? "true" : "false", value ? 4 : 5);
}

void abp_json_add_number(struct json_text *out, const char *name, uint64_t number) {
  char digits[20];
  const char *first = print_number(digits + sizeof digits, number);
  abp_json_add_raw(out, name, first, (size_t)(digits + sizeof digits - first));
}

const char *abp_json_end(struct json_text *out, size_t *length) {
  put(out, "}", 2); /* and its terminator */
  *length = out->failed ? 0 : out->length - 1;
  return out->failed ? NULL : out->text;
}
