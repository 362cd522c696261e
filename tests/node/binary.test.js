// Bytes in text: BinaryData in base64, on its way out and on its way in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBase64, toBase64 } from '../../js/common/base64.js';
import { bytesToText, textToBytes } from '../../js/wire/binary.js';

const write = (value) => JSON.stringify(value, bytesToText);
const read = (text) => JSON.parse(text, textToBytes);
const filled = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256);

test('bytes of any length are the base64 that others write and read', () => {
  const { Buffer } = globalThis;
  for (const size of [0, 1, 2, 3, 4, 24575, 24576, 24577, 300_000]) {
    const bytes = filled(size);
    const text = Buffer.from(bytes).toString('base64');
    assert.equal(toBase64(bytes), text);
    assert.deepEqual(Buffer.from(fromBase64(text)), Buffer.from(bytes));
    // As in a page.
    delete globalThis.Buffer;
    assert.equal(toBase64(bytes), text);
    globalThis.Buffer = Buffer;
  }
});

test('BinaryData with bytes goes out in base64 with its encoding and size, and comes in as an ArrayBuffer', () => {
  const bytes = filled(1000);
  const shared = new SharedArrayBuffer(1000);
  new Uint8Array(shared).set(bytes);
  const forms = [bytes.buffer, shared, bytes, Buffer.from(bytes), new DataView(bytes.buffer)];
  for (const content of forms) {
    const text = write({ pdf: { content, mimeType: 'application/pdf', filename: 'a.pdf' } });
    assert.deepEqual(JSON.parse(text).pdf, {
      content: Buffer.from(bytes).toString('base64'),
      mimeType: 'application/pdf',
      filename: 'a.pdf',
      encoding: 'base64',
      size: 1000,
    });
    const { pdf } = read(text);
    assert.ok(pdf.content instanceof ArrayBuffer);
    assert.deepEqual(new Uint8Array(pdf.content), bytes);
    assert.equal('encoding' in pdf, false);
  }
});

test('a view is sent as the part of its buffer that it shows', () => {
  const { content } = read(write({ content: filled(100).subarray(10, 20), mimeType: 'a/b' }));
  assert.deepEqual(new Uint8Array(content), filled(100).slice(10, 20));
});

test('bare bytes become BinaryData, also as the whole value and in a list', () => {
  const [{ content, mimeType }] = read(write([filled(5)]));
  assert.deepEqual(new Uint8Array(content), filled(5));
  assert.equal(mimeType, 'application/octet-stream');
  assert.equal(JSON.parse(write(filled(5).buffer)).encoding, 'base64');
});

test('text stays text, whoever wrote it', () => {
  const values = [
    { content: 'aGk=', mimeType: 'text/plain', encoding: 'utf-8' },
    { content: 'no base64 at all!', mimeType: 'a/b', encoding: 'base64' },
    { content: 'aGk=', encoding: 'base64' },
    { content: 'aGk=' },
    { content: 1234, mimeType: 'a/b', encoding: 'base64' },
    { content: null, nested: [1, 'two', null, { three: true }] },
  ];
  for (const value of values) assert.deepEqual(read(write(value)), value);
});

test('__proto__ in what came in is data, and an inherited content is none', () => {
  const text = '{"__proto__":{"content":"aGk=","encoding":"base64","mimeType":"a/b"},"x":1}';
  const value = read(text);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.ok(Object.hasOwn(value, '__proto__'));
  const heir = Object.create({ content: filled(3), mimeType: 'a/b' });
  assert.equal(write(heir), '{}');
});

test('what JSON cannot hold is an error: a Blob, a cycle, a value too deep', () => {
  assert.throws(() => write({ content: new Blob(['x']), mimeType: 'a/b' }), /read it first/);
  assert.throws(() => write({ file: new Blob(['x']) }), /read it first/);
  const cycle = {};
  cycle.cycle = cycle;
  assert.throws(() => write(cycle), TypeError);
  const deep = '{"a":'.repeat(200_000) + '1' + '}'.repeat(200_000);
  assert.throws(() => read(deep), RangeError);
});
