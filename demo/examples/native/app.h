/*
 * An app in C that knows nothing of how its messages travel: lines.c carries them over standard
 * input and output, websocket.c over WebSockets. Times are in ms.
 */
#ifndef APP_H
#define APP_H

#include <stddef.h>
#include <stdint.h>

struct app;

/* Sends a message. `droppable`: a later one says more, so it may be left out while much waits to be
 * sent. The text is valid until post returns. */
typedef void app_post(void *link, const char *text, size_t length, int droppable);

/* One connection of the app, or NULL when memory or randomness is short. `link` is given to post.
 * Free it with app_free(). */
struct app *app_new(app_post *post, void *link);
void app_free(struct app *app);

/* A message has come. */
void app_receive(struct app *app, const char *text, size_t length);

/* Works on the calls that run, for some milliseconds at most, and does what is due. Returns after
 * how many ms to call it again if no message comes before: 0 is at once, -1 is never. */
int app_work(struct app *app);

#endif
