// The bundle for hosts such as Claude Desktop: what they unpack runs by itself.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getMcpConfigForManifest, unpackExtension } from '@anthropic-ai/mcpb';
import { connectClient } from './support/clients.js';
import { startSite } from './support/site.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
let folder, site, manifest;
before(async () => {
  execFileSync(process.execPath, [join(root, 'packages/gateway/scripts/bundle.js')]);
  // Far from any node_modules.
  folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  const mcpbPath = join(root, 'build/abp-bridge-gateway.mcpb');
  assert.ok(await unpackExtension({ mcpbPath, outputDir: join(folder, 'app'), silent: true }));
  manifest = JSON.parse(readFileSync(join(folder, 'app/manifest.json'), 'utf8'));
  site = await startSite();
});
after(() => {
  site?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The command that a host makes of the manifest and of what a person has filled in. */
const commandFor = (userConfig) =>
  getMcpConfigForManifest({
    manifest,
    extensionPath: join(folder, 'app'),
    systemDirs: {},
    userConfig,
    pathSeparator: '/',
  });

test('a host that unpacks the bundle and starts its command lists and calls the tools of the app', async () => {
  const { command, args, env } = await commandFor({ url: site.url() });
  assert.equal(command, 'node');
  assert.equal(env.CHROME_PATH, '');
  const mcp = await connectClient('1.x', {
    command: { command: process.execPath, args },
    // The browser of the tests is named; the profile and the settings are nobody's.
    env: { XDG_DATA_HOME: join(folder, 'data'), NODE_PATH: '' },
  });
  const { tools } = await mcp.client.listTools();
  assert.ok(tools.some(({ name, title }) => name === 'number_add' && title === 'number.add'));
  const { content } = await mcp.call('number_add', { a: 40, b: 2 });
  assert.equal(content[0].text, '42');
  assert.deepEqual(mcp.errors, []);
  await mcp.close();
});

test('a host starts nothing before it knows the address of the app', async () => {
  assert.equal(await commandFor({}), undefined);
});

test('doctor of the bundle misses no package, and says the version of the manifest', () => {
  const [main] = manifest.server.mcp_config.args;
  const said = execFileSync(
    process.execPath,
    [main.replace('${__dirname}', join(folder, 'app')), 'doctor'],
    {
      encoding: 'utf8',
      env: { ...process.env, CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium' },
    },
  );
  assert.ok(said.startsWith(`ok       abp-bridge-gateway: ${manifest.version}\n`), said);
  assert.doesNotMatch(said, /missing/);
});
