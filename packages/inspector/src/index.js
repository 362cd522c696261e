/**
 * Defines `<abp-inspector>`: see docs/inspector.md#the-inspector.
 *
 * How it is made: an endpoint tells its one observer what happens (js/types/trace.ts). `trace.js`,
 * which is loaded once somebody listens, makes events of that: it asks the core for names and
 * counts, and shows frames as the messages that they stand for. `log.js` makes rows, calls and
 * counts of events, live or from a recording, all of them bounded. `element.js` shows these with
 * what `views.js` makes, as text only. What became of a call is the core's and comes with the
 * events; nothing here decides it.
 *
 * A recording has more: `recorder.js` stands between an endpoint and its core, and writes down each
 * input and each action, so that `replay/` can play them again in C. The events are in it, too, as
 * notes.
 */
import { AbpInspector } from './element.js';

export { AbpInspector };

globalThis.customElements?.define('abp-inspector', AbpInspector);

/** @typedef {import('./element.js').Target} Target */
