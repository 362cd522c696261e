// An app of this library that is served over WebMCP, too. What it is is said in its address.
import { initializeWebMCPPolyfill } from '@mcp-b/webmcp-polyfill';
import { AbpError, expose } from '/parts/main/index.js';
import { webmcp } from '/packages/webmcp/src/index.js';
import { plainPage } from '/tests/plain/page.js';

const {
  origins = [],
  exposedTo,
  limits,
  polyfill = false,
  wrapped,
  taken,
  kind = 'ours',
} = JSON.parse(decodeURIComponent(location.search.slice(1)) || '{}');
if (polyfill) initializeWebMCPPolyfill();
// It puts itself in the place of the browser's own object.
if (wrapped === 'before') await import('@mcp-b/global');
if (taken) {
  window.taken = new AbortController();
  const tool = { name: taken, description: 'another', execute: () => ({}) };
  await document.modelContext.registerTool(tool, { signal: window.taken.signal });
}
const record = (line) => window.record?.(line);
window.releases = [];

const VALUES = {
  text: () => 'a "quoted" text',
  nothing: () => undefined,
  map: () => new Map([['a', new Set([1n])]]),
  date: () => ({ at: new Date(0) }),
  blob: () => new Blob(['abc'], { type: 'text/plain' }),
  views: () => ({ inside: [new Uint8Array([1, 2])] }),
  symbol: () => Symbol('s'),
  cycle: () => {
    const a = {};
    a.a = a;
    return a;
  },
};

const hang =
  (who) =>
  (_params, { signal }) => {
    record(`${who} started`);
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        record(`${who} stopped: ${signal.reason.message}`);
        reject(signal.reason);
      }),
    );
  };
const held = () => new Promise((resolve) => window.releases.push(resolve));

const capabilities = {
  echo: {
    description: 'Says the same.',
    inputSchema: {
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
    },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, title: 'Echo' },
    handler: (params) => params,
  },
  hang: hang('hang'),
  named: ({ who }, context) => hang(who)({}, context),
  /** Ends when the test says so, whatever its signal says. */
  deaf: async (_params, { signal }) => {
    signal.addEventListener('abort', () => record('deaf was told'));
    record('deaf started');
    await held();
    record('deaf ended');
    return 'done all the same';
  },
  steps: async (_params, { progress }) => {
    progress({ progress: 1, total: 4, stage: 'one' });
    await held();
    return 'done';
  },
  bytes: () => ({ content: new Uint8Array([0, 127, 255]).buffer, mimeType: 'image/x' }),
  value: ({ name }) => VALUES[name](),
  fail: () => {
    throw new AbpError('BUSY', 'try later', { retryable: true, details: { queue: 3n } });
  },
  break: () => {
    throw new Error('a defect');
  },
  ask: (_params, { elicit }) => elicit({ method: 'elicitation/input', params: {} }),
  locked: { available: () => window.unlocked === true, handler: () => 'open' },
  'needs.key': {
    requirements: [{ type: 'state', description: 'a key', met: () => window.key === true }],
    deprecated: true,
    deprecationMessage: 'use locked',
    alternatives: ['locked'],
    handler: () => 'turned',
  },
  'not a name': () => {},
};
const definition =
  kind === 'plain'
    ? plainPage({ echo: (params) => params, hang: capabilities.hang })
    : { app: { id: 'app', name: 'App', version: '1' }, capabilities };
window.sessions = [];
window.exposed = expose(definition, {
  origins,
  limits,
  webmcp: webmcp(exposedTo && { origins: exposedTo }),
  onSession: ({ agent }) => window.sessions.push(agent.name),
});
if (wrapped === 'after') {
  const { modelContext } = document;
  const has = async () =>
    (await modelContext.getTools()).some(({ name }) => name === 'hang') ||
    new Promise((resolve) =>
      modelContext.addEventListener('toolchange', () => resolve(has()), { once: true }),
    );
  await has();
  await import('@mcp-b/global');
}
