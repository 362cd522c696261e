/* Hands out the actions of an endpoint, one by one. */
#include "endpoint.h"

/* Takes the first of these obligations from the outbox. */
COLD static void hand_out(abp_endpoint *ep, uint32_t of, abp_action *action) {
  uint32_t place = 0;
  while (!(ep->outbox & of & 1u << place))
    place++;
  ep->outbox &= ~(1u << place);
  switch (1u << place) {
  case OUT_REFUSE:
    action->kind = ABP_REFUSE;
    action->arg = ep->refuse;
    break;
  case OUT_REPORT:
    action->kind = ABP_REPORT;
    action->call = ep->report;
    break;
  case OUT_NOTIFY: action->kind = ABP_NOTIFY; break;
  case OUT_SESSION:
    action->kind = ABP_SESSION;
    action->arg = ep->session.state;
    break;
  default:
    action->kind = ABP_SEND;
    action->arg = place;
    break;
  }
}

static void pay(abp_endpoint *ep, abp_action *action) {
  abp_calls_pay(&ep->calls, action);
  if (action->kind != ABP_SEND || action->arg != ABP_MSG_CANCEL_RESULT) return;
  abp_endpoint_take_answers(ep, action);
  abp_endpoint_next_answer(ep, action);
}

int abp_next(abp_endpoint *ep, abp_action *action) {
  *action = (abp_action){.kind = ABP_NONE};
  if (ep->outbox & OUT_FIRST)
    hand_out(ep, OUT_FIRST, action);
  else if (ep->due)
    abp_endpoint_next_answer(ep, action);
  else if (ep->calls.debts != NO_CALL)
    pay(ep, action);
  else if (ep->outbox)
    hand_out(ep, ep->outbox, action);
  else if (abp_calls_wake_owed(&ep->calls, ep->session.due))
    abp_calls_wake(&ep->calls, ep->session.due, action);
  return action->kind != ABP_NONE;
}
