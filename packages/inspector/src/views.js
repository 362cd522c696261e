/**
 * The elements of the inspector. Data of a peer is inserted as text, never as HTML.
 */
import { REASONS } from 'abp-bridge/driver';
import { otherSide } from './log.js';

/** @import { CallEntry, Row } from './log.js' */

/**
 * Makes an element. Attributes that are undefined or false are omitted.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | boolean | undefined>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : value);
  element.append(...children);
  return element;
}

/**
 * @param {string} label
 * @param {() => void} act
 * @param {Record<string, string>} [attributes]
 */
export function button(label, act, attributes) {
  const made = make('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', act);
  return made;
}

/**
 * A time for people.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 1000) return `${ms.toFixed(1)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/**
 * An id in the shortest form that is distinct.
 * @param {string} id
 */
const shortId = (id) => (id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);

/**
 * A row of the chart: an arrow between the lanes, and below it, once it is opened, the content of
 * the message.
 * @param {Row} row
 * @param {number} start time of the first event, in ms
 */
export function rowView(row, start) {
  const { from, kind, title, id, frame, side } = row;
  const way = from === undefined ? 'none' : from === 'agent' ? 'right' : 'left';
  const between = from === undefined ? `seen by the ${side}` : `${from} to ${otherSide(from)}`;
  const span = (/** @type {string} */ name, /** @type {(Node | string)[]} */ ...children) =>
    make('span', { class: name }, ...children);
  const lane = (/** @type {string} */ of) => span(from === of ? 'life end' : 'life');
  const shownId = `${id && ` ${shortId(id)}`}${frame === undefined ? '' : ` · frame ${frame}`}`;
  const summary = make(
    'summary',
    { class: `${kind} ${way}`, tabindex: '-1' },
    span('time', duration(row.time - start)),
    span('hidden', `, ${between}: `),
    lane('agent'),
    span('what', span('title', title, span('id', shownId))),
    lane('app'),
  );
  const details = make('details', {}, summary);
  details.addEventListener('toggle', () => details.append(contentView(row)), { once: true });
  return make('li', {}, details);
}

/**
 * Updates a row's title, if the row is shown.
 * @param {HTMLElement | undefined} item
 * @param {Row} row
 */
export function retitle(item, { title }) {
  const text = item?.querySelector('.title')?.firstChild;
  if (text) text.nodeValue = title;
}

/**
 * The content of a row, for its details.
 * @param {Row} row
 */
function contentView({ content = 'Its content is no longer kept.' }) {
  const about = { tabindex: '0', role: 'region', 'aria-label': 'Content' };
  return make('pre', about, content || 'No content.');
}

/** The lanes between which the arrows of the chart are. */
export function makeLanes() {
  const heads = ['time', 'agent', '', 'app'].map((text) => make('span', {}, text));
  return make('div', { class: 'lanes', 'aria-hidden': 'true' }, ...heads);
}

/** The columns of the calls; those with a second member are hidden in a narrow layout. */
const COLUMNS = [
  ['Call'],
  ['State'],
  ['Id'],
  ['Made by', 'wide'],
  ['Age'],
  ['Time left'],
  ['Progress', 'wide'],
  ['Stream', 'wide'],
  ['Parent', 'wide'],
  ['How it ended'],
];

/**
 * The table of the calls.
 * @param {HTMLElement} body with their rows
 */
export function makeTable(body) {
  const heads = COLUMNS.map(([text, wide]) => make('th', { scope: 'col', class: wide }, text));
  return make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body);
}

/**
 * A call, as a row of the table.
 * @param {CallEntry} call
 * @param {number} now ms
 * @param {() => void} show shows its messages
 */
export function callView(call, now, show) {
  const { id, name, direction, side, state, began, ended, deadline, stream } = call;
  const maker =
    direction === 'local' ? 'app, itself' : direction === 'out' ? side : otherSide(side);
  const left = ended === undefined && deadline ? duration(Math.max(0, deadline - now)) : '';
  const rest =
    stream && stream.unread > 0 ? `, ${stream.unread} unread (${stream.bytes} bytes)` : '';
  const cells = [
    button(name || '(no name)', show, { title: 'Show its messages' }),
    make('span', { class: `state ${state}` }, state),
    make('span', { title: id }, shortId(id)),
    maker,
    duration((ended ?? now) - began),
    left,
    call.progress,
    stream ? `${stream.chunks} chunks${rest}` : '',
    make('span', { title: call.parent }, shortId(call.parent)),
    make('span', { class: `end-of ${call.endKind}` }, call.end),
  ];
  return make('tr', {}, ...cells.map((cell, i) => make('td', { class: COLUMNS[i][1] }, cell)));
}

/** The names of the core's counters, and their meanings. */
const COUNTERS = {
  inFlightOut: ['In flight, made here', 'calls made by this side that have not settled'],
  inFlightIn: ['In flight, received', 'received calls that have not ended'],
  remembered: ['Remembered', 'finished calls whose fate can still be asked for'],
  late: ['Late', REASONS.late],
  stray: ['Stray', REASONS.stray],
  malformed: ['Malformed', REASONS.malformed],
  unknownType: ['Unknown type', REASONS['unknown type']],
  overrun: ['Overrun', REASONS.overrun],
  refused: ['Refused', 'calls that were answered with an error before they ran'],
};

/**
 * Counters, each with its meaning.
 * @param {Record<string, number>} counters
 */
export const counterViews = (counters) =>
  Object.entries(COUNTERS)
    .filter(([key]) => counters[key] !== undefined)
    .map(([key, [label, meaning]]) => {
      const terms = [make('dd', {}, `${counters[key]}`), make('dd', { class: 'meaning' }, meaning)];
      return make('div', {}, make('dt', {}, label), ...terms);
    });
