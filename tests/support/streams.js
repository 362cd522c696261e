/** What tests of streams share: an app whose handlers stream, and what they did. */
import assert from 'node:assert/strict';
import { transfer } from '../../parts/main/index.js';
import { openPair } from './pair.js';
import { deferred } from './site.js';

/**
 * Each pair has its own: `log` is what the handlers did, `unwound` settles when a generator has
 * unwound, and `lateBefore` counts what had come late before anything was streamed.
 * @type {{ log: any[], unwound: any, lateBefore: number }}
 */
export const handlers = { log: [], unwound: undefined, lateBefore: 0 };

export const CAPABILITIES = {
  async *parts() {
    yield new Blob(['blob']);
    yield new Uint8Array([1, 2]);
    yield 'text';
  },
  async *unreadable() {
    try {
      const arrayBuffer = () => Promise.reject(new Error('its file is gone'));
      yield Object.assign(Object.create({ [Symbol.toStringTag]: 'Blob' }), { arrayBuffer });
      for (;;) yield 'more';
    } finally {
      handlers.unwound.resolve();
    }
  },
  async *count({ to }) {
    try {
      for (let i = 0; i < to; i++) {
        handlers.log.push(i);
        yield i;
      }
      return `counted to ${to}`;
    } finally {
      handlers.log.push('end');
      handlers.unwound.resolve();
    }
  },
  async *pages() {
    yield { page: 1, rows: [[1, 'a']] };
    yield { page: 2, rows: [] };
  },
  readable: () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue('a');
        controller.enqueue('b');
        controller.close();
      },
      cancel: (reason) => void handlers.log.push(`cancel ${reason}`),
    }),
  endless: () =>
    new ReadableStream({
      pull: (controller) => controller.enqueue('x'),
      cancel: () => handlers.unwound.resolve(),
    }),
  iterable: () => ({
    left: 2,
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      return this.left ? { done: false, value: this.left-- } : { done: true, value: 'none left' };
    },
  }),
  async *breaks() {
    yield 1;
    throw Object.assign(new Error('half of it'), { code: 'OWN', retryable: true });
  },
  async *unsendable() {
    try {
      yield 'first';
      yield () => {};
      yield 'third';
      return 'done';
    } finally {
      handlers.unwound.resolve();
    }
  },
  async *hangs(_params, { signal }) {
    try {
      yield 'first';
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    } finally {
      handlers.unwound.resolve();
    }
  },
  async *deaf() {
    try {
      for (;;) yield 'more';
    } finally {
      handlers.unwound.resolve();
    }
  },
  moved() {
    const stream = new ReadableStream();
    return transfer(stream, [stream]);
  },
  plain: () => 42,
  refuses: { handler: async function* () {}, available: false },
};

/** Two of ours, over MessageChannel, the given transport, or a page that is driven. */
export async function pair({ limits = {}, ...way } = {}) {
  handlers.log = [];
  handlers.unwound = deferred();
  const opened = await openPair(CAPABILITIES, {
    ...way,
    app: { limits: limits.app },
    agent: { limits: limits.agent },
  });
  // On a slow machine initialize is sent again, and the second answer comes late.
  await opened.client.call('plain');
  handlers.lateBefore = opened.client.counters.late;
  return opened;
}

/** The chunks of a stream, read to its end. */
export async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** Nothing is left or was dropped at either side. */
export function assertClean(client, exposed) {
  const { late, ...counted } = client.counters;
  assert.equal(late, handlers.lateBefore);
  for (const counters of [counted, ...exposed.counters]) {
    for (const [name, count] of Object.entries(counters))
      if (name !== 'remembered') assert.equal(count, 0, name);
  }
}
