// The published modules call the core by short names, and all that they call is there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { createRecorder } from '@abp-bridge/inspector/recorder';
import { connect, expose } from 'abp-bridge';

/** Where the published cores are. */
const PUBLISHED = {
  abp: 'dist/lib/parts',
  rpc: 'packages/rpc/dist/lib/parts',
  tasks: 'packages/a2a/dist/lib/parts',
};
const load = async (file) => Object.values(await import(`../../${file}`))[0];
const moduleOf = async (file) =>
  new WebAssembly.Module(inflateRawSync(Buffer.from(await load(file), 'base64')));
const namesOf = (module) => WebAssembly.Module.exports(module).map(({ name }) => name);

for (const [name, folder] of Object.entries(PUBLISHED)) {
  test(`${name}: the WebAssembly and its replacement have the same short names, and none for the compiler`, async () => {
    const wasm = await moduleOf(`${folder}/${name}-wasm.js`);
    const long = namesOf(await moduleOf(`dist/${name}-wasm.js`));
    const names = namesOf(wasm);
    const ofCompiler = long.filter((each) => /^(__|stack)/.test(each));
    assert.equal(names.length, long.length - ofCompiler.length);
    // What the core of ABP has not keeps its name.
    assert.ok(names.every((each) => each.length <= 2 || (name !== 'abp' && long.includes(each))));
    const [{ name: growth }] = WebAssembly.Module.imports(wasm);
    assert.equal(growth.length, 1);
    const env = { [growth]() {} };
    const { exports } = new WebAssembly.Instance(wasm, { env });
    const replacement = (await load(`${folder}/${name}-js.js`))(env);
    assert.deepEqual(Object.keys(replacement).sort(), names.toSorted());
    const abi = names[long.filter((each) => !ofCompiler.includes(each)).indexOf('abi')];
    assert.equal(replacement[abi](), exports[abi]());
  });
}

test('all that the published table of tasks calls is there', async () => {
  const { Tasks, ready } = await import('@abp-bridge/a2a/tasks');
  await ready();
  const tasks = new Tasks();
  const stops = [];
  const begin = (id) => tasks.begin(id, { onAbort: () => stops.push(id), onState() {} });
  const [one, two] = [begin('one'), begin('two')];
  assert.deepEqual([one.state, two.state], ['working', 'working']);
  one.lease(60_000);
  two.cancel();
  assert.deepEqual(stops, ['two']);
  one.returns();
  assert.equal(one.state, 'completed');
  tasks.forget('one');
  tasks.forget('two');
  assert.equal(tasks.find('one'), undefined);
});

test('all that the published modules call is there: calls, cancels, streams and questions, and recordings of them', async (t) => {
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
  const folder = mkdtempSync(join(tmpdir(), 'abp-recording-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'recording.jsonl'), recorder.text);
  const replay = fileURLToPath(
    new URL('../../packages/inspector/dist/bin/abp-replay.cjs', import.meta.url),
  );
  const said = execFileSync(process.execPath, [replay, join(folder, 'recording.jsonl')]);
  const [, inputs] = /the same: (\d+) inputs/.exec(String(said)) ?? [];
  assert.ok(Number(inputs) > 20, String(said));
});
