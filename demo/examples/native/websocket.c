/*
 * The app behind a WebSocket, with libwebsockets: an endpoint for each connection, one text frame a
 * message. Arguments: the port (0 is any that is free), and the origin of the pages that may
 * connect; programs, which send no origin, may.
 */
#include "app.h"

#include <libwebsockets.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGE = 1 << 20, MAX_UNSENT = 1 << 20 };

/* A message that waits until it can be written. The text follows LWS_PRE bytes, which libwebsockets
 * needs. */
struct message {
  struct message *next;
  size_t length;
  unsigned char bytes[];
};

struct connection {
  struct lws *wsi;
  struct app *app;
  struct message *first, **last;
  size_t unsent; /* bytes */
  char *incoming;
  size_t length;
  int failed;
};

static const char *allowed_origin = "";
static struct lws_context *context;
static volatile sig_atomic_t interrupted;

static void post(void *link, const char *text, size_t length, int droppable) {
  struct connection *connection = link;
  if (droppable && connection->first) return;
  struct message *message = NULL;
  if (connection->unsent + length <= MAX_UNSENT)
    message = malloc(sizeof *message + LWS_PRE + length);
  if (message) {
    message->next = NULL;
    message->length = length;
    memcpy(message->bytes + LWS_PRE, text, length);
    *connection->last = message;
    connection->last = &message->next;
    connection->unsent += length;
  } else {
    connection->failed = 1; /* a message that is lost would be waited for */
  }
  lws_callback_on_writable(connection->wsi);
}

/* Writes one message. Returns -1 if the connection must end. */
static int write_next(struct connection *connection) {
  struct message *message = connection->first;
  if (connection->failed) return -1;
  if (!message) return 0;
  const int written =
      lws_write(connection->wsi, message->bytes + LWS_PRE, message->length, LWS_WRITE_TEXT);
  connection->first = message->next;
  if (!connection->first) connection->last = &connection->first;
  connection->unsent -= message->length;
  free(message);
  if (connection->first) lws_callback_on_writable(connection->wsi);
  return written < 0 ? -1 : 0;
}

/* Lets the app work, and asks to be called again when it wants to go on. */
static void work(struct connection *connection) {
  const int wait = app_work(connection->app);
  lws_set_timer_usecs(connection->wsi,
                      wait < 0 ? LWS_SET_TIMER_USEC_CANCEL : (lws_usec_t)wait * 1000 + 1);
}

/* Puts a message together from its fragments. Returns -1 if it is too long. */
static int receive(struct connection *connection, const char *text, size_t length) {
  char *incoming = NULL;
  if (connection->length + length <= MAX_MESSAGE)
    incoming = realloc(connection->incoming, connection->length + length + 1);
  if (!incoming) return -1;
  if (length) memcpy(incoming + connection->length, text, length);
  connection->incoming = incoming;
  connection->length += length;
  if (lws_is_final_fragment(connection->wsi) &&
      lws_remaining_packet_payload(connection->wsi) == 0) {
    app_receive(connection->app, incoming, connection->length);
    connection->length = 0;
  }
  return 0;
}

/* Any page can open a WebSocket to any server; the browser sends the page's origin. */
static int may_connect(struct lws *wsi) {
  char origin[256];
  if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) == 0) return 1;
  return lws_hdr_copy(wsi, origin, sizeof origin, WSI_TOKEN_ORIGIN) > 0 &&
         strcmp(origin, allowed_origin) == 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t length) {
  struct connection *connection = user;
  switch (reason) {
  case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return may_connect(wsi) ? 0 : -1;
  case LWS_CALLBACK_ESTABLISHED:
    *connection = (struct connection){.wsi = wsi, .last = &connection->first};
    connection->app = app_new(post, connection);
    return connection->app ? 0 : -1;
  case LWS_CALLBACK_RECEIVE:
    if (receive(connection, in, length) < 0) return -1;
    work(connection);
    return 0;
  case LWS_CALLBACK_TIMER: work(connection); return 0;
  case LWS_CALLBACK_SERVER_WRITEABLE: return write_next(connection);
  case LWS_CALLBACK_CLOSED:
    app_free(connection->app);
    free(connection->incoming);
    while (connection->first) {
      struct message *message = connection->first;
      connection->first = message->next;
      free(message);
    }
    return 0;
  default: return lws_callback_http_dummy(wsi, reason, user, in, length);
  }
}

static void interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
  lws_cancel_service(context);
}

int main(int count, char **arguments) {
  static const struct lws_protocols PROTOCOLS[] = {
      {.name = "abp",
       .callback = on_event,
       .per_session_data_size = sizeof(struct connection),
       .rx_buffer_size = 65536},
      {0}};
  const struct lws_context_creation_info info = {.port = count > 1 ? atoi(arguments[1]) : 8787,
                                                 .iface = "127.0.0.1",
                                                 .protocols = PROTOCOLS,
                                                 .vhost_name = "abp",
                                                 .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS};
  if (count > 2) allowed_origin = arguments[2];
  lws_set_log_level(LLL_ERR | LLL_WARN, NULL);
  context = lws_create_context(&info);
  struct lws_vhost *host = context ? lws_create_vhost(context, &info) : NULL;
  if (!host) return 1;
  signal(SIGINT, interrupt);
  signal(SIGTERM, interrupt);
  printf("ws://127.0.0.1:%d\n", lws_get_vhost_listen_port(host));
  fflush(stdout);
  while (!interrupted && lws_service(context, 0) >= 0) {
  }
  lws_context_destroy(context);
  return 0;
}
