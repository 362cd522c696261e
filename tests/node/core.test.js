// Which core runs: these tests run with WebAssembly and, by tests/support/no-wasm.js, without.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ready } from '../../js/core.js';

test('where there is no WebAssembly, the core is JavaScript', async () => {
  assert.equal(await ready, 'WebAssembly' in globalThis ? 'wasm' : 'js');
});
