/*
 * The app as a process: JSON over standard input and output, one message a line. An agent starts
 * it, and ends it by closing its standard input.
 */
#define _POSIX_C_SOURCE 200809L

#include "app.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINE = 1 << 20 };

static void post(void *link, const char *text, size_t length, int droppable) {
  (void)droppable; /* a pipe that is full makes this wait, and the work with it */
  fwrite(text, 1, length, link);
  fputc('\n', link);
  fflush(link);
}

/* The part of the current line that was read. */
static struct {
  char text[MAX_LINE];
  size_t length;
  int too_long; /* skip it */
} line;

static void receive(struct app *app, const char *bytes, size_t count) {
  while (count) {
    const char *end = memchr(bytes, '\n', count);
    const size_t part = end ? (size_t)(end - bytes) : count;
    if (part > MAX_LINE - line.length) line.too_long = 1;
    if (!line.too_long) {
      memcpy(line.text + line.length, bytes, part);
      line.length += part;
    }
    if (!end) return;
    if (!line.too_long && line.length) app_receive(app, line.text, line.length);
    line.length = 0;
    line.too_long = 0;
    bytes += part + 1;
    count -= part + 1;
  }
}

int main(void) {
  signal(SIGPIPE, SIG_IGN); /* an agent that is gone is noticed where its lines are read */
  struct app *app = app_new(post, stdout);
  if (!app) return 1;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  for (;;) {
    const int ready = poll(&input, 1, app_work(app));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    static char bytes[65536];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break; /* the agent is gone, and so is who waits for the rest */
    receive(app, bytes, (size_t)count);
  }
  app_free(app);
  return 0;
}
