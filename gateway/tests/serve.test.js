// `a2a` and `login`, and the demo's app as an MCP client sees it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createTaskClient } from 'abp-bridge/a2a';
import { startServer } from '../../demo/server.js';
import { connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { startSite } from './support/site.js';

const TOKEN = 'a-token-of-the-tests';
let site;
before(async () => (site = await startSite()));
after(() => site.close());

test('a2a: each capability is a skill, and a cancel reaches its handler', async () => {
  const args = ['a2a', site.url(), '--temporary', '--http', '127.0.0.1:0', '--token', TOKEN];
  const child = startGateway(args);
  const url = /http:\S+/.exec(await lineMatching(child.stderr, /serves A2A at/))[0];
  const client = createTaskClient(url, { headers: { authorization: `Bearer ${TOKEN}` } });
  const { skills } = await client.card();
  assert.ok(skills.some(({ id }) => id === 'number.add'));
  const ask = (skill, params) => ({ parts: [{ data: { skill, params } }] });
  const added = await client.send(ask('number.add', { a: 1, b: 2 }));
  assert.equal(added.status.state, 'completed');
  assert.equal(added.artifacts[0].parts[0].data, 3);
  const failed = await client.send(ask('fail.typed', {}));
  assert.equal(failed.status.state, 'failed');
  assert.match(failed.status.text ?? JSON.stringify(failed.status), /RATE_LIMITED/);
  assert.equal((await client.send(ask('no.such', {}))).status.state, 'rejected');
  const from = site.lines.length;
  const stop = new AbortController();
  const hanging = client.send(ask('work.hang', {}), { signal: stop.signal });
  await site.logged(/hang started/, from);
  stop.abort();
  assert.equal((await hanging).status.state, 'canceled');
  await site.logged(/hang aborted/, from);
  assert.equal((await fetch(`${url}.well-known/agent-card.json`)).status, 401);
  child.kill('SIGTERM');
  assert.equal((await once(child, 'close'))[0], 0);
});

test("login shows the page on the app's own profile, until it is told to end", async () => {
  const home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  const screen = spawn('Xvfb', ['-displayfd', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const [display] = await once(screen.stdio[3], 'data');
  const from = site.lines.length;
  const env = { DISPLAY: `:${String(display).trim()}`, XDG_DATA_HOME: home };
  const child = startGateway(['login', site.url()], { env });
  await site.logged(/loaded/, from);
  child.kill('SIGINT');
  assert.equal((await once(child, 'close'))[0], 0);
  screen.kill();
  await once(screen, 'close');
  rmSync(home, { recursive: true, force: true });
});

test("the demo's app: its tools, a PDF, and a cancel that stops one", async () => {
  const demo = await startServer();
  const mcp = await connectClient('1.x', { args: ['mcp', demo.appUrl, '--temporary'] });
  const { tools } = await mcp.client.listTools();
  const names = tools.map(({ name }) => name);
  for (const name of ['export_pdf', 'image_blur', 'text_summarise'])
    assert.ok(names.includes(name));
  const { content } = await mcp.call('export_pdf', { markdown: '# One\n\ntext\n\n# Two' });
  const { resource } = content.find(({ type }) => type === 'resource');
  assert.equal(Buffer.from(resource.blob, 'base64').subarray(0, 5).toString(), '%PDF-');
  const stop = new AbortController();
  const markdown = '# A page\n\nwith text\n\n'.repeat(5000);
  const stopped = mcp.call(
    'export_pdf',
    { markdown },
    {
      signal: stop.signal,
      onprogress: () => stop.abort('enough'),
    },
  );
  await assert.rejects(stopped);
  const picture = await mcp.call('image_blur', { size: 32 });
  assert.ok(picture.content.some(({ type }) => type === 'image'));
  await mcp.close();
  demo.close();
});
