// The published modules call the core by short names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inflateRawSync } from 'node:zlib';
import { createRecorder } from '../../dist/lib/recorder.js';
import { connect, expose } from '../../dist/lib/index.js';
import { shortNames, withShortNames } from '../../scripts/short-exports.js';

const short = shortNames();
const exported = [...short.values()].slice(1); // the first is what it imports

for (const name of ['abp', 'rpc', 'tasks']) {
  test(`${name}: the WebAssembly and its replacement have the same names: those of the sources, shortened`, async () => {
    const load = async (file) => Object.values(await import(`../../${file}`))[0];
    const compiled = async (file) =>
      new WebAssembly.Module(inflateRawSync(Buffer.from(await load(file), 'base64')));
    const namesOf = (module) => WebAssembly.Module.exports(module).map((e) => e.name);
    const wasm = await compiled(`dist/lib/parts/${name}-wasm.js`);
    const inSources = namesOf(await compiled(`dist/${name}-wasm.js`));
    const expected = inSources
      .filter((key) => !/^(__|stack)/.test(key))
      .map((key) => short.get(key) ?? key);
    assert.deepEqual(namesOf(wasm), expected);
    if (name === 'abp') assert.deepEqual(expected, exported);
    const env = { [short.get('emscripten_notify_memory_growth')]() {} };
    const { exports } = new WebAssembly.Instance(wasm, { env });
    const replacement = (await load(`dist/lib/parts/${name}-js.js`))(env);
    assert.deepEqual(Object.keys(replacement).sort(), expected.toSorted());
    const abi = short.get('abi');
    assert.equal(replacement[abi](), exports[abi]());
  });
}

test('only what is called as an export of the core is renamed, and nothing moves', () => {
  const code = 'core.x.next(pointer); list.next(); ax.next(); x.other()';
  const renamed = withShortNames(code, short);
  assert.equal(
    renamed,
    `core.x.${short.get('next')}   (pointer); list.next(); ax.next(); x.other()`,
  );
  assert.equal(renamed.length, code.length);
});

test('all that the published modules call is there: calls, cancels, streams and questions, and recordings of them', async () => {
  const recorder = createRecorder();
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: {
        echo: (params) => params,
        async *count(_params, { input }) {
          for await (const chunk of input) yield chunk;
        },
        ask: async (_params, { elicit, progress, call }) => {
          progress({ progress: 1 });
          return [await elicit({ method: 'elicitation/input', params: {} }), await call('echo')];
        },
        wait: (_params, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          }),
      },
    },
    { port: port1, recorder },
  );
  const client = await connect(port2, {
    agent: { name: 'T', version: '1' },
    onElicitation: () => 'yes',
    recorder,
  });
  assert.equal(await client.invoke('echo', 1), 1);
  const asked = await client.invoke('ask', {}, { onProgress() {} });
  assert.equal(asked[0].data, 'yes');
  const input = (async function* () {
    yield 1;
    yield 2;
  })();
  assert.deepEqual(await client.invoke('count', {}, { input }), [1, 2]);
  const controller = new AbortController();
  const waiting = client.call('wait', {}, { signal: controller.signal, callId: 'w' });
  const answer = await client.cancel('w', 'no more');
  assert.equal(answer.cancelled, true);
  assert.equal((await waiting).cancelled, true);
  client.close();
  app.close();
  const lines = recorder.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const done = new Set(lines.map((line) => line.do));
  for (const name of [
    'create',
    'describe',
    'connect',
    'request',
    'call_received',
    'finish',
    'chunk_read',
  ])
    assert.ok(done.has(name), name);
  for (const name of done) assert.ok(!name || name === 'free' || short.has(name), name);
});
