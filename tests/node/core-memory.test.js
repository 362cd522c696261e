// The module's allocator (wasm/memory.c): blocks of every size that a core asks for, taken and given back in any order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { AbpCore, ready } from '../../js/core/abp-core.js';

await ready();

/** An app with a session. */
function app() {
  const core = new AbpCore(abp.APP, 0, { remembered: 1 });
  const hello = { type: 'initialize', id: 'P', payload: { protocolVersion: '0.1' } };
  let action = core.x.receive(core.pointer, core.writeControl(hello));
  while (action > 0) action = core.x.next(core.pointer);
  return core;
}

/** Numbers that look random and are the same in each run. */
function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('ids of all lengths keep their text while others come and go, and memory that is free is used again', () => {
  const random = randomNumbers(7);
  const cores = [app(), app()];
  const { memory } = cores[0].x;
  const sizes = [];
  for (let round = 0; round < 8; round++) {
    /** @type {[AbpCore, number, string][]} */
    const kept = [];
    const check = ([core, call, id]) => assert.equal(core.idText(call), id);
    for (let i = 0; i < 3000; i++) {
      const core = cores[random(2)];
      const id = `${i}-`.padEnd(1 + random(250), String.fromCharCode(97 + random(26)));
      const action = core.x.call_received(core.pointer, core.writeId(id), 0, 0, 0, 0, 0, 0);
      assert.equal(action & 255, abp.START);
      kept.push([core, core.call, id]);
      if (random(3)) continue;
      const [ended] = kept.splice(random(kept.length), 1);
      check(ended);
      ended[0].x.finish(ended[0].pointer, ended[1], abp.COMPLETED);
    }
    for (const call of kept) check(call);
    for (const [core, call] of kept) core.x.finish(core.pointer, call, abp.COMPLETED);
    sizes.push(memory.buffer.byteLength);
  }
  assert.equal(new Set(sizes.slice(3)).size, 1, sizes.join());
  for (const core of cores) core.free();
});

test('a block of each size holds what is written to it, and one that cannot be had changes nothing', () => {
  const core = app();
  const { memory } = core.x;
  const small = memory.buffer;
  for (let length = 1; length < 1 << 20; length = Math.ceil(length * 1.3)) {
    const text = 'x'.repeat(length - 1) + '!';
    assert.equal(core.instance.write(text), length);
    assert.equal(core.instance.readScratch(length), text);
  }
  // It grew meanwhile: views of what it was are of no use any more.
  assert.ok(memory.buffer.byteLength > small.byteLength);
  const before = memory.buffer.byteLength;
  assert.equal(core.x.scratch(2 ** 31), 0);
  assert.equal(memory.buffer.byteLength, before);
  assert.equal(core.instance.write('still here'), 10);
  core.free();
});
