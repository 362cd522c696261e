/* Runs a file of tests/transcripts against two endpoints joined in this process: see its README. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script {
  struct pair pair;
  char seen[2][64][128]; /* by side: agent, app */
  int count[2], wanted[2];
  int running, failures;
  char title[256];
};

static void on_log(struct pair *pair, const char *line) {
  struct script *script = pair->context;
  const int side = strncmp(line, "app", 3) == 0;
  if (script->count[side] < 64)
    snprintf(script->seen[side][script->count[side]++], 128, "%s", line);
}

static void fail(struct script *script, const char *what, const char *line) {
  if (!script->failures++) printf("FAIL %s\n", script->title);
  printf("  %s: %s\n", what, line);
}

static void expect(struct script *script, const char *line) {
  const int side = strncmp(line, "app", 3) == 0;
  const int at = script->wanted[side]++;
  if (at >= script->count[side])
    fail(script, "never seen", line);
  else if (strcmp(script->seen[side][at], line) != 0)
    fail(script, script->seen[side][at], line);
}

static uint32_t option(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

static void cancel_by_id(struct script *script, const char *id, const char *reason) {
  struct side *agent = &script->pair.agent;
  const abp_id key = {id, (uint32_t)strlen(id), 0};
  abp_call request;
  if (abp_cancel_by_id(agent->endpoint, &key, *reason ? reason : NULL, strlen(reason), &request) !=
      ABP_OK) {
    fail(script, "cannot cancel", id);
    return;
  }
  for (int i = 0; i < PAIR_CALLS; i++) {
    if (agent->calls[i].handle) continue;
    agent->calls[i].handle = request;
    snprintf(agent->calls[i].id, sizeof agent->calls[i].id, "cancel %s", id);
    break;
  }
  pair_drain(agent);
}

static void agent_does(struct script *script, const char *what, const char *id, const char *rest) {
  struct side *agent = &script->pair.agent;
  char line[128];
  if (strcmp(what, "call") == 0) {
    const int status =
        pair_call(&script->pair, id, strstr(rest, "name=nothing") ? "unknown" : "work",
                  option(rest, "timeout="));
    if (status == ABP_E_DUPLICATE) {
      snprintf(line, sizeof line, "agent: %s failed INVALID_PARAMS", id);
      on_log(&script->pair, line);
    } else if (status != ABP_OK) {
      fail(script, "cannot call", id);
    }
  } else if (strcmp(what, "call-aborted") == 0) {
    /* The rule is the shim's: the core is never asked. */
    snprintf(line, sizeof line, "agent: %s cancelled", id);
    on_log(&script->pair, line);
  } else if (strcmp(what, "abort") == 0) {
    abp_cancel(agent->endpoint, pair_handle(agent, id), *rest ? rest : NULL, strlen(rest));
    pair_drain(agent);
  } else if (strcmp(what, "cancel") == 0) {
    cancel_by_id(script, id, rest);
  } else {
    abp_close(agent->endpoint);
    pair_drain(agent);
  }
}

static void finish(struct side *app, const char *id, abp_outcome outcome, const char *as) {
  const abp_call call = pair_handle(app, id);
  int at = -1;
  for (int i = 0; i < PAIR_CALLS; i++) {
    if (call && app->calls[i].handle == call) at = i;
  }
  if (at >= 0 && as) snprintf(app->calls[at].name, sizeof app->calls[at].name, "%s", as);
  abp_finish(app->endpoint, call, outcome);
  pair_drain(app);
  if (at >= 0) app->calls[at].handle = 0;
}

static void app_does(struct script *script, const char *what, const char *id) {
  struct side *app = &script->pair.app;
  if (strcmp(what, "return") == 0) {
    finish(app, id, ABP_COMPLETED, NULL);
  } else if (strcmp(what, "fail") == 0) {
    finish(app, id, ABP_COMPLETED, "fail");
  } else if (strcmp(what, "abort-error") == 0) {
    finish(app, id, ABP_CANCELLED, NULL);
  } else if (abp_progress_wanted(app->endpoint, pair_handle(app, id))) {
    size_t length;
    const char *text = abp_print_progress(app->endpoint, pair_handle(app, id), "1", 1, 0, &length);
    char *copy = malloc(length + 1);
    memcpy(copy, text, length + 1);
    script->pair.agent.inbox[script->pair.agent.last++] = copy;
  }
}

static void finish_unknown(struct script *script) {
  /* A native app looks the capability up when the call starts. */
  struct side *app = &script->pair.app;
  for (int i = 0; i < PAIR_CALLS; i++) {
    if (app->calls[i].handle && strcmp(app->calls[i].name, "unknown") == 0)
      finish(app, app->calls[i].id, ABP_COMPLETED, "unknown");
  }
  pair_run(&script->pair);
}

static void perform(struct script *script, char *line) {
  char side[16] = "", what[32] = "", id[32] = "";
  int used = 0;
  sscanf(line, "> %15s %31s %n", side, what, &used);
  sscanf(line + used, "%31s", id);
  const char *rest = line + used + strlen(id);
  while (*rest == ' ')
    rest++;
  if (strcmp(side, "time") == 0)
    pair_advance(&script->pair, (uint64_t)atoi(what));
  else if (strcmp(side, "agent") == 0)
    agent_does(script, what, id, rest);
  else
    app_does(script, what, id);
  pair_run(&script->pair);
  finish_unknown(script);
}

static void begin(struct script *script, const char *with) {
  const abp_config agent = {.role = ABP_AGENT,
                            .seed = {1},
                            .features = ABP_PROGRESS,
                            .grace_ms = option(with, "agent.grace=")};
  const abp_config app = {.role = ABP_APP,
                          .seed = {2},
                          .features = ABP_PROGRESS,
                          .grace_ms = option(with, "app.grace="),
                          .max_concurrent = option(with, "app.maxConcurrent=")};
  script->pair.log = on_log;
  script->pair.context = script;
  script->running = 1;
  if (!pair_open(&script->pair, &agent, &app)) fail(script, "no session", "");
}

static int end(struct script *script) {
  for (int side = 0; side < 2; side++) {
    for (int i = script->wanted[side]; i < script->count[side]; i++)
      fail(script, "not expected", script->seen[side][i]);
  }
  if (script->running) pair_close(&script->pair);
  return script->failures != 0;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!file) return 2;
  struct script *script = NULL;
  char line[512], with[128] = "";
  int passed = 0, failed = 0;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "## ", 3) == 0) {
      if (script) *(end(script) ? &failed : &passed) += 1;
      free(script);
      script = calloc(1, sizeof *script);
      if (!script) return 2;
      snprintf(script->title, sizeof script->title, "%s", line + 3);
      with[0] = 0;
    } else if (strncmp(line, "with: ", 6) == 0) {
      snprintf(with, sizeof with, "%s", line + 6);
    } else if (script && strncmp(line, "    ", 4) == 0) {
      if (!script->running) begin(script, with);
      if (line[4] == '>')
        perform(script, line + 4);
      else
        expect(script, line + 4);
    }
  }
  if (script) *(end(script) ? &failed : &passed) += 1;
  free(script);
  fclose(file);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}
