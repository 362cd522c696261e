#define _POSIX_C_SOURCE 200809L

#include "app.h"

#include <abp.h>

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MAX_CALLS = 64,
  MAX_RUNNING = 4,
  SLICE = 4096,    /* numbers between looks at the clock */
  WORK_MS = 5,     /* before messages have their turn, and so how late a cancel can come */
  REPORT_MS = 100, /* between reports of progress */
};

static const char ABOUT[] =
    "{\"id\":\"example.native\",\"name\":\"Native example\",\"version\":\"1.0\"}";
static const char CAPABILITIES[] =
    "[{\"name\":\"primes.count\",\"description\":\"Counts the primes below a number\","
    "\"inputSchema\":{\"type\":\"object\",\"required\":[\"limit\"],\"properties\":{\"limit\":"
    "{\"type\":\"integer\",\"minimum\":0,\"maximum\":4294967295}}}}]";

/* A call, from its ABP_START or ABP_QUEUED until it is over. */
struct job {
  abp_call call; /* 0: this place is free */
  int running, stopped;
  char *id, *token; /* what its answer and its progress must name; JSON */
  const char *problem;
  abp_error error; /* ABP_NO_ERROR, or what is wrong with it */
  uint32_t limit, next, primes;
  uint64_t report_at;
};

struct app {
  abp_endpoint *endpoint;
  app_post *post;
  void *link;
  uint64_t wake; /* when the endpoint wants to be told the time; 0 is never */
  struct job jobs[MAX_CALLS];
};

static uint64_t clock_ms(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- Jobs ------------------------------------------------------------------------------------- */

static struct job *find(struct app *app, abp_call call) {
  for (size_t i = 0; i < MAX_CALLS; i++) {
    if (app->jobs[i].call == call) return &app->jobs[i];
  }
  return NULL;
}

static void forget(struct job *job) {
  free(job->id);
  free(job->token);
  *job = (struct job){0};
}

static char *copy(const char *text, size_t length) {
  char *made = text ? malloc(length + 1) : NULL;
  if (made) {
    memcpy(made, text, length);
    made[length] = 0;
  }
  return made;
}

/* Reads the call's parameters. The body is gone with the next input, so this is done on arrival,
 * even if the call must wait for its turn. */
static void read_call(struct job *job, const abp_body *body) {
  static const char NAME[] = "primes.count";
  job->id = copy(body->id, body->id_length);
  job->token = copy(body->token, body->token_length);
  if ((body->id && !job->id) || (body->token && !job->token)) {
    job->error = ABP_INTERNAL_ERROR;
    return;
  }
  if (body->name_length != sizeof NAME - 1 || memcmp(body->name, NAME, sizeof NAME - 1) != 0) {
    job->error = ABP_UNKNOWN_CAPABILITY;
    return;
  }
  cJSON *params = cJSON_ParseWithLength(body->payload ? body->payload : "", body->payload_length);
  const cJSON *limit = cJSON_GetObjectItemCaseSensitive(params, "limit");
  if (cJSON_IsNumber(limit) && limit->valuedouble >= 0 && limit->valuedouble <= UINT32_MAX) {
    job->limit = (uint32_t)limit->valuedouble;
  } else {
    job->error = ABP_INVALID_PARAMS;
    job->problem = "limit must be a number from 0 to 4294967295";
  }
  cJSON_Delete(params);
}

static int is_prime(uint32_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return 0;
  for (uint32_t i = 3; (uint64_t)i * i <= n; i += 2) {
    if (n % i == 0) return 0;
  }
  return 1;
}

static void drain(struct app *app);

static void report(struct app *app, struct job *job) {
  const uint64_t now = clock_ms(CLOCK_MONOTONIC);
  const int due = now >= job->report_at || job->next == job->limit;
  if (!due || !abp_progress_wanted(app->endpoint, job->call)) return;
  job->report_at = now + REPORT_MS;
  char progress[64];
  const int length =
      snprintf(progress, sizeof progress, "{\"progress\":%" PRIu32 ",\"total\":%" PRIu32 "}",
               job->next, job->limit);
  const abp_body body = {.payload = progress,
                         .payload_length = (size_t)length,
                         .token = job->token,
                         .token_length = job->token ? strlen(job->token) : 0};
  size_t size;
  const char *text =
      abp_print_progress_token(app->endpoint, job->call, &body, clock_ms(CLOCK_REALTIME), &size);
  /* The last report must not be omitted. */
  if (text) app->post(app->link, text, size, job->next < job->limit);
}

/* Does a little of a job, so that other jobs, and messages, have their turn. */
static void work_on(struct app *app, struct job *job) {
  for (int i = 0; i < SLICE && job->next < job->limit; i++)
    job->primes += (uint32_t)is_prime(job->next++);
  report(app, job);
}

/* The handler has returned. What the caller is told comes as an ABP_RESULT. */
static void finish(struct app *app, struct job *job) {
  abp_finish(app->endpoint, job->call, job->stopped ? ABP_CANCELLED : ABP_COMPLETED);
  drain(app);
  forget(job); /* if its result was sent before, or there is nobody to tell */
}

/* --- The endpoint ----------------------------------------------------------------------------- */

static void send_result(struct app *app, const abp_action *action) {
  const struct job *job = find(app, action->call);
  const uint64_t now = clock_ms(CLOCK_REALTIME);
  char data[64];
  const int written =
      snprintf(data, sizeof data, "{\"success\":true,\"data\":{\"primes\":%" PRIu32 "}}",
               job ? job->primes : 0);
  const abp_body body = {.payload = data,
                         .payload_length = (size_t)written,
                         .id = job ? job->id : NULL,
                         .id_length = job && job->id ? strlen(job->id) : 0};
  size_t length;
  const char *text;
  if (job && job->error)
    text = abp_print_error(app->endpoint, action, &body, job->error, job->problem, now, &length);
  else
    text = abp_print(app->endpoint, action, &body, now, &length);
  if (text) app->post(app->link, text, length, 0);
}

static void perform(struct app *app, const abp_action *action) {
  struct job *job;
  size_t length;
  const char *text;
  switch (action->kind) {
  case ABP_QUEUED: /* it waits for its turn */
  case ABP_START:
    job = find(app, action->call);
    if (!job && (job = find(app, 0))) {
      job->call = action->call;
      read_call(job, abp_received(app->endpoint));
    }
    if (job) job->running = action->kind == ABP_START;
    break;
  case ABP_ABORT: /* the caller changed its mind, ran out of time or is gone */
    job = find(app, action->call);
    if (job) job->stopped = 1;
    break;
  case ABP_RESULT: send_result(app, action); break;
  case ABP_SEND:
  case ABP_REFUSE:
    text = abp_print(app->endpoint, action, NULL, clock_ms(CLOCK_REALTIME), &length);
    if (text) app->post(app->link, text, length, 0);
    break;
  case ABP_WAKE: app->wake = action->at; break;
  default: break;
  }
  if (action->released && (job = find(app, action->call))) forget(job);
}

/* Takes all actions; app->post must not feed the endpoint meanwhile. */
static void drain(struct app *app) {
  abp_action action;
  while (abp_next(app->endpoint, &action))
    perform(app, &action);
}

static void advance(struct app *app, uint64_t now) {
  if (app->wake && app->wake <= now) app->wake = 0;
  abp_advance(app->endpoint, now);
  drain(app);
}

void app_receive(struct app *app, const char *text, size_t length) {
  advance(app, clock_ms(CLOCK_MONOTONIC));
  abp_receive(app->endpoint, text, length); /* what cannot be read is counted, and that is all */
  drain(app);
}

/* One round: every running job has its slice. Returns whether any is left. */
static int work_on_jobs(struct app *app) {
  int left = 0;
  for (size_t i = 0; i < MAX_CALLS; i++) {
    struct job *job = &app->jobs[i];
    if (!job->running) continue;
    if (!job->error && !job->stopped) work_on(app, job);
    if (job->error || job->stopped || job->next >= job->limit) finish(app, job);
    left = 1; /* who ended may have made room for another */
  }
  return left;
}

int app_work(struct app *app) {
  uint64_t now = clock_ms(CLOCK_MONOTONIC);
  const uint64_t until = now + WORK_MS;
  advance(app, now);
  while (work_on_jobs(app)) {
    if (clock_ms(CLOCK_MONOTONIC) >= until) return 0;
  }
  if (!app->wake) return -1;
  now = clock_ms(CLOCK_MONOTONIC);
  if (app->wake <= now) return 0;
  return app->wake - now > INT_MAX ? INT_MAX : (int)(app->wake - now);
}

struct app *app_new(app_post *post, void *link) {
  abp_config config = {.role = ABP_APP,
                       .features = ABP_PROGRESS | ABP_LIVENESS,
                       .max_calls = MAX_CALLS,
                       .max_concurrent = MAX_RUNNING,
                       .restart = 1};
  FILE *random = fopen("/dev/urandom", "rb");
  const size_t read = random ? fread(config.seed, 1, sizeof config.seed, random) : 0;
  if (random) fclose(random);
  struct app *app = calloc(1, sizeof *app);
  if (!app || read != sizeof config.seed) {
    free(app);
    return NULL;
  }
  app->post = post;
  app->link = link;
  app->endpoint = abp_new(&config, clock_ms(CLOCK_MONOTONIC));
  if (!app->endpoint || abp_describe(app->endpoint, "app", ABOUT, strlen(ABOUT)) != ABP_OK ||
      abp_describe(app->endpoint, "capabilities", CAPABILITIES, strlen(CAPABILITIES)) != ABP_OK) {
    app_free(app);
    return NULL;
  }
  return app;
}

void app_free(struct app *app) {
  if (!app) return;
  abp_free(app->endpoint);
  for (size_t i = 0; i < MAX_CALLS; i++)
    forget(&app->jobs[i]);
  free(app);
}
