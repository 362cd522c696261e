/**
 * The contract of transports. A transport carries messages between this side and one other, each
 * once and in order, and reports when the other side is gone. It knows no protocol: the caller of
 * `post` says which messages may be rejected or dropped, and which may be sent before the receiver
 * is known.
 * who listens.
 *
 * To add a transport, write a file in this folder or a package, and add a line to
 * tests/contracts/channels.js, which tests the rules below over it. If it is an entry of the
 * package, add it to `exports` of package.json.
 *
 * - Messages that arrive before `onMessage` is set are kept, and delivered in order when it is set.
 *   All buffers are bounded.
 * - A transport never throws because of a message or a callback.
 * - `onClose` is called once, after all earlier messages, unless this side closed the transport
 *   itself.
 * - After `close` nothing is delivered, and `post` does nothing.
 *
 * js/transports/receiver.js does all of this for classes that extend it. A transport may also be a
 * plain object.
 *
 * A transport for an app can also prepare results (`AppTransport` in js/app/expose.js). That is a
 * part of calls, of which the files here know only the context.
 */

/**
 * The kind of a message, for a transport that cannot send it at once. The caller of `post` chooses
 * the kind. A message without one must be sent.
 *
 * - `request`: its caller can try later. While too much waits to be sent, a transport may throw an
 *   error with code `RATE_LIMITED` instead of sending it.
 * - `droppable`: a later message replaces it, as with progress. While too much waits to be sent, it
 *   may be dropped.
 * - `greeting`: it holds no secret, and may be sent before the receiver is known.
 * @typedef {'request' | 'droppable' | 'greeting'} MessageKind
 */

/**
 * The features that a protocol may agree on over a transport, beyond single messages.
 *
 * - `frames`: arrays of many messages.
 * - `liveness`: signs of life. Not needed by a transport that reports reliably when the other side
 *   is gone.
 * - `port`: a MessagePort, transferred with a message.
 * - `streams`: chunks of results, and their flow control.
 * @typedef {'frames' | 'liveness' | 'port' | 'streams'} Feature
 */

/**
 * A connection to the other side.
 * @typedef {object} Transport
 * @property {(message: unknown, transfer?: Transferable[], kind?: MessageKind) => void} post sends
 *   a message. Throws, without sending it, the error of `postMessage` when it cannot be cloned, or
 *   an error of the protocol's form with the reason. `transfer` is moved if that is possible
 * @property {(message: unknown, ports: readonly MessagePort[]) => void} onMessage called for each
 *   message
 * @property {(error: import('../common/errors.js').AbpError) => void} [onUnreadable] called for
 *   data that is not a message: `PARSE_ERROR`, `MESSAGE_TOO_LONG`. Without it, `onMessage` gets
 *   null
 * @property {(cause?: unknown) => void} [onClose] called when the other side is known to be gone,
 *   with an error that says why; without one if the other side ended the connection in an orderly
 *   way
 * @property {() => void} [onEnd] called when the other side has ended its half of a stream in an
 *   orderly way and may still read the other half: `post` sends until `close`, and `onClose` is
 *   called if that fails. Without it, the end of one half ends both
 * @property {() => Promise<void> | undefined} [room] for data whose protocol has no flow control:
 *   undefined if there is room; else a promise that resolves when less waits to be sent, or when
 *   nothing is sent any more
 * @property {() => void} close stops sending and receiving; messages posted before are still sent
 * @property {MessageEventSource} [target] the window on the other side, if it is one
 * @property {string} [origin] the origin of that window
 * @property {readonly Feature[]} [carries] the features that it carries; default: `['frames',
 *   'liveness', 'streams']`
 */

/**
 * @typedef {{ signal: AbortSignal, callId: string }} CallContext The call whose result is prepared.
 */

/**
 * Converts a handler's return value, or a chunk of it, to a value that can be sent, or to a promise
 * of one. Its context is the call's.
 * @typedef {(value: unknown, context: CallContext) => unknown} Prepare
 */

export {};
