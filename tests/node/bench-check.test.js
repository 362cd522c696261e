// What `npm run bench -- --check` says of given numbers: it measures nothing here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe, worse, worseEachTime } from '../bench/check.js';

const table = 'across origins';
const rows = (entry) => ({ [table]: { connect: entry } });
const before = rows({ median: 2, from: 1.8, to: 2.4 });
const found = (now) => worse(before, now).map(({ row }) => row);

test('a row whose middle half lies above that of the table is worse', () => {
  assert.deepEqual(found(rows({ median: 3, from: 2.6, to: 3.5 })), ['connect']);
});

test('a row that is better, equal or cannot be told apart is not', () => {
  assert.deepEqual(found(rows({ median: 1, from: 0.9, to: 1.1 })), []);
  assert.deepEqual(found(before), []);
  // Its median is beyond the table's middle half, but some of the rounds agree with it.
  assert.deepEqual(found(rows({ median: 3, from: 2.3, to: 4 })), []);
});

test('what is measured once is compared with a margin', () => {
  const bytes = (median) => worse(rows({ median: 400 }), rows({ median }));
  assert.equal(bytes(406).length, 0);
  assert.equal(bytes(409).length, 1);
  const none = (median) => worse(rows({ median: 0 }), rows({ median }));
  assert.equal(none(0).length, 0);
  assert.equal(none(0.1).length, 1);
});

test('a row that is missing or no number is worse, a table that was not measured is not', () => {
  assert.deepEqual(found({ [table]: {} }), ['connect']);
  assert.deepEqual(found(rows({ median: NaN })), ['connect']);
  assert.deepEqual(found({}), []);
  assert.deepEqual(found({ [table]: { ...before[table], more: { median: 9 } } }), []);
});

test('each row that is worse is named with both numbers', () => {
  const [row] = worse(before, rows({ median: 3, from: 2.6, to: 3.5 }));
  assert.equal(
    describe(row),
    'across origins, connect: 3 (2.6 to 3.5), and the table says 2 (1.8 to 2.4)',
  );
  const [missing] = worse(rows({ median: 400 }), { [table]: {} });
  assert.match(describe(missing), /not measured, and the table says 400/);
});

test('rows that look worse, and only these, are measured again, and fail if they are worse each time', async () => {
  const then = { [table]: { ...before[table], heap: { median: 400 }, size: { median: 40 } } };
  const now = {
    [table]: { ...rows({ median: 9 })[table], heap: { median: 500 }, size: { median: 40 } },
  };
  const asked = [];
  const answers = [
    { [table]: { connect: { median: 2 }, heap: { median: 480 } } },
    { [table]: { heap: { median: 490 } } },
  ];
  const measure = async (again) => {
    asked.push(Object.keys(again[table]));
    return answers[asked.length - 1];
  };
  const left = await worseEachTime(then, now, measure);
  assert.deepEqual(asked, [['connect', 'heap'], ['heap']]);
  assert.deepEqual(
    left.map(({ row, now: { median } }) => [row, median]),
    [['heap', 490]],
  );
});

test('a row that cannot be measured again stays worse; where none is worse, nothing is measured again', async () => {
  const now = rows({ median: 9 });
  assert.equal((await worseEachTime(before, now, async () => ({}))).length, 1);
  assert.deepEqual(await worseEachTime(before, before, () => assert.fail('measured')), []);
});
