/**
 * Converts an endpoint's observations to events for people and tools. Loaded only if there is a
 * listener.
 */
import * as abp from '../../js/driver/abp-boundary.js';
import { SESSIONS } from './abp-names.js';
import { invokeReportingErrors, safely } from '../../js/common/errors.js';
import { getOwn, isObject, textOf } from '../../js/common/values.js';
import * as FrameKind from '../../js/wire/frame-kinds.js';
import { entriesOf } from '../../js/wire/frames.js';

/** @import { ObserverOptions } from '../../js/session/observers.js' */
/**
 * @import { AnyCall, Endpoint, Observe, Observed, TraceEvent } from '../../js/types/trace.js'
 * @import { TraceListener, TraceOutcome } from '../../js/types/trace.js'
 */

/**
 * The reasons why a received message had no effect, by the core's counters, with explanations.
 * @type {[abp.Counter, string, string][]}
 */
const DROPS = [
  [abp.LATE, 'late', 'an answer to a call that was settled before'],
  [abp.STRAY, 'stray', 'an answer, or progress, for an unknown call'],
  [abp.MALFORMED, 'malformed', 'a message that could not be read'],
  [abp.UNKNOWN_TYPE, 'unknown type', 'a message of a type that this side does not know'],
  [abp.OVERRUN, 'overrun', "more chunks than the stream's window allows"],
];
/** The explanations of these reasons. @type {Record<string, string>} */
export const REASONS = Object.fromEntries(DROPS.map(([, reason, why]) => [reason, why]));

let connections = 0;

/**
 * How a call ended.
 * @param {unknown} response
 * @returns {TraceOutcome}
 */
function outcomeNamed(response) {
  const code = getOwn(getOwn(response, 'error'), 'code');
  if (getOwn(response, 'success') === true) return 'completed';
  if (getOwn(response, 'cancelled') === true) return code === 'TIMEOUT' ? 'timed out' : 'cancelled';
  return code === 'DISCONNECTED' ? 'disconnected' : 'failed';
}

/**
 * The params and options of a call.
 * @param {AnyCall} record
 */
const inputOf = ({ params, options: { timeout } }) => ({ params, ...(timeout && { timeout }) });

/** Observes one endpoint. */
class Tracer {
  /**
   * The calls in flight, by their records.
   * @type {Map<AnyCall, { about: Partial<TraceEvent>, began: number }>}
   */
  #calls = new Map();
  /** The parents of calls that are about to begin. @type {WeakMap<object, string | undefined>} */
  #parents = new WeakMap();
  /**
   * The prefixes of ids, which the numbers in frames replace: those of agents' calls, and of apps'
   * questions.
   */
  #prefix = { calls: '', questions: '' };
  #frames = 0;
  #endpoint;
  #listeners;
  #origin;
  /** @type {number[]} */
  #dropped;

  /**
   * @param {Endpoint} endpoint
   * @param {Set<TraceListener>} listeners
   */
  constructor(endpoint, listeners) {
    this.#endpoint = endpoint;
    this.#listeners = listeners;
    /** @type {Pick<TraceEvent, 'connection' | 'side'>} */
    this.#origin = {
      connection: ++connections,
      side: endpoint.role === abp.AGENT ? 'agent' : 'app',
    };
    this.#dropped = this.#counts();
    // Calls may be in flight already. A record without params is a cancel by id.
    endpoint.find((record) => {
      if (record.handle && 'params' in record) this.#begins(/** @type {any} */ (record), false);
      return false;
    });
  }

  /** @type {Observe} */
  observe = (what, ...told) => /** @type {any} */ (this)[what](...told);

  /** @param {Omit<TraceEvent, 'time' | 'connection' | 'side'>} event */
  #tell({ type, ...event }) {
    const whole = { type, time: performance.now(), ...this.#origin, ...event };
    for (const listener of this.#listeners) invokeReportingErrors(listener, whole);
  }

  // --- Messages ----------------------------------------------------------------------------------

  /**
   * @param {boolean} sent
   * @param {unknown} data reading it may throw
   */
  message(sent, data) {
    const direction = sent ? 'out' : 'in';
    safely(() => {
      const frame = typeof data === 'string' ? entriesOf(data) : data;
      if (!Array.isArray(frame)) {
        const type = getOwn(data, 'type');
        if (type === 'initialize') this.#prefix.calls = textOf(getOwn(data, 'id')) ?? '';
        if (type === 'initialize-result')
          this.#prefix.questions = textOf(getOwn(getOwn(data, 'payload'), 'sessionId')) ?? '';
        return this.#tell({ type: 'message', direction, message: data });
      }
      this.#frames++;
      this.#entries(frame, direction, sent === (this.#origin.side === 'agent'));
    });
  }

  /**
   * @param {unknown[]} entries
   * @param {'in' | 'out'} direction
   * @param {boolean} byAgent whether they were sent by an agent
   */
  #entries(entries, direction, byAgent) {
    for (let i = 0; i + 3 < entries.length; i += 4) {
      const [kind, key, a, b] = entries.slice(i, i + 4);
      if (kind === FrameKind.TEXT) {
        this.#entries(entriesOf(b) || [], direction, byAgent);
        continue;
      }
      const message = this.#shown(kind, key, a, b, byAgent);
      this.#tell({ type: 'message', direction, frame: this.#frames, message });
    }
  }

  /**
   * The message that an entry of a frame stands for, in readable form.
   * @param {unknown} kind
   * @param {unknown} key
   * @param {any} a
   * @param {any} b
   * @param {boolean} byAgent whether it was sent by an agent
   */
  #shown(kind, key, a, b, byAgent) {
    const own = this.#id(key, byAgent);
    const theirs = this.#id(key, !byAgent);
    const answer = byAgent ? 'elicitation/response' : 'capabilities/call-result';
    const room = byAgent ? 'capabilities' : 'bridge';
    const callId = byAgent && { callId: own };
    switch (kind) {
      case FrameKind.REQUEST:
      case FrameKind.REQUEST_WITH: {
        const [params, timeout, progress = false, chunks, bytes, last, idempotencyKey] =
          kind === FrameKind.REQUEST ? [b] : b;
        const options = {
          ...callId,
          ...(progress !== false && { progressToken: progress === true ? own : progress }),
          ...(last === true && { input: true }),
          ...(idempotencyKey && { idempotencyKey }),
          ...(timeout && { timeout }),
          ...(typeof last === 'string' && { [byAgent ? 'repeats' : 'callId']: last }),
          ...(chunks && { stream: { chunks, bytes } }),
        };
        const payload = byAgent
          ? { capability: a, params, options, ...callId }
          : { method: a, params, ...options };
        return { type: byAgent ? 'capabilities/call' : 'elicitation/request', id: own, payload };
      }
      case FrameKind.VALUE: {
        const payload = { success: true, data: b, metadata: { duration: a } };
        return { type: answer, id: theirs, payload };
      }
      case FrameKind.RESPONSE:
        return { type: answer, id: theirs, payload: b };
      case FrameKind.OUTCOME: {
        const payload = this.#endpoint.core.unpackFailure(a, b);
        return { type: answer, id: theirs, payload };
      }
      case FrameKind.PROGRESS:
        return { type: 'progress', payload: { ...b, operationId: theirs } };
      case FrameKind.MESSAGE:
        return b;
      case FrameKind.CANCEL:
        return { type: `${room}/cancel`, payload: { callId: own, reason: a } };
      case FrameKind.CHUNK:
        return { type: 'bridge/chunk', payload: { callId: theirs, size: a, chunk: b } };
      case FrameKind.CREDIT:
        return { type: 'bridge/credit', payload: { callId: own, chunks: a, bytes: b } };
    }
    return { type: `entry ${kind} of a frame`, id: key, payload: [a, b] };
  }

  /**
   * The id that a key in a frame stands for.
   * @param {unknown} key
   * @param {boolean} ofCall
   * @returns {any}
   */
  #id(key, ofCall) {
    const prefix = ofCall ? this.#prefix.calls : this.#prefix.questions;
    return typeof key === 'number' ? `${prefix}.${key}` : key;
  }

  /** Called when a message has been read: now it is known whether it had an effect. */
  read() {
    const counts = this.#counts();
    DROPS.forEach(([, reason], i) => {
      const count = counts[i] - this.#dropped[i];
      if (count > 0) this.#tell({ type: 'dropped', reason, count });
    });
    this.#dropped = counts;
  }

  #counts() {
    const { x, pointer } = this.#endpoint.core;
    return DROPS.map(([counter]) => x.count(pointer, counter));
  }

  // --- Calls -------------------------------------------------------------------------------------

  /**
   * @param {object} record
   * @param {abp.Handle} parent
   */
  begin(record, parent) {
    for (const [{ handle }, { about }] of parent ? this.#calls : [])
      if (handle === parent) this.#parents.set(record, about.callId);
  }

  /**
   * The members of a call's events that do not change.
   * @param {AnyCall} record
   */
  #describe(record) {
    const { resolve, extra, name, options } = record;
    const isLocal = extra.parent !== undefined;
    const made = !!resolve && !isLocal;
    /** @type {Partial<TraceEvent>} */
    const call = { direction: made ? 'out' : isLocal ? 'local' : 'in' };
    // A rejected call may have any value as its name and id.
    if (typeof name === 'string') call.name = name;
    if (made === (this.#origin.side === 'app') && !isLocal) call.elicitation = true;
    const key = made ? options.callId : (record.key ?? options.id);
    const isMinted = record.handle && typeof key !== 'string';
    const id = isMinted
      ? this.#endpoint.core.idText(record.handle)
      : this.#id(key, !call.elicitation);
    // A trace that begins later has not seen the handshake.
    if (isMinted && !isLocal)
      this.#prefix[call.elicitation ? 'questions' : 'calls'] ||= id.slice(0, id.lastIndexOf('.'));
    if (typeof id === 'string') call.callId = id;
    if (this.#parents.has(record)) call.parent = this.#parents.get(record);
    return call;
  }

  /**
   * @param {AnyCall} record
   * @param {boolean} waiting
   */
  #begins(record, waiting) {
    const about = this.#describe(record);
    this.#calls.set(record, { about, began: performance.now() });
    this.#tell({ type: 'call', ...about, ...inputOf(record), ...(waiting && { waiting }) });
  }

  /** @param {Observed['action']} told the text of an ABORT is its reason */
  action(...[{ kind, arg, record, text }, context]) {
    switch (kind) {
      case abp.REQUEST:
      case abp.QUEUED:
        return this.#begins(record, kind === abp.QUEUED);
      case abp.START:
        if (this.#calls.has(record)) return this.#told('start', record, {});
        return this.#begins(record, false);
      case abp.ABORT:
        return this.#told('cancel', record, { reason: textOf(text) ?? this.#endpoint.closing });
      case abp.REPORT:
        return this.#told('progress', record, { progress: getOwn(context, 'payload') });
      case abp.SEND: {
        if (arg !== abp.MSG_CANCEL) return;
        // A cancel by id has no record of a call.
        const callId = /** @type {string | undefined} */ (getOwn(context, 'callId'));
        if (callId) return this.#tell({ type: 'cancel', direction: 'out', callId });
        return this.#told('cancel', record, { reason: record.reason });
      }
      case abp.SESSION:
        return this.#tell({ type: 'session', state: SESSIONS[arg] });
    }
  }

  /**
   * @param {TraceEvent['type']} type
   * @param {AnyCall} record
   * @param {Partial<TraceEvent>} more
   */
  #told(type, record, more) {
    this.#tell({ type, ...this.#calls.get(record)?.about, ...more });
  }

  /**
   * @param {AnyCall} record
   * @param {unknown} info
   */
  progress(record, info) {
    this.#told('progress', record, { progress: info });
  }

  /**
   * @param {AnyCall} record
   * @param {unknown} response
   */
  end(record, response) {
    const call = this.#calls.get(record);
    const error = getOwn(response, 'error');
    const failed = isObject(error) && { error: /** @type {TraceEvent['error']} */ (error) };
    this.#calls.delete(record);
    if (!call) {
      const refused = { ...this.#describe(record), ...inputOf(record) };
      return this.#tell({ type: 'refused', ...refused, ...failed });
    }
    const { began, about } = call;
    const outcome = outcomeNamed(response);
    const duration = performance.now() - began;
    this.#tell({ type: 'result', ...about, outcome, duration, response, ...failed });
  }
}

/** The listeners of the trace of a client or an app. */
export class Tracing {
  /** @type {Set<TraceListener>} */
  #listeners = new Set();
  #endpoints;

  /**
   * @param {ObserverOptions} options
   * @param {() => Endpoint[]} endpoints returns the existing endpoints
   */
  constructor({ trace, debug, recorder }, endpoints) {
    this.#endpoints = endpoints;
    if (recorder) this.#listeners.add(recorder.note);
    if (trace) this.#listeners.add(trace);
    if (!debug) return;
    this.#listeners.add(print);
    announce(this);
  }

  /** @type {import('../../js/types/parts.js').Tracing['add']} */
  add(listener) {
    this.#listeners.add(listener);
    for (const endpoint of this.#endpoints()) if (!endpoint.observe) this.follow(endpoint);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size) return;
      for (const endpoint of this.#endpoints()) endpoint.observe = undefined;
    };
  }

  /**
   * Observes an endpoint if there is a listener.
   * @param {Endpoint} endpoint
   */
  follow(endpoint) {
    if (!this.#listeners.size) return;
    endpoint.observe = new Tracer(endpoint, this.#listeners).observe;
  }
}

// --- For the console -----------------------------------------------------------------------------

/**
 * An event as one line of text, without its values, such as `→ export.pdf i1.3: called`.
 * @param {TraceEvent} event
 */
export function lineOf(event) {
  const { type, direction, name, callId, reason, error, progress, message } = event;
  const arrow = { out: '→', in: '←', local: '↻' }[direction ?? 'local'];
  const about = [arrow, name, callId].filter(Boolean).join(' ');
  const why = `: ${error?.code}: ${error?.message}`;
  switch (type) {
    case 'call':
      return `${about}: ${event.waiting ? 'waits for its turn' : 'called'}`;
    case 'start':
      return `${about}: its turn has come`;
    case 'progress': {
      const { percentage, progress: done = '' } = progress ?? {};
      return `${about}: progress ${percentage === undefined ? done : `${Math.round(percentage)}%`}`;
    }
    case 'cancel':
      return `${about}: cancel${reason ? `: ${reason}` : ''}`;
    case 'result':
      return `${about}: ${event.outcome} after ${Math.round((event.duration ?? 0) * 10) / 10} ms${error ? why : ''}`;
    case 'refused':
      return `${about}: refused${why}`;
    case 'message':
      return `${arrow} ${getOwn(message, 'type')} ${getOwn(message, 'id') ?? ''}`.trim();
    case 'dropped':
      return `dropped ${event.count}: ${reason}`;
    case 'session':
      return `session ${event.state}`;
  }
}

/**
 * Lets the extension for the developer tools find clients and apps with the option `debug`.
 * @param {Tracing} tracing
 */
function announce(tracing) {
  const page = /** @type {any} */ (globalThis);
  /** @type {Set<WeakRef<object>>} */
  const announced = (page.__abpDebug ??= new Set());
  for (const reference of announced) if (!reference.deref()) announced.delete(reference);
  announced.add(new WeakRef(tracing));
}

/** Writes an event to the console, and marks a finished call. @type {TraceListener} */
function print(event) {
  const { type, side, time, duration, name, callId, outcome } = event;
  if (type === 'message') return;
  const content = { call: event.params, result: event.response, progress: event.progress }[
    /** @type {'call'} */ (type)
  ];
  console.log(`abp-bridge ${side}: ${lineOf(event)}`, ...(content === undefined ? [] : [content]));
  if (type !== 'result') return;
  const track = { dataType: 'track-entry', track: `abp-bridge ${side}` };
  const detail = { callId, outcome, devtools: track };
  const start = Math.max(0, time - (duration ?? 0));
  safely(() => performance.measure(`abp: ${name}`, { start, end: time, detail }));
}
