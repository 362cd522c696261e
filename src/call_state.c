/*
 * The life of a call.
 *
 * Two rules. The table below is the only place that changes a call's state. And this file does not
 * know who asks, over which transport, or what time it is: endpoint_calls.c converts inputs to
 * events.
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
 * A handler may have to wait before it begins: for the check of params, for code that is loaded, or
 * for the first chunk of a stream to be taken. Such a call has its place, but none of its work is
 * done. Any event that ends the call meanwhile ends it at once, and the handler never ran.
 *
 *   callee   RUNNING ──postpone──▶ PREPARING ──begin──▶ RUNNING
 *                                      └──cancel, timer, close, a failure──▶ over, unstarted
 *
 * The caller only waits. It may ask, it may stop waiting, but it never decides:
 *
 *   caller   WAITING ──cancel, timer──▶ STOPPING ──complete, cancelled, timer──▶ SETTLED
 *               │                          └──acknowledged──▶ STOPPED ─────────────┤
 *               └──────────complete, cancelled────────────────────────────────────┘
 *
 * STOPPED holds the callee to its word: whatever result comes then, the call was cancelled.
 *
 * Calls that a handler made end with its own call. Where the handler's answer decides the outcome
 * of its call, the handler must not act on answers that are still on their way. So the calls that
 * it made settle at once (detach), and only the handler's own call waits for those answers.
 *
 *   caller   WAITING, STOPPING ──detach──▶ DETACHED ──complete, cancelled, timer──▶ SETTLED
 *
 * Some protocols leave the decision to the handler: a cancel is noted (ASKED), and the handler's
 * answer then stands, even a value. It is sent after the answers to the requests made on its
 * behalf.
 *
 *   callee   RUNNING ──ask──▶ ASKED ──complete──────────▶ RETURNED ──children done──▶ COMPLETED
 *                               └──fail, cancelled──────▶ UNWOUND ───children done──▶ CANCELLED
 *
 * In ABP a foreign app decides in this way, too, behind a handler that passes calls on. ABP answers
 * cancels, so these answers wait for the app (OWE_WORD): it accepts, declines, or ends the call.
 * Without an answer from the app, a third answer is sent beside `cancelled` and `already
 * completed`: that the outcome is unknown.
 *
 *   callee   ASKED ──accepted──▶ CANCELLING
 *              ├──declined──▶ RUNNING, and the next cancel asks again
 *              ├──unknown───────────────────────────────────────────────────────────▶ UNKNOWN
 *              └──timer──▶ UNANSWERED ──complete, cancelled, unknown────────────────▶ UNKNOWN
 *
 * In other protocols a cancelled call gets no answer: the callee sends none (peer abandoned), and
 * the caller waits for none (cancel, no wait).
 *
 * A stream is a call whose handler sends chunks before its result. They change no state. The table
 * says in which states a chunk is sent or handed over (chunk), the caller reports what was read
 * (read), and a handler that had to wait goes on (credit). endpoint_streams.c counts the chunks.
 *
 * The last column is the fate of the handler's work (abp_fate in abp.h). The row that ends a call
 * sets it; so does the row by which the handler returns after the result was sent. A caller learns
 * the fate from its peer: the column of its own row holds only if the peer does not report one, and
 * is empty where a result without an error arrives. From a foreign app, `cancelled` alone says
 * nothing about the work (endpoint_calls.c, abp_finish_with_fate).
 *
 * A deadline is a cancel that a clock asked for, so EV_TIMER uses the same rows. Events that are
 * not in the table do not change the call.
 *
 * Three rules stand beside the table, each a function in calls.c:
 *
 * - set_cause: a call's outcome names its first cause. There are three exceptions.
 *   - A cancel that was declined leaves no cause.
 *   - When a caller's call settles, a result (EV_COMPLETE, EV_ERROR) replaces the caller's own
 *     cause, unless the peer had accepted the cancel (STOPPED). EV_LOST and EV_UNSENT always
 *     replace it.
 *   - The peer may report that a deadline passed (endpoint_calls.c, answered).
 * - set_grace_period: a call that becomes CANCELLING, STOPPING or DETACHED gets the grace period as
 *   its timer, in place of its deadline. So does one that becomes ASKED, if the answers to its
 *   cancels wait for the app. STOPPED keeps the timer. A call that enters any other state after
 *   RUNNING or WAITING has no timer, nor has one whose cancel was declined.
 * - drop_cancel: when a call settles, a cancel that it still owes is not sent any more, unless this
 *   step owes it: then the peer is asked for no answer.
 */
#include "call_state.h"

const struct call_step abp_call_steps[CALL_STATES][CALL_EVENTS] =
    {
        [QUEUED] =
            {
                [EV_START] = {RUNNING, OWE_START, 0},
                [EV_CANCEL] = {CANCELLED, OWE_ACK | OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_TIMER] = {CANCELLED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_ASK] = {CANCELLED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_PEER_ABANDONED] = {CANCELLED, OWE_ABORT, ABP_FATE_UNSTARTED},
                [EV_CLOSE] = {CANCELLED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_LOST] = {CANCELLED, OWE_ABORT, ABP_FATE_UNSTARTED},
            },
        [PREPARING] =
            {
                [EV_BEGIN] = {RUNNING, 0, 0},
                [EV_CANCEL] = {CANCELLED, OWE_ACK | OWE_ABORT | OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_TIMER] = {CANCELLED, OWE_ABORT | OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_ASK] = {CANCELLED, OWE_ABORT | OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_PEER_ABANDONED] = {CANCELLED, OWE_ABORT, ABP_FATE_UNSTARTED},
                [EV_COMPLETE] = {COMPLETED, OWE_RESULT, ABP_FATE_FINISHED},
                [EV_FAIL] = {COMPLETED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_ERROR] = {COMPLETED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_CANCELLED] = {CANCELLED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_UNKNOWN] = {CANCELLED, OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_CLOSE] = {CANCELLED, OWE_ABORT | OWE_RESULT, ABP_FATE_UNSTARTED},
                [EV_LOST] = {CANCELLED, OWE_ABORT, ABP_FATE_UNSTARTED},
            },
        [RUNNING] =
            {
                [EV_POSTPONE] = {PREPARING, 0, 0},
                [EV_CANCEL] = {CANCELLING, OWE_ACK | OWE_ABORT, 0},
                [EV_TIMER] = {CANCELLING, OWE_ABORT, 0},
                [EV_ASK] = {ASKED, OWE_WORD | OWE_ABORT, 0},
                [EV_PEER_ABANDONED] = {UNWINDING, OWE_ABORT, ABP_FATE_RUNNING},
                [EV_COMPLETE] = {COMPLETED, OWE_RESULT, ABP_FATE_FINISHED},
                [EV_FAIL] = {COMPLETED, OWE_RESULT, ABP_FATE_FAILED},
                [EV_ERROR] = {COMPLETED, OWE_RESULT, ABP_FATE_FAILED},
                [EV_CANCELLED] = {CANCELLED, OWE_RESULT, ABP_FATE_STOPPED},
                [EV_UNKNOWN] = {UNKNOWN, OWE_RESULT, ABP_FATE_UNKNOWN},
                [EV_GOES_ON] = {UNWINDING, OWE_RESULT, ABP_FATE_RUNNING},
                [EV_CLOSE] = {UNWINDING, OWE_ABORT | OWE_RESULT, ABP_FATE_RUNNING},
                [EV_LOST] = {UNWINDING, OWE_ABORT, ABP_FATE_RUNNING},
                [EV_CHUNK] = {RUNNING, OWE_CHUNK, 0},
                [EV_CREDIT] = {RUNNING, OWE_RESUME, 0},
            },
        [ASKED] =
            {
                [EV_CANCEL] = {ASKED, OWE_WORD, 0},
                [EV_ACCEPTED] = {CANCELLING, OWE_ACK, 0},
                [EV_DECLINED] = {RUNNING, OWE_DECLINE, 0},
                [EV_TIMER] = {UNANSWERED, OWE_UNKNOWN | OWE_RESULT, ABP_FATE_UNKNOWN},
                [EV_COMPLETE] = {RETURNED, 0, ABP_FATE_FINISHED},
                [EV_FAIL] = {UNWOUND, 0, ABP_FATE_FAILED},
                [EV_ERROR] = {RETURNED, 0, ABP_FATE_FAILED},
                [EV_CANCELLED] = {UNWOUND, 0, ABP_FATE_STOPPED},
                [EV_UNKNOWN] = {UNKNOWN, OWE_UNKNOWN | OWE_RESULT, ABP_FATE_UNKNOWN},
                [EV_CLOSE] = {UNWINDING, OWE_UNKNOWN | OWE_RESULT, ABP_FATE_RUNNING},
                [EV_LOST] = {UNWINDING, 0, ABP_FATE_RUNNING},
                [EV_CHUNK] = {ASKED, OWE_CHUNK, 0},
                [EV_CREDIT] = {ASKED, OWE_RESUME, 0},
            },
        [RETURNED] =
            {
                [EV_CHILDREN_DONE] = {COMPLETED, OWE_NAK | OWE_RESULT, 0},
                [EV_LOST] = {CANCELLED, OWE_ABORT, 0},
            },
        [UNWOUND] =
            {
                [EV_CHILDREN_DONE] = {CANCELLED, OWE_ACK | OWE_RESULT, 0},
                [EV_LOST] = {CANCELLED, OWE_ABORT, 0},
            },
        [CANCELLING] =
            {
                [EV_CANCEL] = {CANCELLING, OWE_ACK, 0},
                [EV_TIMER] = {UNWINDING, OWE_RESULT, ABP_FATE_RUNNING},
                [EV_COMPLETE] = {CANCELLED, OWE_RESULT, ABP_FATE_FINISHED},
                [EV_ERROR] = {CANCELLED, OWE_RESULT, ABP_FATE_FAILED},
                [EV_CANCELLED] = {CANCELLED, OWE_RESULT, ABP_FATE_STOPPED},
                [EV_UNKNOWN] = {CANCELLED, OWE_RESULT, ABP_FATE_UNKNOWN},
                [EV_GOES_ON] = {UNWINDING, OWE_RESULT, ABP_FATE_RUNNING},
                [EV_CLOSE] = {UNWINDING, OWE_RESULT, ABP_FATE_RUNNING},
                [EV_LOST] = {UNWINDING, 0, ABP_FATE_RUNNING},
            },
        [UNWINDING] =
            {
                [EV_CANCEL] = {UNWINDING, OWE_ACK, 0},
                [EV_COMPLETE] = {CANCELLED, 0, ABP_FATE_FINISHED},
                [EV_FAIL] = {CANCELLED, 0, ABP_FATE_FAILED},
                [EV_ERROR] = {CANCELLED, 0, ABP_FATE_FAILED},
                [EV_CANCELLED] = {CANCELLED, 0, ABP_FATE_STOPPED},
                [EV_UNKNOWN] = {CANCELLED, 0, ABP_FATE_UNKNOWN},
            },
        [UNANSWERED] =
            {
                [EV_CANCEL] = {UNANSWERED, OWE_UNKNOWN, 0},
                [EV_COMPLETE] = {UNKNOWN, 0, ABP_FATE_FINISHED},
                [EV_ERROR] = {UNKNOWN, 0, ABP_FATE_FAILED},
                [EV_CANCELLED] = {UNKNOWN, 0, 0},
                [EV_UNKNOWN] = {UNKNOWN, 0, ABP_FATE_UNKNOWN},
            },
        [WAITING] =
            {
                [EV_CANCEL] = {STOPPING, OWE_CANCEL, 0},
                [EV_CANCEL_BY_ID] = {STOPPING, 0, 0},
                [EV_TIMER] = {STOPPING, OWE_CANCEL, 0},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE, 0},
                [EV_FAIL] = {SETTLED, OWE_SETTLE, ABP_FATE_FAILED},
                [EV_ERROR] = {SETTLED, OWE_SETTLE, ABP_FATE_FAILED},
                [EV_UNSENT] = {SETTLED, OWE_SETTLE, ABP_FATE_UNSTARTED},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CANCEL_NO_WAIT] = {SETTLED, OWE_CANCEL | OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_STOP_SILENTLY] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_DETACH] = {DETACHED, OWE_CANCEL | OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_LOST] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CHUNK] = {WAITING, OWE_CHUNK, 0},
                [EV_READ] = {WAITING, OWE_CREDIT, 0},
            },
        [STOPPING] =
            {
                [EV_ACKNOWLEDGED] = {STOPPED, 0, 0},
                [EV_TIMER] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE, 0},
                [EV_FAIL] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_ERROR] = {SETTLED, OWE_SETTLE, ABP_FATE_FAILED},
                [EV_UNSENT] = {SETTLED, OWE_SETTLE, ABP_FATE_UNSTARTED},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CANCEL_NO_WAIT] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_DETACH] = {DETACHED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_LOST] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CHUNK] = {STOPPING, OWE_CHUNK, 0},
            },
        [STOPPED] =
            {
                [EV_TIMER] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_COMPLETE] = {SETTLED, OWE_SETTLE, ABP_FATE_FINISHED},
                [EV_ERROR] = {SETTLED, OWE_SETTLE, ABP_FATE_FAILED},
                [EV_CANCELLED] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_CLOSE] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
                [EV_LOST] = {SETTLED, OWE_SETTLE, ABP_FATE_UNKNOWN},
            },
        [DETACHED] =
            {
                [EV_TIMER] = {SETTLED, 0, 0},
                [EV_COMPLETE] = {SETTLED, 0, 0},
                [EV_FAIL] = {SETTLED, 0, 0},
                [EV_CANCEL_NO_WAIT] = {SETTLED, 0, 0},
                [EV_LOST] = {SETTLED, 0, 0},
            },
        [COMPLETED] = {[EV_CANCEL] = {COMPLETED, OWE_NAK, 0}},
        [CANCELLED] = {[EV_CANCEL] = {CANCELLED, OWE_ACK, 0}},
        [UNKNOWN] = {[EV_CANCEL] = {UNKNOWN, OWE_UNKNOWN, 0}},
};
