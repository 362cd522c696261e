/*
 * An action as it crosses the boundary: packed into one small integer,
 *
 *   kind | arg << 8 | MORE | RELEASED | fate << 18
 *
 * with the other fields in memory. MORE saves the call of next() that would return 0.
 */
#ifndef ABP_BOUNDARY_ACTION_H
#define ABP_BOUNDARY_ACTION_H

#include "../src/abp.h"

#include "boundary.h"

enum {
  ABP_ARG_SHIFT = 8,
  ABP_MORE = 65536,
  ABP_RELEASED = 131072,
  ABP_FATE_SHIFT = 18,
  ABP_SLOT_MASK = 1048575 /* the part of a handle that is the call's slot */
};

/* The return value of an input: its first action, packed, or a negative abp_status. */
typedef int32_t abp_packed;
/* The number of a call, which is its key in frames, from 1 on; 0: none. */
typedef uint32_t abp_call_number;

static abp_action action;

/* The other fields of the action. */
EXPORT("action") const void *get_action(void) { return &action; }

/* Packs `action`; `more`: further actions are left. */
static abp_packed packed(int more) {
  return (abp_packed)((uint32_t)action.kind | action.arg << ABP_ARG_SHIFT) | (more ? ABP_MORE : 0) |
         (action.released ? ABP_RELEASED : 0) |
         (abp_packed)((uint32_t)action.fate << ABP_FATE_SHIFT);
}

#endif
