// The app: its capabilities, and their permitted callers. The rest is display.
import { expose } from 'abp-bridge';
import { createView, toolsOf } from '@abp-bridge/mcp-apps';
import { webmcp } from '@abp-bridge/webmcp';
import { pool } from 'abp-bridge/pool';
import { capabilities } from './operations/index.js';
import { sampleMarkdown } from './sample.js';

const workers = pool(() => new Worker('/route-worker.js', { type: 'module' }), { size: 2 });
const plan = workers.run('plan');

/**
 * A number from 0 to 1 for each n, the same every time.
 * @param {number} n
 */
const scattered = (n) => Math.abs(Math.sin(n * 12.9898) * 43758.5453) % 1;
/**
 * The destinations of the parcels, in km.
 * @param {number} count
 * @returns {[number, number][]}
 */
const stopsOf = (count) =>
  Array.from({ length: count }, (_, i) => [100 * scattered(i + 1), 60 * scattered(i + 0.5)]);

/** Capabilities that need a page. @type {Record<string, import('abp-bridge').Capability>} */
const ofThePage = {
  'route.plan': {
    description: 'Searches the shortest round of 80 stops, in a worker that is busy all the time',
    inputSchema: {
      type: 'object',
      properties: {
        stops: { type: 'integer', minimum: 8, maximum: 1000 },
        seconds: { type: 'number', minimum: 0.1, maximum: 600 },
      },
    },
    async handler({ stops = 80, seconds = 20 }, context) {
      const places = stopsOf(stops);
      return { stops: places, ...(await plan({ stops: places, seconds }, context)) };
    },
  },
  'report.publish': {
    description: 'Asks you first, in the middle of the call',
    async handler({ title }, { elicit, progress, signal }) {
      progress({ progress: 1, total: 2, stage: 'asking' });
      const answer = await elicit({
        method: 'elicitation/confirm',
        params: { message: `Publish “${title}”?` },
      });
      signal.throwIfAborted();
      return { published: answer.success && answer.data.confirmed === true };
    },
  },
  'count.up': {
    description: 'Counts up, ten a second',
    inputSchema: {
      type: 'object',
      properties: {
        to: { type: 'integer', minimum: 1, maximum: 1e6 },
        agent: { type: 'string', description: 'Whom the app names as the caller' },
      },
      required: ['to'],
    },
    async handler({ to }, { signal, progress }) {
      for (let counted = 1; counted <= to; counted++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        signal.throwIfAborted();
        progress({ progress: counted, total: to });
      }
      return { counted: to };
    },
  },
  'app.freeze': {
    description: 'Keeps the whole page of the app busy',
    inputSchema: {
      type: 'object',
      properties: { ms: { type: 'integer', minimum: 0, maximum: 60_000 } },
      required: ['ms'],
    },
    handler({ ms }) {
      for (const end = performance.now() + ms; performance.now() < end;);
    },
  },
};

/** The title of each capability's job on the page. @type {Record<string, string>} */
const TITLES = {
  'export.pdf': 'Exporting a PDF',
  'image.blur': 'Blurring a picture',
  'text.summarise': 'Summarising a text',
  'story.tell': 'Telling a story',
  'route.plan': 'Planning a round',
  'report.publish': 'Publishing a report',
  'count.up': 'Counting up',
  'app.freeze': 'Frozen',
};
/** Jobs on the page at most. */
const MAX_SHOWN = 12;

/**
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {any}
 */
const $ = (selector, within = document) => within.querySelector(selector);

/**
 * Shows each call while its handler runs.
 * @param {string} name
 * @param {import('abp-bridge').Handler} handler
 * @returns {import('abp-bridge').Handler}
 */
function shown(name, handler) {
  return async (params, context) => {
    const job = $('#job').content.cloneNode(true).firstElementChild;
    const [line, bar, stage] = ['.line', 'progress', '.stage'].map((part) => $(part, job));
    const title = params?.agent ? `${TITLES[name]} for ${params.agent}` : TITLES[name];
    const say = (/** @type {string} */ state, /** @type {string} */ why = '') => {
      job.dataset.state = state;
      line.textContent = `${title}: ${state}${why && ` (${why})`}`;
    };
    const stopped = (/** @type {unknown} */ error) =>
      say(context.signal.aborted ? 'stopped' : 'failed', /** @type {Error} */ (error).message);
    say('working');
    $('#idle').hidden = true;
    $('#running').prepend(job);
    $(`#running > :nth-child(${MAX_SHOWN + 1})`)?.remove();
    context.signal.addEventListener('abort', () => say('stopping', context.signal.reason.message));
    const progress = (/** @type {any} */ info) => {
      bar.value = (100 * info.progress) / info.total;
      stage.textContent = [info.stage, info.status].filter(Boolean).join(', ');
      context.progress(info);
    };
    const done = () => ((bar.value = 100), say('done'));
    /**
     * A stream is done when it has been read.
     * @param {AsyncIterable<unknown>} stream
     */
    async function* watched(stream) {
      let ended = false;
      try {
        yield* stream;
        done();
        ended = true;
      } catch (error) {
        stopped(error);
        ended = true;
        throw error;
      } finally {
        if (!ended) say('stopped');
      }
    }
    try {
      // A frame is painted before the work begins, which may not pause.
      await new Promise((resolve) => setTimeout(resolve, 20));
      const data = await handler(params, { ...context, progress });
      if (data && typeof data === 'object' && Symbol.asyncIterator in data) return watched(data);
      done();
      return data;
    } catch (error) {
      stopped(error);
      throw error;
    }
  };
}

// The second hand of the page: it stands still while the page is blocked.
setInterval(() => {
  $('#clock').textContent = new Date().toLocaleTimeString();
  $('#beat').classList.toggle('on');
}, 500);

/**
 * Examples that the page does not show: they are computed in advance.
 * @type {import('abp-bridge').Capability}
 */
const examples = {
  description: 'Makes a small example of what each of the others makes',
  readOnly: true,
  async handler(params, context) {
    const quiet = { ...context, progress() {} };
    const stops = stopsOf(40);
    return {
      'export.pdf': await capabilities['export.pdf'].handler(
        { markdown: sampleMarkdown(1) },
        quiet,
      ),
      'image.blur': await capabilities['image.blur'].handler({ size: 200, radius: 4 }, quiet),
      'route.plan': { stops, ...(await plan({ stops, seconds: 0.2 }, quiet)) },
    };
  },
};

const working = Object.entries({ ...capabilities, ...ofThePage }).map(([name, capability]) => [
  name,
  { ...capability, handler: shown(name, capability.handler) },
]);

const app = { id: 'example.skerry', name: 'Skerry Studio', version: '1.0' };
// The page that embeds this one, in this demo; a real app lists the hosts it trusts. Opened by
// itself, it serves clients of its own page.
const origins = document.referrer ? [new URL(document.referrer).origin] : [];
const exposed = expose(
  { app, capabilities: { ...Object.fromEntries(working), 'examples.make': examples } },
  { origins, webmcp: webmcp() },
);
// For pages that are hosts of MCP Apps. Other pages do not answer it.
createView({ app, origins, tools: toolsOf(exposed) }).catch(() => {});

// Opened by itself, the page has an agent, too: a script that calls window.abp.
if (parent === window) {
  const [button, told] = ['button', 'p'].map((part) => $(part, $('#alone')));
  /** @type {Promise<unknown> | undefined} */
  let session;
  let count = 0;
  const run = async () => {
    const { abp } = /** @type {any} */ (window);
    session ??= abp.initialize({ agent: { name: 'script', version: '1.0' } });
    await session;
    const callId = `script-${++count}`;
    button.onclick = () => abp.cancel(callId, 'the user pressed Cancel');
    [button.className, button.textContent] = ['stop', 'Cancel by window.abp'];
    const params = { to: 100, agent: 'window.abp' };
    const { success, data, error, metadata } = await abp.call('count.up', params, { callId });
    told.textContent = success
      ? `Told: counted to ${data.counted}`
      : `Told: ${error.code}: ${error.message}. Outcome: ${metadata?.outcome}`;
    button.onclick = run;
    [button.className, button.textContent] = ['run', 'Call by window.abp'];
  };
  button.onclick = run;
  $('#alone').hidden = false;
}
