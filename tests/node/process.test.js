// What a Node process is kept alive by.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

const INDEX = new URL('../../parts/main/index.js', import.meta.url);

/**
 * Runs a module to its end.
 * @param {string} script
 * @returns {Promise<string>} what it printed
 */
const run = async (script) =>
  (
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      timeout: 120_000,
    })
  ).stdout;

/** A connection that keeps no process alive, to an app whose one capability never returns. */
const CONNECTED = `
  import { connect, expose } from '${INDEX}';
  const transport = () => ({ post() {}, onMessage() {}, close() {} });
  const [mine, theirs] = [transport(), transport()];
  mine.post = (message) => queueMicrotask(() => theirs.onMessage(structuredClone(message), []));
  theirs.post = (message) => queueMicrotask(() => mine.onMessage(structuredClone(message), []));
  const exposed = expose({
    app: { id: 'a', name: 'A', version: '1' },
    capabilities: { hang: () => new Promise(() => {}) },
  });
  await exposed.ready;
  exposed.accept(theirs);
  const agent = { name: 'a', version: '1' };
  const client = await connect(() => mine, { agent, limits: { grace: 1 } });`;

test('a call with a timeout keeps its process alive until it settles', async () => {
  const printed = await run(`${CONNECTED}
    console.log((await client.call('hang', {}, { timeout: 50 })).error.code);`);
  assert.equal(printed, 'TIMEOUT\n');
});

test('a session without calls keeps no process alive', async () => {
  assert.equal(await run(`${CONNECTED} console.log('connected');`), 'connected\n');
});

test('where WebAssembly is forbidden and what replaces it does not load, connect says so', async () => {
  const hooks = `export const resolve = (to, context, next) =>
    to.endsWith('abp-js.js') ? Promise.reject(new TypeError('it is offline')) : next(to, context);`;
  const printed = await run(`
    import { register } from 'node:module';
    import { connect } from '${INDEX}';
    delete globalThis.WebAssembly;
    register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});
    const print = ({ code, message, cause }) => console.log(code, cause.name, message);
    await connect(new MessageChannel().port1, { agent: { name: 'a', version: '1' } }).catch(print);`);
  assert.match(
    printed,
    /^NOT_SUPPORTED TypeError WebAssembly is forbidden here, and its replacement did not load: it is offline \(docs\/errors\.md#webassembly\)/,
  );
});

test('a handshake that nobody answers keeps its process alive until it is given up', async () => {
  const printed = await run(`
    import { connect } from '${INDEX}';
    const nobody = () => ({ post() {}, onMessage() {}, close() {} });
    const options = { agent: { name: 'a', version: '1' }, timeout: 50 };
    await connect(nobody, options).catch((error) => console.log(error.code));`);
  assert.equal(printed, 'TIMEOUT\n');
});
