/*
 * abp-replay - replays recordings of endpoints (docs/inspector.md#recordings) and reports the first
 * difference.
 *
 *   abp-replay FILE...
 *
 * Exit status: 0 all the same, 1 something differs, 2 a file cannot be read or is not a recording.
 */
#include "wire_abp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENDPOINTS 4096

/* By abp_kind, abp_counter. */
static const char *const KINDS[] = {
    [ABP_NONE] = "none",       [ABP_QUEUED] = "queued",   [ABP_START] = "start",
    [ABP_ABORT] = "abort",     [ABP_RESULT] = "result",   [ABP_REFUSE] = "refuse",
    [ABP_REQUEST] = "request", [ABP_SETTLE] = "settle",   [ABP_REPORT] = "report",
    [ABP_SEND] = "send",       [ABP_SESSION] = "session", [ABP_WAKE] = "wake",
    [ABP_DROP] = "drop",       [ABP_CHUNK] = "chunk",     [ABP_CREDIT] = "credit",
    [ABP_RESUME] = "resume"};
#define KIND_COUNT (sizeof KINDS / sizeof *KINDS)

static const struct {
  const char *name;
  abp_counter counter;
} COUNTERS[] = {{"late", ABP_LATE},           {"stray", ABP_STRAY},
                {"malformed", ABP_MALFORMED}, {"unknown", ABP_UNKNOWN_TYPE},
                {"refused", ABP_REFUSED},     {"overrun", ABP_OVERRUN}};

static const struct {
  const char *name;
  size_t offset;
} CONFIG[] = {
#define FIELD(name)                                                                                \
  { #name, offsetof(abp_config, name) }
    FIELD(features),      FIELD(max_calls),   FIELD(max_concurrent), FIELD(remembered),
    FIELD(remember_ms),   FIELD(grace_ms),    FIELD(max_id),         FIELD(max_text),
    FIELD(heartbeat_ms),  FIELD(restart),     FIELD(foreign),        FIELD(first_number),
    FIELD(stream_chunks), FIELD(stream_bytes)};

/* A line of the recording, and its texts, which inputs borrow. */
struct line {
  char *text;
  size_t length, room;
  uint64_t number;
  json_value *document;
  char *decoded[3]; /* texts that were written as bytes */
  int decoded_count;
};

struct player {
  const char *file;
  struct line line;  /* the current one */
  struct line input; /* the last input: the endpoint may still use its texts */
  abp_endpoint *endpoints[MAX_ENDPOINTS];
  uint32_t current; /* the endpoint of the last input */
  abp_action action;
  int status; /* what the last input returned, until it is compared */
  uint64_t inputs, actions;
  int failed; /* the exit status */
};

static void free_line(struct line *line) {
  abp_json_free(line->document);
  free(line->text);
  for (int i = 0; i < line->decoded_count; i++)
    free(line->decoded[i]);
  *line = (struct line){.number = line->number};
}

/* Reports the first error and its place. Later ones follow from it, and are not reported. */
static void fail(struct player *player, int status, const char *format, ...) {
  if (player->failed) return;
  player->failed = status;
  printf("%s:%" PRIu64 ": ", player->file, player->line.number);
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
}

/* --- Reading a line --------------------------------------------------------------------------- */

/* Returns 1, or 0 at the end of the file, or if the line is malformed. */
static int read_line(struct player *player, FILE *file) {
  struct line *line = &player->line;
  free_line(line);
  line->number++;
  for (int c; (c = getc(file)) != EOF && c != '\n';) {
    if (line->length + 2 > line->room) {
      const size_t room = line->room * 2 + 256;
      char *text = realloc(line->text, room);
      if (!text) return fail(player, 2, "out of memory"), 0;
      line->text = text;
      line->room = room;
    }
    line->text[line->length++] = (char)c;
    line->text[line->length] = 0;
  }
  /* An empty line has no document, and a note, which is for people, needs none. */
  static const char NOTE[] = "{\"note\":";
  if (!line->length) return !feof(file);
  if (strncmp(line->text, NOTE, strlen(NOTE)) == 0) return 1;
  int memory = 0;
  line->document = abp_json_parse(line->text, line->length, &memory);
  if (!line->document) fail(player, 2, memory ? "out of memory" : "this is not JSON");
  return !player->failed;
}

static uint64_t number_in(const struct line *line, const json_value *object, const char *name) {
  const json_value *value = abp_json_member(object, name);
  if (!abp_json_is_number(value)) return 0;
  return strtoull(abp_json_source(line->document, line->text, value).text, NULL, 10);
}

static uint64_t number_of(const struct line *line, const char *name) {
  return number_in(line, line->document, name);
}

/* Reads a count as the boundary does. */
static uint64_t count_of(const struct line *line, const char *name) {
  const json_value *value = abp_json_member(line->document, name);
  return value ? abp_json_count(value) : 0;
}

static uint32_t window_of(const struct line *line, const char *name) {
  const uint64_t count = count_of(line, name);
  return count == UINT64_MAX ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static uint32_t u32_of(const struct line *line, const char *name) {
  return (uint32_t)number_of(line, name);
}

static int hex_digit(char c) {
  static const char HEX[] = "0123456789abcdef";
  const char *at = c ? strchr(HEX, c) : NULL;
  return at ? (int)(at - HEX) : -1;
}

/* Decodes pairs of digits, as many as there are. Returns the number of bytes. */
static size_t decode(struct json_slice hex, char *bytes, size_t room) {
  size_t count = 0;
  for (size_t i = 0; i + 1 < hex.length && count < room; i += 2) {
    const int high = hex_digit(hex.text[i]), low = hex_digit(hex.text[i + 1]);
    if (high < 0 || low < 0) break;
    bytes[count++] = (char)(high << 4 | low);
  }
  return count;
}

/* A text: a string or, if it contains NUL, {"hex": …}. NULL if it is absent. */
static struct json_slice text_of(struct player *player, struct line *line, const char *name) {
  const json_value *value = abp_json_member(line->document, name);
  const struct json_slice text = abp_json_string(value),
                          hex = abp_json_string(abp_json_member(value, "hex"));
  if (text.text || !hex.text) return text;
  char *bytes = line->decoded_count < 3 ? malloc(hex.length / 2 + 1) : NULL;
  if (!bytes) return fail(player, 2, "out of memory"), text;
  line->decoded[line->decoded_count++] = bytes;
  return (struct json_slice){bytes, decode(hex, bytes, hex.length / 2)};
}

/* --- Playing an input ------------------------------------------------------------------------- */

static abp_endpoint *create(struct player *player, const struct line *line) {
  const json_value *about = abp_json_member(line->document, "config");
  abp_config config = {.role = number_in(line, about, "role") ? ABP_APP : ABP_AGENT};
  for (size_t i = 0; i < sizeof CONFIG / sizeof *CONFIG; i++) {
    const uint32_t value = (uint32_t)number_in(line, about, CONFIG[i].name);
    memcpy((char *)&config + CONFIG[i].offset, &value, sizeof value);
  }
  const struct json_slice seed = abp_json_string(abp_json_member(about, "seed"));
  if (!seed.text || decode(seed, (char *)config.seed, sizeof config.seed) != sizeof config.seed) {
    fail(player, 2, "this endpoint has no seed");
    return NULL;
  }
  abp_endpoint *endpoint = abp_new(&config, number_of(line, "now"));
  if (!endpoint) fail(player, 2, "out of memory");
  return endpoint;
}

/* The endpoint's counters must equal the recorded ones. */
static void compare_counts(struct player *player, const abp_endpoint *endpoint) {
  const json_value *counts = abp_json_member(player->line.document, "counts");
  for (size_t i = 0; i < sizeof COUNTERS / sizeof *COUNTERS; i++) {
    const char *name = COUNTERS[i].name;
    const uint64_t then = number_in(&player->line, counts, name);
    const uint32_t now = abp_count(endpoint, COUNTERS[i].counter);
    if (then != now)
      fail(player, 1, "%s differs: %" PRIu64 " recorded, %" PRIu32 " replayed", name, then, now);
  }
}

/* Plays an input. Returns its status, or 1 if there is no such input. */
static int play(struct player *player, abp_endpoint *ep, struct line *in, const char *name) {
  const struct json_slice text = text_of(player, in, "id");
  const abp_id id = {u32_of(in, "number") ? NULL
                     : text.text          ? text.text
                                          : "",
                     (uint32_t)text.length, u32_of(in, "number")};
  const struct json_slice reason = text_of(player, in, "reason");
  const uint32_t timeout = u32_of(in, "timeout"), flags = u32_of(in, "flags");
  const abp_call call = u32_of(in, "call"), parent = u32_of(in, "parent");
  abp_call made;
#define IS(input) (strcmp(name, input) == 0)
  if (IS("advance")) return abp_advance(ep, number_of(in, "now"));
  if (IS("request"))
    return abp_stream_request(ep, text.text ? &id : NULL, timeout, flags, u32_of(in, "bytes"),
                              parent, &made);
  if (IS("cancel")) return abp_cancel(ep, call, reason.text, reason.length);
  if (IS("cancel_by_id")) return abp_cancel_by_id(ep, &id, reason.text, reason.length, &made);
  if (IS("result_received"))
    return abp_result_received(ep, &id, (abp_outcome)u32_of(in, "outcome"));
  if (IS("unsent")) return abp_send_failed(ep, call);
  if (IS("progress_received")) return abp_progress_received(ep, &id);
  const struct json_slice about = text_of(player, in, "about");
  if (IS("call_received") && about.length) {
    const abp_id target = {about.text, (uint32_t)about.length, 0};
    return abp_question_received(ep, &id, timeout, &target, (abp_error)u32_of(in, "fault"));
  }
  if (IS("call_received"))
    return abp_stream_received(ep, &id, timeout, flags, window_of(in, "chunks"),
                               window_of(in, "bytes"), (abp_error)u32_of(in, "fault"));
  if (IS("chunk")) return abp_chunk(ep, call, count_of(in, "size"));
  if (IS("chunk_received"))
    return abp_chunk_measured(ep, &id, count_of(in, "size"), number_of(in, "seen"));
  if (IS("chunk_read")) return abp_chunk_read(ep, call, count_of(in, "size"));
  if (IS("credit_received"))
    return abp_credit_received(ep, &id, count_of(in, "chunks"), count_of(in, "bytes"));
  if (IS("cancel_received")) return abp_cancel_received(ep, &id, reason.text, reason.length);
  if (IS("cancel_answered"))
    return abp_cancel_answered(ep, call, (int)u32_of(in, "accepted"), reason.text, reason.length);
  if (IS("call_local")) return abp_call_local(ep, parent, timeout, (abp_error)u32_of(in, "fault"));
  if (IS("postpone")) return abp_postpone(ep, call);
  if (IS("begin")) return abp_begin(ep, call);
  if (IS("finish"))
    return abp_finish_with_fate(ep, call, (abp_outcome)u32_of(in, "outcome"),
                                (abp_fate)u32_of(in, "fate"));
  if (IS("connect")) return abp_connect(ep, timeout);
  if (IS("close")) return abp_close(ep);
  if (IS("lost")) return abp_lost(ep);
  if (IS("suspect")) return abp_suspect(ep);
  if (IS("refused")) {
    const struct json_slice code = text_of(player, in, "code");
    return abp_refused(ep, code.text, code.length);
  }
  if (IS("leave")) return abp_leave(ep, (int)u32_of(in, "persisted"));
  if (IS("describe")) {
    const struct json_slice member = text_of(player, in, "member"),
                            json = text_of(player, in, "json");
    if (!member.text || !json.text) return 1;
    return abp_describe(ep, member.text, json.text, json.length);
  }
  if (IS("receive")) {
    const struct json_slice message = text_of(player, in, "text");
    const int status = abp_read(ep, message.text ? message.text : "", message.length);
    return status > 0 ? ABP_FOLLOWS : status < 0 ? status : abp_take(ep, 0, ABP_NO_ERROR);
  }
  if (IS("take")) return abp_take(ep, flags, (abp_error)u32_of(in, "fault"));
  if (IS("value_received")) return abp_result_received(ep, &id, ABP_COMPLETED);
  if (IS("outcome_received")) return abp_outcome_received(ep, &id, u32_of(in, "response"));
  if (IS("finish_with_outcome")) return abp_finish_with_outcome(ep, call, u32_of(in, "response"));
#undef IS
  return 1;
}

/* --- Comparing the output --------------------------------------------------------------------- */

static const char *kind_name(uint32_t kind) { return kind < KIND_COUNT ? KINDS[kind] : "?"; }

static void print_text(const char *label, struct json_slice text) {
  if (text.text) printf("    %s: %.*s\n", label, (int)text.length, text.text);
}

static int same_text(struct json_slice a, struct json_slice b) {
  return a.length == b.length && (!a.length || memcmp(a.text, b.text, a.length) == 0);
}

static void compare_action(struct player *player, abp_endpoint *ep, const char *kind) {
  struct line *line = &player->line;
  abp_action *now = &player->action;
  player->actions++;
  if (!abp_next(ep, now)) *now = (abp_action){.kind = ABP_NONE};
  const struct json_slice text = text_of(player, line, "text"),
                          says = text_of(player, line, "says"),
                          text_now = {now->text, now->text ? now->length : 0};
  struct json_slice says_now = {NULL, 0};
  if (says.text) {
    says_now.text = abp_print(ep, now, NULL, number_of(line, "unix"), &says_now.length);
    if (!says_now.text) says_now.length = 0;
  }
  const uint32_t arg = u32_of(line, "arg"), call = u32_of(line, "call");
  const uint64_t at = number_of(line, "at"), chunks = number_of(line, "chunks");
  const int released = number_of(line, "released") != 0;
  if (strcmp(kind, kind_name(now->kind)) == 0 && arg == now->arg && call == now->call &&
      released == (now->released != 0) && at == now->at && chunks == now->chunks &&
      same_text(text, text_now) && same_text(says, says_now))
    return;
  fail(player, 1, "this differs, after the input of line %" PRIu64, player->input.number);
  static const char FORMAT[] = "  %s: %s, arg %" PRIu32 ", call %" PRIu32 ", at %" PRIu64 "%s\n";
  printf(FORMAT, "recorded", kind, arg, call, at, released ? ", released" : "");
  print_text("text", text);
  print_text("says", says);
  printf(FORMAT, "replayed", kind_name(now->kind), now->arg, now->call, now->at,
         now->released ? ", released" : "");
  print_text("text", text_now);
  print_text("says", says_now);
}

/* --- A file ----------------------------------------------------------------------------------- */

/* The last input was rejected then or now, but not both. */
static void compare_status(struct player *player, int recorded) {
  if (player->status != recorded)
    fail(player, 1, "the input of line %" PRIu64 " returned %d when recorded, and %d when replayed",
         player->input.number, recorded, player->status);
  player->status = ABP_OK;
}

/* All recorded actions of the last input have been compared, and there must be no more. */
static void end_input(struct player *player) {
  if (!player->current || player->failed) return;
  compare_status(player, ABP_OK);
  if (!abp_next(player->endpoints[player->current], &player->action)) return;
  fail(player, 1, "before this, the input of line %" PRIu64 " caused one action more than recorded",
       player->input.number);
  printf("  replayed: %s, arg %" PRIu32 ", call %" PRIu32 "\n", kind_name(player->action.kind),
         player->action.arg, player->action.call);
}

static void play_input(struct player *player, uint32_t e, const char *name) {
  end_input(player);
  if (player->failed) return;
  abp_endpoint **slot = &player->endpoints[e];
  player->inputs++;
  player->current = e;
  if (strcmp(name, "create") == 0) {
    if (*slot) return fail(player, 2, "endpoint %" PRIu32 " exists already", e);
    *slot = create(player, &player->line);
    return;
  }
  if (!*slot) return fail(player, 2, "endpoint %" PRIu32 " does not exist", e);
  if (strcmp(name, "free") == 0) {
    compare_counts(player, *slot);
    abp_free(*slot);
    *slot = NULL;
    player->current = 0;
    return;
  }
  /* Its texts are borrowed until the next input. */
  free_line(&player->input);
  player->input = player->line;
  player->line = (struct line){.number = player->input.number};
  player->status = play(player, *slot, &player->input, name);
  if (player->status > 0) fail(player, 2, "there is no such input");
}

static void play_line(struct player *player) {
  const struct line *line = &player->line;
  const struct json_slice input = abp_json_string(abp_json_member(line->document, "do")),
                          action = abp_json_string(abp_json_member(line->document, "then"));
  const json_value *status = abp_json_member(line->document, "status");
  if (!input.text && !action.text && !status) return; /* the line that says the recording ends */
  const uint32_t e = u32_of(line, "e");
  if (!e || e >= MAX_ENDPOINTS) return fail(player, 2, "this names no endpoint");
  if (input.text) return play_input(player, e, input.text);
  abp_endpoint *endpoint = player->endpoints[e];
  if (!endpoint || e != player->current)
    return fail(player, 2, "this follows no input of its endpoint");
  if (action.text) return compare_action(player, endpoint, action.text);
  compare_status(player,
                 (int)strtol(abp_json_source(line->document, line->text, status).text, NULL, 10));
}

/* Returns the exit status. Closes the file. */
static int play_file(const char *name, FILE *file) {
  struct player *player = calloc(1, sizeof *player);
  if (!player || !file) {
    printf("%s: %s\n", name, player ? "this file cannot be opened" : "out of memory");
    if (file) fclose(file);
    free(player);
    return 2;
  }
  player->file = name;
  while (!player->failed && read_line(player, file)) {
    if (player->line.document) play_line(player);
  }
  end_input(player);
  if (!player->failed && !player->inputs) fail(player, 2, "this is no recording");
  const int status = player->failed;
  if (!status)
    printf("%s: the same: %" PRIu64 " inputs, %" PRIu64 " actions\n", name, player->inputs,
           player->actions);
  for (size_t e = 0; e < MAX_ENDPOINTS; e++)
    abp_free(player->endpoints[e]);
  free_line(&player->line);
  free_line(&player->input);
  free(player);
  fclose(file);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: abp-replay FILE...\n");
    return 2;
  }
  int worst = 0;
  for (int i = 1; i < argc; i++) {
    const int status = play_file(argv[i], fopen(argv[i], "rb"));
    if (status > worst) worst = status;
  }
  return worst;
}
