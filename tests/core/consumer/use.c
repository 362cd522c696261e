#include <abp.h>
#include <string.h>

int main(void) {
  const abp_config config = {.role = ABP_AGENT};
  abp_endpoint *endpoint = abp_new(&config, 0);
  const int status = endpoint ? abp_receive(endpoint, "{\"type\":\"x\"}", 12) : ABP_E_MEMORY;
  abp_free(endpoint);
  return status != ABP_OK || strcmp(abp_error_name(ABP_RATE_LIMITED), "RATE_LIMITED") != 0;
}
