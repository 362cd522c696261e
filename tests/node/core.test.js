// Which core runs: these tests run with WebAssembly and, by tests/support/no-wasm.js, without.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import deflated from '../../dist/abp-wasm.js';
import { ABI } from '../../js/core/abp-boundary.js';
import { ready } from '../../js/core/abp-core.js';
import { load } from '../../js/core/load.js';
import { CoreModule } from '../../js/core/module.js';

const expected = 'WebAssembly' in globalThis ? 'wasm' : 'js';

test('where there is no WebAssembly, the core is JavaScript', async () => {
  assert.equal(await ready(), expected);
});

test('the core loads with and without Uint8Array.fromBase64', async () => {
  const native = Object.getOwnPropertyDescriptor(Uint8Array, 'fromBase64');
  try {
    for (const value of [undefined, (text) => new Uint8Array(Buffer.from(text, 'base64'))]) {
      Object.defineProperty(Uint8Array, 'fromBase64', { value, configurable: true });
      const { kind } = await load(deflated, () => import('../../dist/abp-js.js'));
      assert.equal(kind, expected);
    }
  } finally {
    delete Uint8Array.fromBase64;
    if (native) Object.defineProperty(Uint8Array, 'fromBase64', native);
  }
});

test('a module whose file does not load fails with a typed error, and is tried again', async () => {
  const answers = [
    Promise.reject(new TypeError('Failed to fetch')),
    Promise.resolve({ default: deflated }),
  ];
  const module = new CoreModule(
    () => answers.shift(),
    () => import('../../dist/abp-js.js'),
    ABI,
  );
  await assert.rejects(module.load(), { code: 'TRANSPORT_ERROR', retryable: true });
  assert.equal(await module.load(), expected);
  assert.equal(await module.load(), expected); // once
  assert.ok(module.instance());
});
