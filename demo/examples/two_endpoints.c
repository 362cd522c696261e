/*
 * An agent and an app in one process, joined by JSON text: a call, its progress, its cancel, and
 * the next call in the same session. Build: cc two_endpoints.c $(pkg-config --cflags --libs abp)
 */
#include <abp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *to_app, *to_agent; /* one message each way is enough here */
static abp_call running;
static int outcomes;

/* A real program writes to a socket or a pipe here. */
static void post(const char *from, char **to, const char *text) {
  printf("%s says %s\n", from, text);
  free(*to);
  *to = malloc(strlen(text) + 1);
  if (*to) strcpy(*to, text);
}

static void drain_app(abp_endpoint *app) {
  abp_action action;
  size_t length;
  while (abp_next(app, &action)) {
    switch (action.kind) {
    case ABP_START:
      printf("app: the handler starts\n");
      running = action.call;
      break;
    case ABP_ABORT:
      printf("app: the handler is told to stop: %.*s\n", (int)action.length, action.text);
      break;
    case ABP_RESULT: {
      const abp_body done = {.payload = "{\"success\":true,\"data\":42}", .payload_length = 26};
      post("app", &to_agent, abp_print(app, &action, &done, 0, &length));
      break;
    }
    case ABP_SEND:
    case ABP_REFUSE: post("app", &to_agent, abp_print(app, &action, NULL, 0, &length)); break;
    default: break;
    }
  }
}

static void drain_agent(abp_endpoint *agent, const abp_body *call) {
  abp_action action;
  size_t length;
  while (abp_next(agent, &action)) {
    switch (action.kind) {
    case ABP_SETTLE:
      printf("agent: the call is over: %s\n",
             action.arg == ABP_CANCELLED ? "cancelled" : "completed");
      outcomes = outcomes * 10 + (int)action.arg;
      break;
    case ABP_REQUEST:
    case ABP_SEND: post("agent", &to_app, abp_print(agent, &action, call, 0, &length)); break;
    default: break;
    }
  }
}

/* Delivers messages until there are none. */
static void carry(abp_endpoint *agent, abp_endpoint *app) {
  while (to_app || to_agent) {
    char *in_app = to_app, *in_agent = to_agent;
    to_app = to_agent = NULL;
    if (in_app && abp_receive(app, in_app, strlen(in_app)) == ABP_OK) drain_app(app);
    if (in_agent && abp_receive(agent, in_agent, strlen(in_agent)) == ABP_OK)
      drain_agent(agent, NULL);
    free(in_app);
    free(in_agent);
  }
}

int main(void) {
  /* A real program fills the seeds from the system's random numbers, and calls abp_advance with
   * the time. */
  const abp_config for_agent = {.role = ABP_AGENT, .seed = "agent's secret"};
  const abp_config for_app = {.role = ABP_APP, .seed = "app's secret"};
  abp_endpoint *agent = abp_new(&for_agent, 0), *app = abp_new(&for_app, 0);
  if (!agent || !app) return 1;
  const char name[] = "{\"name\":\"example\",\"version\":\"1\"}";
  abp_describe(agent, "agent", name, strlen(name));
  const char id[] = "{\"id\":\"example.app\",\"name\":\"example\",\"version\":\"1\"}";
  abp_describe(app, "app", id, strlen(id));
  abp_describe(app, "capabilities", "[{\"name\":\"answer.find\"}]", 24);

  if (abp_connect(agent, 0) != ABP_OK) return 1;
  drain_agent(agent, NULL);
  carry(agent, app);

  const abp_body call = {
      .name = "answer.find", .name_length = 11, .payload = "{\"deep\":true}", .payload_length = 13};
  abp_call handle;
  if (abp_request(agent, NULL, 0, 0, 0, &handle) != ABP_OK) return 1;
  drain_agent(agent, &call);
  carry(agent, app);

  abp_cancel(agent, handle, "changed my mind", 15);
  drain_agent(agent, NULL);
  carry(agent, app);
  abp_finish(app, running, ABP_COMPLETED); /* too late: the cancel was acknowledged */
  drain_app(app);
  carry(agent, app);

  if (abp_request(agent, NULL, 0, 0, 0, &handle) != ABP_OK) return 1;
  drain_agent(agent, &call);
  carry(agent, app);
  abp_finish(app, running, ABP_COMPLETED);
  drain_app(app);
  carry(agent, app);

  abp_free(agent);
  abp_free(app);
  return outcomes == ABP_CANCELLED * 10 + ABP_COMPLETED ? 0 : 1;
}
