/**
 * Frames: the messages of a microtask as one flat array, four places each:
 *
 *   [kind, key, a, b,  kind, key, a, b,  …]
 *
 * A key is a call's number or, where the caller chose the callId, that text. Number n stands for the id
 * "P.n", P being the id of the session's `initialize` (calls) or its sessionId (elicitations). A frame says
 * exactly what the messages would have said, and is only sent when both sides agreed on it.
 */

export const REQUEST = 1; // a name, b params
export const REQUEST_WITH = 2; // a name, b [params, timeout, wants progress]
export const VALUE = 3; // a duration in ms, b data: a result that succeeded
export const RESPONSE = 4; // b the whole response
export const PROGRESS = 5; // b info
export const MESSAGE = 6; // b any other message as it is
export const CANCEL = 7; // a reason: the call is to stop, which its result will say
