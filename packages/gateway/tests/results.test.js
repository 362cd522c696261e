// Results of tools: what JSON, a model and a program get of data, failures and outcomes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sentenceOf } from '../src/outcomes.js';
import { toPlain } from '../src/plain.js';
import { ResultFiles } from '../src/files.js';
import { toolResult } from '../src/results.js';

test('results become JSON, and their bytes are found at any depth', async () => {
  const found = [];
  const plain = await toPlain(
    {
      big: 5n,
      nothing: undefined,
      not: NaN,
      when: new Date(0),
      set: new Set([1]),
      map: new Map([['k', 1]]),
      lone: '\ud800',
      deep: [
        {
          content: 'JSUl',
          encoding: 'base64',
          mimeType: 'application/pdf; v=1',
          filename: 'a.pdf',
        },
      ],
      bare: new Uint8Array([1, 2]),
      blob: new Blob(['hi'], { type: 'text/plain' }),
    },
    ({ bytes, mimeType }) => found.push([mimeType, bytes.length]),
  );
  assert.deepEqual(plain, {
    big: '5',
    not: null,
    when: '1970-01-01T00:00:00.000Z',
    set: [1],
    map: [['k', 1]],
    lone: '\ufffd',
    deep: [1],
    bare: 2,
    blob: 3,
  });
  assert.deepEqual(found, [
    ['application/pdf', 3],
    ['application/octet-stream', 2],
    ['text/plain', 2],
  ]);
});

test('a URL of the web is a link, any other URL is data', async () => {
  const types = async (downloadUrl) => {
    const data = { downloadUrl, mimeType: 'application/pdf', size: 5 };
    const result = await toolResult({ success: true, data }, { files: new ResultFiles() });
    return result.content.map(({ type }) => type);
  };
  assert.deepEqual(await types('https://files.example/1'), ['text', 'resource_link']);
  for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'data:,x', 5]) {
    assert.deepEqual(await types(url), ['text']);
  }
});

test('the content of a WebMCP tool is passed on, cleaned; other content is data', async () => {
  const result = (content, isTool = true) =>
    toolResult({ success: true, data: { content }, isTool }, { files: new ResultFiles() });
  const blocks = [
    { type: 'text', text: 'a', forged: 1 },
    { type: 'image', data: 'iVBORw==', mimeType: 'image/png' },
  ];
  assert.deepEqual((await result(blocks)).content, [{ type: 'text', text: 'a' }, blocks[1]]);
  for (const [content, isTool] of [
    [blocks, false],
    [[{ type: 'resource_link', uri: 'file:///etc/passwd', name: 'x' }], true],
    [[{ type: 'image', data: '<svg>', mimeType: 'image/png' }], true],
    [[null], true],
    ['text', true],
  ]) {
    const made = await result(content, isTool);
    assert.deepEqual(made.structuredContent, { content });
  }
});

test('the text of a failure says what to do', async () => {
  const textFor = async (error) =>
    (await toolResult({ success: false, error }, { files: new ResultFiles() })).content[0].text;
  const message = 'x';
  assert.match(await textFor({ code: 'INVALID_PARAMS', message }), /\nCorrect the arguments/);
  const gone = await textFor({ code: 'DISCONNECTED', message, retryable: true });
  assert.match(gone, /\nThe work may or may not have been done/);
  assert.match(await textFor({ code: 'X', message }), /\nTrying again will not help/);
});

test('a failed result has its outcome, for models and for programs', async () => {
  const report = { applied: 12, remaining: 28 };
  const response = {
    success: false,
    cancelled: true,
    error: { code: 'CANCELLED', message: 'enough', retryable: false },
    metadata: { outcome: 'stopped', report },
  };
  const { content, isError, _meta } = await toolResult(response, { files: new ResultFiles() });
  assert.equal(
    content[0].text,
    'CANCELLED: enough\nIt stopped after 12 of 40. What it had done stands.',
  );
  assert.deepEqual([isError, _meta['abp-bridge/outcome']], [true, { outcome: 'stopped', report }]);
});

test('the outcome of a call is a sentence with its progress and what to do', () => {
  const report = { applied: 12, remaining: 28 };
  const progress = { progress: 12, total: 40, stage: 'pages' };
  for (const [became, sentence] of [
    [{}, ''],
    [{ outcome: 'cancelled' }, ''],
    [{ outcome: '__proto__' }, ''],
    [{ outcome: 'failed' }, ''],
    [
      { outcome: 'unstarted', report },
      'It never began, so nothing was done: it may be called again.',
    ],
    [{ outcome: 'stopped' }, 'It stopped before its end. What it had done stands.'],
    [
      { outcome: 'stopped', report, progress },
      'It stopped after 12 of 40 (pages). What it had done stands.',
    ],
    [
      {
        outcome: 'stopped',
        report: { applied: '12 of 40 pages', remaining: 'nothing of page 13 was written' },
      },
      'It stopped after 12 of 40 pages; remaining: nothing of page 13 was written. What it had done stands.',
    ],
    [
      { outcome: 'stopped', report: { applied: ['a', 'b'], remaining: ['c'] } },
      'It stopped after 2 of 3. What it had done stands.',
    ],
    [{ outcome: 'stopped', progress }, 'It stopped at 12 of 40 (pages). What it had done stands.'],
    [
      { outcome: 'running', progress: { percentage: 30.4 } },
      'It was told to stop and has not yet; it was last heard of at 30 %. It may still change something: look before you call it again.',
    ],
    [
      { outcome: 'unknown' },
      'Whether its work was done is not known: find out before you call it again.',
    ],
    [{ outcome: 'failed', report }, 'It failed after 12 of 40.'],
  ]) {
    assert.equal(sentenceOf(became), sentence);
  }
  assert.match(sentenceOf({ outcome: 'finished' }), /^It ran to its end.* Do not call it again\.$/);
  // What an app says is a stranger's.
  const odd = { applied: `a\u0007${'b'.repeat(5000)}`, remaining: { a: [null] } };
  const said = sentenceOf({ outcome: 'stopped', report: odd });
  assert.ok(
    said.length < 700 && said.includes('…; remaining: {"a":[null]}') && !said.includes('\u0007'),
  );
});
