/* The token that stops a computation, asked by one thread and set by another. */
#include <abp_token.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

abp_token *sieve_token(void);
int32_t sieve(uint32_t limit);

static void zero_is_not_cancelled(void **state) {
  (void)state;
  const abp_token token = {0};
  assert_int_equal(abp_token_cancelled(&token), 0);
}

static void a_cancelled_token_stays_cancelled(void **state) {
  (void)state;
  abp_token token = {0};
  abp_token_cancel(&token);
  abp_token_cancel(&token);
  assert_int_equal(abp_token_cancelled(&token), 1);
}

/* JavaScript sets the word to 1; another language may use any number but 0. */
static void any_other_number_is_cancelled(void **state) {
  (void)state;
  const abp_token token = {UINT32_C(0x80000000)};
  assert_int_equal(abp_token_cancelled(&token), 1);
}

static void a_computation_that_nobody_cancels_ends_by_itself(void **state) {
  (void)state;
  *sieve_token() = (abp_token){0};
  assert_int_equal(sieve(0), 0);
  assert_int_equal(sieve(100), 25);
  assert_int_equal(sieve(1000000), 78498);
}

static int begun;
static void *count_for_minutes(void *limit) {
  __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
  return (void *)(intptr_t)sieve(*(uint32_t *)limit);
}

static void a_computation_stops_when_another_thread_cancels_it(void **state) {
  (void)state;
  uint32_t limit = UINT32_MAX;
  pthread_t thread;
  void *count;
  *sieve_token() = (abp_token){0};
  assert_int_equal(pthread_create(&thread, NULL, count_for_minutes, &limit), 0);
  while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) {
  }
  abp_token_cancel(sieve_token());
  assert_int_equal(pthread_join(thread, &count), 0);
  assert_int_equal((intptr_t)count, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zero_is_not_cancelled),
      cmocka_unit_test(a_cancelled_token_stays_cancelled),
      cmocka_unit_test(any_other_number_is_cancelled),
      cmocka_unit_test(a_computation_that_nobody_cancels_ends_by_itself),
      cmocka_unit_test(a_computation_stops_when_another_thread_cancels_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
