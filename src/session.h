/* The session: the handshake, versions, features, the heartbeat. */
#ifndef ABP_SESSION_H
#define ABP_SESSION_H

#include "abp.h"

enum session_event {
  SE_CONNECT,
  SE_INITIALIZE,       /* app: a first `initialize` */
  SE_INITIALIZE_AGAIN, /* app: the same `initialize` again */
  SE_INITIALIZE_OTHER, /* app: another `initialize` during the session */
  SE_ACCEPTED,         /* agent: the app accepts */
  SE_BUSY,             /* agent: the app still has another session */
  SE_REFUSED,
  SE_TIMEOUT,
  SE_SHUTDOWN, /* the peer ends the session */
  SE_CLOSE,    /* agent: it ends the session */
  SE_STOP,     /* app: it ends the session; `shutdown` is not for apps */
  SE_LEAVE,    /* this side's document goes away */
  SE_LOST,     /* the peer is gone */
  SE_EXPIRED,  /* agent: the app is silent for too long, knows no session, or cannot be read */
  SE_SILENT,   /* app: its agent is silent for too long, or cannot be read */
  SESSION_EVENTS
};

struct session_step {
  uint8_t next;
  uint8_t calls;  /* 1 + the call_event for every call, or 0 */
  uint8_t refuse; /* abp_error for the peer, or 0 */
  uint16_t sends; /* 1 << abp_message */
};

/* The window of a stream: the most that may be under way. */
struct window {
  uint32_t chunks, bytes;
};

/* The content of this side's `bye`. */
enum parting {
  PARTING_GOES,
  PARTING_STAYS, /* it is frozen, and may come back */
  PARTING_UNREAD /* it could not read a frame */
};

struct session {
  abp_session state;
  uint32_t wanted, agreed; /* features */
  struct window announced; /* the window in the handshake message that is being read, or 0 */
  struct window peer;      /* that of this session's peer; its own window is never smaller */
  uint64_t heard;          /* when the last message of the peer arrived */
  uint64_t due;            /* when the session's own timer runs out, or 0 */
  uint64_t give_up;        /* agent: when the handshake fails */
  uint32_t pause;          /* agent: pause before `initialize` is sent again */
  uint8_t awaits_sign;     /* a ping or a probe waits for its answer */
  uint8_t suspended;       /* the peer has reported that it is frozen */
  uint8_t parting;         /* enum parting */
  uint8_t number_id;       /* `initialize` had a number as its id */
  uint32_t serial;         /* of this side's sessions */
  char *id;                /* `initialize`'s id, as text */
  uint32_t id_length;
};

_Static_assert(ABP_SESSION_NONE == 0, "missing rows lead to NONE, which changes nothing");
_Static_assert(ABP_MSG_PROBE < 16, "session_step.sends has a bit for every message");

struct session_step abp_session_step(abp_session state, enum session_event event);
/* 1 if `version` reads major.minor. */
int abp_session_version_ok(const char *version, size_t length);

/* How long a peer may be silent, in ms. */
struct session_patience {
  uint32_t heartbeat; /* a peer that answers pings */
  uint32_t probe;     /* another peer, after abp_suspect() */
};
/* Runs the session's clock. Returns SE_TIMEOUT, SE_EXPIRED when the peer was silent for too long,
 * or SESSION_EVENTS (no event). Messages to send are or'ed into *sends. */
enum session_event abp_session_tick(struct session *session, uint64_t now,
                                    struct session_patience patience, uint32_t *sends);
/* Checks a peer that may be gone. Without an answer in time, abp_session_tick() returns SE_EXPIRED.
 */
void abp_session_suspect(struct session *session, uint64_t now, struct session_patience patience,
                         uint32_t *sends);
/* A message from the peer arrived. If the peer answers pings, it is a sign of life. */
void abp_session_heard(struct session *session, uint64_t now);
/* The answer to a probe arrived, from an app that has the session. */
void abp_session_probed(struct session *session);
void abp_session_start_heartbeat(struct session *session, uint64_t now, uint32_t heartbeat_ms);

#endif
