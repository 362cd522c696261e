/** What the inspector knows: the events of connections as rows of a chart, the calls, and what was dropped and why. */
import { getOwn } from '../../../js/common/values.js';
import { snapshot } from './recorder/snapshot.js';
import { lineOf } from './trace.js';

/** @import { TraceEvent } from '../../../js/types/trace.js' */

const MAX_ROWS = 2000;
const MAX_CALLS = 1000;
const MAX_REASONS = 200;
/** Characters of a row's content, and of all of them. */
const MAX_CONTENT = 20_000;
const MAX_CONTENTS = 8_000_000;

/**
 * What a row is about; the filter offers these.
 * @typedef {'call' | 'result' | 'failed' | 'cancel' | 'progress' | 'session' | 'problem' | 'other'} Kind
 */

/**
 * @typedef {object} Row
 * @property {number} number the first is 1
 * @property {number} time ms
 * @property {Kind} kind
 * @property {'agent' | 'app' | undefined} from who sent the message; undefined if it is none
 * @property {'agent' | 'app'} side on which it was seen
 * @property {number} connection
 * @property {string} title
 * @property {string} id of the call, or empty
 * @property {string | undefined} content as text; undefined if it is not kept any more
 * @property {number | undefined} frame
 * @property {Flow} [flow] of a row that stands for the progress and the chunks of a call
 */

/**
 * What one row stands for: so many messages of each kind, and how far the call is.
 * @typedef {{ progress: number, chunks: number, credits: number, done: string }} Flow
 */

/**
 * @typedef {object} CallEntry
 * @property {string} id
 * @property {string} name
 * @property {string} direction
 * @property {'agent' | 'app'} side
 * @property {'waiting' | 'running' | 'stopping' | 'ended'} state
 * @property {number} began ms
 * @property {number | undefined} ended ms
 * @property {number | undefined} deadline ms
 * @property {string} parent its id, or empty
 * @property {string} progress
 * @property {{ chunks: number, unread: number, bytes: number } | undefined} stream how many chunks have come or were sent, and
 *   what of them the reader has not granted again: chunks, and bytes
 * @property {string} end how it ended, or empty
 * @property {Kind} endKind
 */

/** Why something had no effect, for who has not read the protocol. @type {Record<string, string>} */
export const REASONS = {
  late: 'an answer to a call that was settled before',
  stray: 'an answer, or progress, for an unknown call',
  malformed: 'a message that could not be read',
  'unknown type': 'a message of a type that this side does not know',
  overrun: "more chunks than the stream's window allows",
};

/** @param {string} type of a message @returns {Kind} */
function kindOf(type) {
  if (/^(capabilities\/call|elicitation\/request)$/.test(type)) return 'call';
  if (/^(capabilities\/|)cancel/.test(type)) return 'cancel';
  if (/^(progress|bridge\/chunk|bridge\/credit)$/.test(type)) return 'progress';
  if (/^(initialize|shutdown|bridge\/)/.test(type)) return 'session';
  return 'other';
}

/**
 * A field of a message as text, whatever a peer has put there: what has no text of its own must not hide its message.
 * @param {unknown} value
 * @returns {string} empty if there is none
 */
function wordOf(value) {
  if (typeof value === 'object' && value !== null) return JSON.stringify(snapshot(value));
  return String(value ?? '');
}

/**
 * A response in a few words.
 * @param {unknown} response
 * @returns {{ kind: Kind, title: string }}
 */
function responseIn(response) {
  const error = getOwn(response, 'error');
  const why = [getOwn(error, 'code'), getOwn(error, 'message')]
    .map(wordOf)
    .filter(Boolean)
    .join(': ');
  if (getOwn(response, 'success') === true) return { kind: 'result', title: 'completed' };
  if (getOwn(response, 'cancelled') === true) {
    return { kind: 'cancel', title: why ? `cancelled: ${why}` : 'cancelled' };
  }
  return { kind: 'failed', title: why ? `failed: ${why}` : 'failed' };
}

/** @param {unknown} info */
function progressIn(info) {
  const [done, total, percentage] = ['progress', 'total', 'percentage'].map((key) => {
    const value = getOwn(info, key);
    return typeof value === 'number' ? value : undefined;
  });
  if (done !== undefined && total !== undefined && total > 0) {
    return `${Math.round((done / total) * 100)}%`;
  }
  return percentage === undefined ? `${done ?? ''}` : `${Math.round(percentage)}%`;
}

/**
 * What a message is that cannot be of our protocol, because it has no type: windows hear whatever their frames post.
 * @param {unknown} message
 * @returns {string} empty if it has one
 */
function foreignIn(message) {
  if (typeof getOwn(message, 'type') === 'string') return '';
  if (getOwn(message, 'jsonrpc') === '2.0') {
    return `${wordOf(getOwn(message, 'method') ?? 'an answer')}: another protocol (JSON-RPC)`;
  }
  const channel = getOwn(message, 'abp-bridge');
  if (channel !== undefined) return `${wordOf(channel)}: another protocol (JSON-RPC channel)`;
  return `${typeof message}: another protocol`;
}

/** Whether a cancel, or its answer, is of a call that was never made: numbers begin at 1. @param {string} id */
const isProbe = (id) => id.endsWith('.0');

export class Log {
  /** @type {Row[]} */
  rows = [];
  /** The calls, oldest first, by connection, direction and id. @type {Map<string, CallEntry>} */
  calls = new Map();
  /** What was dropped or refused, by reason. @type {Map<string, number>} */
  counts = new Map();
  /** The last of these, each with its time and what was wrong. @type {{ time: number, text: string }[]} */
  reasons = [];
  /** When the first event was, in ms. @type {number | undefined} */
  start = undefined;
  /** The rows that have changed since they were shown. @type {Set<Row>} */
  changed = new Set();
  /** The row that the next progress or chunk of a call belongs to. @type {Map<string, Row>} */
  #flows = new Map();
  /** The greeting that was shown last, and how often it was sent: it is repeated until it is answered. */
  #greeting = { key: '', times: 0, row: /** @type {Row | undefined} */ (undefined) };
  /** What messages of other protocols were, until they are counted as malformed, by connection. @type {Map<number, string[]>} */
  #foreign = new Map();
  #numbers = 0;
  #contents = 0;
  /** The first row that still has its content. */
  #oldest = 0;

  /** Forgets everything but the calls in flight. */
  clear() {
    this.rows = [];
    this.changed.clear();
    this.#flows.clear();
    this.#foreign.clear();
    this.counts.clear();
    this.reasons = [];
    this.#contents = 0;
    this.#oldest = 0;
    for (const [key, { state }] of this.calls) if (state === 'ended') this.calls.delete(key);
  }

  /** @param {TraceEvent} event */
  add(event) {
    this.start ??= event.time;
    const { type, error, time } = event;
    if (type === 'message') return this.#message(event);
    this.#call(event);
    if (type === 'session') this.#row(event, 'session', lineOf(event), undefined);
    if (type === 'dropped') this.#dropped(event);
    if (type === 'refused') {
      const why = [error?.code, error?.message].filter(Boolean).join(': ');
      this.#count('refused', 1, time, `${event.name}: ${why}`);
      this.#row(event, 'problem', `${event.name}: refused: ${error?.code}`, {
        error,
        params: event.params,
      });
    }
  }

  /** @param {TraceEvent} event */
  #dropped(event) {
    const { reason = '', time, connection } = event;
    let { count = 1 } = event;
    // What is of another protocol has a row that says so.
    const foreign = this.#foreign.get(connection) ?? [];
    while (reason === 'malformed' && count > 0 && foreign.length) {
      this.#count(reason, 1, time, `${reason}: ${foreign.shift()}`);
      count--;
    }
    if (!foreign.length) this.#foreign.delete(connection);
    if (!count) return;
    const why = `${reason}: ${REASONS[reason] ?? ''}`;
    this.#count(reason, count, time, why);
    this.#row(event, 'problem', `dropped: ${reason}`, { dropped: count, because: why });
  }

  /** @param {string} name @param {number} count @param {number} time @param {string} text */
  #count(name, count, time, text) {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    this.reasons.push({ time, text });
    if (this.reasons.length > MAX_REASONS) this.reasons.shift();
  }

  /** @param {TraceEvent} event */
  #message(event) {
    const { message, side, direction, connection } = event;
    const other = side === 'agent' ? 'app' : 'agent';
    const from = direction === 'out' ? side : other;
    const foreign = foreignIn(message);
    if (foreign) {
      const waiting = this.#foreign.get(connection) ?? [];
      this.#foreign.set(connection, [...waiting, foreign].slice(-MAX_REASONS));
      this.#row(event, 'other', foreign, message, wordOf(getOwn(message, 'id')), from);
      return;
    }
    const type = wordOf(getOwn(message, 'type'));
    const payload = getOwn(message, 'payload');
    const options = getOwn(payload, 'options');
    const id = wordOf(
      getOwn(options, 'callId') ??
        getOwn(payload, 'callId') ??
        getOwn(payload, 'operationId') ??
        getOwn(message, 'id'),
    );
    const name = this.#nameOf(connection, id);
    this.#stream(event, type, payload);
    let kind = kindOf(type);
    if (type === 'initialize') return this.#greet(event, id, from);
    if (kind === 'progress') return this.#flow(event, type, message, name, id, from);
    let title = type;
    if (kind === 'call') {
      const asks = type !== 'capabilities/call';
      title = `${wordOf(getOwn(payload, asks ? 'method' : 'capability'))}: ${asks ? 'question' : 'call'}`;
    } else if (/^(capabilities\/call-result|call-result|elicitation\/response)$/.test(type)) {
      ({ kind, title } = responseIn(payload));
      if (name) title = `${name}: ${title}`;
    } else if (kind === 'cancel' && !name && isProbe(id)) {
      kind = 'session';
      title = type === 'capabilities/cancel' ? 'are you there? (a cancel of no call)' : 'yes';
    } else if (kind === 'cancel') {
      const reason = getOwn(payload, 'reason');
      const answered = getOwn(payload, 'cancelled');
      title = answered === undefined ? 'cancel' : `cancelled: ${wordOf(answered)}`;
      if (name) title = `${name}: ${title}`;
      if (typeof reason === 'string') title += `: ${reason}`;
    } else if (type === 'notification') {
      title = `notification ${wordOf(getOwn(payload, 'event') ?? getOwn(payload, 'method'))}`;
    }
    this.#row(event, kind, title, message, id, from);
  }

  /** @param {TraceEvent} event @param {string} id @param {'agent' | 'app'} from */
  #greet(event, id, from) {
    const key = `${event.connection} ${id}`;
    const last = this.#greeting;
    if (last.key !== key || !last.row || last.row.number < (this.rows[0]?.number ?? Infinity)) {
      const row = this.#row(event, 'session', 'initialize', event.message, id, from);
      this.#greeting = { key, times: 1, row };
      return;
    }
    last.row.title = `initialize (${++last.times} times)`;
    this.changed.add(last.row);
  }

  /** What a call is of, made or received. @param {number} connection @param {string} id */
  #nameOf(connection, id) {
    const keys = ['out', 'in', 'local'].map((direction) => [connection, direction, id].join(' '));
    return keys.map((key) => this.calls.get(key)?.name).find(Boolean);
  }

  /**
   * Progress, chunks and credits of a call make one row, as long as nothing else happens to it: there are thousands.
   * @param {TraceEvent} event
   * @param {string} type
   * @param {unknown} message
   * @param {string | undefined} name of the capability
   * @param {string} id
   * @param {'agent' | 'app'} from
   */
  #flow(event, type, message, name, id, from) {
    const key = `${event.connection} ${id}`;
    let row = this.#flows.get(key);
    if (!row || row.number < this.rows[0].number) {
      row = this.#row(event, 'progress', '', undefined, id, from);
      row.flow = { progress: 0, chunks: 0, credits: 0, done: '' };
      this.#flows.set(key, row);
    }
    const flow = /** @type {Flow} */ (row.flow);
    if (type === 'progress') {
      flow.progress++;
      flow.done = progressIn(getOwn(message, 'payload'));
    } else flow[type === 'bridge/chunk' ? 'chunks' : 'credits']++;
    const { progress, chunks, credits, done } = flow;
    const counts = [];
    if (progress) counts.push(`progress ${done}${progress > 1 ? ` (${progress} times)` : ''}`);
    if (chunks) counts.push(chunks > 1 ? `${chunks} chunks` : '1 chunk');
    if (credits) counts.push(credits > 1 ? `${credits} credits` : '1 credit');
    row.title = `${name ? `${name}: ` : ''}${counts.join(', ')}`;
    this.#setContent(row, message);
    this.changed.add(row);
  }

  /**
   * Counts a chunk or a credit.
   * @param {TraceEvent} event
   * @param {string} type
   * @param {unknown} payload
   */
  #stream({ connection, direction }, type, payload) {
    const isChunk = type === 'bridge/chunk';
    if (!isChunk && type !== 'bridge/credit') return;
    const made = isChunk === (direction === 'in') ? 'out' : 'in';
    const call = this.calls.get([connection, made, wordOf(getOwn(payload, 'callId'))].join(' '));
    if (!call) return;
    const stream = (call.stream ??= { chunks: 0, unread: 0, bytes: 0 });
    const amountOf = (/** @type {string} */ key) => {
      const amount = getOwn(payload, key);
      return typeof amount === 'number' && Number.isFinite(amount) ? amount : 0;
    };
    if (isChunk) stream.chunks++;
    stream.unread += isChunk ? 1 : -amountOf('chunks');
    stream.bytes += isChunk ? amountOf('size') : -amountOf('bytes');
  }

  /**
   * @param {TraceEvent} event
   * @param {Kind} kind
   * @param {string} title
   * @param {unknown} content
   * @param {string} [id]
   * @param {'agent' | 'app'} [from]
   */
  #row(event, kind, title, content, id = event.callId ?? '', from = undefined) {
    const { time, side, connection, frame } = event;
    this.#flows.delete(`${connection} ${id}`);
    const number = ++this.#numbers;
    /** @type {Row} */
    const row = { number, time, kind, from, side, connection, title, id, content: '', frame };
    this.rows.push(row);
    this.#setContent(row, content);
    if (this.rows.length > MAX_ROWS) {
      this.#contents -= this.rows.shift()?.content?.length ?? 0;
      this.#oldest = Math.max(0, this.#oldest - 1);
    }
    return row;
  }

  /** @param {Row} row @param {unknown} content of its last message */
  #setContent(row, content) {
    let text = content === undefined ? '' : (JSON.stringify(snapshot(content), null, 2) ?? '');
    if (text.length > MAX_CONTENT) text = `${text.slice(0, MAX_CONTENT)}\n…`;
    if (row.content === undefined) return; // it is not kept any more
    this.#contents += text.length - row.content.length;
    row.content = text;
    while (this.#contents > MAX_CONTENTS) {
      const old = this.rows[this.#oldest++];
      this.#contents -= old.content?.length ?? 0;
      old.content = undefined;
    }
  }

  /** @param {TraceEvent} event */
  #call(event) {
    const { type, connection, side, direction = '', callId, time, timeout } = event;
    if (callId === undefined || type === 'refused') return;
    const key = [connection, direction, callId].join(' ');
    if (type === 'call') {
      this.calls.delete(key);
      this.calls.set(key, {
        id: callId,
        name: event.name ?? '',
        direction,
        side,
        state: event.waiting || direction === 'out' ? 'waiting' : 'running',
        began: time,
        ended: undefined,
        deadline: timeout ? time + timeout : undefined,
        parent: event.parent ?? '',
        progress: '',
        stream: undefined,
        end: '',
        endKind: 'other',
      });
      if (this.calls.size > MAX_CALLS) this.#forgetOne();
      return;
    }
    const call = this.calls.get(key);
    if (!call || call.state === 'ended') return;
    if (type === 'start') call.state = 'running';
    if (type === 'progress') call.progress = progressIn(event.progress);
    if (type === 'cancel') call.state = 'stopping';
    if (type === 'result') {
      call.state = 'ended';
      call.ended = time;
      const { kind, title } = responseIn({ ...event.response, error: event.error });
      const { outcome = '' } = event;
      call.endKind = outcome === 'timed out' ? 'cancel' : kind;
      call.end = title.replace(/^\w+/, outcome);
    }
  }

  /** Forgets the oldest call that has ended or, if there is none, the oldest. */
  #forgetOne() {
    for (const [key, { state }] of this.calls) {
      if (state === 'ended') return this.calls.delete(key);
    }
    return this.calls.delete(/** @type {string} */ (this.calls.keys().next().value));
  }
}

/**
 * The events in a recording.
 * @param {string} text lines of JSON, as `Recorder.text` has them
 * @returns {TraceEvent[]}
 * @throws {TypeError} if it is no recording
 */
export function eventsOf(text) {
  const events = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (!line.trim()) continue;
    let read;
    try {
      read = JSON.parse(line);
    } catch {
      throw new TypeError(`This is not a recording: line ${i + 1} is not JSON`);
    }
    const note = getOwn(read, 'note');
    const whole = typeof getOwn(note, 'type') === 'string' && Number.isFinite(getOwn(note, 'time'));
    if (whole) events.push(/** @type {TraceEvent} */ (note));
  }
  if (!events.length) throw new TypeError('This is not a recording: it has no events');
  return events;
}
