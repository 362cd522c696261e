/**
 * Frames: the messages of a microtask as one flat array, four elements each:
 *
 *   [kind, key, a, b,  kind, key, a, b,  …]
 *
 * A key is the number of a call or, if the caller chose its callId, that text. Number n stands for
 * the id "P.n", where P is the id of the session's `initialize` (for calls) or its sessionId (for
 * elicitations). A frame means exactly what the messages would have meant, and is only sent when
 * both sides agreed on frames.
 */

export const REQUEST = 1; // a name, b params
// a name, b [params, timeout, the token of its progress or true, chunks and bytes of a stream's
// window, then of a call whether it has input or the callId that it repeats and of a question the
// callId that it is about, idempotencyKey]; what is missing at the end is nothing
export const REQUEST_WITH = 2;
export const VALUE = 3; // a duration in ms, b data: a success
export const RESPONSE = 4; // b the whole response
export const PROGRESS = 5; // b info
export const MESSAGE = 6; // b any other message
export const CANCEL = 7; // a reason: stop the call; its result is the answer
export const CHUNK = 8; // a size, b chunk: of a stream; agreed on with streams
export const CREDIT = 9; // a chunks, b bytes: so much of a stream was read
export const TEXT = 10; // b more entries, as text
// a what is said of a call that did not succeed, as the core packs it (ABP_FAILURE_… in
// src/abp.h), b its message, of which undefined is the error's own; agreed on with outcomes
export const OUTCOME = 11;
