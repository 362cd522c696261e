/** Types of a trace: observed events of an endpoint, and their form for people and tools. */
import type { ErrorObject } from '../common/errors.js';
import type { Handle } from '../driver/abp-boundary.js';
import type { Action } from '../driver/machine.js';
import type { Endpoint } from '../session/endpoint.js';
import type { Call } from '../session/call.js';

export type { Endpoint };

/** A call made here, or received. */
export type AnyCall = Call;

/** The events that an endpoint reports to its observers, with their arguments. */
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
  /** A call has ended with this response. */
  end: [record: AnyCall, response: unknown];
}

/** An observer. It receives events and changes nothing. */
export type Observe = <Name extends keyof Observed>(name: Name, ...args: Observed[Name]) => void;

/** How a call ended. */
export type TraceOutcome = 'completed' | 'failed' | 'cancelled' | 'timed out' | 'disconnected';

/**
 * One event. Members that do not apply to a type are absent. Params, responses and messages are
 * those of the call, not copies: do not change them.
 */
export interface TraceEvent {
  /**
   * `call`: a call was sent, or received and accepted; `start`: a call that waited for its turn
   * runs; `refused`: a call was not sent, or was received and rejected; `dropped`: a received
   * message had no effect
   */
  type:
    | ('call' | 'start' | 'progress' | 'cancel' | 'result')
    | ('refused' | 'message' | 'dropped' | 'session');
  /** ms of `performance.now()` */
  time: number;
  /** the number of the connection in this page or process */
  connection: number;
  /** the side that observed it */
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
  /** the reported progress */
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

/** A listener of a trace, called with each event. */
export type TraceListener = (event: TraceEvent) => void;
