// The host page of the benchmark. Each function does one round of both sides of a comparison and returns
// the two times, so that each ratio compares adjacent runs.
import { connect } from '/packages/main/src/index.js';
import * as abp from '/js/driver/abp-boundary.js';
import { AbpCore, ready } from '/js/driver/abp-core.js';

/** A record such as an agent sends. */
const PARAMS = { title: 'a document', pages: [1, 2, 3], options: { size: 'A4', color: true } };
let client, bare;
let next = 0;
const waiting = new Map();

function bareCall(message, transfer = []) {
  return new Promise((resolve) => {
    const id = ++next;
    waiting.set(id, resolve);
    bare.postMessage({ id, ...message }, transfer);
  });
}

window.open_ = async (src) => {
  const origin = new URL(src).origin;
  const iframe = document.createElement('iframe');
  const gotBare = new Promise((resolve) =>
    addEventListener('message', ({ data, ports }) => data === 'bare' && resolve(ports[0])),
  );
  iframe.src = src;
  document.body.append(iframe);
  bare = await gotBare;
  bare.onmessage = ({ data }) => {
    waiting.get(data.id)(data);
    waiting.delete(data.id);
  };
  client = await connect(iframe, {
    origin,
    agent: { name: 'bench', version: '1' },
    limits: { maxCalls: 1 << 19 },
  });
};

async function time(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

window.oneAtATime = async (n) => {
  const ours = async () => {
    for (let i = 0; i < n; i++) await client.call('echo', PARAMS);
  };
  const theirs = async () => {
    for (let i = 0; i < n; i++) await bareCall({ capability: 'echo', params: PARAMS });
  };
  return inTurn(ours, theirs);
};

window.inFlight = async (n, rounds) => {
  const all = async (call) => {
    for (let round = 0; round < rounds; round++) await Promise.all(Array.from({ length: n }, call));
  };
  return inTurn(
    () => all(() => client.call('echo', PARAMS)),
    () => all(() => bareCall({ capability: 'echo', params: PARAMS })),
  );
};

window.transfer = async (bytes) => {
  const ours = new ArrayBuffer(bytes);
  const theirs = new ArrayBuffer(bytes);
  return inTurn(
    () => client.call('take', { buffer: ours }, { transfer: [ours] }),
    () => bareCall({ buffer: theirs }, [theirs]),
  );
};

let turn = 0;
async function inTurn(ours, theirs) {
  if (turn++ % 2) {
    const b = await time(theirs);
    return [await time(ours), b];
  }
  const a = await time(ours);
  return [a, await time(theirs)];
}

/**
 * A JS Map that does what the core does for a call: refuses an id that is in use, keeps the call until it
 * ends, and remembers the fate of the last 1,024 that have ended.
 */
class MapTable {
  calls = new Map();
  ended = new Array(1024);
  at = 0;
  receive(id, record) {
    if (this.calls.has(id)) return false;
    this.calls.set(id, record);
    return true;
  }
  finish(id) {
    const record = this.calls.get(id);
    record.state = 'completed';
    const old = this.ended[this.at];
    if (old !== undefined) this.calls.delete(old);
    this.ended[this.at] = id;
    this.at = (this.at + 1) & 1023;
    return record;
  }
}

/** Gives a core a message as text. */
const receive = (core, message) => core.x.receive(core.pointer, core.writeControl(message));

/**
 * Calls received and finished on one side with `inFlight` of them open all the time: ns per call.
 * @returns {Promise<[number, number, number]>} this core with text ids, with numbers; a Map
 */
window.core = async (inFlight, calls) => {
  await ready();
  const ids = Array.from({ length: inFlight + calls }, () => crypto.randomUUID());
  const record = { name: 'echo' };
  const run = (receive, finish) => {
    const handles = new Array(inFlight);
    for (let i = 0; i < inFlight; i++) handles[i] = receive(i);
    const start = performance.now();
    for (let i = 0, at = 0; i < calls; i++) {
      finish(handles[at]);
      handles[at] = receive(inFlight + i);
      if (++at === inFlight) at = 0;
    }
    return ((performance.now() - start) * 1e6) / calls;
  };
  const fresh = () => {
    const core = new AbpCore({ role: abp.APP, maxCalls: 1 << 20, remembered: 1024 });
    const hello = { type: 'initialize', id: 'P', payload: { protocolVersion: '0.1' } };
    let action = receive(core, hello);
    while (action > 0) action = core.x.next(core.pointer);
    return core;
  };
  const records = [];
  const accept = (core, action) => {
    if ((action & 255) !== abp.START) throw new Error(`not started: ${action}`);
    const { call } = core;
    records[call & abp.SLOT_MASK] = record;
    return call;
  };
  const finish = (core) => (call) => {
    const action = core.x.finish(core.pointer, call, 1);
    if (!(action & abp.RELEASED) || (action & 255) !== abp.RESULT) throw new Error('no result');
    const slot = call & abp.SLOT_MASK;
    const kept = records[slot];
    records[slot] = undefined;
    return kept;
  };
  const text = fresh();
  const withText = run(
    (i) => accept(text, text.x.call_received(text.pointer, text.writeId(ids[i]), 0, 0, 0, 0)),
    finish(text),
  );
  text.free();
  const numbers = fresh();
  const withNumbers = run(
    (i) => accept(numbers, numbers.x.call_received(numbers.pointer, 0, i + 1, 0, 0, 0)),
    finish(numbers),
  );
  numbers.free();
  const map = new MapTable();
  const withMap = run(
    (i) => (map.receive(ids[i], { name: 'echo', state: 'running' }), ids[i]),
    (id) => map.finish(id),
  );
  return [withText, withNumbers, withMap];
};

/**
 * Bytes by which the core's memory grows for each pending call with a call number, on the caller's side and
 * on the callee's.
 */
window.corePending = async (calls) => {
  await ready();
  const settle = (core, action) => {
    while (action > 0) action = core.x.next(core.pointer);
  };
  const perCall = (core, begin) => {
    const before = core.x.memory.buffer.byteLength;
    for (let i = 1; i <= calls; i++) settle(core, begin(i));
    return (core.x.memory.buffer.byteLength - before) / calls;
  };
  const limits = { maxCalls: 1 << 20, remembered: 1024 };

  const agent = new AbpCore({ ...limits, role: abp.AGENT });
  let id;
  const { x, pointer: ep } = agent;
  for (let action = x.connect(ep, 1000); action > 0; action = x.next(ep)) {
    if ((action & 255) === abp.SEND) ({ id } = agent.message);
  }
  const payload = { protocolVersion: '0.1', sessionId: 'S' };
  const welcome = { type: 'initialize-result', id, payload };
  settle(agent, receive(agent, welcome));
  if (x.state(ep) !== abp.SESSION_READY) throw new Error('no session');
  const caller = perCall(agent, () => x.request(ep, 0, 0, 0, 0));
  if (agent.counters().inFlightOut !== calls) throw new Error('not all are pending');

  const app = new AbpCore({ ...limits, role: abp.APP });
  const hello = { type: 'initialize', id: 'P', payload: { protocolVersion: '0.1' } };
  settle(app, receive(app, hello));
  const callee = perCall(app, (i) => app.x.call_received(app.pointer, 0, i, 0, 0, 0));
  if (app.counters().inFlightIn !== calls) throw new Error('not all are pending');
  return [caller, callee];
};

/** Many calls, a tenth of them cancelled. */
window.many = async (calls) => {
  for (let done = 0; done < calls; done += 1000) {
    await Promise.all(
      Array.from({ length: 1000 }, (_, i) => {
        if (i % 10) return client.call('echo', i);
        const controller = new AbortController();
        const call = client.call('wait', {}, { signal: controller.signal });
        controller.abort();
        return call;
      }),
    );
  }
};
window.memory = () => client.memory;
window.isReady = true;
