/*
 * The inputs of ABP about the session: step the table (session.c), and perform the step on the
 * calls and the peer.
 */
#include "endpoint.h"
#include "siphash.h"

#include <stdlib.h>
#include <string.h>

/* Unguessable, since it is derived from the secret seed, but does not reveal it. New for each
 * session, so that an answer for an older session finds no call. */
static void new_prefix(abp_endpoint *ep) {
  char *p = ep->prefix;
  const uint64_t words[] = {abp_siphash_derive(ep->config.seed, "prefix 0"),
                            abp_siphash_derive(ep->config.seed, "prefix 1")};
  for (int i = 0; i < 20; i++)
    *p++ = "0123456789abcdef"[words[i / 16] >> 4 * (i % 16) & 15];
  *p++ = '-';
  char digits[10];
  const char *first = print_number(digits + sizeof digits, ++ep->session.serial);
  const size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(p, first, length);
  p[length] = 0;
  ep->prefix_length = (uint32_t)(p + length - ep->prefix);
}

/* Only a peer that agreed to one of these knows `bridge/bye`. */
static int knows_bye(const abp_endpoint *ep) {
  return (abp_features(ep) & (ABP_LIVENESS | ABP_FRAMES)) != 0;
}

static void send(abp_endpoint *ep, uint32_t messages) {
  ep->outbox |= knows_bye(ep) ? messages : messages & ~(1u << ABP_MSG_BYE);
}

static void change_session(abp_endpoint *ep, enum session_event event) {
  struct session *session = &ep->session;
  const struct session_step taken = abp_session_step(session->state, event);
  if (taken.refuse) abp_endpoint_refuse(ep, (abp_error)taken.refuse);
  send(ep, taken.sends);
  if (taken.calls) abp_calls_end_all(&ep->calls, (enum call_event)(taken.calls - 1));
  if (taken.calls == EV_LOST + 1) abp_endpoint_forget_held(ep);
  if (taken.next == session->state) return;
  session->state = (abp_session)taken.next;
  /* The caller of abp_connect() needs no action for the state `connecting`. */
  ep->outbox &= ~(uint32_t)OUT_SESSION;
  if (taken.next != ABP_SESSION_CONNECTING) ep->outbox |= OUT_SESSION;
  session->due = 0;
  session->awaits_sign = 0;
  session->suspended = 0;
  if (taken.next == ABP_SESSION_CONNECTING || event == SE_INITIALIZE) {
    if (ep->config.role == ABP_APP) abp_endpoint_age(ep);
    abp_calls_forget_all(&ep->calls);
    new_prefix(ep);
  }
}

/* Gives the session up, and notifies the peer. */
static void give_up(abp_endpoint *ep, enum parting parting) {
  ep->session.parting = (uint8_t)parting;
  change_session(ep, ep->config.role == ABP_APP ? SE_SILENT : SE_EXPIRED);
}

int abp_connect(abp_endpoint *ep, uint32_t timeout_ms) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const abp_session state = ep->session.state;
  if (state == ABP_SESSION_CONNECTING || state == ABP_SESSION_READY) return ABP_E_STATE;
  change_session(ep, SE_CONNECT);
  set_default(&timeout_ms, ABP_DEFAULT_CONNECT_MS);
  ep->session.pause = 50;
  ep->session.give_up = ep->calls.now + timeout_ms;
  ep->session.due = ep->calls.now + (timeout_ms < 50 ? timeout_ms : 50);
  return ABP_OK;
}

static char *copy_of(const char *id, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, id, length);
  copy[length] = 0;
  return copy;
}

static void set_session_id(abp_endpoint *ep, char *id, size_t length) {
  free(ep->session.id);
  ep->session.id = id;
  ep->session.id_length = (uint32_t)length;
}

int abp_endpoint_initialize(abp_endpoint *ep, const char *id, size_t length, int number_id,
                            const char *version, size_t version_length, uint32_t features) {
  struct session *session = &ep->session;
  const int ready = session->state == ABP_SESSION_READY;
  const int valid = length > 0 && length <= ep->config.max_id;
  const int same = ready && number_id == session->number_id && length == session->id_length &&
                   memcmp(id, session->id, length) == 0;
  const int stays = ready && (same || !ep->config.restart);
  const int accepted = valid && !stays && abp_session_version_ok(version, version_length);
  char *own = accepted ? copy_of(id, length) : NULL;
  if (accepted && !own) return ABP_E_MEMORY;
  if (accepted) {
    if (ready) change_session(ep, SE_SHUTDOWN);
    session->number_id = (uint8_t)number_id;
    change_session(ep, SE_INITIALIZE);
    set_session_id(ep, own, length); /* until here, ids of the older session had its own prefix */
    session->agreed = session->wanted & (features | ABP_DYNAMIC_CAPABILITIES);
    session->peer = session->announced;
    abp_session_start_heartbeat(session, ep->calls.now, ep->config.heartbeat_ms);
  } else if (valid && stays) {
    /* A rejected `initialize` is not a sign of life of the agent that has the session. */
    if (same) abp_session_heard(session, ep->calls.now);
    change_session(ep, same ? SE_INITIALIZE_AGAIN : SE_INITIALIZE_OTHER);
  } else {
    abp_endpoint_refuse(ep, valid ? ABP_NOT_SUPPORTED : ABP_INVALID_ID);
  }
  return ABP_OK;
}

int abp_endpoint_initialized(abp_endpoint *ep, const char *session_id, size_t length, int accepted,
                             int busy, uint32_t features) {
  struct session *session = &ep->session;
  if (session->state != ABP_SESSION_CONNECTING) {
    abp_endpoint_count(ep, ABP_LATE);
    if (accepted) change_session(ep, SE_ACCEPTED);
    return ABP_OK;
  }
  if (accepted) {
    const size_t kept = length <= ep->config.max_id ? length : 0;
    char *own = copy_of(session_id, kept);
    if (!own) return ABP_E_MEMORY;
    set_session_id(ep, own, kept);
    /* Many apps report none of the published features and use them all the same. So the published
     * features that this agent asked for count as agreed. */
    features |= ABP_NOTIFICATIONS | ABP_PROGRESS | ABP_ELICITATION;
    session->agreed = features & (session->wanted | ABP_DYNAMIC_CAPABILITIES);
    session->peer = session->announced;
  }
  change_session(ep, accepted ? SE_ACCEPTED : busy ? SE_BUSY : SE_REFUSED);
  if (accepted) abp_session_start_heartbeat(session, ep->calls.now, ep->config.heartbeat_ms);
  return ABP_OK;
}

int abp_close(abp_endpoint *ep) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  ep->session.parting = PARTING_GOES;
  change_session(ep, ep->config.role == ABP_APP ? SE_STOP : SE_CLOSE);
  return ABP_OK;
}

int abp_lost(abp_endpoint *ep) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  change_session(ep, SE_LOST);
  return ABP_OK;
}

int abp_unread(abp_endpoint *ep) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_endpoint_count(ep, ABP_MALFORMED);
  if (abp_features(ep) & ABP_FRAMES) give_up(ep, PARTING_UNREAD);
  return ABP_OK;
}

int abp_leave(abp_endpoint *ep, int persisted) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  ep->session.parting = persisted ? PARTING_STAYS : PARTING_GOES;
  if (persisted)
    send(ep, 1u << ABP_MSG_BYE);
  else
    change_session(ep, SE_LEAVE);
  return ABP_OK;
}

int abp_endpoint_shutdown(abp_endpoint *ep) {
  change_session(ep, SE_SHUTDOWN);
  return ABP_OK;
}

int abp_endpoint_bye(abp_endpoint *ep, int persisted) {
  if (!knows_bye(ep)) {
    abp_endpoint_count(ep, ABP_UNKNOWN_TYPE);
  } else if (persisted) {
    ep->session.suspended = 1;
    ep->session.awaits_sign = 0;
    ep->session.due = 0;
  } else {
    change_session(ep, SE_LOST);
  }
  return ABP_OK;
}

int abp_endpoint_ping(abp_endpoint *ep, int pong) {
  abp_session_heard(&ep->session, ep->calls.now);
  if (!(abp_features(ep) & ABP_LIVENESS))
    abp_endpoint_count(ep, ABP_UNKNOWN_TYPE);
  else if (!pong)
    ep->outbox |= 1u << ABP_MSG_PONG;
  return ABP_OK;
}

int abp_endpoint_notified(abp_endpoint *ep) {
  abp_session_heard(&ep->session, ep->calls.now);
  if (abp_features(ep) & ABP_NOTIFICATIONS) ep->outbox |= OUT_NOTIFY;
  return ABP_OK;
}

static struct session_patience patience_of(const abp_endpoint *ep) {
  return (struct session_patience){ep->config.heartbeat_ms, ep->config.probe_ms};
}

int abp_suspect(abp_endpoint *ep) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_suspect(&ep->session, ep->calls.now, patience_of(ep), &ep->outbox);
  return ABP_OK;
}

int abp_endpoint_refused(abp_endpoint *ep, abp_error error) {
  const int knows_none =
      error == ABP_NOT_INITIALIZED || error == ABP_SESSION_EXPIRED || error == ABP_SESSION_INVALID;
  if (ep->config.role != ABP_AGENT || !knows_none) return 0;
  change_session(ep, SE_EXPIRED);
  return 1;
}

int abp_refused(abp_endpoint *ep, const char *code, size_t length) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_endpoint_refused(ep, abp_error_of(code, length));
  return ABP_OK;
}

int abp_endpoint_probed(abp_endpoint *ep, abp_error error) {
  if (!abp_endpoint_refused(ep, error)) abp_session_probed(&ep->session);
  return ABP_OK;
}

int abp_advance(abp_endpoint *ep, uint64_t now) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_calls_advance(&ep->calls, now);
  const enum session_event event =
      abp_session_tick(&ep->session, ep->calls.now, patience_of(ep), &ep->outbox);
  if (event == SE_EXPIRED)
    give_up(ep, PARTING_GOES);
  else if (event != SESSION_EVENTS)
    change_session(ep, event);
  return ABP_OK;
}
