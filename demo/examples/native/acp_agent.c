/*
 * An agent of the Agent Client Protocol as a process: JSON-RPC over standard input and output, one
 * message a line. It repeats its prompt, slowly, and can be stopped meanwhile.
 */
#define _POSIX_C_SOURCE 200809L

#include <abp_rpc.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 32, MAX_LINE = 1 << 20, WORD_MS = 20 };

/* A request, from its ABP_QUEUED until it is over. */
struct job {
  abp_call call;           /* 0: this place is free */
  cJSON *request, *result; /* the message that asks, and what its handler makes of it */
  int running, stopped;
  const char *word; /* the next one to repeat */
  uint64_t due;     /* and when */
};

static abp_peer *peer;
static struct job jobs[MAX_JOBS];
static uint64_t wake; /* when the peer wants to be told the time; 0 is never */
static int over;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct job *find(abp_call call) {
  for (int i = 0; i < MAX_JOBS; i++) {
    if (jobs[i].call == call) return &jobs[i];
  }
  return NULL;
}

static void forget(struct job *job) {
  cJSON_Delete(job->request);
  cJSON_Delete(job->result);
  *job = (struct job){0};
}

static const cJSON *member(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}
static const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(member(object, key));
  return text ? text : "";
}

/* --- Messages --------------------------------------------------------------------------------- */

static void send(cJSON *message) {
  cJSON_AddStringToObject(message, "jsonrpc", "2.0");
  char *text = cJSON_PrintUnformatted(message);
  if (text) puts(text);
  fflush(stdout);
  cJSON_free(text);
  cJSON_Delete(message);
}

/* Answers with an error: the id is the message's, or null if it has none. */
static void send_error(const cJSON *message, int error, int names_request) {
  const cJSON *id = abp_rpc_error_has_no_id(error) ? NULL : member(message, "id");
  cJSON *answer = cJSON_CreateObject();
  cJSON_AddItemToObject(answer, "id", id ? cJSON_Duplicate(id, 1) : cJSON_CreateNull());
  cJSON *body = cJSON_AddObjectToObject(answer, "error");
  cJSON_AddNumberToObject(body, "code", abp_rpc_error_code(ABP_ACP, error));
  cJSON_AddStringToObject(body, "message", abp_rpc_error_message(error));
  if (names_request && id)
    cJSON_AddItemToObject(cJSON_AddObjectToObject(body, "data"), "requestId",
                          cJSON_Duplicate(id, 1));
  send(answer);
}

static void send_result(struct job *job) {
  cJSON *answer = cJSON_CreateObject();
  cJSON_AddItemToObject(answer, "id", cJSON_Duplicate(member(job->request, "id"), 1));
  cJSON_AddItemToObject(answer, "result", job->result);
  job->result = NULL;
  send(answer);
}

/* A turn was stopped by `session/cancel`: that is a result, where `$/cancel_request` is an error.
 */
static void send_stopped(struct job *job) {
  cJSON_Delete(job->result);
  job->result = cJSON_CreateObject();
  cJSON_AddStringToObject(job->result, "stopReason", "cancelled");
  send_result(job);
}

/* --- Actions of the core ---------------------------------------------------------------------- */

/* `received` is the message that this comes of, or NULL. A request that is taken in is kept. */
static void perform(const abp_action *action, cJSON **received) {
  struct job *job = action->call ? find(action->call) : NULL;
  switch (action->kind) {
  case ABP_QUEUED:
    job = find(0); /* there is one: MAX_JOBS is the limit of the peer, too */
    *job = (struct job){.call = action->call, .request = *received};
    *received = NULL;
    break;
  case ABP_START: job->running = 1; break;
  case ABP_ABORT: job->stopped = 1; break;
  case ABP_RESULT:
    if (action->arg == ABP_STOPPED_BY_NAME)
      send_stopped(job);
    else if (action->arg == ABP_COMPLETED)
      send_result(job);
    else
      send_error(job->request, ABP_RPC_CANCELLED, 1);
    break;
  case ABP_REFUSE: send_error(*received, (int)action->arg, 0); break;
  case ABP_SESSION: over = 1; break;
  case ABP_WAKE: wake = action->at; break;
  default: break;
  }
  if (action->released && job) forget(job);
}

static void drain(cJSON *received) {
  abp_action action;
  while (abp_peer_next(peer, &action))
    perform(&action, &received);
  cJSON_Delete(received);
}

/* --- Input ------------------------------------------------------------------------------------ */

static abp_rpc_id id_of(const cJSON *id) {
  if (cJSON_IsString(id))
    return (abp_rpc_id){ABP_ID_TEXT, id->valuestring, (uint32_t)strlen(id->valuestring), 0};
  if (cJSON_IsNumber(id)) return (abp_rpc_id){ABP_ID_NUMBER, NULL, 0, id->valuedouble};
  return (abp_rpc_id){cJSON_IsNull(id) ? ABP_ID_NULL : ABP_ID_OTHER, NULL, 0, 0};
}

static int is_known(const char *method) {
  return !strcmp(method, "initialize") || !strcmp(method, "session/new") ||
         !strcmp(method, "session/prompt");
}

/* Handles `session/cancel`, which names the session of prompts instead of a request. */
static void stop_turns(const char *session) {
  const char *method = abp_peer_stop_word(peer, ABP_STOP_REQUESTS);
  const char *key = abp_peer_stop_word(peer, ABP_STOP_MEMBER);
  for (struct job *job = jobs; job < jobs + MAX_JOBS; job++) {
    if (strcmp(text_of(job->request, "method"), method) != 0 ||
        strcmp(text_of(member(job->request, "params"), key), session) != 0)
      continue;
    abp_peer_stop_received(peer, job->call);
    drain(NULL);
  }
}

static void receive(const char *line, size_t length) {
  cJSON *message = cJSON_ParseWithLength(line, length);
  const char *method = cJSON_GetStringValue(member(message, "method"));
  const cJSON *id = member(message, "id"), *params = member(message, "params");
  const abp_rpc_id named = id_of(id);
  abp_peer_now(peer, now_ms());
  if (!message) {
    abp_peer_malformed(peer, ABP_RPC_PARSE);
  } else if (cJSON_IsArray(message)) {
    abp_peer_malformed(peer, ABP_RPC_BATCH);
  } else if (strcmp(text_of(message, "jsonrpc"), "2.0") != 0 || (!method && !id)) {
    abp_peer_malformed(peer, ABP_RPC_INVALID_REQUEST);
  } else if (!method) {
    abp_peer_response(peer, &named,
                      ABP_ANSWER_RESULT); /* nothing was asked, and so it is counted */
  } else if (id) {
    abp_peer_received(peer, &named, is_known(method) ? ABP_RPC_NO_ERROR : ABP_RPC_METHOD_NOT_FOUND,
                      0);
  } else if (!strcmp(method, abp_peer_cancel_method(peer))) {
    const abp_rpc_id request = id_of(member(params, abp_peer_cancel_key(peer)));
    abp_peer_cancel_received(peer, &request, NULL, 0, 1);
  } else if (!strcmp(method, abp_peer_stop_word(peer, ABP_STOP_METHOD))) {
    stop_turns(text_of(params, abp_peer_stop_word(peer, ABP_STOP_KEY)));
  }
  drain(message);
}

/* --- Work ------------------------------------------------------------------------------------- */

/* Repeats the next word of a prompt; returns 0 at the end. */
static int say_word(struct job *job) {
  const cJSON *params = member(job->request, "params");
  if (!job->word) job->word = text_of(cJSON_GetArrayItem(member(params, "prompt"), 0), "text");
  size_t length = strcspn(job->word, " ");
  length += strspn(job->word + length, " ");
  if (!length) return 0;
  cJSON *message = cJSON_CreateObject();
  cJSON_AddStringToObject(message, "method", "session/update");
  cJSON *said = cJSON_AddObjectToObject(message, "params");
  cJSON_AddStringToObject(said, "sessionId", text_of(params, "sessionId"));
  cJSON *update = cJSON_AddObjectToObject(said, "update");
  cJSON_AddStringToObject(update, "sessionUpdate", "agent_message_chunk");
  cJSON *content = cJSON_AddObjectToObject(update, "content");
  cJSON_AddStringToObject(content, "type", "text");
  char word[256];
  snprintf(word, sizeof word, "%.*s", (int)length, job->word);
  cJSON_AddStringToObject(content, "text", word);
  send(message);
  job->word += length;
  job->due = now_ms() + WORD_MS;
  return 1;
}

/* Does a part of the work. Returns 1 when it is done: there is a result, or it was stopped. */
static int step(struct job *job, uint64_t now) {
  static unsigned sessions;
  const char *method = text_of(job->request, "method");
  if (job->stopped) return 1;
  if (!strcmp(method, "session/prompt")) {
    if (job->due > now || say_word(job)) return 0;
    job->result = cJSON_CreateObject();
    cJSON_AddStringToObject(job->result, "stopReason", "end_turn");
  } else if (!strcmp(method, "session/new")) {
    char id[32];
    snprintf(id, sizeof id, "session %u", ++sessions);
    job->result = cJSON_CreateObject();
    cJSON_AddStringToObject(job->result, "sessionId", id);
  } else {
    job->result = cJSON_CreateObject();
    cJSON_AddNumberToObject(job->result, "protocolVersion", 1);
    cJSON_AddObjectToObject(job->result, "agentCapabilities");
  }
  return 1;
}

/* Works on all that runs. Returns for how many ms nothing is to be done; -1 is until input comes.
 */
static int work(void) {
  const uint64_t now = now_ms();
  if (wake && wake <= now) {
    wake = 0;
    abp_peer_advance(peer, now);
    drain(NULL);
  }
  abp_peer_start(
      peer); /* what has come together is there: one whose cancel came along never starts */
  drain(NULL);
  uint64_t next = wake;
  for (struct job *job = jobs; job < jobs + MAX_JOBS; job++) {
    if (!job->running) continue;
    if (step(job, now)) {
      abp_peer_finish(peer, job->call, job->stopped ? ABP_GAVE_UP : ABP_RETURNED);
      drain(NULL);
    } else if (!next || job->due < next) {
      next = job->due;
    }
  }
  return !next ? -1 : next <= now ? 0 : (int)(next - now);
}

/* --- Lines ------------------------------------------------------------------------------------ */

static void read_lines(const char *bytes, size_t count) {
  static char line[MAX_LINE];
  static size_t length;
  for (; count; bytes++, count--) {
    if (*bytes != '\n') {
      if (length < MAX_LINE) line[length] = *bytes;
      length++;
      continue;
    }
    if (length > MAX_LINE)
      receive("", 0); /* as unreadable as what is no JSON */
    else if (length)
      receive(line, length);
    length = 0;
  }
}

int main(void) {
  abp_peer_config config = {.dialect = ABP_ACP, .max_calls = MAX_JOBS};
  FILE *random = fopen("/dev/urandom", "rb");
  const size_t seeded = random ? fread(config.seed, 1, sizeof config.seed, random) : 0;
  if (random) fclose(random);
  peer = seeded == sizeof config.seed ? abp_peer_new(&config, now_ms()) : NULL;
  if (!peer) return 1;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  for (int wait = work(); !over; wait = work()) {
    const int ready = poll(&input, 1, wait);
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    char bytes[65536];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0) {
      read_lines(bytes, (size_t)count);
    } else if (count == 0) { /* it says nothing more, and is still answered */
      input.fd = -1;
      abp_peer_half_closed(peer);
      drain(NULL);
    }
  }
  abp_peer_free(peer);
  for (struct job *job = jobs; job < jobs + MAX_JOBS; job++)
    forget(job);
  return 0;
}
