/**
 * What real SDKs put on the wire, replayed against our peer on either side: what it says in that
 * place must be the same, apart from the numbers of its own requests and the order of members.
 *
 * A recording tells what each side's program did: it made these requests, in the handler of that
 * one; it fired this signal; its handler answered so. The test does just that to our peer, and
 * feeds it what the other side said.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { RpcError } from '../src/index.js';
import { useClock } from '../../../tests/support/clock.js';
import { gate, outcome, scriptedPeer } from './support/rpc.js';

const folder = new URL('./vectors/', import.meta.url);
const read = (name) =>
  readFileSync(new URL(name, folder), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const files = readdirSync(folder).filter((name) => /^(acp|lsp|mcp|mcpapps)-.*\.jsonl$/.test(name));
const outcomes = read('jsonrpc-outcomes.jsonl');
const DIALECT = { acp: 'acp', lsp: 'lsp', mcp: 'mcp', mcpapps: 'mcp' };
const CANCEL = /^(\$\/cancel_request|\$\/cancelRequest|notifications\/cancelled)$/;
const PROGRESS = 'notifications/progress';
/** A message that does not come is a failure, not a wait. */
const LIMIT = { timeout: 60_000 };
/** Of the requests whose clock cancelled them, in ms. */
const TIMEOUT = 30_000;

const isRequest = ({ method, id }) => method !== undefined && id !== undefined;
const cancelled = ({ method, params }) =>
  CANCEL.test(method) ? (params.requestId ?? params.id) : undefined;
const timedOut = (message) => /Request timed out$/.test(message.params?.reason ?? '');

/**
 * The two SDKs of MCP say in different words that a request took too long; ours says it in the
 * first one's.
 */
const comparable = (message) =>
  timedOut(message)
    ? { ...message, params: { ...message.params, reason: 'Request timed out' } }
    : message;

/**
 * What our peer says, without what is its own: what became of the work of a request that was
 * stopped.
 */
function asOthers(message) {
  const { outcome, ...data } = message.error?.data ?? {};
  if (outcome === undefined) return message;
  const { code, message: text } = message.error;
  const error = { code, message: text };
  return { ...message, error: { ...error, ...(Object.keys(data).length && { data }) } };
}

/**
 * What our client says where the recorded one sent only `$/cancel_request` for a prompt:
 * `session/cancel` beside it, since agents may know only that, and with it, as ACP demands, the
 * answer to what asks for permission.
 */
function withSessionCancel(lines) {
  const of = (id) => lines.find(({ msg }) => isRequest(msg) && msg.id === id)?.msg;
  const asks = lines.find(({ msg }) => msg.method === 'session/request_permission')?.msg.id;
  return lines.flatMap((line) => {
    const { dir, msg } = line;
    const { method, params } = of(cancelled(msg)) ?? {};
    if (dir === 'a2b' && asks !== undefined && msg.id === asks && msg.error) return [];
    if (dir !== 'a2b' || method !== 'session/prompt') return [line];
    const { sessionId } = params;
    const said = (more) => ({ dir, msg: { jsonrpc: '2.0', ...more } });
    const answer = said({ id: asks, result: { outcome: { outcome: 'cancelled' } } });
    return [
      { ...said({ method: 'session/cancel', params: { sessionId } }), cancels: cancelled(msg) },
      line,
      ...(asks === undefined ? [] : [answer]),
    ];
  });
}

/** Replays a recording with our peer as the side that sends `ours`. */
class Replay {
  constructor(dialect, ours, lines, clock) {
    Object.assign(this, scriptedPeer(dialect), { ours, lines, clock, at: 0 });
    /** Recorded numbers of our requests, and those that our peer gave them. */
    this.numbers = new Map();
    /** Requests of ours: how they settle and what cancels them. By recorded number. */
    this.made = new Map();
    /** Requests of theirs, by id: what their handler was given, and how it is told to end. */
    this.received = new Map();
    this.peer.handle('*', async (params, context) => {
      const request = { context, ...gate() };
      this.received.set(context.id, request);
      return (await request.opened)();
    });
  }

  /** A message as recorded, with the number that our peer gave to our request. */
  renumbered(message, side) {
    const copy = structuredClone(message);
    const mapped = (id) => this.numbers.get(id) ?? id;
    const own = side === this.ours;
    if ('id' in copy && isRequest(copy) === own) copy.id = mapped(copy.id);
    const { params, error } = copy;
    if (own && cancelled(copy) !== undefined) {
      params['requestId' in params ? 'requestId' : 'id'] = mapped(cancelled(copy));
    }
    if (own && params?._meta?.progressToken !== undefined) {
      params._meta.progressToken = mapped(params._meta.progressToken);
    }
    if (!own && copy.method === PROGRESS) params.progressToken = mapped(params.progressToken);
    if (!own && error?.data?.requestId !== undefined)
      error.data.requestId = mapped(error.data.requestId);
    return copy;
  }

  /** The request of theirs in whose handler our program is. */
  handled() {
    const open = [...this.received.values()].filter(({ ended }) => !ended);
    return open.at(-1);
  }

  /** Does what our program did for our peer to say this. */
  act(message, cancels = cancelled(message)) {
    const { peer, lines, at } = this;
    if (isRequest(message)) {
      const { _meta, ...rest } = message.params ?? {};
      const controller = new AbortController();
      const mine = ({ dir, msg }) => dir === this.ours && cancelled(msg) === message.id;
      const cancel = lines.slice(at).find(mine);
      const options = {
        signal: controller.signal,
        ...(_meta && { onProgress: (info) => this.made.get(message.id).progress.push(info) }),
        ...(cancel && timedOut(cancel.msg) && { timeout: TIMEOUT }),
      };
      const maker = this.handled()?.context ?? peer;
      const settled = outcome(maker.request(message.method, message.params && rest, options));
      this.made.set(message.id, { settled, controller, progress: [], timed: options.timeout });
      return;
    }
    const target = this.made.get(cancels);
    if (target) {
      const parent = this.handled();
      // A clock does it, or our peer does, for what was asked on behalf of a request that was
      // cancelled.
      if (target.timed) this.clock.advance(TIMEOUT);
      else if (!parent?.context.signal.aborted) target.controller.abort(message.params.reason);
    } else if (message.method === PROGRESS) {
      const { progressToken, ...info } = message.params;
      this.received.get(progressToken).context.progress(info);
    } else if (message.method !== undefined) {
      peer.notify(message.method, message.params);
    } else {
      this.answer(this.received.get(message.id), message);
    }
  }

  answer(request, { result, error }) {
    request.ended = true;
    request.open(() => {
      if (!error) return result;
      const { code, message, data } = error;
      if (code === -32800 && !(data && 'retry' in data)) throw request.context.signal.reason;
      throw new RpcError(code, message, data);
    });
  }

  async run() {
    let said = 0;
    // Nothing but our peer's timers may be left to wait for.
    const awake = setInterval(() => {}, 1000);
    for (; this.at < this.lines.length; this.at++) {
      const { dir, msg, cancels } = this.lines[this.at];
      if (msg.__raw !== undefined) {
        this.transport.onUnreadable(new Error('no message'));
      } else if (dir === this.ours) {
        this.act(msg, cancels);
        const heard = (await this.said(++said))[said - 1];
        if (isRequest(msg)) this.numbers.set(msg.id, heard.id);
        assert.deepEqual(comparable(asOthers(heard)), comparable(this.renumbered(msg, dir)));
      } else {
        this.post(this.renumbered(msg, dir));
        // Handlers start before the other side says more; a cancel in the same read is another
        // test's.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    // Handlers that the recording leaves running end now, and nobody is told.
    for (const request of this.received.values()) {
      if (!request.ended && request.context.signal.aborted) this.answer(request, { result: {} });
    }
    await this.quiet();
    assert.equal(this.heard.length, said, 'our peer says no more than was recorded');
    clearInterval(awake);
  }
}

for (const file of files) {
  const lines = read(file);
  const name = file.replace('.jsonl', '');
  const dialect = DIALECT[file.split('-')[0]];
  for (const ours of ['a2b', 'b2a']) {
    test(
      `${name}, our peer as ${ours === 'a2b' ? 'the caller' : 'the callee'}`,
      LIMIT,
      async (t) => {
        const said = dialect === 'acp' && ours === 'a2b' ? withSessionCancel(lines) : lines;
        const replay = new Replay(dialect, ours, said, useClock(t));
        await replay.run();
        if (ours === 'a2b') await sameOutcome(name, replay);
        replay.peer.close();
      },
    );
  }
}

/** The last request of the recording ends for our caller as it did for theirs. */
async function sameOutcome(name, replay) {
  const recorded = outcomes.find(
    (entry) => entry.case === name && ('ok' in entry || 'err' in entry),
  );
  if (!recorded) return;
  const last = [...replay.made.values()].at(-1);
  if (name.endsWith('close')) replay.peer.close();
  const { ok, err } = await last.settled;
  if (recorded.ok !== undefined) return assert.deepEqual(ok, recorded.ok);
  if (name.endsWith('close')) return assert.equal(err.message, 'Connection closed');
  if (last.timed) return assert.equal(err.name, 'TimeoutError');
  // A signal that says why: an abort without a reason has an error of its own.
  assert.equal(err.name, 'AbortError');
  if (dialect(name) === 'mcp') return assert.ok(recorded.err.message.endsWith(err.message));
  if (err.cause) assert.equal(err.cause.code, recorded.err.code);
}

const dialect = (name) => DIALECT[name.split('-')[0]];
