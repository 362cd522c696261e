// The core alone, without messages: what it costs beside a JavaScript Map, and what it keeps of a
// call.
import * as abp from '../../../js/driver/abp-boundary.js';
import { AbpCore, ready } from '../../../js/driver/abp-core.js';

/**
 * A JS Map that does what the core does for a call: refuses an id that is in use, keeps the call
 * until it ends, and remembers the fate of the last 1,024 that have ended.
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
const receive = (core, message) =>
  core.x.receive(core.pointer, core.writeText(message, message.payload));

/** Gives a core a call that has come. */
const received = (core, idLength, number) =>
  core.x.call_received(core.pointer, idLength, number, 0, 0, 0, 0, abp.NO_ERROR, 0);

/**
 * Calls received and finished on one side with `inFlight` of them open all the time: ns per call.
 * Each way keeps a record that is new for each call.
 * @returns {Promise<[number, number, number, number]>} this core with text ids, and a Map of them;
 *   with numbers, and a Map of them
 */
export async function core(inFlight, calls) {
  await ready();
  const ids = Array.from({ length: inFlight + calls }, () => crypto.randomUUID());
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
    records[call & abp.SLOT_MASK] = { name: 'echo', state: 'running' };
    return call;
  };
  const finish = (core) => (call) => {
    const action = core.x.finish(core.pointer, call, abp.COMPLETED, abp.FATE_NONE);
    if (!(action & abp.RELEASED) || (action & 255) !== abp.RESULT) throw new Error('no result');
    const slot = call & abp.SLOT_MASK;
    const kept = records[slot];
    records[slot] = undefined;
    return kept;
  };
  const text = fresh();
  const withText = run((i) => accept(text, received(text, text.writeId(ids[i]), 0)), finish(text));
  text.free();
  const numbers = fresh();
  const withNumbers = run((i) => accept(numbers, received(numbers, 0, i + 1)), finish(numbers));
  numbers.free();
  const withMap = (idOf) => {
    const map = new MapTable();
    const receive = (i) => (map.receive(idOf(i), { name: 'echo', state: 'running' }), idOf(i));
    return run(receive, (id) => map.finish(id));
  };
  return [withText, withMap((i) => ids[i]), withNumbers, withMap((i) => i + 1)];
}

/**
 * Bytes by which the core's memory grows for each pending call with a call number, on the caller's
 * side and on the callee's.
 */
export async function corePending(calls) {
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
  const callee = perCall(app, (i) => received(app, 0, i));
  if (app.counters().inFlightIn !== calls) throw new Error('not all are pending');
  return [caller, callee];
}
