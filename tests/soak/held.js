/**
 * What this process holds on to, as far as one can see it from outside: timers, listeners of the
 * page and of the process, ports and sockets, objects of kinds that would be left over, and the
 * memory of the cores. Imported before what it is to see.
 */
import { EventEmitter } from 'node:events';
import * as v8 from 'node:v8';
import { CoreDriver } from '../../js/driver/machine.js';
import { portTransport } from '../../js/transports/port.js';

/** What has been set and has neither fired nor been cleared. @type {Set<unknown>} */
const timers = new Set();
const { setTimeout: set, clearTimeout: clear } = globalThis;
globalThis.setTimeout = /** @type {any} */ (
  Object.assign((/** @type {any} */ act, /** @type {any} */ ms, /** @type {any[]} */ ...given) => {
    const timer = set(() => {
      timers.delete(timer);
      act(...given);
    }, ms);
    timers.add(timer);
    return timer;
  }, set)
);
globalThis.clearTimeout = (timer) => {
  timers.delete(timer);
  clear(timer);
};

/** Each instance of a core that was made has one. @type {WebAssembly.Memory[]} */
const memories = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = class extends Instance {
  /**
   * @param {WebAssembly.Module} module
   * @param {WebAssembly.Imports} imports
   */
  constructor(module, imports) {
    super(module, imports);
    memories.push(/** @type {WebAssembly.Memory} */ (this.exports.memory));
  }
};

/** Listeners that a page would have, by type. @type {Map<string, Set<(event: any) => void>>} */
export const pageListeners = new Map();
const listenersOf = (/** @type {string} */ type) =>
  pageListeners.get(type) ?? pageListeners.set(type, new Set()).get(type);
globalThis.addEventListener = (type, heard) => void listenersOf(type).add(heard);
globalThis.removeEventListener = (type, heard) => void listenersOf(type).delete(heard);

/** What every transport is, or extends. @type {any} */
const { constructor: Receiver } = Object.getPrototypeOf(
  portTransport({ postMessage() {}, addEventListener() {} }),
);

/** Ports are not among them: some that were closed wait until the engine has told both ends. */
const KINDS = { AbortSignal, CoreDriver, EventEmitter, Receiver };

/** What lasts until somebody ends it, of the resources of Node. */
const LASTING = /Port|Socket|Server|Worker|Timeout/;

/**
 * @param {string[]} names
 * @returns {Record<string, number>} how often each occurs
 */
function tally(names) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const name of names.sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** What is held while nothing is under way. */
export const held = () => ({
  timers: timers.size,
  'listeners of the page': [...pageListeners.values()].reduce((sum, { size }) => sum + size, 0),
  'listeners of the process': process
    .eventNames()
    .reduce((sum, name) => sum + process.listenerCount(name), 0),
  resources: tally(process.getActiveResourcesInfo().filter((name) => LASTING.test(name))),
});

/** How many objects of each kind there are, after a collection. It takes a while. */
export const objects = () =>
  Object.fromEntries(
    Object.entries(KINDS).map(([name, kind]) => [
      name,
      /** @type {any} */ (v8).queryObjects(kind, { format: 'count' }),
    ]),
  );

/** Bytes of the memory of each instance of a core. */
export const coreMemory = () => memories.map(({ buffer }) => buffer.byteLength);
