/**
 * What lists of an agent with a store promise, whatever its backend is: what is counted, how many
 * logs are read for a page, and who has a turn meanwhile.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskStore } from '../../src/index.js';
import { VERSIONS, ask, deferred, serve } from '../../../a2a/tests/support/a2a.js';

/** @import { Backend } from '../../../a2a/src/store/backends/backend.js' */

const V1 = VERSIONS['1.0'];
const LIMITS = { limits: { remembered: 100_000 } };

const send = (url, text, headers = {}, more = {}) =>
  ask(url, V1.send, { message: V1.message(text), ...more }, { ...V1.headers, ...headers });
const list = async (url, params = {}, headers = {}) => {
  const { result, error } = await ask(url, V1.list, params, { ...V1.headers, ...headers });
  assert.equal(error, undefined, JSON.stringify(error));
  // All are required.
  for (const name of ['pageSize', 'totalSize']) assert.ok(Number.isInteger(result[name]), name);
  assert.equal(typeof result.nextPageToken, 'string');
  return result;
};
const idsOf = ({ tasks }) => tasks.map(({ id }) => id);

/** All pages of a list. */
async function pages(url, params, headers) {
  const found = [];
  let pageToken = '';
  do {
    const page = await list(url, { ...params, ...(pageToken && { pageToken }) }, headers);
    found.push(page);
    pageToken = page.nextPageToken;
  } while (pageToken);
  return found;
}

/**
 * A backend that counts which logs are read.
 * @param {Backend} backend
 * @param {Partial<Backend>} [more]
 */
function counting(backend, more = {}) {
  /** @type {string[]} */
  const reads = [];
  const read = (task, after, limit) => {
    reads.push(task);
    return backend.read(task, after, limit);
  };
  /** @type {Record<PropertyKey, unknown>} */
  const own = { read, ...more };
  const counted = new Proxy(/** @type {any} */ (backend), {
    get: (whole, name) => own[name] ?? whole[name]?.bind?.(whole) ?? whole[name],
  });
  return { backend: counted, reads };
}

/**
 * Stores copies of a task that an agent has worked on.
 * @param {Backend} backend
 * @param {number} count
 * @param {(i: number) => { user?: unknown, state?: string, context?: string }} about
 */
async function fill(backend, count, about) {
  const first = await serve((ctx) => void ctx.emitArtifact({ parts: [{ text: 'x' }] }), {
    store: taskStore({ backend }),
  });
  const { id } = (await send(first.url, 'go')).result.task;
  await first.agent.drain({ ms: 1000 });
  await first.close();
  const records = await backend.read(id, 0);
  await backend.forget(id);
  const since = Date.parse('2026-01-01');
  let next = 0;
  const one = async () => {
    for (let i; (i = next++) < count;) {
      const { user, state = 'completed', context = `context-${i % 10}` } = about(i);
      const time = since + i;
      let last = 0;
      for (const { data } of records) {
        const record = JSON.parse(data);
        record.id = `${i}.${last}`;
        for (const event of record.e) {
          if (event.origin) Object.assign(event.origin, { contextId: context, user });
          if (event.status?.state === 'completed')
            Object.assign(event.status, { state, timestamp: new Date(time).toISOString() });
        }
        last = await backend.append(`task-${i}`, JSON.stringify(record), last);
      }
      const data = JSON.stringify({ by: user === undefined ? [] : [user] });
      const entry = { tenant: 'task:', context, time, state, data };
      await backend.note(`task-${i}`, entry, last);
    }
  };
  await Promise.all(Array.from({ length: 16 }, one));
}

/**
 * @param {string} name
 * @param {() => Promise<Backend>} openBackend an empty one
 * @param {number} [many] tasks of which a filter fits few
 */
export function testLists(name, openBackend, many = 2000) {
  /**
   * @param {string} what
   * @param {(t: import('node:test').TestContext, opened: { backend: Backend,
   *   agent: (options?: object, of?: Backend, execute?: any) => Promise<any> }) => Promise<void>}
   *   run
   */
  const it = (what, run) =>
    test(`${name}: ${what}`, { timeout: 120_000 }, async (t) => {
      const backend = await openBackend();
      t.after(() => backend.close());
      const agent = async (options = {}, of = backend, execute = () => {}) => {
        const one = await serve(execute, {
          ...LIMITS,
          store: taskStore({ backend: of }),
          ...options,
        });
        t.after(() => one.close().catch(() => {}));
        // It answers for its user, who is named in a header.
        one.http.removeAllListeners('request');
        one.http.on('request', (request, response) => {
          request.user = request.headers['x-user'];
          return one.agent.handle(request, response);
        });
        return one;
      };
      await run(t, { backend, agent });
    });

  it('each page says how many tasks there are, whatever they are limited to', async (t, {
    agent,
  }) => {
    const execute = ({ message: { parts }, emitStatus }) => {
      if (parts[0].text !== 'ends') emitStatus('input-required');
    };
    const { url } = await agent({}, undefined, execute);
    for (let i = 0; i < 7; i++) {
      const message = { ...V1.message(i % 3 ? 'ends' : 'asks'), contextId: `context-${i % 2}` };
      await ask(url, V1.send, { message }, V1.headers);
    }
    await send(url, 'ends', {}, { tenant: 'other' });
    const totals = async (params) =>
      (await pages(url, params)).map(({ tasks, totalSize, pageSize }) => [
        tasks.length,
        totalSize,
        pageSize,
      ]);
    assert.deepEqual(await totals({ pageSize: 3 }), [
      [3, 7, 3],
      [3, 7, 3],
      [1, 7, 3],
    ]);
    assert.deepEqual(await totals({}), [[7, 7, 50]]);
    assert.deepEqual(await totals({ status: 'TASK_STATE_COMPLETED', pageSize: 4 }), [[4, 4, 4]]);
    assert.deepEqual(await totals({ status: 'TASK_STATE_INPUT_REQUIRED', pageSize: 2 }), [
      [2, 3, 2],
      [1, 3, 2],
    ]);
    assert.deepEqual(await totals({ status: 'TASK_STATE_FAILED' }), [[0, 0, 50]]);
    assert.deepEqual(await totals({ contextId: 'context-1' }), [[3, 3, 50]]);
    assert.deepEqual(
      await totals({ contextId: 'context-0', status: 'TASK_STATE_INPUT_REQUIRED' }),
      [[2, 2, 50]],
    );
    assert.deepEqual(await totals({ tenant: 'other' }), [[1, 1, 50]]);
    assert.deepEqual(await totals({ tenant: 'nobody' }), [[0, 0, 50]]);
    const { tasks } = await list(url);
    const { timestamp } = tasks[2].status;
    const later = tasks.filter((task) => task.status.timestamp >= timestamp).length;
    assert.equal((await list(url, { statusTimestampAfter: timestamp })).totalSize, later);
    const rest = await fetch(new URL('tasks?pageSize=2', url), { headers: V1.headers });
    const { totalSize, pageSize, nextPageToken } = await rest.json();
    assert.deepEqual([totalSize, pageSize], [7, 2]);
    const second = new URL(`tasks?pageSize=2&pageToken=${encodeURIComponent(nextPageToken)}`, url);
    assert.equal((await (await fetch(second, { headers: V1.headers })).json()).totalSize, 7);
  });

  it('what a user may not see is neither shown nor counted', async (t, { agent }) => {
    const { url } = await agent({ authorize: (task, access, { user }) => task.user === user });
    for (let i = 0; i < 9; i++) await send(url, 'x', { 'x-user': i % 3 ? 'bob' : 'ann' });
    for (const [user, mine] of [
      ['ann', 3],
      ['bob', 6],
      ['eve', 0],
    ]) {
      const found = await pages(url, { pageSize: 2 }, { 'x-user': user });
      assert.deepEqual(
        found.map(({ totalSize }) => totalSize),
        found.map(() => mine),
      );
      assert.equal(found.flatMap(idsOf).length, mine);
      const none = await list(url, { status: 'TASK_STATE_WORKING' }, { 'x-user': user });
      assert.deepEqual([none.totalSize, none.nextPageToken], [0, '']);
    }
  });

  it('of many tasks only those are read that a page shows', async (t, { backend, agent }) => {
    const few = new Set([7, many >> 1, many - 3]);
    await fill(backend, many, (i) => ({
      user: few.has(i) ? 'ann' : 'bob',
      state: few.has(i) ? 'failed' : 'completed',
    }));
    const expected = [...few].sort((a, b) => b - a).map((i) => `task-${i}`);
    const { backend: counted, reads } = counting(backend);
    const { url } = await agent({}, counted);
    const failed = await list(url, { status: 'TASK_STATE_FAILED' });
    assert.deepEqual(idsOf(failed), expected);
    assert.deepEqual([failed.totalSize, failed.nextPageToken], [3, '']);
    assert.deepEqual(reads.sort(), [...expected].sort());
    reads.length = 0;
    assert.equal((await list(url, { status: 'TASK_STATE_WORKING' })).totalSize, 0);
    const since = new Date(Date.parse('2026-01-01') + many - 5).toISOString();
    assert.equal((await list(url, { statusTimestampAfter: since, pageSize: 1 })).totalSize, 5);
    assert.equal((await list(url, { pageSize: 2, contextId: 'context-3' })).totalSize, many / 10);
    assert.equal((await list(url, { pageSize: 5 })).totalSize, many);
    assert.ok(reads.length <= 8, `${reads}`);
    const { backend: mine, reads: seen } = counting(backend);
    const other = await agent({ authorize: (task, access, { user }) => task.user === user }, mine);
    const own = await list(other.url, {}, { 'x-user': 'ann' });
    assert.deepEqual(idsOf(own), expected);
    assert.deepEqual([own.totalSize, own.nextPageToken], [3, '']);
    assert.deepEqual(seen.sort(), [...expected].sort());
    seen.length = 0;
    const first = await list(other.url, { pageSize: 10 }, { 'x-user': 'bob' });
    const { nextPageToken: pageToken } = first;
    const next = await list(other.url, { pageSize: 10, pageToken }, { 'x-user': 'bob' });
    assert.deepEqual([first.totalSize, next.totalSize], [many - 3, many - 3]);
    assert.ok(seen.length <= 40, `${seen.length} logs were read for two pages of ten`);
  });

  it('a hook that needs the tasks themselves gets them, and a page reads so many at most', async (t, {
    backend,
    agent,
  }) => {
    const texts = [3, 350, 351];
    await fill(backend, 500, (i) => ({ user: 'ann', context: texts.includes(i) ? 'mine' : 'x' }));
    const { backend: counted, reads } = counting(backend);
    const authorize = (task) => task.artifacts.length === 1 && task.contextId === 'mine';
    const { url } = await agent({ authorize }, counted);
    const found = [];
    for (let pageToken = '', totalSize = 0; ;) {
      reads.length = 0;
      const page = await list(url, { pageSize: 1, ...(pageToken && { pageToken }) });
      assert.ok(reads.length <= 200, `${reads.length} logs were read`);
      found.push(...idsOf(page));
      // It never counts too many, and in the end all.
      assert.ok(page.totalSize >= totalSize && page.totalSize <= 3);
      ({ totalSize, nextPageToken: pageToken } = page);
      if (pageToken) continue;
      assert.equal(totalSize, 3);
      break;
    }
    assert.deepEqual(found, ['task-351', 'task-350', 'task-3']);
  });

  it('however a hook looks at a task, it decides by the whole of it', async (t, {
    backend,
    agent,
  }) => {
    await fill(backend, 20, (i) => ({ user: i % 2 ? 'ann' : 'bob' }));
    const isAnns = ({ user }) => user === 'ann';
    for (const hook of [
      (task) => isAnns({ ...task }),
      (task) => isAnns(JSON.parse(JSON.stringify(task))),
      (task) => isAnns(structuredClone({ user: task.user, history: task.history })),
      (task) => Object.hasOwn(task, 'artifacts') && isAnns(task),
      (task) => task.history[0].role === 'user' && isAnns(task),
      async (task) => task.status.message === undefined && isAnns(task),
      (task) => 'artifacts' in task && isAnns(task),
      (task) => task.size > 0 && task.artifacts.length === 1 && isAnns(task),
    ]) {
      const { url } = await agent({ authorize: (task, access) => access !== 'list' || hook(task) });
      const { tasks, totalSize } = await list(url, { pageSize: 4 });
      assert.deepEqual([tasks.length, totalSize], [4, 10], String(hook));
      assert.ok(idsOf({ tasks }).every((id) => id.match(/\d+/)[0] % 2 === 1));
    }
  });

  it('others have their turn while a list is made, and who has left is not worked for', async (t, {
    backend,
    agent,
  }) => {
    await fill(backend, 400, () => ({ user: 'bob' }));
    let asked = 0;
    let gate = Promise.resolve(true);
    let began = deferred();
    const authorize = (task, access) => {
      if (access !== 'list') return true;
      asked++;
      began.resolve();
      // As one that takes its time would.
      for (const end = performance.now() + 0.5; performance.now() < end;);
      return gate;
    };
    const { url } = await agent({ authorize });
    const order = [];
    const listing = list(url, { pageSize: 1 }).then(() => order.push('list'));
    await began.promise;
    await ask(url, V1.get, { id: 'task-1' }, V1.headers).then(() => order.push('get'));
    await listing;
    assert.deepEqual(order, ['get', 'list']);
    // The next one is left while its hook waits.
    const held = deferred();
    gate = held.promise;
    began = deferred();
    asked = 0;
    const controller = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: V1.list, params: {} });
    const headers = { 'content-type': 'application/json', ...V1.headers };
    const left = fetch(url, { method: 'POST', headers, body, signal: controller.signal });
    await began.promise;
    const before = asked;
    controller.abort();
    await assert.rejects(left);
    // The agent has heard of it when it has answered what came later.
    for (let i = 0; i < 20; i++) await ask(url, V1.get, { id: 'task-1' }, V1.headers);
    held.resolve(true);
    for (let i = 0; i < 20; i++) await ask(url, V1.get, { id: 'task-1' }, V1.headers);
    assert.ok(asked <= before + 16, `${asked} tasks were looked at, and ${before} before it left`);
  });

  it('of equal requests that come at once, the work is done for all', async (t, {
    backend,
    agent,
  }) => {
    await fill(backend, 300, (i) => ({ user: i % 3 ? 'bob' : 'ann' }));
    let asked = 0;
    const all = deferred();
    const authorize = async (task, access, { user }) => {
      asked++;
      await all.promise;
      await new Promise(setImmediate);
      return task.user === user;
    };
    const { url, http } = await agent({ authorize });
    let come = 0;
    http.on('request', (request) =>
      request.on('end', () => {
        if (++come === 20) setImmediate(all.resolve);
      }),
    );
    const lists = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        list(url, { pageSize: 10 }, { 'x-user': i % 2 ? 'ann' : 'bob' }),
      ),
    );
    for (const [i, { totalSize, tasks }] of lists.entries()) {
      assert.equal(totalSize, i % 2 ? 100 : 200);
      assert.equal(tasks.length, 10);
    }
    // For each of the two users: the one that is being made, and one for all who came later.
    assert.ok(asked <= 4 * 300, `the hook was asked ${asked} times`);
  });

  it('what one process stored, it lists at once, by state as well', async (t, { agent }) => {
    const { url } = await agent();
    for (let i = 1; i <= 20; i++) {
      await send(url, 'x');
      assert.equal((await list(url, { status: 'TASK_STATE_COMPLETED' })).totalSize, i);
      assert.equal((await list(url)).totalSize, i);
    }
  });

  it('where a process ends before the index knows what its log says, the next one enters it', async (t, {
    backend,
    agent,
  }) => {
    /** Its entries are not written any more. */
    let gone = false;
    const dead = () => new Promise(() => {});
    const { backend: doomed } = counting(backend, {
      note: (task, entry, seq) =>
        gone || (entry.tenant.startsWith('task:') && seq > 0)
          ? dead()
          : backend.note(task, entry, seq),
      renew: (process) => (gone ? dead() : backend.renew(process)),
      forget: (task) => (gone ? dead() : backend.forget(task)),
    });
    const execute = ({ message: { parts }, emitStatus }) => {
      if (parts[0].text === 'asks') emitStatus('input-required');
    };
    const term = 1000;
    const one = await agent({ store: taskStore({ backend: doomed, term }) }, undefined, execute);
    const { id: ended } = (await send(one.url, 'ends')).result.task;
    const { id: asks } = (await send(one.url, 'asks')).result.task;
    gone = true;
    const other = await agent({ store: taskStore({ backend, term }) }, undefined, execute);
    const byState = async (status) => {
      const { tasks, totalSize } = await list(other.url, { status });
      return [...tasks.map(({ id }) => id), totalSize];
    };
    // Until then it tells nothing wrong: of what it does not know it shows what the log says.
    const seen = await list(other.url);
    assert.deepEqual(new Set(idsOf(seen)), new Set([ended, asks]));
    while ((await list(other.url, { status: 'TASK_STATE_COMPLETED' })).totalSize === 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    while ((await list(other.url, { status: 'TASK_STATE_INPUT_REQUIRED' })).totalSize === 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(await byState('TASK_STATE_COMPLETED'), [ended, 1]);
    assert.deepEqual(await byState('TASK_STATE_INPUT_REQUIRED'), [asks, 1]);
    assert.deepEqual(await byState('TASK_STATE_SUBMITTED'), [0]);
  });

  it('an entry whose log is gone is not shown, and then not counted either', async (t, {
    backend,
    agent,
  }) => {
    const { url } = await agent();
    await send(url, 'x');
    const entry = { tenant: 'task:', context: 'c', time: Date.now() + 1000, state: 'completed' };
    await backend.note('gone', { ...entry, data: JSON.stringify({ state: 'completed' }) }, 3);
    assert.equal(await backend.count?.({ tenant: 'task:' }), 2);
    assert.equal((await list(url)).tasks.length, 1);
    const { tasks, totalSize } = await list(url);
    assert.deepEqual([tasks.length, totalSize], [1, 1]);
  });

  it('a page that is begun with entries which are behind their logs is answered all the same', async (t, {
    backend,
    agent,
  }) => {
    const { url } = await agent();
    for (let i = 0; i < 3; i++) await send(url, `${i}`);
    const behind = async (from, to) => {
      for (let i = from; i < to; i++) {
        const entry = { tenant: 'task:', context: 'c', time: Date.now() + 1000 + i };
        const data = JSON.stringify({ state: 'completed', by: [] });
        await backend.note(`gone-${i}`, { ...entry, state: 'completed', data }, 3);
      }
    };
    await behind(0, 2);
    assert.equal((await pages(url, { pageSize: 1 })).flatMap(idsOf).length, 3);
    // More than are read for a page.
    await behind(2, 250);
    assert.equal((await pages(url, { pageSize: 2 })).flatMap(idsOf).length, 3);
  });

  it('what no list can be limited to is refused, and costs nobody else anything', async (t, {
    agent,
  }) => {
    const { url } = await agent();
    await send(url, 'x');
    const refused = async (params, why) => {
      const { error } = await ask(url, V1.list, params, V1.headers);
      assert.equal(error?.code, -32602, JSON.stringify(params).slice(0, 80));
      assert.match(error.message, why);
    };
    for (const name of ['contextId', 'statusTimestampAfter', 'pageToken'])
      for (const value of [{}, ['a'], 5, true, { toString: 1 }])
        await refused({ [name]: value }, new RegExp(`${name} must be a string`));
    await refused({ status: { toString: 1 } }, /status is not a task state/);
    await refused({ contextId: 'x'.repeat(1_000_000) }, /at most 256 bytes/);
    await refused({ contextId: '\ud800' }, /well-formed/);
    assert.equal((await list(url)).totalSize, 1);
  });

  it('a task that was entered and never stored is neither shown nor counted', async (t, {
    backend,
    agent,
  }) => {
    const { backend: refusing } = counting(backend, {
      append: async () => {
        throw Object.assign(new Error('away'), { code: 'UNAVAILABLE', retryable: true });
      },
    });
    const refused = await agent({}, refusing);
    assert.ok((await send(refused.url, 'x')).error);
    const { url } = await agent();
    await send(url, 'x');
    const { tasks, totalSize } = await list(url);
    assert.deepEqual([tasks.length, totalSize], [1, 1]);
  });

  it('a list without pages reads so many at most', async (t, { backend, agent }) => {
    await fill(backend, 1100, () => ({ user: 'bob' }));
    const { backend: counted, reads } = counting(backend);
    const { url } = await agent({}, counted);
    const { error } = await ask(url, VERSIONS.gem.list, {});
    assert.match(error.message, /too long/);
    assert.ok(reads.length <= 1000, `${reads.length} logs were read`);
    const one = await ask(url, VERSIONS.gem.list, { contextId: 'context-3' });
    assert.equal(one.result.length, 110);
  });
}
