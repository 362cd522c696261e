/** A line: how an endpoint sends to the other side. js/wire/line.js has the two kinds. */
import type { Call } from '../session/call.js';
import type { Endpoint } from '../session/endpoint.js';
import type { MadeCall } from '../session/made-call.js';
import type { MessageKind } from '../transports/transport.js';

export type { Call, Endpoint, MadeCall, MessageKind };

/** Chunks and bytes of a stream. */
export type Amount = [chunks: number, bytes: number];

/** The parts of an endpoint that a line uses to read: its inputs, and their helpers. */
export type Sink = Pick<
  Endpoint,
  'called' | 'core' | 'feed' | 'late' | 'message' | 'over' | 'role' | 'streams' | 'unread'
>;

export interface Line {
  /** Sends a call or a question; `window` is the window of its stream. */
  request(call: MadeCall, window?: Amount): void;
  /** Answers a call that was received. */
  respond(call: Call, response: any, transfer?: Transferable[]): void;
  /** The text of a cancel, read when the core says to stop the call. */
  cancelText(call: Call): unknown;
  /** Sends a cancel for a call. */
  cancel(call: Call, text: any): void;
  /**
   * Sends the progress of a call, or of no call here. `token` names the call; true stands for its
   * id.
   */
  progress(info: object, token: unknown, call?: Call): void;
  /** Sends a chunk of a stream; `size` is its bytes. */
  chunk(call: Call, chunk: unknown, size: number, transfer?: Transferable[]): void;
  /** Reports how much of a stream was read. */
  credit(call: Call, amount: Amount): void;
  /**
   * Sends a message that the core has printed, if there is one. If it `canWait`, it may be sent at
   * the end of the turn.
   */
  control(message: object | undefined, kind?: MessageKind, canWait?: boolean): void;
  /** Reads a message and passes it to the core. */
  receive(data: unknown, sink: Sink): void;
  /** Sends the collected messages. */
  flush(): void;
}
