/* The session: the handshake, versions, features, the heartbeat. */
#ifndef ABP_SESSION_H
#define ABP_SESSION_H

#include "abp.h"

enum session_event {
  SE_CONNECT,
  SE_INITIALIZE,       /* app: the agent says hello */
  SE_INITIALIZE_AGAIN, /* app: the same hello */
  SE_INITIALIZE_OTHER, /* app: another hello while the session lasts */
  SE_ACCEPTED,         /* agent: the app says yes */
  SE_BUSY,             /* agent: the app has a session that has not ended yet */
  SE_REFUSED,
  SE_TIMEOUT,
  SE_SHUTDOWN, /* the peer ends it */
  SE_CLOSE,    /* agent: it ends the session */
  SE_STOP,     /* app: it ends the session, and has no `shutdown` to say so */
  SE_LEAVE,    /* this side's document goes away */
  SE_LOST,     /* the peer is gone */
  SE_EXPIRED,  /* agent: the app is silent for too long, knows no session, or cannot be read */
  SE_SILENT,   /* app: its agent is silent for too long, or cannot be read */
  SESSION_EVENTS
};

struct session_step {
  uint8_t next;
  uint8_t calls;  /* 1 + the call_event that every call gets, or 0 */
  uint8_t refuse; /* abp_error that the peer is answered */
  uint16_t sends; /* 1 << abp_message */
};

/* How much of a stream may be under way. */
struct window {
  uint32_t chunks, bytes;
};

/* What this side's `bye` says. */
enum parting {
  PARTING_GOES,
  PARTING_STAYS, /* it is frozen, and may come back */
  PARTING_UNREAD /* it could not read a frame */
};

struct session {
  abp_session state;
  uint32_t wanted, agreed; /* features */
  struct window announced; /* what a greeting that is read now says of its side's windows, or 0 */
  struct window peer;      /* the same of the peer of this session: it keeps to no smaller ones */
  uint64_t heard;          /* when the peer last said something */
  uint64_t due;            /* when the session's own timer runs out, or 0 */
  uint64_t give_up;        /* agent: when the handshake fails */
  uint32_t pause;          /* agent: until `initialize` is sent again */
  uint8_t awaits_sign;     /* a ping or a probe is out */
  uint8_t suspended;       /* the peer said that it is frozen */
  uint8_t parting;         /* enum parting */
  uint8_t number_id;       /* `initialize` had a number as its id */
  uint32_t serial;         /* of this side's sessions */
  char *id;                /* `initialize`'s id, as text */
  uint32_t id_length;
};

_Static_assert(ABP_SESSION_NONE == 0, "a row that is not in the table leads to NONE: nowhere");
_Static_assert(ABP_MSG_PROBE < 16, "session_step.sends has a bit for every message");

struct session_step abp_session_step(abp_session state, enum session_event event);
/* 1 if `version` reads major.minor. */
int abp_session_version_ok(const char *version, size_t length);

/* How long a peer may be silent, in ms. */
struct session_patience {
  uint32_t heartbeat; /* one that answers pings */
  uint32_t probe;     /* one that does not, after it was suspected */
};
/* Runs the session's clock. Returns SE_TIMEOUT, or SE_EXPIRED when the peer was silent for too
 * long, or SESSION_EVENTS; sends are or'ed into *sends. */
enum session_event abp_session_tick(struct session *session, uint64_t now,
                                    struct session_patience patience, uint32_t *sends);
/* The peer may be gone: asks it. Without an answer in time, abp_session_tick() returns SE_EXPIRED.
 */
void abp_session_suspect(struct session *session, uint64_t now, struct session_patience patience,
                         uint32_t *sends);
/* A message came from the peer. If the peer answers pings, it is a sign of life. */
void abp_session_heard(struct session *session, uint64_t now);
/* The answer to a probe came, from an app that knows the session. */
void abp_session_probed(struct session *session);
void abp_session_start_heartbeat(struct session *session, uint64_t now, uint32_t heartbeat_ms);

#endif
