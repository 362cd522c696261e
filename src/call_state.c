/*
 * The life of a call.
 *
 * Two rules. Whatever changes a call's state is a row of the table below. And this file does not
 * know who asks, over what, or what time it is: endpoint_calls.c turns the world into events.
 *
 * The side that executes a call (the callee) owns its outcome and decides it once. A cancel is
 * accepted by moving to CANCELLING or CANCELLED; from there no row leads to COMPLETED. A result is
 * accepted by moving to COMPLETED; from there no row leads to CANCELLED. So an acknowledged cancel
 * and a success can never both happen, and every repeat of a cancel finds the same answer.
 *
 *   callee   QUEUED ──start──▶ RUNNING ──complete──▶ COMPLETED
 *               │cancel           │cancel, timer
 *               ▼                 ▼
 *           CANCELLED ◀────── CANCELLING ──timer──▶ UNWINDING ──▶ CANCELLED
 *                     complete
 *
 * The caller only waits. It may ask, it may stop waiting, but it never decides:
 *
 *   caller   WAITING ──cancel, timer──▶ STOPPING ──complete, cancelled, timer──▶ SETTLED
 *               │                          └──acknowledged──▶ STOPPED ─────────────┤
 *               └──────────complete, cancelled────────────────────────────────────┘
 *
 * STOPPED holds the callee to its word: whatever result comes then, the call was cancelled.
 *
 * Some protocols leave the decision to the handler: a cancel is noted (ASKED), and what the handler
 * then answers stands, a value too. Its answer follows those to the requests made on its behalf.
 *
 *   callee   RUNNING ──ask──▶ ASKED ──complete──────────▶ RETURNED ──children done──▶ COMPLETED
 *                               └──fail, cancelled──────▶ UNWOUND ───children done──▶ CANCELLED
 *
 * Others take no answer to what they cancelled (peer abandoned), and as callers do not wait for one
 * (cancel, no wait).
 *
 * A stream is a call whose handler sends chunks before its result. They change no state: the table
 * says in which states a chunk is sent on or handed over (chunk), what was read is told (read) and
 * a handler goes on that had to wait (credit). How many chunks that is, is endpoint_streams.c's.
 *
 * A deadline is a cancel that a clock asked for, which is why EV_TIMER walks the same rows. What is
 * not in the table cannot change the call.
 *
 * Three things stand beside the table, each in one place of calls.c. A call that becomes CANCELLING
 * or STOPPING gets the grace period as its timer, which STOPPED keeps; any other loses its timer
 * (step). A cancel that
 * has not been handed out when its call settles is not owed any more, except to a peer that is
 * asked for no answer (step). And a call's cause, which its outcome names, is the first one; only
 * for a caller a result, unless the cancel was accepted before, or the loss of its peer outweighs
 * its own wish (step), and so does the peer's word that a deadline passed (endpoint_calls.c,
 * answered).
 */
#include "call_state.h"

const struct call_step call_steps[CALL_STATES][CALL_EVENTS] =
    {
        [QUEUED] =
            {
                [EV_START] = {RUNNING, OWE_START},
                [EV_CANCEL] = {CANCELLED, OWE_ACK | OWE_RESULT},
                [EV_TIMER] = {CANCELLED, OWE_RESULT},
                [EV_ASK] = {CANCELLED, OWE_RESULT},
                [EV_PEER_ABANDONED] = {CANCELLED, OWE_ABORT},
                [EV_CLOSE] = {CANCELLED, OWE_RESULT},
                [EV_LOST] = {CANCELLED, OWE_ABORT},
            },
        [RUNNING] =
            {
                [EV_CANCEL] = {CANCELLING, OWE_ACK | OWE_ABORT},
                [EV_TIMER] = {CANCELLING, OWE_ABORT},
                [EV_ASK] = {ASKED, OWE_ABORT},
                [EV_PEER_ABANDONED] = {UNWINDING, OWE_ABORT},
                [EV_COMPLETE] = {COMPLETED, OWE_RESULT},
                [EV_FAIL] = {COMPLETED, OWE_RESULT},
                [EV_CANCELLED] = {CANCELLED, OWE_RESULT},
                [EV_CLOSE] = {UNWINDING, OWE_ABORT | OWE_RESULT},
                [EV_LOST] = {UNWINDING, OWE_ABORT},
                [EV_CHUNK] = {RUNNING, OWE_CHUNK},
                [EV_CREDIT] = {RUNNING, OWE_RESUME},
            },
        [ASKED] =
            {
                [EV_COMPLETE] = {RETURNED, 0},
                [EV_FAIL] = {UNWOUND, 0},
                [EV_CANCELLED] = {UNWOUND, 0},
                [EV_CLOSE] = {UNWINDING, OWE_RESULT},
                [EV_LOST] = {UNWINDING, 0},
            },
        [RETURNED] =
            {
                [EV_CHILDREN_DONE] = {COMPLETED, OWE_RESULT},
                [EV_LOST] = {CANCELLED, OWE_ABORT},
            },
        [UNWOUND] =
            {
                [EV_CHILDREN_DONE] = {CANCELLED, OWE_RESULT},
                [EV_LOST] = {CANCELLED, OWE_ABORT},
            },
        [CANCELLING] =
            {
                [EV_CANCEL] = {CANCELLING, OWE_ACK},
                [EV_TIMER] = {UNWINDING, OWE_RESULT},
                [EV_COMPLETE] = {CANCELLED, OWE_RESULT},
                [EV_CANCELLED] = {CANCELLED, OWE_RESULT},
                [EV_CLOSE] = {UNWINDING, OWE_RESULT},
                [EV_LOST] = {UNWINDING, 0},
            },
        [UNWINDING] =
            {
                [EV_CANCEL] = {UNWINDING, OWE_ACK},
                [EV_COMPLETE] = {CANCELLED, 0},
                [EV_FAIL] = {CANCELLED, 0},
                [EV_CANCELLED] = {CANCELLED, 0},
            },
        [WAITING] =
            {
                [EV_CANCEL] = {STOPPING, OWE_CANCEL},
                [EV_CANCEL_BY_ID] = {STOPPING, 0},
                [EV_TIMER] = {STOPPING, OWE_CANCEL},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE},
                [EV_FAIL] = {SETTLED, OWE_SETTLE},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE},
                [EV_CANCEL_NO_WAIT] = {SETTLED, OWE_CANCEL | OWE_SETTLE},
                [EV_STOP_SILENTLY] = {SETTLED, OWE_SETTLE},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE},
                [EV_LOST] = {SETTLED, OWE_SETTLE},
                [EV_CHUNK] = {WAITING, OWE_CHUNK},
                [EV_READ] = {WAITING, OWE_CREDIT},
            },
        [STOPPING] =
            {
                [EV_ACKNOWLEDGED] = {STOPPED, 0},
                [EV_TIMER] = {SETTLED, OWE_SETTLE},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE},
                [EV_FAIL] = {SETTLED, OWE_SETTLE},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE},
                [EV_CANCEL_NO_WAIT] = {SETTLED, OWE_SETTLE},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE},
                [EV_LOST] = {SETTLED, OWE_SETTLE},
                [EV_CHUNK] = {STOPPING, OWE_CHUNK},
            },
        [STOPPED] =
            {
                [EV_TIMER] = {SETTLED, OWE_SETTLE},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE},
                [EV_LOST] = {SETTLED, OWE_SETTLE},
            },
        [COMPLETED] = {[EV_CANCEL] = {COMPLETED, OWE_NAK}},
        [CANCELLED] = {[EV_CANCEL] = {CANCELLED, OWE_ACK}},
};
