/**
 * Defines `<abp-inspector>`: see docs/inspector.md#the-inspector.
 *
 * How it is made: an endpoint reports events to its one observer (js/types/trace.ts). `trace.js`,
 * which is loaded with the first listener, turns them into trace events: it asks the core for names
 * and counts, and shows frames as the messages in them. `log.js` makes rows, calls and counts of
 * events, live or from a recording, all of them bounded. `element.js` shows these with the elements
 * of `views.js`, as text only. The outcome of a call is the core's and comes with the events;
 * nothing here decides it.
 *
 * A recording has more: `recorder.js` stands between an endpoint and its core, and records each
 * input and each action, so that `replay/` can replay them in C. The events are in it, too, as
 * notes.
 */
import { AbpInspector } from './element.js';

export { AbpInspector };

globalThis.customElements?.define('abp-inspector', AbpInspector);

/** @typedef {import('./element.js').Target} Target */
