/*
 * The life of a session, in the form of call_state.c: one table, and no change outside of it.
 *
 *   agent   NONE ──connect──▶ CONNECTING ──accepted──▶ READY ──close, shutdown──▶ CLOSED
 *                                 └──refused, timeout──▶ FAILED      lost, expired──▶ LOST
 *   app     NONE ──initialize──▶ READY ──shutdown, stop──▶ CLOSED ──initialize──▶ READY
 *
 * A new session has no authority over the calls of an older one: they are not found any more.
 *
 * A side that gives a session up notifies the peer. Otherwise a peer that was only stopped for a
 * while would keep the session and reject the next one.
 *
 * A peer that agreed to liveness gets pings, over the channel that belongs to its document. A plain
 * app has no such message. But it answers a cancel of an id that was never used, and the answer
 * shows whether it has the session. This probe is sent only if there is a reason.
 */
#include "session.h"

#include "call_state.h"

#define NONE ABP_SESSION_NONE
#define CONNECTING ABP_SESSION_CONNECTING
#define READY ABP_SESSION_READY
#define FAILED ABP_SESSION_FAILED
#define CLOSED ABP_SESSION_CLOSED
#define LOST ABP_SESSION_LOST
#define SEND(message) (1 << ABP_MSG_##message)
#define CALLS(event) (EV_##event + 1)

static const struct session_step CONNECT = {CONNECTING, 0, 0, SEND(INITIALIZE)};
static const struct session_step ACCEPT = {READY, 0, 0, SEND(INITIALIZE_RESULT)};
/* The app accepts a handshake that this side has given up: it must not keep a session alone. */
static const struct session_step DECLINE = {NONE, 0, 0, SEND(SHUTDOWN)};

struct session_step abp_session_step(abp_session state, enum session_event event) {
  static const struct session_step TABLE[][SESSION_EVENTS] =
      {
          [CONNECTING] =
              {
                  [SE_ACCEPTED] = {READY, 0, 0, 0},
                  /* SE_BUSY is not listed: `initialize` is repeated, since the old session may be
                     ending. */
                  [SE_REFUSED] = {FAILED, 0, 0, 0},
                  /* The app may have accepted already. */
                  [SE_TIMEOUT] = {FAILED, 0, 0, SEND(SHUTDOWN)},
                  [SE_CLOSE] = {CLOSED, 0, 0, SEND(SHUTDOWN)},
                  [SE_LEAVE] = {LOST, 0, 0, SEND(SHUTDOWN)},
                  [SE_LOST] = {LOST, 0, 0, 0},
              },
          [READY] =
              {
                  [SE_INITIALIZE_AGAIN] = {READY, 0, 0, SEND(INITIALIZE_RESULT)},
                  [SE_INITIALIZE_OTHER] = {READY, 0, ABP_ALREADY_INITIALIZED, 0},
                  [SE_SHUTDOWN] = {CLOSED, CALLS(CLOSE), 0, 0},
                  [SE_CLOSE] = {CLOSED, CALLS(CLOSE), 0, SEND(SHUTDOWN)},
                  [SE_STOP] = {CLOSED, CALLS(CLOSE), 0, SEND(BYE)},
                  [SE_LEAVE] = {LOST, CALLS(LOST), 0, SEND(BYE)},
                  [SE_LOST] = {LOST, CALLS(LOST), 0, 0},
                  [SE_EXPIRED] = {LOST, CALLS(LOST), 0, SEND(SHUTDOWN)},
                  [SE_SILENT] = {LOST, CALLS(LOST), 0, SEND(BYE)},
              },
          [LOST] = {{NONE, 0, 0, 0}},
      };
  const int over = state != CONNECTING && state != READY;
  if (over && event == SE_CONNECT) return CONNECT;
  if (over && event == SE_INITIALIZE) return ACCEPT;
  struct session_step step = over && event == SE_ACCEPTED ? DECLINE : TABLE[state][event];
  if (step.next == NONE) step.next = (uint8_t)state;
  return step;
}

int abp_session_version_ok(const char *version, size_t length) {
  size_t dot = 0, i = 0;
  for (; i < length; i++) {
    if (version[i] == '.' && !dot)
      dot = i;
    else if (version[i] < '0' || version[i] > '9')
      return 0;
  }
  return dot > 0 && dot + 1 < length;
}

/* Asks the peer for a sign of life. */
static void ask_for_sign(struct session *session, uint64_t now, struct session_patience patience,
                         uint32_t *sends) {
  const int alive = (session->agreed & ABP_LIVENESS) != 0;
  *sends |= alive ? SEND(PING) : SEND(PROBE);
  session->awaits_sign = 1;
  session->due = now + (alive ? patience.heartbeat : patience.probe);
}

void abp_session_suspect(struct session *session, uint64_t now, struct session_patience patience,
                         uint32_t *sends) {
  if (session->state == READY && !session->awaits_sign) ask_for_sign(session, now, patience, sends);
  /* The document may be there now, so `initialize` need not wait for the end of a pause. */
  if (session->state == CONNECTING) *sends |= SEND(INITIALIZE);
}

void abp_session_heard(struct session *session, uint64_t now) {
  if (!(session->agreed & ABP_LIVENESS)) return;
  session->heard = now;
  session->awaits_sign = 0;
  if (session->suspended) {
    session->suspended = 0;
    session->due = now;
  }
}

void abp_session_probed(struct session *session) {
  if (session->agreed & ABP_LIVENESS) return;
  session->awaits_sign = 0;
  session->due = 0;
}

void abp_session_start_heartbeat(struct session *session, uint64_t now, uint32_t heartbeat_ms) {
  abp_session_heard(session, now);
  session->due = session->agreed & ABP_LIVENESS ? now + heartbeat_ms : 0;
}

enum session_event abp_session_tick(struct session *session, uint64_t now,
                                    struct session_patience patience, uint32_t *sends) {
  if (!session->due || now < session->due) return SESSION_EVENTS;
  if (session->state == CONNECTING) {
    if (now >= session->give_up) return SE_TIMEOUT;
    *sends |= SEND(INITIALIZE);
    session->pause = session->pause < 500 ? session->pause * 2 : 1000;
    session->due =
        now + session->pause < session->give_up ? now + session->pause : session->give_up;
    return SESSION_EVENTS;
  }
  /* A timer that fires far too late was stopped itself (a sleeping machine, a throttled page). So
   * the peer is asked once more before the session is given up. */
  const uint32_t heartbeat = patience.heartbeat;
  const int stalled = now - session->due > heartbeat;
  if (session->agreed & ABP_LIVENESS && now - session->heard < heartbeat)
    session->due = session->heard + heartbeat;
  else if (!session->awaits_sign || stalled)
    ask_for_sign(session, now, patience, sends);
  else
    return SE_EXPIRED;
  return SESSION_EVENTS;
}
