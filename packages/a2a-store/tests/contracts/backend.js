/**
 * What every backend promises (packages/a2a/src/store/backends/backend.js). Whoever writes one
 * calls this with a way to open it: each test uses names of its own, so that they may share one.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';

/** @import { Backend, LogRecord } from '../../../a2a/src/store/backends/backend.js' */

/** @param {LogRecord[]} records */
const dataOf = (records) => records.map(({ data }) => data);

/** @param {string} code */
const refusedAs = (code) => (/** @type {any} */ error) => {
  assert.equal(error?.name, 'AbpError', String(error?.stack ?? error));
  assert.equal(error.code, code);
  return true;
};

/** What a watcher was given, and a way to wait for it. */
class Seen {
  /** @type {string[]} */
  data = [];
  /** @type {number[]} */
  seqs = [];
  #changed = () => {};

  /** @param {LogRecord} record */
  add = ({ seq, data }) => {
    this.data.push(data);
    this.seqs.push(seq);
    this.#changed();
  };

  /** @param {number} count */
  async until(count) {
    while (this.data.length < count)
      await new Promise((resolve) => {
        this.#changed = () => resolve(undefined);
      });
  }
}

/**
 * @param {string} name
 * @param {{ open: () => Promise<Backend>, other?: () => Promise<Backend>, shared?: boolean }}
 *   backend `open` opens one that is used, and closed, by one test; with `shared`, another that
 *   `open` gives at the same time has the same content
 */
export function testBackend(name, { open, shared = false }) {
  /**
   * @param {string} what
   * @param {(backend: Backend, id: string, second: Backend) => Promise<void>} run
   */
  const it = (what, run) =>
    test(`${name}: ${what}`, async () => {
      const backend = await open();
      const second = shared ? await open() : backend;
      try {
        await run(backend, randomUUID(), second);
      } finally {
        await backend.close();
        if (shared) await second.close();
      }
    });

  it('a record is stored where it is expected, or not at all', async (backend, task) => {
    const first = await backend.append(task, 'a', 0);
    assert.ok(first > 0);
    await assert.rejects(backend.append(task, 'b', 0), refusedAs('CONFLICT'));
    const second = await backend.append(task, 'b', first);
    assert.ok(second > first);
    for (const expected of [0, first, second + 1])
      await assert.rejects(backend.append(task, 'c', expected), refusedAs('CONFLICT'));
    assert.deepEqual(await backend.read(task, 0), [
      { seq: first, data: 'a' },
      { seq: second, data: 'b' },
    ]);
  });

  it('of those who write at once, one is first', async (backend, task, second) => {
    let last = 0;
    for (let round = 0; round < 20; round++) {
      const writers = Array.from({ length: 8 }, (_, i) =>
        (i % 2 ? second : backend).append(task, `${round}.${i}`, last),
      );
      const settled = await Promise.allSettled(writers);
      const won = settled.filter((result) => result.status === 'fulfilled');
      assert.equal(won.length, 1);
      for (const result of settled)
        if (result.status === 'rejected') refusedAs('CONFLICT')(result.reason);
      last = won[0].value;
    }
    assert.equal((await second.read(task, 0)).length, 20);
  });

  it('tasks are apart', async (backend, task) => {
    await backend.append(`${task}.a`, '1', 0);
    await backend.append(`${task}.*`, '2', 0);
    await backend.append(`${task}.>`, '3', 0);
    await backend.append(`${task} ä€😀`, '4', 0);
    assert.deepEqual(dataOf(await backend.read(`${task}.a`, 0)), ['1']);
    assert.deepEqual(dataOf(await backend.read(`${task}.*`, 0)), ['2']);
    assert.deepEqual(dataOf(await backend.read(`${task}.>`, 0)), ['3']);
    assert.deepEqual(dataOf(await backend.read(`${task} ä€😀`, 0)), ['4']);
    assert.deepEqual(await backend.read(task, 0), []);
  });

  it('a log is read from a number, as far as one likes', async (backend, task, second) => {
    const seqs = [];
    for (let i = 0; i < 5; i++)
      seqs.push(await backend.append(task, `ä€😀\n"${i}`, seqs.at(-1) ?? 0));
    const all = await second.read(task, 0);
    assert.deepEqual(
      all.map(({ seq }) => seq),
      seqs,
    );
    assert.equal(all[4].data, 'ä€😀\n"4');
    assert.deepEqual(await second.read(task, seqs[1], 2), all.slice(2, 4));
    assert.deepEqual(await second.read(task, seqs[4]), []);
  });

  it('a watcher gets what was and what comes, each once and in order', async (backend, task, second) => {
    let last = 0;
    const write = async (/** @type {string} */ data) =>
      (last = await backend.append(task, data, last));
    await write('0');
    const first = last;
    await write('1');
    const seen = new Seen();
    const fromStart = new Seen();
    const stop = second.watch(task, first, seen.add);
    const stopOther = backend.watch(task, 0, fromStart.add);
    assert.deepEqual(seen.data, []);
    const expected = ['1'];
    for (let i = 2; i < 200; i++) {
      expected.push(String(i));
      await write(String(i));
    }
    await Promise.all([seen.until(199), fromStart.until(200)]);
    assert.deepEqual(seen.data, expected);
    assert.deepEqual(fromStart.data, ['0', ...expected]);
    assert.deepEqual(
      seen.seqs,
      seen.seqs.toSorted((a, b) => a - b),
    );
    stop();
    await write('after');
    await fromStart.until(201);
    assert.equal(seen.data.length, 199);
    stopOther();
  });

  it('a watcher that throws, or stops itself, costs nobody else anything', async (backend, task) => {
    const reported = console.error;
    let reports = 0;
    console.error = () => void reports++;
    try {
      const [thrower, stopper, seen] = [new Seen(), new Seen(), new Seen()];
      backend.watch(task, 0, (record) => {
        thrower.add(record);
        throw new Error('mine');
      });
      const stop = backend.watch(task, 0, (record) => {
        stopper.add(record);
        stop();
      });
      backend.watch(task, 0, seen.add);
      const first = await backend.append(task, 'a', 0);
      await backend.append(task, 'b', first);
      await Promise.all([seen.until(2), thrower.until(2)]);
      assert.deepEqual(stopper.data, ['a']);
      assert.equal(reports, 2);
    } finally {
      console.error = reported;
    }
  });

  it('a record has a length', async (backend, task) => {
    const longest = 'ä'.repeat(Math.floor(backend.maxRecord / 2));
    await assert.rejects(backend.append(task, `${longest}äa`, 0), refusedAs('TOO_LARGE'));
    await backend.append(task, longest, 0);
    assert.equal((await backend.read(task, 0))[0].data, longest);
  });

  it('a task is forgotten', async (backend, task, second) => {
    const entry = { tenant: task, context: 'c', time: 1, data: '' };
    const seq = await backend.append(task, 'a', 0);
    await backend.note(task, entry, seq);
    await second.forget(task);
    assert.deepEqual(await backend.read(task, 0), []);
    assert.deepEqual((await backend.list({ tenant: task })).tasks, []);
    await second.forget(task);
    await backend.append(task, 'again', 0);
    assert.deepEqual(dataOf(await second.read(task, 0)), ['again']);
  });

  it('a lease changes with each renewal, and with nothing else', async (backend, process, second) => {
    assert.equal(await backend.lease(process), 0);
    await backend.renew(process);
    const one = await second.lease(process);
    await backend.renew(`${process}2`);
    assert.notEqual(one, 0);
    assert.equal(await second.lease(process), one);
    await backend.renew(process);
    assert.notEqual(await second.lease(process), one);
  });

  it('a lease is deleted as it was seen, and not if it was renewed since', async (backend, process, second) => {
    const numberOf = async (/** @type {string} */ name) => {
      const found = (await second.leases(100_000)).filter((one) => one.process === name);
      assert.ok(found.length <= 1);
      return found[0]?.number;
    };
    assert.equal(await numberOf(process), undefined);
    assert.equal(await second.release(process, 0), true);
    await backend.renew(process);
    await backend.renew(`${process}ä€😀.*>`);
    const seen = await second.lease(process);
    assert.equal(await numberOf(process), seen);
    await backend.renew(process);
    assert.equal(await second.release(process, seen), false);
    const renewed = await backend.lease(process);
    assert.equal(await numberOf(process), renewed);
    assert.equal(await second.release(process, renewed), true);
    assert.equal(await second.release(process, renewed), true);
    assert.equal(await numberOf(process), undefined);
    assert.equal(await backend.lease(process), 0);
    assert.equal(await numberOf(`${process}ä€😀.*>`), await backend.lease(`${process}ä€😀.*>`));
    // One that comes late is a lease like any other.
    await backend.renew(process);
    assert.ok(![0, seen, renewed].includes(await second.lease(process)));
  });

  it('a lease says whether its process has left', async (backend, process, second) => {
    const left = async () =>
      (await second.leases(100_000)).find((one) => one.process === process)?.left;
    await backend.renew(process);
    assert.equal(await left(), false);
    const number = await second.lease(process);
    await backend.renew(process, true);
    assert.equal(await left(), true);
    assert.equal(await second.release(process, number), false);
  });

  it('the leases that were not renewed for longest come first', async (backend, id, second) => {
    const names = ['a', 'b', 'c'].map((at) => id + at);
    for (const name of names) await backend.renew(name);
    await second.renew(names[0]);
    const found = (await second.leases(100_000)).map(({ process }) => process);
    assert.deepEqual(
      found.filter((name) => names.includes(name)),
      [names[1], names[2], names[0]],
    );
    assert.equal((await second.leases(2)).length, 2);
  });

  it('a process is asked, and answers', async (backend, process, second) => {
    await assert.rejects(second.ask(process, 'x'), refusedAs('NO_RESPONDERS'));
    const stop = await backend.serve(process, async (text) => {
      if (text === 'throw') throw new Error('mine');
      return text === 'never' ? new Promise(() => {}) : `${text}!`;
    });
    assert.equal(await second.ask(process, 'ä€😀'), 'ä€😀!');
    await assert.rejects(second.ask(process, 'throw'), (error) => {
      assert.match(/** @type {Error} */ (error).message, /mine/);
      return refusedAs('OPERATION_FAILED')(error);
    });
    await assert.rejects(second.ask(process, 'never', { timeout: 20 }), refusedAs('TIMEOUT'));
    await stop();
    await assert.rejects(second.ask(process, 'x'), refusedAs('NO_RESPONDERS'));
  });

  it('tasks are listed by tenant and context, the latest first, page by page', async (backend, id, second) => {
    /** @param {object} filter */
    const pages = async (filter) => {
      const found = [];
      let cursor;
      do {
        const page = await second.list({ tenant: id, limit: 2, ...filter, cursor });
        assert.ok(page.tasks.length <= 2);
        found.push(page.tasks.map(({ task, data }) => `${task.slice(id.length)}${data}`));
        cursor = page.cursor;
      } while (cursor);
      return found;
    };
    const note = (
      /** @type {string} */ at,
      /** @type {string} */ context,
      /** @type {number} */ time,
    ) => backend.note(`${id}${at}`, { tenant: id, context, time, data: '' }, 1);
    assert.deepEqual(await pages({}), [[]]);
    await note('b', 'one.*', 5);
    await note('a', 'one.*', 5);
    await note('c', 'two', 7);
    await note('d', 'one.*', 3);
    await note('e', 'two', 1);
    await backend.note(`${id}f`, { tenant: '', context: 'two', time: 9, data: '' }, 1);
    assert.deepEqual(await pages({}), [['c', 'a'], ['b', 'd'], ['e']]);
    assert.deepEqual(await pages({ context: 'one.*' }), [['a', 'b'], ['d']]);
    assert.deepEqual(await pages({ context: 'one' }), [[]]);
    await backend.note(`${id}e`, { tenant: id, context: 'two', time: 8, data: 'new' }, 3);
    await backend.note(`${id}e`, { tenant: id, context: 'two', time: 9, data: 'old' }, 2);
    assert.deepEqual(await pages({ context: 'two' }), [['enew', 'c']]);
    for (const cursor of ['', 'x', '%', '%5B1%5D', 'null'])
      await assert.rejects(backend.list({ tenant: id, cursor }), refusedAs('INVALID_PARAMS'));
  });

  it('lists are limited to a state, and to what has changed since, and counted', async (backend, id, second) => {
    /** @type {[at: string, context: string, time: number, state?: string][]} */
    const entries = [
      ['a', 'one', 1, 'working'],
      ['b', 'one', 2, 'completed'],
      ['c', 'two', 3, 'completed'],
      ['d', 'two', 3, 'working'],
      ['e', 'two', 4],
    ];
    for (const [at, context, time, state] of entries)
      await backend.note(`${id}${at}`, { tenant: id, context, time, state, data: '' }, 1);
    await backend.note(
      `${id}f`,
      { tenant: `${id}2`, context: 'one', time: 1, state: 'working', data: '' },
      1,
    );
    const shown = async (/** @type {object} */ filter) => {
      const found = [];
      let cursor;
      do {
        const page = await second.list({ tenant: id, limit: 1, ...filter, cursor });
        found.push(...page.tasks);
        cursor = page.cursor;
      } while (cursor);
      const count = await second.count?.({ tenant: id, ...filter });
      return [found.map(({ task }) => task.slice(id.length)).join(''), count];
    };
    // What has no state is shown where no state is asked for, and not counted.
    assert.deepEqual(await shown({}), ['ecdba', 4]);
    assert.deepEqual(await shown({ state: 'working' }), ['da', 2]);
    assert.deepEqual(await shown({ state: 'failed' }), ['', 0]);
    assert.deepEqual(await shown({ since: 3 }), ['ecd', 2]);
    assert.deepEqual(await shown({ since: 2, state: 'completed' }), ['cb', 2]);
    assert.deepEqual(await shown({ context: 'two' }), ['ecd', 2]);
    assert.deepEqual(await shown({ context: 'two', state: 'working' }), ['d', 1]);
    assert.deepEqual(await shown({ context: 'one', since: 2 }), ['b', 1]);
    assert.deepEqual(await shown({ context: 'none' }), ['', 0]);
    const [page] = (await second.list({ tenant: id, state: 'working' })).tasks;
    assert.deepEqual([page.state, page.data], ['working', '']);
    assert.equal((await second.list({ tenant: id })).tasks[0].state, undefined);
    // It changes, is read again after the same record, and is forgotten.
    await backend.note(
      `${id}a`,
      { tenant: id, context: 'one', time: 5, state: 'completed', data: '' },
      2,
    );
    await backend.note(
      `${id}b`,
      { tenant: id, context: 'one', time: 2, state: 'completed', data: 'new' },
      1,
    );
    await backend.forget(`${id}c`);
    assert.deepEqual(await shown({ state: 'completed' }), ['ab', 2]);
    assert.deepEqual(await shown({ state: 'working' }), ['d', 1]);
    assert.deepEqual(await shown({}), ['aedb', 3]);
    assert.equal((await second.list({ tenant: id, context: 'one' })).tasks[1].data, 'new');
  });

  it('long lists keep their order while their tasks change and are forgotten', async (backend, id, second) => {
    /** @type {Map<string, number>} */
    const times = new Map();
    const names = Array.from({ length: 300 }, (_, i) => `${id}${i}`);
    // Times that come in no order, and many twice.
    const timeOf = (/** @type {number} */ i, /** @type {number} */ round) =>
      (i * 7919 + round * 31) % 149;
    for (const round of [1, 2])
      for (const [i, task] of names.entries()) {
        if (round === 2 && i % 3) continue;
        const time = timeOf(i, round);
        times.set(task, time);
        const context = i % 2 ? 'odd' : 'even';
        await backend.note(task, { tenant: id, context, time, state: 'working', data: '' }, round);
        // Another one reads it while it changes.
        if (i % 100 === 0) await second.list({ tenant: id, limit: 1 });
      }
    for (const [i, task] of names.entries()) {
      if (i % 5) continue;
      times.delete(task);
      await backend.forget(task);
    }
    for (const [context, of] of /** @type {[string | undefined, (i: number) => boolean][]} */ ([
      [undefined, () => true],
      ['odd', (i) => i % 2 === 1],
    ])) {
      const found = [];
      let cursor;
      do {
        const page = await second.list({ tenant: id, context, limit: 70, cursor });
        found.push(...page.tasks.map(({ task }) => task));
        cursor = page.cursor;
      } while (cursor);
      const expected = [...times]
        .filter(([task]) => of(names.indexOf(task)))
        .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
        .map(([task]) => task);
      assert.deepEqual(found, expected);
      assert.equal(await second.count?.({ tenant: id, context }), expected.length);
    }
  });

  it('objects are stored, replaced, listed and removed', async (backend, id, second) => {
    const name = `${id}/1.*>`;
    await assert.rejects(second.get(name), refusedAs('OBJECT_NOT_FOUND'));
    const bytes = new Uint8Array(300_000).map((_, i) => i * 7);
    await backend.put(name, bytes);
    assert.deepEqual(new Uint8Array(await second.get(name)), bytes);
    await backend.put(name, new Uint8Array([1]));
    await backend.put(`${id}/2`, new Uint8Array());
    assert.deepEqual([...(await second.get(name))], [1]);
    assert.equal((await second.get(`${id}/2`)).length, 0);
    assert.deepEqual((await second.objects(`${id}/`)).sort(), [name, `${id}/2`].sort());
    await second.remove(name);
    await second.remove(name);
    await assert.rejects(backend.get(name), refusedAs('OBJECT_NOT_FOUND'));
    assert.deepEqual(await backend.objects(`${id}/`), [`${id}/2`]);
  });

  it('old objects that nobody keeps are swept, so many at a time, and others stay', async (backend, id, second) => {
    const { sweep } = second;
    assert.ok(sweep);
    const names = Array.from({ length: 5 }, (_, i) => `${id}/${i}.*>`);
    for (const name of names) await backend.put(name, new Uint8Array(300_000).fill(7));
    await backend.put(names[0], new Uint8Array([1]));
    // So that the latest piece is not the latest that was stored.
    await backend.renew(id);
    /** @type {string[]} */
    let asked = [];
    const all = async (
      /** @type {number} */ age,
      /** @type {(name: string) => boolean} */ keeps,
    ) => {
      asked = [];
      let rounds = 0;
      /** @type {string | undefined} */
      let after;
      do {
        after = await sweep.call(second, {
          age,
          limit: 4,
          after,
          keeps: async (name) => {
            if (!name.startsWith(id)) return true;
            asked.push(name);
            return keeps(name);
          },
        });
        rounds++;
      } while (after);
      return rounds;
    };
    await all(3_600_000, () => false);
    assert.deepEqual(asked, []);
    assert.ok((await all(0, (name) => name !== names[3])) > 1);
    assert.deepEqual([...new Set(asked)].sort(), names);
    const left = names.filter((name) => name !== names[3]);
    assert.deepEqual(await backend.objects(`${id}/`), left);
    for (const name of left)
      assert.equal((await backend.get(name)).length, name === names[0] ? 1 : 300_000);
    await assert.rejects(backend.get(names[3]), refusedAs('OBJECT_NOT_FOUND'));
    await all(0, () => false);
    assert.deepEqual(await backend.objects(`${id}/`), []);
    assert.equal(await all(0, () => false), 1);
    assert.deepEqual(asked, []);
  });

  it('what cannot be stored, or found again, is refused', async (backend, task) => {
    for (const wrong of ['a\0b', '\ud800']) {
      await assert.rejects(backend.append(task, wrong, 0), refusedAs('INVALID_PARAMS'));
      await assert.rejects(backend.put(wrong, new Uint8Array()), refusedAs('INVALID_PARAMS'));
      const entry = { tenant: wrong, context: '', time: 1, data: '' };
      await assert.rejects(backend.note(task, entry, 1), refusedAs('INVALID_PARAMS'));
    }
    for (const wrong of ['', 'ä'.repeat(129), 'a\0b', '\ud800', /** @type {any} */ (undefined)]) {
      await assert.rejects(backend.append(wrong, '', 0), refusedAs('INVALID_PARAMS'));
      await assert.rejects(backend.renew(wrong), refusedAs('INVALID_PARAMS'));
      await assert.rejects(backend.put(wrong, new Uint8Array()), refusedAs('INVALID_PARAMS'));
      assert.throws(() => backend.watch(wrong, 0, () => {}), refusedAs('INVALID_PARAMS'));
    }
  });

  it('what is closed does nothing more', async (backend, task) => {
    const seen = new Seen();
    await backend.append(task, 'a', 0);
    backend.watch(task, 0, seen.add);
    await backend.close();
    await assert.rejects(backend.append(task, 'b', 1), refusedAs('UNAVAILABLE'));
    await assert.rejects(backend.read(task, 0), refusedAs('UNAVAILABLE'));
    await assert.rejects(backend.renew(task), refusedAs('UNAVAILABLE'));
    await assert.rejects(backend.ask(task, 'x'), refusedAs('UNAVAILABLE'));
    await assert.rejects(backend.list({ tenant: '' }), refusedAs('UNAVAILABLE'));
    assert.throws(() => backend.watch(task, 0, seen.add), refusedAs('UNAVAILABLE'));
    assert.deepEqual(seen.data, []);
    await backend.close();
  });
}
