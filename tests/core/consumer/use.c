#include <abp.h>
#include <abp_token.h>
#include <string.h>

int main(void) {
  const abp_config config = {.role = ABP_AGENT};
  abp_endpoint *endpoint = abp_new(&config, 0);
  const int status = endpoint ? abp_receive(endpoint, "{\"type\":\"x\"}", 12) : ABP_E_MEMORY;
  abp_free(endpoint);
  const abp_token token = {0};
  return status != ABP_OK || abp_token_cancelled(&token) ||
         strcmp(abp_error_name(ABP_RATE_LIMITED), "RATE_LIMITED") != 0;
}
