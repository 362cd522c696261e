/* For tests of rpc.c from the inside. */
#ifndef ABP_RPC_INTERNAL_H
#define ABP_RPC_INTERNAL_H

#include "abp_rpc.h"
#include "calls.h"

const struct calls *abp_peer_calls(const struct abp_peer *peer);

#endif
