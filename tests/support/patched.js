// What is tried in realms that a page has patched, in Node and in browsers: it uses nothing but
// what it is given.

const DATE = '2026-01-02T03:04:05.000Z';
const VALUES = [
  5,
  DATE,
  [],
  [1, [2, { a: [DATE] }]],
  { list: ['x'], deep: { at: DATE, none: null } },
  Array.from({ length: 100 }, (_, i) => i),
  { beside: new Date(5), list: [1] },
];

export const CAPABILITIES = {
  echo: (params) => params,
  shows: (params) => Object.keys(params).length,
  async *counts() {
    yield* [[1], [2]];
    return [3];
  },
  async reports(_params, { progress, report }) {
    progress({ progress: 1, total: 2, stage: DATE });
    report({ applied: [1, 'a'], remaining: [] });
    throw Object.assign(new Error('words'), { code: 'OWN', retryable: false, details: [1] });
  },
  asks: async (params, { elicit }) => (await elicit({ method: 'q', params })).data,
  hang: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    ),
};

/** What an agent is told of everything that an app can do. */
export async function outcomesOf(connect, target, options) {
  const told = [];
  const client = await connect(target, {
    agent: { name: 'a', version: '1' },
    timeout: 120_000,
    onElicitation: ({ params }) => ({ answer: params }),
    ...options,
  });
  told.push((await client.listCapabilities()).map(({ name }) => name));
  told.push((await client.call('shows')).data);
  for (const value of VALUES) told.push((await client.call('echo', value)).data);
  const together = await Promise.all(VALUES.map((value) => client.call('echo', value)));
  told.push(together.map(({ data }) => data));
  for await (const chunk of client.stream('counts')) told.push(chunk);
  const { success, error, metadata } = await client.call(
    'reports',
    {},
    { onProgress: ({ stage, percentage }) => told.push([stage, percentage]) },
  );
  told.push([success, error.code, error.details, metadata.outcome, metadata.report]);
  for (const value of VALUES) told.push((await client.call('asks', value)).data.answer);
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  await client.call('echo', 1);
  controller.abort('enough');
  const { cancelled, metadata: stopped } = await pending;
  told.push([cancelled, stopped.outcome]);
  client.close();
  return told;
}
