/** What is observed of an endpoint, and what people and tools are shown of it. */
import type { ErrorObject } from '../common/errors.js';
import type { Handle } from '../driver/abp-boundary.js';
import type { Action } from '../driver/machine.js';
import type { Endpoint } from '../session/endpoint.js';
import type { Call } from '../session/call.js';

export type { Endpoint };

/** A call that was made here, or received. */
export type AnyCall = Call;

/** What an endpoint tells, as it happens. */
export interface Observed {
  /** A message or a frame is about to be sent or read. */
  message: [sent: boolean, data: unknown];
  /** The message has been read, and all that it caused has been done. */
  read: [];
  /**
   * A call or a `PendingCancel` is about to be made, on behalf of the call `parent`, if that is not
   * 0.
   */
  begin: [record: object, parent: Handle];
  /** The core's action is about to be performed. */
  action: [action: Action, context: unknown];
  /** Progress is about to be sent. */
  progress: [record: AnyCall, info: unknown];
  /** This is what becomes of a call. */
  end: [record: AnyCall, response: unknown];
}

/** Is told what happens, and changes nothing. */
export type Observe = <What extends keyof Observed>(what: What, ...told: Observed[What]) => void;

/** How a call ended. */
export type TraceOutcome = 'completed' | 'failed' | 'cancelled' | 'timed out' | 'disconnected';

/**
 * One thing that happened. Members that make no sense for a type are absent. Params, responses and
 * messages are those of the call, not copies: do not change them.
 */
export interface TraceEvent {
  /**
   * `call`: it was sent, or received and accepted; `start`: a call that waited for its turn runs;
   * `refused`: it was never sent, or received and not accepted; `dropped`: what was received had no
   * effect
   */
  type:
    | ('call' | 'start' | 'progress' | 'cancel' | 'result')
    | ('refused' | 'message' | 'dropped' | 'session');
  /** ms of `performance.now()` */
  time: number;
  /** which connection of this page or process */
  connection: number;
  /** on which this was seen */
  side: 'agent' | 'app';
  /** `out`: this side made the call, or sends; `local`: the app calls itself */
  direction?: 'out' | 'in' | 'local';
  callId?: string;
  /** of the capability; of an elicitation, its method */
  name?: string;
  params?: unknown;
  /** the call is a question of the app */
  elicitation?: boolean;
  /** the callId of the call on whose behalf this one is made */
  parent?: string;
  /** of the call, in ms */
  timeout?: number;
  /** of a `call`: it waits for its turn */
  waiting?: boolean;
  /** what was reported */
  progress?: any;
  /**
   * of a `cancel`, if one was given; of `dropped`: `late`, `stray`, `malformed`, `unknown type` or
   * `overrun`
   */
  reason?: string;
  outcome?: TraceOutcome;
  /** of a `result` */
  response?: any;
  /** why it was refused, or failed */
  error?: ErrorObject;
  /** ms from the `call` to its `result` */
  duration?: number;
  /** of a `message`: the message. An entry of a frame is shown as the message that it stands for */
  message?: any;
  /** the number of the frame in which it travelled */
  frame?: number;
  /** of a `session`: `connecting`, `ready`, `failed`, `closed` or `lost` */
  state?: string;
  /** of `dropped`: how many */
  count?: number;
}

/** Is called with each event of a trace. */
export type TraceListener = (event: TraceEvent) => void;
