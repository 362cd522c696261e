/** What is said to the other side, and how: js/wire/line.js has the two kinds. */
import type { Call } from '../session/call.js';
import type { Endpoint } from '../session/endpoint.js';
import type { MadeCall } from '../session/made-call.js';
import type { MessageKind } from '../transports/transport.js';

export type { Call, Endpoint, MadeCall, MessageKind };

/** Chunks and bytes of a stream. */
export type Amount = [chunks: number, bytes: number];

/** The inputs of an endpoint, and what they are read with. */
export type Sink = Pick<
  Endpoint,
  'called' | 'core' | 'feed' | 'late' | 'message' | 'over' | 'role' | 'streams' | 'unread'
>;

export interface Line {
  /** Makes a call, or asks a question; `window` is that of its stream. */
  request(call: MadeCall, window?: Amount): void;
  /** Answers a call that was received. */
  respond(call: Call, response: any, transfer?: Transferable[]): void;
  /** What `cancel` says, read when the core says that a call is to be stopped. */
  cancelText(call: Call): unknown;
  /** Asks for a call to be stopped. */
  cancel(call: Call, text: any): void;
  /** Says how far a call has come, if it belongs to one. Its token names it; true is its id. */
  progress(info: object, token: unknown, call?: Call): void;
  /** Sends a chunk of a stream; `size` is its bytes. */
  chunk(call: Call, chunk: unknown, size: number, transfer?: Transferable[]): void;
  /** Says how much of a stream was read. */
  credit(call: Call, amount: Amount): void;
  /**
   * Sends a message that the core has printed, if there is still something to be said. It may wait
   * for the end of the turn if it `canWait`.
   */
  control(message: object | undefined, kind?: MessageKind, canWait?: boolean): void;
  /** Reads what has come, and gives it to the core. */
  receive(data: unknown, sink: Sink): void;
  /** Sends what was collected. */
  flush(): void;
}
