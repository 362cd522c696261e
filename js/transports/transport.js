/**
 * The contract of transports. A transport carries messages between this side and one other, each
 * once and in order, and reports when the other side is gone. It knows no protocol: whoever calls
 * `post` says which messages may be refused or left out, and which may be sent before it is known
 * who listens.
 *
 * To add one, write a file in this folder or a package, add a line to tests/contracts/channels.js,
 * which tests the rules below over it, and, if it is an entry of the package, add it to `exports`
 * of package.json.
 *
 * - Nothing is lost before `onMessage` is set: earlier messages are kept, and delivered in order
 *   when it is set. Neither they nor anything else grows without bound.
 * - A transport never throws because of what the other side sends or what a callback does.
 * - `onClose` is called once, after all that came before, unless this side closed the transport
 *   itself.
 * - After `close` nothing is delivered, and `post` does nothing.
 *
 * js/transports/receiver.js does all of this for classes that extend it. A transport may also be a
 * plain object.
 *
 * An app may be given one that also prepares results (`AppTransport` in js/app/expose.js): that is
 * part of a call, and nothing here knows calls but their context.
 */

/**
 * What may become of a message that cannot be sent at once, as the caller of `post` says. One
 * without a kind must be sent.
 *
 * - `request`: its caller can be told to try later. While too much waits to be sent, a transport
 *   may throw an error with code `RATE_LIMITED` instead of sending it.
 * - `droppable`: a later message replaces it, as with progress. While too much waits to be sent, it
 *   may be left out.
 * - `greeting`: it holds no secret, and may be sent before it is known who listens.
 * @typedef {'request' | 'droppable' | 'greeting'} MessageKind
 */

/**
 * What a protocol may agree on over a transport, beyond single messages.
 *
 * - `frames`: arrays of many messages.
 * - `liveness`: signs of life. A transport that reports reliably when the other side is gone does
 *   without.
 * - `port`: a MessagePort, transferred with a message.
 * - `streams`: chunks of results, and their flow control.
 * @typedef {'frames' | 'liveness' | 'port' | 'streams'} Feature
 */

/**
 * A connection to the other side.
 * @typedef {object} Transport
 * @property {(message: unknown, transfer?: Transferable[], kind?: MessageKind) => void} post sends.
 *   Throws what `postMessage` throws when the message cannot be cloned, or an error of the
 *   protocol's shape that tells the caller why not; nothing was sent then. `transfer` is moved
 *   where that is possible
 * @property {(message: unknown, ports: readonly MessagePort[]) => void} onMessage called for each
 *   message
 * @property {(error: import('../common/errors.js').AbpError) => void} [onUnreadable] called for
 *   what arrives and is not a message: `PARSE_ERROR`, `MESSAGE_TOO_LONG`. Without it, `onMessage`
 *   gets null
 * @property {(cause?: unknown) => void} [onClose] called when the other side is known to be gone,
 *   with an error that says why; with none where the other side has ended it in an orderly way
 * @property {() => void} [onEnd] called when the other side has ended its half of a stream in an
 *   orderly way and may still read the other: `post` sends until `close`, and `onClose` is called
 *   if that breaks. Without it, the end of one half is that of both
 * @property {() => Promise<void> | undefined} [room] for what is sent without flow control of its
 *   protocol: a promise that resolves when less waits to be sent, or when nothing is sent any more;
 *   undefined if there is room
 * @property {() => void} close stops sending and receiving; what was posted before is still sent
 * @property {MessageEventSource} [target] the window that it leads to, where it leads to one
 * @property {string} [origin] and the origin of that
 * @property {readonly Feature[]} [carries] `['frames', 'liveness', 'streams']` unless it says
 *   otherwise
 */

/**
 * @typedef {{ signal: AbortSignal, callId: string }} CallContext The call whose result is prepared.
 */

/**
 * Converts what a handler returned, or a chunk of it, to what can be sent, or to a promise of that.
 * Its context is the call's.
 * @typedef {(value: unknown, context: CallContext) => unknown} Prepare
 */

export {};
