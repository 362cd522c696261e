// Other clients of the gateway: A2A by `a2a`, and the demo's line for an MCP client.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTaskClient } from '@abp-bridge/a2a';
import { connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { startSite } from './support/site.js';

const DEMO = fileURLToPath(new URL('../../../demo/main.js', import.meta.url));

const TOKEN = 'a-token-of-the-tests';

let site;
before(async () => (site = await startSite()));
after(() => site.close());

test('a2a: each capability is a skill, and a cancel reaches its handler', async () => {
  const args = ['a2a', site.url(), '--temporary', '--http', '127.0.0.1:0', '--token', TOKEN];
  args.push('--allow-host', 'gateway.example');
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
  const rejected = (await client.send(ask('no.such', {}))).status;
  assert.deepEqual([rejected.state, rejected.outcome], ['rejected', 'unstarted']);
  assert.match(JSON.stringify(rejected.message), /There are: .*number\.add/);
  const from = site.lines.length;
  const stop = new AbortController();
  const hanging = client.send(ask('work.hang', {}), { signal: stop.signal });
  await site.logged(/hang started/, from);
  stop.abort();
  assert.equal((await hanging).status.state, 'canceled');
  await site.logged(/hang aborted/, from);
  assert.equal((await fetch(`${url}.well-known/agent-card.json`)).status, 401);
  // The names that the gateway was given are the agent's, too.
  for (const [host, status] of [
    ['gateway.example', 200],
    ['evil.example', 403],
  ]) {
    const headers = { host, authorization: `Bearer ${TOKEN}` };
    const asked = get(`${url}.well-known/agent-card.json`, { headers });
    const [answer] = await once(asked, 'response');
    answer.resume();
    assert.equal(answer.statusCode, status);
  }
  child.kill('SIGTERM');
  assert.equal((await once(child, 'close'))[0], 0);
});

test('the line that the demo prints serves its app: tools, a PDF, and a cancel', async () => {
  const demo = spawn(process.execPath, [DEMO], { env: { ...process.env, PORT: '0' } });
  const line = await lineMatching(demo.stdout, /MCP client/);
  // What it ends with is a line to paste.
  const [, words] = /: claude mcp add demo -- node \S+main\.js (.+)$/.exec(line);
  const mcp = await connectClient('1.x', { args: [...words.split(' '), '--temporary'] });
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
  demo.kill();
  await once(demo, 'close');
});
