/*
 * Cancels whose answer waits: a foreign app was asked, and its answer decides (call_state.c,
 * ASKED). Each keeps the parts of its message that the answer repeats: its id and its callId. All
 * of them together take no more than one control message.
 *
 *   held ──▶ the cancels of all calls, the latest first      (the call has CALL_HAS_CANCELS)
 *   due  ──▶ those of the call that is being answered, the earliest first
 *   answered ──▶ those handed out since the last input: their texts are still to be printed
 */
#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

struct held_cancel {
  struct held_cancel *next;
  abp_call call;
  uint32_t id_length, length;
  uint8_t answer;
  char text[];
};

static size_t size_of(size_t length) { return sizeof(struct held_cancel) + length; }

static void free_all(abp_endpoint *ep, struct held_cancel **list) {
  while (*list) {
    struct held_cancel *cancel = *list;
    *list = cancel->next;
    ep->held_bytes -= size_of(cancel->length);
    free(cancel);
  }
}

void abp_endpoint_forget_held(abp_endpoint *ep) {
  for (const struct held_cancel *cancel = ep->held; cancel; cancel = cancel->next) {
    const uint32_t slot = abp_calls_live(&ep->calls, cancel->call);
    if (slot != NO_CALL) table_call(&ep->calls.table, slot)->flags &= (uint16_t)~CALL_HAS_CANCELS;
  }
  free_all(ep, &ep->held);
}
void abp_endpoint_forget_answered(abp_endpoint *ep) { free_all(ep, &ep->answered); }
void abp_endpoint_free_cancels(abp_endpoint *ep) {
  free_all(ep, &ep->held);
  free_all(ep, &ep->due);
  free_all(ep, &ep->answered);
}

COLD int abp_endpoint_copy_cancel(abp_endpoint *ep, const struct cancel_text *from,
                                  struct held_cancel **cancel) {
  const size_t length = from->id_length + from->target_length;
  *cancel = NULL;
  if (ep->held_bytes + size_of(length) > ep->config.max_text) return ABP_OK;
  struct held_cancel *held = malloc(size_of(length));
  if (!held) return ABP_E_MEMORY;
  held->id_length = (uint32_t)from->id_length;
  held->length = (uint32_t)length;
  if (from->id_length) memcpy(held->text, from->id, from->id_length);
  if (from->target_length) memcpy(held->text + from->id_length, from->target, from->target_length);
  *cancel = held;
  return ABP_OK;
}

COLD void abp_endpoint_hold_cancel(abp_endpoint *ep, struct held_cancel *cancel, uint32_t slot) {
  cancel->call = abp_calls_handle(&ep->calls, slot);
  cancel->next = ep->held;
  ep->held = cancel;
  ep->held_bytes += size_of(cancel->length);
  table_call(&ep->calls.table, slot)->flags |= CALL_HAS_CANCELS;
}

enum cancel_answer abp_endpoint_answer(uint32_t owed) {
  return owed & OWE_ACK       ? ANSWER_CANCELLED
         : owed & OWE_NAK     ? ANSWER_COMPLETED
         : owed & OWE_UNKNOWN ? ANSWER_UNKNOWN
         : owed & OWE_DECLINE ? ANSWER_DECLINED
                              : ANSWER_NONE;
}

COLD void abp_endpoint_take_answers(abp_endpoint *ep, const abp_action *owed) {
  for (struct held_cancel **link = &ep->held; *link;) {
    struct held_cancel *cancel = *link;
    if (cancel->call != owed->call) {
      link = &cancel->next;
      continue;
    }
    *link = cancel->next;
    cancel->answer = (uint8_t)abp_endpoint_answer((uint32_t)owed->at);
    cancel->next = ep->due;
    ep->due = cancel;
  }
}

COLD void abp_endpoint_next_answer(abp_endpoint *ep, abp_action *action) {
  struct held_cancel *cancel = ep->due;
  ep->due = cancel->next;
  cancel->next = ep->answered;
  ep->answered = cancel;
  *action = (abp_action){.kind = ABP_SEND,
                         .arg = ABP_MSG_CANCEL_RESULT,
                         .call = cancel->call,
                         .at = cancel->answer,
                         .text = cancel->text,
                         .length = cancel->length,
                         .chunks = cancel->id_length};
}
