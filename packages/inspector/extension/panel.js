/**
 * The panel: requests events from the inspected page and each of its frames, and passes them to the
 * inspector.
 */
import '../src/index.js';
import { drain } from './page.js';

/** Ms between two requests to the page. */
const INTERVAL = 250;
/** Connections of one document have numbers below this. */
const DOCUMENT = 1_000_000;

const { inspectedWindow } = /** @type {any} */ (globalThis).chrome.devtools;
/** The addresses of the frames. @type {Set<string>} */
const frames = new Set();
/**
 * The documents, by their own ids: several frames may have one address.
 * @type {number[]}
 */
const documents = [];

/** @param {number} id */
function indexOf(id) {
  if (!documents.includes(id)) documents.push(id);
  return documents.indexOf(id);
}

/**
 * Runs the drain in a frame.
 * @param {string | undefined} frameURL undefined for the page itself
 * @returns {Promise<ReturnType<typeof answerIn>>} undefined if there is no such frame now
 */
const ask = (frameURL) =>
  new Promise((resolve) =>
    inspectedWindow.eval(
      `(${drain})()`,
      frameURL === undefined ? {} : { frameURL },
      (/** @type {string} */ text, /** @type {unknown} */ problem) =>
        resolve(problem ? undefined : answerIn(text)),
    ),
  );

/**
 * Reads a frame's answer. The frame runs any code, so its answer may have any form, and must not
 * affect other frames.
 * @param {unknown} text
 * @returns {{ id: number, origin: number, events: any[] } | undefined} undefined if it is malformed
 */
function answerIn(text) {
  try {
    const { id, origin, events } = JSON.parse(String(text));
    const isWhole = [id, origin].every(Number.isFinite) && Array.isArray(events);
    return isWhole ? { id, origin, events: events.filter(isEvent) } : undefined;
  } catch {
    return undefined;
  }
}

/** @param {any} event */
const isEvent = (event) =>
  typeof event?.type === 'string' && [event.time, event.connection].every(Number.isFinite);

/** @param {import('abp-bridge/driver').TraceListener} listener */
async function poll(listener) {
  inspectedWindow.getResources((/** @type {{ type: string, url: string }[]} */ resources) => {
    for (const { type, url } of resources) {
      if (type === 'document') frames.add(url);
    }
  });
  const answers = await Promise.all([undefined, ...frames].map(ask));
  const events = answers.flatMap((answer) => {
    if (!answer) return [];
    const { id, origin, events } = answer;
    return events.map((event) => ({
      ...event,
      connection: event.connection + indexOf(id) * DOCUMENT,
      // Each document has a clock of its own.
      time: event.time + origin - performance.timeOrigin,
    }));
  });
  for (const event of events.sort((a, b) => a.time - b.time)) {
    try {
      listener(event);
    } catch {
      // It has the form of an event, but values that no app of this library sends.
    }
  }
}

/** @type {import('../src/element.js').Target} */
const page = {
  async observe(listener) {
    let stopped = false;
    const again = async () => {
      await poll(listener);
      if (!stopped) setTimeout(again, INTERVAL);
    };
    void again();
    return () => void (stopped = true);
  },
};
const inspector = /** @type {import('../src/index.js').AbpInspector} */ (
  document.querySelector('abp-inspector')
);
void inspector.attach(page);
