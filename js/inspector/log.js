/** What the inspector knows: the events of connections as rows of a chart, the calls, and what was dropped and why. */
import { getOwn } from '../common/values.js';
import { snapshot } from '../recorder/snapshot.js';
import { lineOf } from '../session/trace.js';

/** @import { TraceEvent } from '../session/trace.js' */

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
  stray: 'an answer to a call that nobody made, or its progress',
  malformed: 'a message that could not be read',
  'unknown type': 'a message of a type that this side does not know',
  overrun: 'more of a stream than its window had room for',
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
 * A response in a few words.
 * @param {unknown} response
 * @returns {{ kind: Kind, title: string }}
 */
function responseIn(response) {
  const error = getOwn(response, 'error');
  const code = getOwn(error, 'code') ?? '';
  const message = getOwn(error, 'message') ?? '';
  const why = [code, message].filter(Boolean).join(': ');
  if (getOwn(response, 'success') === true) return { kind: 'result', title: 'completed' };
  if (getOwn(response, 'cancelled') === true) {
    return { kind: 'cancel', title: why ? `cancelled: ${why}` : 'cancelled' };
  }
  return { kind: 'failed', title: why ? `failed: ${why}` : 'failed' };
}

/** @param {unknown} info */
function progressIn(info) {
  const [done, total, percentage] = ['progress', 'total', 'percentage'].map(
    (key) => /** @type {number} */ (getOwn(info, key)),
  );
  if (total > 0) return `${Math.round((done / total) * 100)}%`;
  return percentage === undefined ? `${done ?? ''}` : `${Math.round(percentage)}%`;
}

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
  #numbers = 0;
  #contents = 0;
  /** The first row that still has its content. */
  #oldest = 0;

  /** Forgets everything but the calls in flight. */
  clear() {
    this.rows = [];
    this.counts.clear();
    this.reasons = [];
    this.#contents = 0;
    this.#oldest = 0;
    for (const [key, { state }] of this.calls) if (state === 'ended') this.calls.delete(key);
  }

  /** @param {TraceEvent} event */
  add(event) {
    this.start ??= event.time;
    const { type, reason, error, time } = event;
    if (type === 'message') return this.#message(event);
    this.#call(event);
    if (type === 'session') this.#row(event, 'session', lineOf(event), undefined);
    if (type === 'dropped') {
      const why = `${reason}: ${REASONS[reason ?? ''] ?? ''}`;
      this.#count(reason ?? '', event.count ?? 1, time, why);
      this.#row(event, 'problem', `dropped: ${reason}`, { dropped: event.count, because: why });
    }
    if (type === 'refused') {
      const why = [error?.code, error?.message].filter(Boolean).join(': ');
      this.#count('refused', 1, time, `${event.name}: ${why}`);
      this.#row(event, 'problem', `refused ${event.name}: ${error?.code}`, {
        error,
        params: event.params,
      });
    }
  }

  /** @param {string} name @param {number} count @param {number} time @param {string} text */
  #count(name, count, time, text) {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    this.reasons.push({ time, text });
    if (this.reasons.length > MAX_REASONS) this.reasons.shift();
  }

  /** @param {TraceEvent} event */
  #message(event) {
    const { message, side, direction } = event;
    const type = String(getOwn(message, 'type') ?? typeof message);
    const payload = getOwn(message, 'payload');
    const options = getOwn(payload, 'options');
    const id =
      getOwn(options, 'callId') ??
      getOwn(payload, 'callId') ??
      getOwn(payload, 'operationId') ??
      getOwn(message, 'id') ??
      '';
    const other = side === 'agent' ? 'app' : 'agent';
    let kind = kindOf(type);
    let title = type;
    if (kind === 'call') {
      title = `${type === 'capabilities/call' ? 'call' : 'ask'} ${getOwn(payload, 'capability') ?? getOwn(payload, 'method')}`;
    } else if (/^(capabilities\/call-result|call-result|elicitation\/response)$/.test(type)) {
      ({ kind, title } = responseIn(payload));
      const asked = direction === 'in' ? 'out' : 'in';
      const name = this.calls.get([event.connection, asked, id].join(' '))?.name;
      if (name) title = `${name}: ${title}`;
    } else if (type === 'progress') title = `progress ${progressIn(payload)}`;
    else if (kind === 'cancel') {
      const reason = getOwn(payload, 'reason');
      const answered = getOwn(payload, 'cancelled');
      title = answered === undefined ? 'cancel' : `cancelled: ${answered}`;
      if (typeof reason === 'string') title += `: ${reason}`;
    } else if (type === 'notification') {
      title = `notification ${getOwn(payload, 'event') ?? getOwn(payload, 'method')}`;
    }
    this.#stream(event, type, payload);
    this.#row(event, kind, title, message, String(id), direction === 'out' ? side : other);
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
    const call = this.calls.get([connection, made, getOwn(payload, 'callId')].join(' '));
    if (!call) return;
    const stream = (call.stream ??= { chunks: 0, unread: 0, bytes: 0 });
    const said = (/** @type {string} */ key) => {
      const amount = getOwn(payload, key);
      return typeof amount === 'number' && Number.isFinite(amount) ? amount : 0;
    };
    if (isChunk) stream.chunks++;
    stream.unread += isChunk ? 1 : -said('chunks');
    stream.bytes += isChunk ? said('size') : -said('bytes');
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
    let text = content === undefined ? '' : (JSON.stringify(snapshot(content), null, 2) ?? '');
    if (text.length > MAX_CONTENT) text = `${text.slice(0, MAX_CONTENT)}\n…`;
    const number = ++this.#numbers;
    const row = { number, time, kind, from, side, connection, title, id, content: text, frame };
    this.rows.push(row);
    this.#contents += text.length;
    while (this.#contents > MAX_CONTENTS) {
      const old = this.rows[this.#oldest++];
      this.#contents -= old.content?.length ?? 0;
      old.content = undefined;
    }
    if (this.rows.length <= MAX_ROWS) return;
    this.#contents -= this.rows.shift()?.content?.length ?? 0;
    this.#oldest = Math.max(0, this.#oldest - 1);
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
      throw new TypeError(`This is no recording: line ${i + 1} is not JSON`);
    }
    const note = getOwn(read, 'note');
    const whole = typeof getOwn(note, 'type') === 'string' && Number.isFinite(getOwn(note, 'time'));
    if (whole) events.push(/** @type {TraceEvent} */ (note));
  }
  if (!events.length) throw new TypeError('This is no recording: no line tells what happened');
  return events;
}
