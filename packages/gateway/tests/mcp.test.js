// What MCP clients see: the official ones, over stdio and HTTP, in both versions, over a real
// Chromium.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { deferred } from '../src/waiting.js';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { startSite } from './support/site.js';

const ONE_CHUNK = fileURLToPath(new URL('./support/one-chunk.js', import.meta.url));
const TOKEN = 'a-token-of-the-tests';
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;

let site, http, httpUrl;
before(async () => {
  site = await startSite();
  http = startGateway([
    'mcp',
    site.url({ name: 'http' }),
    '--temporary',
    '--http',
    '127.0.0.1:0',
    '--token',
    TOKEN,
  ]);
  const line = await lineMatching(http.stderr, /serves MCP at/);
  httpUrl = /http:\S+/.exec(line)[0];
});
after(async () => {
  http.kill('SIGTERM');
  await once(http, 'close');
  site.close();
});

for (const kind of KINDS) {
  for (const way of ['stdio', 'HTTP']) {
    describe(`client ${kind} over ${way}`, () => {
      const name = `${kind} ${way}`;
      let mcp, answer;
      const asked = [];
      before(async () => {
        const onElicit = (params) => {
          asked.push(params);
          return answer(params);
        };
        mcp = await connectClient(kind, {
          onElicit,
          ...(way === 'stdio'
            ? { args: ['mcp', site.url({ name }), '--temporary'] }
            : { url: httpUrl, token: TOKEN }),
        });
      });
      after(() => mcp.close());

      test('the first tools/list is complete: safe names, the own name as title, schemas as they are', async () => {
        const { tools } = await mcp.client.listTools();
        const byName = new Map(tools.map((tool) => [tool.name, tool]));
        assert.ok(tools.every((tool) => /^[A-Za-z0-9_]{1,64}$/.test(tool.name)));
        const echo = byName.get('text_echo');
        assert.deepEqual(
          [echo.title, echo.description, echo.inputSchema, echo.outputSchema],
          [
            'text.echo',
            'Says what it is told',
            { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
            { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
          ],
        );
        assert.equal(byName.get('number_add').outputSchema, undefined);
        const { readOnlyHint, destructiveHint } = byName.get('text_read').annotations;
        assert.deepEqual([readOnlyHint, destructiveHint], [true, undefined]);
      });

      test('data comes as structuredContent and text', async () => {
        const result = await mcp.call('text_echo', { text: 'hello' });
        assert.deepEqual(result.structuredContent, { text: 'hello' });
        assert.deepEqual(JSON.parse(textOf(result)), { text: 'hello' });
        assert.equal(textOf(await mcp.call('number_add', { a: 40, b: 2 })), '42');
      });

      test('bytes come as image, audio or an embedded resource', async () => {
        const block = async (tool, type) =>
          (await mcp.call(tool)).content.find((each) => each.type === type);
        assert.deepEqual(await block('bytes_png', 'image'), {
          type: 'image',
          data: 'iVBORw==',
          mimeType: 'image/png',
        });
        assert.equal((await block('bytes_wav', 'audio')).mimeType, 'audio/wav');
        const { resource } = await block('bytes_pdf', 'resource');
        assert.deepEqual([resource.mimeType, resource.blob], ['application/pdf', 'JSUlJQ==']);
      });

      test('bytes beyond the limit are a file, which resources/read serves', async () => {
        const size = (1 << 20) + 1;
        const { content } = await mcp.call('bytes_pdf', { size });
        const link = content.find(({ type }) => type === 'resource_link');
        assert.deepEqual([link.mimeType, link.size], ['application/pdf', size]);
        assert.equal(readFileSync(fileURLToPath(link.uri)).length, size);
        const { contents } = await mcp.client.readResource({ uri: link.uri });
        assert.equal(Buffer.from(contents[0].blob, 'base64').length, size);
        const { resources } = await mcp.client.listResources();
        // Where the protocol has no sessions, a file is whose that knows its address: none is
        // listed.
        const hasSession = way === 'stdio' || kind !== '2.x modern';
        assert.equal(
          resources.some(({ uri }) => uri === link.uri),
          hasSession,
        );
        await assert.rejects(
          mcp.client.readResource({ uri: 'file:///etc/passwd' }),
          /Unknown resource/,
        );
      });

      test('no message is longer than clients take: files carry the rest', async () => {
        const long = 9 << 20;
        const { content } = await mcp.call('bytes_pdf', { size: long });
        const { uri } = content.find(({ type }) => type === 'resource_link');
        const { contents } = await mcp.client.readResource({ uri });
        assert.match(contents[0].text, /^\d+ bytes are too large for a message: read the file /);
        const many = await mcp.call('bytes_many', { parts: 3, size: 600_000 });
        assert.deepEqual(
          many.content.map(({ type }) => type),
          ['text', 'resource', 'resource_link', 'resource_link'],
        );
        const { structuredContent } = await mcp.call('text_promised', { length: 2 << 20 });
        assert.equal(structuredContent.text.length, 2 << 20);
        const failed = await mcp.call('text_promised', { length: long });
        assert.equal(failed.isError, true);
        assert.match(textOf(failed), /^OPERATION_FAILED: The result has \d+ bytes, .* in a file/);
        const file = failed.content.find(({ type }) => type === 'resource_link');
        assert.equal(JSON.parse(readFileSync(fileURLToPath(file.uri), 'utf8')).text.length, long);
      });

      test('a failure is isError with code, message, and whether to try again', async () => {
        const result = await mcp.call('fail_typed');
        assert.equal(result.isError, true);
        assert.match(
          textOf(result),
          /^RATE_LIMITED: too many today\nTrying again may help after 60000 ms/,
        );
        assert.deepEqual(result._meta['abp-bridge/error'], {
          code: 'RATE_LIMITED',
          message: 'too many today',
          retryable: true,
          retryAfter: 60_000,
        });
        const unavailable = await mcp.call('fail_none');
        assert.match(
          textOf(unavailable),
          /^CAPABILITY_UNAVAILABLE: .*: fail\.none, a document is open \(open one\)/,
        );
        const invalid = await mcp.call('number_add', { a: 'one' });
        assert.match(textOf(invalid), /^INVALID_PARAMS: /);
        await assert.rejects(mcp.call('no_such_tool'), /There is no tool "no_such_tool"/);
      });

      test('reports in a loop are notifications, which rise, the last one among them, and none comes after the result', async () => {
        const seen = [];
        const heard = deferred();
        const called = mcp.call(
          'work_count',
          { wait: true },
          {
            onprogress: (info) => {
              seen.push(info);
              if (info.progress === 99) heard.resolve();
            },
          },
        );
        await heard.promise;
        await mcp.call('work_finish');
        assert.deepEqual((await called).structuredContent, { counted: 100 });
        // Ten are made in each turn: of these the first and the last are sent.
        assert.ok(seen.every(({ progress }, i) => !i || progress > seen[i - 1].progress));
        assert.deepEqual(seen.at(-1), { progress: 99, total: 100, message: 'step 99' });
        assert.deepEqual(
          mcp.errors.filter((error) => /unknown/.test(error)),
          [],
        );
      });

      test('what a handler streams comes as progress and as content, and what it returns as data', async () => {
        const words = [];
        const heard = deferred();
        const called = mcp.call(
          'work_stream',
          { wait: true, returns: { n: 1 } },
          { onprogress: ({ message }) => words.push(message) === 3 && heard.resolve() },
        );
        await heard.promise;
        await mcp.call('work_finish');
        const result = await called;
        assert.deepEqual(result.structuredContent, { n: 1 });
        assert.deepEqual(
          result.content.map(({ text }) => text),
          ['{"n":1}', 'one two three'],
        );
        assert.deepEqual(words, ['one ', 'two ', 'three']);
        const alone = await mcp.call('work_stream');
        assert.deepEqual(JSON.parse(textOf(alone)), ['one ', 'two ', 'three']);
      });

      test('a cancel reaches the handler, with the reason where one crosses', async () => {
        const from = site.lines.length;
        const stop = new AbortController();
        const called = mcp.call('work_deaf', {}, { signal: stop.signal, onprogress() {} });
        await site.logged(/deaf started/, from);
        stop.abort('the user pressed stop');
        await assert.rejects(called);
        // Over HTTP, the newer version has no place for a reason.
        const reason =
          kind === '2.x modern' && way === 'HTTP'
            ? 'the client disconnected'
            : 'the user pressed stop';
        assert.match(
          await site.logged(/deaf aborted/, from),
          new RegExp(`deaf aborted: ${reason}$`),
        );
      });

      test("a question is put to the client, and the client's word is the answer", async () => {
        answer = () => ({ action: 'accept', content: { confirmed: true } });
        assert.deepEqual((await mcp.call('ask_confirm')).structuredContent.answer, {
          success: true,
          data: { confirmed: true },
        });
        assert.equal(asked.at(-1).message, 'Really?');
        answer = () => ({ action: 'accept', content: { selected: '2' } });
        const selected = await mcp.call('ask_select');
        assert.deepEqual(selected.structuredContent.answer.data, { selected: 'b' });
        answer = () => ({ action: 'accept', content: { name: 'Ann' } });
        const named = await mcp.call('ask_input');
        assert.deepEqual(named.structuredContent.answer.data, { value: { name: 'Ann' } });
        answer = () => ({ action: 'decline' });
        const declined = (await mcp.call('ask_confirm')).structuredContent.answer;
        assert.deepEqual([declined.success, declined.cancelled], [false, true]);
      });

      test('a page that reloads in the midst of a call settles it as DISCONNECTED, and serves the next', async () => {
        const result = await mcp.call('page_reload');
        assert.match(textOf(result), /^DISCONNECTED: .*\nWhether its work was done is not known/s);
        assert.equal(textOf(await mcp.call('number_add', { a: 1, b: 1 })), '2');
      });

      test('a page that goes elsewhere is not called there', async () => {
        const to = site.url({ name: 'elsewhere' }).replace(site.origin, site.elsewhere);
        assert.match(textOf(await mcp.call('page_leave', { to })), /^DISCONNECTED/);
        // Only the app that was named answers to its name.
        const { structuredContent } = await mcp.call('page_where');
        assert.equal(structuredContent.origin, site.origin);
      });

      test("what a result says of itself is data: it is no content, no link to this machine's files, no question", async () => {
        const result = await mcp.call('evil_resource');
        assert.deepEqual(
          result.content.map(({ type }) => type),
          ['text'],
        );
        assert.equal(result.structuredContent.downloadUrl, 'file:///etc/passwd');
        assert.equal(result._meta?.forged, undefined);
      });

      test('a result that breaks the promise of outputSchema is a failure, which clients take', async () => {
        const result = await mcp.call('evil_promise');
        assert.equal(result.isError, true);
        assert.match(textOf(result), /^OPERATION_FAILED: /);
      });
    });
  }
}

test('progress that a client of the newer version reads together with the result is lost, and nothing else', async () => {
  const mcp = await connectClient('2.x modern', {
    command: { command: process.execPath, args: [ONE_CHUNK, 'mcp', site.url(), '--temporary'] },
  });
  const { structuredContent } = await mcp.call('work_count', {}, { onprogress() {} });
  assert.deepEqual(structuredContent, { counted: 100 });
  // The client says of each that it came too late, and the connection stays.
  const isLate = (error) => /unknown token/.test(error);
  assert.deepEqual(
    mcp.errors.filter((error) => !isLate(error)),
    [],
  );
  assert.equal(textOf(await mcp.call('number_add', { a: 1, b: 1 })), '2');
  await mcp.close();
});

// The same gateway for both would hear of the other's change.
for (const [kind, way] of [
  ['2.x', 'HTTP'],
  ['2.x modern', 'stdio'],
  ['2.x modern', 'HTTP'],
]) {
  test(`client ${kind} over ${way} hears that the tools have changed`, async () => {
    const args = ['mcp', site.url({ name: `changes ${kind} ${way}` }), '--temporary'];
    const heard = deferred();
    const options = { onListChanged: () => heard.resolve() };
    let child;
    if (way === 'HTTP') {
      child = startGateway([...args, '--http', '127.0.0.1:0', '--token', TOKEN]);
      const line = await lineMatching(child.stderr, /serves MCP at/);
      Object.assign(options, { url: /http:\S+/.exec(line)[0], token: TOKEN });
    } else options.args = args;
    const mcp = await connectClient(kind, options);
    await mcp.client.listTools();
    const isModern = kind === '2.x modern';
    const listening = isModern && (await mcp.client.listen({ toolsListChanged: true }));
    if (way === 'HTTP' && !isModern) await mcp.listening;
    await mcp.call('page_rename');
    await heard.promise;
    const { tools } = await mcp.client.listTools();
    assert.ok(tools.some(({ name }) => name === 'number_plus'));
    // A server that leaves says that the subscription is over.
    process.kill(child?.pid ?? mcp.transport.pid, 'SIGTERM');
    if (listening) assert.equal(await listening.closed, 'graceful');
    await mcp.close();
    if (child) await once(child, 'close');
  });
}
