/**
 * Frames: the messages of a microtask as one flat array, four elements each:
 *
 *   [kind, key, a, b,  kind, key, a, b,  …]
 *
 * A key is the number of a call or, if the caller chose its callId, that text. Number n stands for
 * the id "P.n", where P is the id of the session's `initialize` (for calls) or its sessionId (for
 * elicitations). A frame means exactly the same as its messages, and is only sent when both sides
 * agreed on frames.
 */

export const REQUEST = 1; // a name, b params
// a name, b [params, timeout, the token of its progress or true, chunks and bytes of a stream's
// window, then for a call whether it has input or the callId that it repeats, for a question the
// callId that it is about, idempotencyKey]; trailing elements may be missing
export const REQUEST_WITH = 2;
export const VALUE = 3; // a duration in ms, b data: a success
export const RESPONSE = 4; // b the whole response
export const PROGRESS = 5; // b info
export const MESSAGE = 6; // b any other message
export const CANCEL = 7; // a reason: cancels the call; its result is the answer
export const CHUNK = 8; // a size, b chunk: of a stream; requires agreement on streams
export const CREDIT = 9; // a chunks, b bytes: the amount of a stream that was read
export const TEXT = 10; // b more entries, as text
// a the failure of a call, as the core packs it (ABP_FAILURE_… in src/abp.h), b its message;
// undefined stands for the error's own message; requires agreement on outcomes
export const OUTCOME = 11;
