/* An agent and an app joined by JSON text: what is sent waits in a queue until it is delivered. */
#ifndef PAIR_H
#define PAIR_H

#include "abp.h"

#define PAIR_CALLS 16

struct side {
  abp_endpoint *endpoint;
  struct pair *pair;
  char *inbox[256];
  int first, last;
  char *text; /* the message being worked on */
  struct {
    char name[32], id[64];
    abp_call handle;
  } calls[PAIR_CALLS];
  int failed; /* a negative status was seen */
};

struct pair {
  struct side agent, app;
  uint64_t now;
  /* What is seen: "app: start A" and the like. */
  void (*log)(struct pair *pair, const char *line);
  void *context;
};

/* Makes both ends. 0 when memory is short. */
int pair_open(struct pair *pair, const abp_config *agent, const abp_config *app);
void pair_close(struct pair *pair);
/* Takes and carries out every action of an endpoint. */
void pair_drain(struct side *side);
/* Delivers until nothing is under way. */
void pair_run(struct pair *pair);
void pair_advance(struct pair *pair, uint64_t ms);
int pair_call(struct pair *pair, const char *id, const char *capability, uint32_t timeout_ms);
abp_call pair_handle(const struct side *side, const char *id);

#endif
