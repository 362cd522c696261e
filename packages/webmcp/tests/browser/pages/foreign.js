// A page with WebMCP tools that has never heard of this library.
import { initializeWebMCPPolyfill } from '@mcp-b/webmcp-polyfill';

const {
  exposedTo = [],
  polyfill = false,
  abp = false,
} = JSON.parse(decodeURIComponent(location.search.slice(1)) || '{}');
if (polyfill) initializeWebMCPPolyfill();
const record = (line) => window.record?.(line);

const tools = {
  add: {
    title: 'Addition',
    inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    annotations: { readOnlyHint: true },
    execute: ({ a, b }) => ({ sum: a + b }),
  },
  same: { execute: (input) => input },
  text: { execute: () => 'a "quoted" text' },
  nothing: { execute: () => undefined },
  list: { execute: () => [1, 2] },
  mcp: { execute: () => ({ content: [{ type: 'text', text: 'said' }] }) },
  'mcp.error': {
    execute: () => ({ content: [{ type: 'text', text: 'disk full' }], isError: true }),
  },
  refusal: {
    execute: () => ({ success: false, error: { code: 'BUSY', message: 'later', retryable: true } }),
  },
  throws: {
    execute: () => {
      throw new TypeError('nobody hears this');
    },
  },
  slow: {
    execute(_input, options) {
      record('slow started');
      return new Promise((resolve) => {
        options?.signal.addEventListener('abort', () => {
          record('slow was told');
          setTimeout(() => (record('slow stopped'), resolve({ applied: 3 })));
        });
      });
    },
  },
  leave: {
    execute() {
      location.search = encodeURIComponent(JSON.stringify({ left: true }));
      return new Promise(() => {});
    },
  },
  symbol: { execute: () => Symbol('s') },
  hidden: { annotations: { debugging: true }, execute: () => 'no' },
};
window.controllers = {};
window.add = (name, { description = `does ${name}`, execute = () => ({}), ...more } = {}) => {
  const controller = (window.controllers[name] = new AbortController());
  return document.modelContext?.registerTool(
    { name, description, execute, ...more },
    { signal: controller.signal, ...(exposedTo.length && { exposedTo }) },
  );
};
window.ready = Promise.all(Object.entries(tools).map(([name, tool]) => window.add(name, tool)));
if (abp) {
  // It comes late, as that of a large page may.
  addEventListener('load', () => {
    const initialize = async () => ({
      sessionId: 's',
      app: { id: 'late', name: 'Late', version: '1' },
      capabilities: [{ name: 'own', available: true }],
      features: {},
    });
    window.abp = { initialize, call: async () => ({ success: true, data: 'by abp' }) };
  });
}
