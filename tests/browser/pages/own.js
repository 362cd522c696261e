// An app in a page of its own, for automation. What it is is said in its address.
import { expose } from '/parts/main/index.js';
import { plainPage } from '/tests/plain/page.js';
import { AppDriver } from '/tests/support/drivers.js';

const {
  kind = 'ours',
  odd,
  limits,
  later,
  taken,
} = JSON.parse(decodeURIComponent(location.search.slice(1)) || '{}');
const driver = (window.driver = new AppDriver((line) => window.record?.(line)));
window.started = 0;
window.aborted = [];
const handlers = {
  ...driver.handlers,
  echo: (params) => params,
  hang: (_params, { signal }) => {
    window.started++;
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        window.aborted.push(signal.reason?.message);
        reject(signal.reason);
      });
    });
  },
  /** Ends when the test says so, whatever its signal says. */
  deaf: () => {
    window.started++;
    return new Promise((resolve) => (window.release = resolve));
  },
  async *numbers({ to }) {
    try {
      for (let i = 0; i < to; i++) yield i;
      return 'counted';
    } finally {
      window.unwound = (window.unwound ?? 0) + 1;
    }
  },
  ask: (params, { elicit }) => elicit({ method: 'elicitation/input', params }),
  steps: (_params, { progress }) => {
    progress({ progress: 1, total: 4 });
    return 'done';
  },
  value: ({ name }) => VALUES[name](),
  throw: ({ name }) => {
    throw VALUES[name]();
  },
  /** What arrived, in words. */
  seen: (params) => {
    const form = (value) => Object.prototype.toString.call(value).slice(8, -1);
    return Object.fromEntries(
      Object.entries(params).map(([key, value]) => [
        key,
        ArrayBuffer.isView(value) || form(value) === 'ArrayBuffer'
          ? `${form(value)} ${new Uint8Array(value.buffer ?? value)}`
          : `${form(value)} ${form(value) === 'Map' ? [...value] : String(value)}`,
      ]),
    );
  },
};
/** What a page may return or throw. */
const bytes = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256);
const VALUES = {
  buffer: () => ({ content: bytes(1000).buffer, mimeType: 'application/pdf', size: 1000 }),
  view: () => ({ pixels: bytes(300).subarray(100, 200), samples: new Float64Array([1.5, -2.5]) }),
  blob: () => ({
    content: new Blob([bytes(70_000)], { type: 'image/png' }),
    mimeType: 'image/png',
  }),
  base64: () => ({ content: 'aGVsbG8=', encoding: 'base64', mimeType: 'text/plain' }),
  large: () => ({ content: bytes(5_000_000).buffer, mimeType: 'application/octet-stream' }),
  odd: () => ({
    numbers: [NaN, Infinity, -Infinity, -0],
    big: 2n ** 70n,
    date: new Date(86_400_000),
    map: new Map([['a', new Set([1, { deep: NaN }])]]),
    error: new RangeError('too far'),
    tilde: '~n5',
    proto: JSON.parse('{"__proto__": {"x": 1}}'),
    lone: '\ud800',
    missing: undefined,
  }),
  cycle: () => {
    const loop = {};
    return Object.assign(loop, { loop });
  },
  promise: () => ({ late: Promise.resolve(1) }),
  element: () => ({ element: document.body }),
  method: () => ({ method() {} }),
  code: () =>
    Object.assign(new Error('slow down'), {
      code: 'RATE_LIMITED',
      retryable: true,
      retryAfter: 50,
    }),
  abort: () => new DOMException('by itself', 'AbortError'),
  text: () => 'just words',
  nothing: () => undefined,
};
function install() {
  if (kind === 'ours') {
    window.exposed = expose(
      { app: { id: 'test.app', name: 'Test', version: '1' }, capabilities: handlers },
      { origins: [location.origin], limits },
    );
  } else if (kind === 'plain') window.abp = plainPage(handlers, odd);
}
if (taken) window.abp = { notify: { success() {} } };
else if (later) setTimeout(install, later);
else install();
window.isReady = true;
