/*
 * Every allocation of a whole conversation fails in turn, once and from then on: each failure is a
 * status, nothing leaks, and the endpoint works again as soon as there is memory.
 */
#include "pair.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static long until_failure, failures, balance;
static int for_good, armed;

static int fails(void) {
  if (!armed || until_failure-- > 0) return 0;
  failures++;
  if (!for_good) armed = 0;
  return 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  void *memory = fails() ? NULL : __real_malloc(size);
  balance += memory != NULL;
  return memory;
}
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  void *memory = fails() ? NULL : __real_calloc(count, size);
  balance += memory != NULL;
  return memory;
}
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
  void *memory = fails() ? NULL : __real_realloc(old, size);
  balance += memory != NULL && old == NULL;
  return memory;
}
void __wrap_free(void *memory);
void __wrap_free(void *memory) {
  balance -= memory != NULL;
  __real_free(memory);
}

static void converse(struct pair *pair) {
  const char *const long_id = "an-id-that-is-longer-than-a-cell-of-the-table-can-hold";
  pair_call(pair, "a", "work", 50);
  pair_call(pair, long_id, "work", 0);
  pair_run(pair);
  const abp_id id = {long_id, (uint32_t)strlen(long_id), 0};
  abp_call request;
  if (abp_cancel_by_id(pair->agent.endpoint, &id, "why", 3, &request) == ABP_OK)
    pair_drain(&pair->agent);
  pair_run(pair);
  pair_advance(pair, 60);
  pair_advance(pair, 20000);
  const char *odd = "{\"type\":\"capabilities/cancel\",\"id\":[1],\"payload\":{\"callId\":3}}";
  abp_receive(pair->app.endpoint, odd, strlen(odd));
  pair_drain(&pair->app);
  pair_run(pair);
  abp_close(pair->agent.endpoint);
  pair_drain(&pair->agent);
  pair_run(pair);
}

/* Once there is memory again, both ends can start over. */
static void start_over(struct pair *pair) {
  armed = 0;
  abp_endpoint *agent = pair->agent.endpoint, *app = pair->app.endpoint;
  if (!agent || !app) return;
  pair_drain(&pair->agent);
  pair_drain(&pair->app);
  pair_run(pair);
  abp_lost(agent);
  pair_drain(&pair->agent);
  abp_lost(app);
  pair_drain(&pair->app);
  pair_run(pair);
  memset(pair->agent.calls, 0, sizeof pair->agent.calls);
  memset(pair->app.calls, 0, sizeof pair->app.calls);
  assert_int_equal(abp_connect(agent, 0), ABP_OK);
  pair_drain(&pair->agent);
  pair_run(pair);
  assert_int_equal(abp_session_state(agent), ABP_SESSION_READY);
  assert_int_equal(pair_call(pair, "again", "work", 0), ABP_OK);
  pair_run(pair);
  assert_int_equal(abp_finish(app, pair_handle(&pair->app, "again"), ABP_COMPLETED), ABP_OK);
  pair_drain(&pair->app);
  pair_run(pair);
  assert_int_equal(abp_count(agent, ABP_IN_FLIGHT_OUT), 0);
}

static void every_allocation_fails(int good) {
  const abp_config agent = {.role = ABP_AGENT, .seed = {1}}, app = {.role = ABP_APP, .seed = {2}};
  for (long n = 0;; n++) {
    static struct pair pair;
    memset(&pair, 0, sizeof pair);
    balance = failures = 0;
    until_failure = n;
    for_good = good;
    armed = 1;
    if (pair_open(&pair, &agent, &app)) converse(&pair);
    const long failed = failures;
    start_over(&pair);
    pair_close(&pair);
    assert_int_equal(balance, 0);
    if (!failed) {
      assert_true(n > 100); /* the conversation really allocates */
      return;
    }
  }
}

static void once(void **state) {
  (void)state;
  every_allocation_fails(0);
}

static void from_then_on(void **state) {
  (void)state;
  every_allocation_fails(1);
}

int main(void) {
  cJSON_Hooks hooks = {__wrap_malloc, __wrap_free};
  cJSON_InitHooks(&hooks);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(once),
      cmocka_unit_test(from_then_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
