/*
 * What an endpoint must do, said naively: facts about calls, and what follows from each thing that
 * can happen to them. It searches from end to end and knows nothing of the core's states.
 */
#ifndef MODEL_H
#define MODEL_H

#include "world.h"

/* --- Facts ------------------------------------------------------------------------------------ */

enum side model_caller(const struct ghost *call);
int model_made_at(const struct ghost *call, enum side side);
enum side model_handler_side(const struct ghost *call);
struct part *model_handled(struct ghost *call);
int model_live(const struct part *part);
/* How many handlers run. */
uint32_t model_handlers(const struct world *w, enum side side);
uint32_t model_in_flight(const struct world *w, enum side side, int made);
/* A call's place, or -1; known: as far as that side still knows it. */
int model_find(const struct world *w, struct id id);
int model_find_known(const struct world *w, enum side side, struct id id);
int model_add(struct world *w, struct ghost call);
/* How many chunks fit the window of one side, and of a stream at that side. */
uint32_t model_window(const struct world *w, enum side side);
/* 1 if no further chunk fits. */
int model_full(const struct world *w, enum side side, const struct ghost *call);
int model_crowded(const struct world *w, const struct part *part);
/* 1 if the reader has read enough for its caller to say so. */
int model_grants(const struct world *w, const struct ghost *call);
/* 1 for each call on whose behalf a question to a person is open at this side. */
void model_asked(const struct world *w, enum side side, uint8_t asked[WORLD_CALLS]);
/* The next deadline, or 0. */
uint64_t model_earliest(const struct world *w, enum side side);

/* --- What must come of it --------------------------------------------------------------------- */

/* This action, of this call, before the input is drained. */
void model_expect(struct ghost *call, abp_kind kind);
/* A call has an outcome at one side, which says so, or nothing. */
/* Its handler says that its work goes on. */
void model_goes_on(struct world *w, enum side side, int at);
/* Its handler returns that a local call of its own still runs. */
void model_pass_on(struct world *w, int at);
/* Whether who asks for this call of the app has to wait for the one with this handle. */
int model_awaits(const struct world *w, int at, abp_call handle);
/* Of a call that is not over: why it was told to stop, or ABP_PENDING. */
abp_outcome model_told(const struct part *part);
/* A local call works that the handler of this one made, which may have ended. */
int model_works_below(const struct world *w, int at);
/* The latest of the calls that are made on behalf of this one, or -1. */
int model_latest_child(const struct world *w, int at);
/* Whether a call is made on behalf of this one. */
int model_has_children(const struct world *w, int at);
void model_end(struct world *w, enum side side, int at, abp_outcome outcome, abp_fate fate,
               abp_kind said);
/* It is over and has said all it had to say. */
void model_remember(struct world *w, enum side side, int at);
/* Somebody wants it to end. */
void model_stop(struct world *w, enum side side, int at, abp_outcome why);
/* The questions about a call of the agent's end with it. */
void model_stop_questions(struct world *w, int at, abp_outcome why);
/* Deadlines of calls for which a person is asked stand still, others run. */
void model_pause(struct world *w, enum side side);
void model_start(struct world *w, enum side side, int at);
/* An app that is not ours answers what it was asked: the cancels that wait are answered so. */
void model_answer(struct ghost *call, uint8_t answer);
void model_accept(struct world *w, int at);
void model_handler_settled(struct world *w, int at, abp_outcome outcome);
void model_set_session(struct world *w, enum side side, abp_session session);
void model_end_session(struct world *w, enum side side, abp_session how);
void model_new_session(struct world *w, enum side side);
void model_clocks(struct world *w, enum side side, uint64_t now);

#endif
