/* What the fuzz targets share: bytes to choose from, and one side whose every step is checked. */
#ifndef FUZZ_SIDE_H
#define FUZZ_SIDE_H

#include "endpoint.h"

#include <stdio.h>
#include <stdlib.h>

/* Stands in every build, unlike assert. */
#define REQUIRE(what)                                                                              \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                           \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
  const uint8_t *at;
  size_t left;
};
/* What is read beyond the end is 0. */
uint8_t take8(struct bytes *bytes);
uint32_t take32(struct bytes *bytes);

enum { SIDE_CALLS = 128, SIDE_LIMIT = 8, FINISHED = 1 << 30 };

/* One endpoint, its handlers and its callers. */
struct side {
  abp_endpoint *endpoint;
  void (*post)(struct side *side, const char *text, size_t length);
  /* Every call that has a handle, and what was said of it: 1 << abp_kind, or'ed; FINISHED if its
   * handler has returned and its answer is still to come.
   */
  struct known_call {
    abp_call handle;
    uint32_t said;
  } calls[SIDE_CALLS];
  int local; /* the input is a call of this side's to itself: a refusal of that has no message */
};

/* Limits small enough to be reached. `kind`: 1 restarts, 2 is foreign. */
void side_open(struct side *side, abp_role role, uint32_t kind, uint64_t now);
/* Takes every action of the input that returned `status`, then does what they say, and looks
 * whether all is as it should be. */
void side_drain(struct side *side, int status);
/* The nth handler that runs settles. Returns whether there was one. */
int side_finish(struct side *side, uint32_t nth, abp_outcome outcome);
/* The app that a call was passed on to answers its cancel: with yes or, after which it may be told
 * to stop again, no. */
void side_answer_cancel(struct side *side, abp_call call, int accepted, size_t reason_length);
/* This side makes a call; `id` may be NULL. */
void side_call(struct side *side, const abp_id *id, uint32_t timeout_ms, abp_call parent);
void side_call_local(struct side *side, abp_call parent, uint32_t timeout_ms, abp_error fault);
/* The nth call that has a handle, made or received, or 0. */
abp_call side_handle(const struct side *side, uint32_t nth);
/* Whether what is kept of calls agrees with itself. */
void side_check_calls(const struct calls *calls, uint64_t session_due);
/* With its connection lost and a new one, it still does what it is for. */
void side_still_works(struct side *side);

#endif
