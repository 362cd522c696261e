/**
 * The data of the inspector: the events of connections as rows of a chart, the calls, and the
 * dropped messages with the reasons.
 */
import { REASONS, getOwn, isObject, lineOf } from 'abp-bridge/driver';
import { readableCopy } from './readable-copy.js';

/** @import { TraceEvent } from 'abp-bridge/driver' */

const MAX_ROWS = 2000;
const MAX_CALLS = 1000;
const MAX_REASONS = 200;
/** Characters of a row's content, and of all contents. */
const MAX_CONTENT = 20_000;
const MAX_CONTENTS = 8_000_000;

/** @typedef {'agent' | 'app'} Side */
/**
 * @typedef {'call' | 'result' | 'failed' | 'cancel' | 'progress' | 'session' | 'problem' | 'other'}
 *   Kind The subject of a row; the filter offers these.
 */

/**
 * @typedef {object} Row
 * @property {number} number the first is 1
 * @property {number} time ms
 * @property {number} connection
 * @property {Kind} kind
 * @property {Side} [from] the sender of the message, if it is one
 * @property {Side} side that has seen it
 * @property {string} title
 * @property {string} id of the call, or empty
 * @property {string} [content] as text, as long as it is kept
 * @property {number} [frame]
 * @property {{ counts: Record<string, number>, done: string }} [gathered] number of messages of
 *   each type in this row, and the progress of the call
 * @property {boolean} [foreign] a message of another protocol, which will be counted as malformed
 */

/**
 * @typedef {object} CallEntry The state of a call, from its events.
 * @property {string} id
 * @property {string} name
 * @property {string} direction
 * @property {Side} side
 * @property {'waiting' | 'running' | 'stopping' | 'ended'} state
 * @property {number} began ms
 * @property {number} [ended] ms
 * @property {number} [deadline] ms
 * @property {string} parent its id, or empty
 * @property {string} progress
 * @property {{ chunks: number, unread: number, bytes: number }} [stream] number of chunks received
 *   or sent, and the part that the reader has not granted again: chunks, and bytes
 * @property {string} end how it ended, or empty
 * @property {Kind} endKind
 */

/** The kinds of messages, by type. @type {[RegExp, Kind][]} */
const KINDS = [
  [/^(capabilities\/call|elicitation\/request)$/, 'call'],
  [/^(capabilities\/|bridge\/|)cancel/, 'cancel'],
  [/^(progress|bridge\/chunk|bridge\/credit)$/, 'progress'],
  [/^(initialize|shutdown|bridge\/)/, 'session'],
];

/**
 * @param {Side} side
 * @returns {Side}
 */
export const otherSide = (side) => (side === 'agent' ? 'app' : 'agent');

/**
 * The key of a call.
 * @param {number} connection
 * @param {string} direction
 * @param {string} id
 */
const keyOf = (connection, direction, id) => `${connection} ${direction} ${id}`;

/**
 * A value of a peer as text: a value without a text of its own must not hide its message.
 * @param {unknown} value
 * @returns {string} empty if there is none
 */
const shortText = (value) =>
  isObject(value) ? JSON.stringify(readableCopy(value)) : String(value ?? '');

/**
 * @param {unknown} object
 * @param {string} key
 * @returns {number | undefined}
 */
function numberIn(object, key) {
  const value = getOwn(object, key);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/**
 * A response in a few words.
 * @param {unknown} response
 * @returns {{ kind: Kind, title: string }}
 */
function responseIn(response) {
  const error = getOwn(response, 'error');
  const said = ['code', 'message'].map((key) => shortText(getOwn(error, key))).filter(Boolean);
  if (getOwn(response, 'success') === true) return { kind: 'result', title: 'completed' };
  const isCancelled = getOwn(response, 'cancelled') === true;
  const title = [isCancelled ? 'cancelled' : 'failed', ...said].join(': ');
  return { kind: isCancelled ? 'cancel' : 'failed', title };
}

/** @param {unknown} info */
function progressIn(info) {
  const done = numberIn(info, 'progress');
  const total = numberIn(info, 'total') ?? 0;
  const isPart = done !== undefined && total > 0;
  const part = isPart ? (done / total) * 100 : numberIn(info, 'percentage');
  return part === undefined ? `${done ?? ''}` : `${Math.round(part)}%`;
}

/**
 * Names a message of another protocol, which has no type of ours: windows receive all messages of
 * their frames.
 * @param {unknown} message
 */
function foreignIn(message) {
  if (getOwn(message, 'jsonrpc') === '2.0')
    return `${shortText(getOwn(message, 'method') ?? 'an answer')}: another protocol (JSON-RPC)`;
  const channel = getOwn(message, 'abp-bridge');
  if (channel !== undefined) return `${shortText(channel)}: another protocol (JSON-RPC channel)`;
  return `${typeof message}: another protocol`;
}

/**
 * A message in a few words.
 * @param {string} type
 * @param {unknown} payload
 * @returns {{ kind: Kind, title: string }}
 */
function messageIn(type, payload) {
  if (/^(capabilities\/call-result|call-result|elicitation\/response)$/.test(type))
    return responseIn(payload);
  const kind = KINDS.find(([types]) => types.test(type))?.[1] ?? 'other';
  const field = (/** @type {string} */ key) => getOwn(payload, key);
  let title = type;
  if (type === 'capabilities/call') title = `${shortText(field('capability'))}: call`;
  else if (kind === 'call') title = `${shortText(field('method'))}: question`;
  if (type === 'notification') title += ` ${shortText(field('event') ?? field('method'))}`;
  if (kind === 'cancel') {
    const [answer, reason] = [field('cancelled'), field('reason')];
    title = answer === undefined ? 'cancel' : `cancelled: ${shortText(answer)}`;
    if (typeof reason === 'string') title += `: ${reason}`;
  }
  return { kind, title };
}

/**
 * The title of a row for several messages.
 * @param {Required<Row>['gathered']} gathered
 */
function gatheredIn({ counts, done }) {
  const { initialize, progress, 'bridge/chunk': chunks, 'bridge/credit': credits } = counts;
  const times = (/** @type {number} */ count) => (count > 1 ? ` (${count} times)` : '');
  return [
    initialize && `initialize${times(initialize)}`,
    progress && `progress ${done}${times(progress)}`,
    chunks && `${chunks} ${chunks > 1 ? 'chunks' : 'chunk'}`,
    credits && `${credits} ${credits > 1 ? 'credits' : 'credit'}`,
  ]
    .filter(Boolean)
    .join(', ');
}

export class Log {
  /** @type {Row[]} */
  rows = [];
  /** The calls, oldest first, by connection, direction and id. @type {Map<string, CallEntry>} */
  calls = new Map();
  /** Number of dropped or refused messages, by reason. @type {Map<string, number>} */
  counts = new Map();
  /**
   * The last of these, each with its time and its error.
   * @type {{ time: number, text: string }[]}
   */
  reasons = [];
  /** The time of the first event, in ms. @type {number | undefined} */
  start = undefined;
  /** The rows that have changed since they were shown. @type {Set<Row>} */
  changed = new Set();
  #numbers = 0;
  /** Characters of all contents. */
  #contents = 0;

  /** Forgets everything but the calls in flight. */
  clear() {
    this.rows = [];
    this.reasons = [];
    this.changed.clear();
    this.counts.clear();
    this.#contents = 0;
    for (const [key, { state }] of this.calls) if (state === 'ended') this.calls.delete(key);
  }

  /** @param {TraceEvent} event */
  add(event) {
    this.start ??= event.time;
    const { type, error, time, name, params } = event;
    if (type === 'message') return this.#message(event);
    if (type === 'dropped') return this.#dropped(event);
    if (type === 'session') this.#row(event, 'session', lineOf(event), undefined);
    if (type !== 'refused') return this.#call(event);
    const why = [error?.code, error?.message].filter(Boolean).join(': ');
    this.#count('refused', 1, time, `${name}: ${why}`);
    this.#row(event, 'problem', `${name}: refused: ${error?.code}`, { error, params });
  }

  /** @param {TraceEvent} event */
  #dropped(event) {
    const { reason = '', time, connection, count = 1 } = event;
    // A message of another protocol has a row that names the protocol.
    const foreign = this.rows
      .filter((row) => reason === 'malformed' && row.foreign && row.connection === connection)
      .slice(0, count);
    for (const row of foreign) {
      row.foreign = false;
      this.#count(reason, 1, time, `${reason}: ${row.title}`);
    }
    const dropped = count - foreign.length;
    if (!dropped) return;
    const because = `${reason}: ${REASONS[reason] ?? ''}`;
    this.#count(reason, dropped, time, because);
    this.#row(event, 'problem', `dropped: ${reason}`, { dropped, because });
  }

  /**
   * @param {string} name
   * @param {number} count
   * @param {number} time
   * @param {string} text
   */
  #count(name, count, time, text) {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
    this.reasons.push({ time, text });
    if (this.reasons.length > MAX_REASONS) this.reasons.shift();
  }

  /** @param {TraceEvent} event */
  #message(event) {
    const { message, side, direction, connection } = event;
    const from = direction === 'out' ? side : otherSide(side);
    if (typeof getOwn(message, 'type') !== 'string') {
      const id = shortText(getOwn(message, 'id'));
      this.#row(event, 'other', foreignIn(message), message, id, from).foreign = true;
      return;
    }
    const { type, payload } = message;
    const id = shortText(
      getOwn(getOwn(payload, 'options'), 'callId') ??
        getOwn(payload, 'callId') ??
        getOwn(payload, 'operationId') ??
        getOwn(message, 'id'),
    );
    const name = ['out', 'in', 'local']
      .map((made) => this.calls.get(keyOf(connection, made, id))?.name)
      .find(Boolean);
    const { kind, title } = messageIn(type, payload);
    if (kind === 'progress' || type === 'initialize') {
      this.#stream(event, type, payload);
      return this.#gather(event, type, kind, id, from, name);
    }
    // Numbers begin at 1.
    if (kind === 'cancel' && !name && id.endsWith('.0')) {
      const asked = type === 'capabilities/cancel' ? 'are you there? (a cancel of no call)' : 'yes';
      return void this.#row(event, 'session', asked, message, id, from);
    }
    const isOfCall = name && ['result', 'failed', 'cancel'].includes(kind);
    this.#row(event, kind, isOfCall ? `${name}: ${title}` : title, message, id, from);
  }

  /**
   * Frequent messages share one row, as long as nothing else happens to their call: progress,
   * chunks and credits, of which there are thousands, and a greeting, which is repeated until it is
   * answered.
   * @param {TraceEvent} event
   * @param {string} type
   * @param {Kind} kind
   * @param {string} id
   * @param {Side} from
   * @param {string} [name] of the capability
   */
  #gather(event, type, kind, id, from, name) {
    const { connection, message } = event;
    const last = this.rows.findLast((row) => row.id === id && row.connection === connection);
    const row = last?.gathered ? last : this.#row(event, kind, '', undefined, id, from);
    const gathered = (row.gathered ??= { counts: {}, done: '' });
    gathered.counts[type] = (gathered.counts[type] ?? 0) + 1;
    if (type === 'progress') gathered.done = progressIn(getOwn(message, 'payload'));
    row.title = `${name ? `${name}: ` : ''}${gatheredIn(gathered)}`;
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
    const call = this.calls.get(keyOf(connection, made, shortText(getOwn(payload, 'callId'))));
    if (!call) return;
    const stream = (call.stream ??= { chunks: 0, unread: 0, bytes: 0 });
    if (isChunk) stream.chunks++;
    stream.unread += isChunk ? 1 : -(numberIn(payload, 'chunks') ?? 0);
    stream.bytes += isChunk ? (numberIn(payload, 'size') ?? 0) : -(numberIn(payload, 'bytes') ?? 0);
  }

  /**
   * @param {TraceEvent} event
   * @param {Kind} kind
   * @param {string} title
   * @param {unknown} content
   * @param {string} [id]
   * @param {Side} [from]
   */
  #row(event, kind, title, content, id = event.callId ?? '', from = undefined) {
    const { time, side, connection, frame } = event;
    const number = ++this.#numbers;
    /** @type {Row} */
    const row = { number, time, connection, kind, from, side, title, id, content: '', frame };
    this.rows.push(row);
    this.#setContent(row, content);
    if (this.rows.length > MAX_ROWS) this.#contents -= this.rows.shift()?.content?.length ?? 0;
    return row;
  }

  /**
   * @param {Row} row
   * @param {unknown} content of its last message
   */
  #setContent(row, content) {
    if (row.content === undefined) return; // it was dropped
    let text = content === undefined ? '' : (JSON.stringify(readableCopy(content), null, 2) ?? '');
    if (text.length > MAX_CONTENT) text = `${text.slice(0, MAX_CONTENT)}\n…`;
    this.#contents += text.length - row.content.length;
    row.content = text;
    for (const old of this.#contents > MAX_CONTENTS ? this.rows : []) {
      this.#contents -= old.content?.length ?? 0;
      old.content = undefined;
      if (this.#contents <= MAX_CONTENTS) return;
    }
  }

  /** @param {TraceEvent} event */
  #call(event) {
    const { type, connection, side, direction = '', callId, time, timeout, name = '' } = event;
    if (callId === undefined) return;
    const key = keyOf(connection, direction, callId);
    if (type === 'call') {
      this.calls.delete(key);
      this.calls.set(key, {
        id: callId,
        name,
        direction,
        side,
        state: event.waiting || direction === 'out' ? 'waiting' : 'running',
        began: time,
        deadline: timeout ? time + timeout : undefined,
        parent: event.parent ?? '',
        progress: '',
        end: '',
        endKind: 'other',
      });
      if (this.calls.size <= MAX_CALLS) return;
      // Removes the oldest call that has ended or, without any, the oldest.
      const [oldest] = this.calls;
      const [old] = [...this.calls].find(([, { state }]) => state === 'ended') ?? oldest;
      this.calls.delete(old);
    }
    const call = this.calls.get(key);
    if (!call || call.state === 'ended') return;
    if (type === 'start') call.state = 'running';
    if (type === 'progress') call.progress = progressIn(event.progress);
    if (type === 'cancel') call.state = 'stopping';
    if (type !== 'result') return;
    const { outcome = '', response, error } = event;
    const { kind, title } = responseIn({ ...response, error });
    const endKind = outcome === 'timed out' ? 'cancel' : kind;
    Object.assign(call, { state: 'ended', ended: time, endKind });
    call.end = title.replace(/^\w+/, outcome);
  }
}

/**
 * The events in a recording.
 * @param {string} text lines of JSON, as `Recorder.text` has them
 * @returns {TraceEvent[]}
 * @throws {TypeError} if it is not a recording
 */
export function eventsOf(text) {
  const notes = text.split('\n').map((line, i) => {
    try {
      return line.trim() && getOwn(JSON.parse(line), 'note');
    } catch {
      throw new TypeError(`This is not a recording: line ${i + 1} is not JSON`);
    }
  });
  const isEvent = (/** @type {unknown} */ note) =>
    typeof getOwn(note, 'type') === 'string' && Number.isFinite(getOwn(note, 'time'));
  const events = notes.filter(isEvent);
  if (!events.length) throw new TypeError('This is not a recording: it has no events');
  return /** @type {TraceEvent[]} */ (events);
}
