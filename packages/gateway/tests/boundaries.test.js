// What the gateway runs, where it keeps it, and what it clears away.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { App } from '../src/app.js';
import { executor } from '../src/commands/a2a.js';
import { browserPaths } from '../src/find-browser.js';
import { profileOf } from '../src/profile.js';
import { SchemaChecker } from '../src/schema-checker.js';
import { ResultFiles, makeTemporaryFolder, removeFolder } from '../src/files.js';

test('a schema is checked in a thread that is ended when it takes too long, and started again', async () => {
  const checker = new SchemaChecker();
  const text = (pattern) => ({ type: 'object', properties: { a: { type: 'string', pattern } } });
  const slow = checker.check({ a: `${'a'.repeat(40)}!` }, text('^(a+)+$'));
  assert.match(await slow, /could not be checked within 5000 ms/);
  // However slow the machine is: the thread begins anew until it is in time.
  const until = async (data, schema, wanted) => {
    for (;;) {
      const problem = await checker.check(data, schema);
      if (!/within/.test(problem)) return assert.match(problem, wanted);
    }
  };
  await until({ a: 'aa' }, text('^(a+)+$'), /^$/);
  await until({ a: 5 }, text('a'), /does not match.*string/);
  await until({}, { $ref: '#/nowhere' }, /cannot be used.*\$ref/);
  await checker.close();
});

test('nothing that the gateway runs is compiled from the words of an app', () => {
  const sources = readdirSync(new URL('../src/', import.meta.url), { recursive: true });
  for (const name of sources.filter((each) => each.endsWith('.js'))) {
    const source = readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8');
    assert.doesNotMatch(source, /\bfromJsonSchema\b|new Function|\beval\(|\bajv\b/i, name);
  }
});

test('browsers are looked for where each system has them', () => {
  assert.deepEqual(browserPaths('linux', { PATH: '/a' })[0], '/a/google-chrome-stable');
  assert.match(browserPaths('darwin', { HOME: '/u' })[0], /^\/Applications\/Google Chrome\.app\//);
  assert.match(browserPaths('win32', { PROGRAMFILES: 'C:\\P' })[0], /^C:\\P\\Google\\Chrome/);
});

test('each origin has a profile of its own', () => {
  const profiles = ['https://a.example', 'http://a.example', 'https://a.example:8443'].map(
    profileOf,
  );
  assert.equal(new Set(profiles).size, 3);
});

test('folders of killed gateways are cleared by the next one, and others stay', async (t) => {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  process.env.TMPDIR = folder;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, force: true });
  });
  const { pid } = spawnSync(process.execPath, ['--version']);
  const [dead, alive, other] = [`${pid}-a`, `${process.pid}-b`, 'other'].map((name) =>
    join(folder, `abp-bridge-gateway-${name}`),
  );
  for (const path of [dead, alive, other]) {
    mkdirSync(path);
    writeFileSync(join(path, 'result.txt'), 'x');
  }
  const files = new ResultFiles();
  await files.keep({ bytes: new Uint8Array(1), mimeType: 'text/plain' });
  assert.deepEqual([dead, alive, other].map(existsSync), [false, true, true]);
  await files.close();
});

test('a gateway that closes while it locks its profile starts no browser', async () => {
  const home = await makeTemporaryFolder();
  const app = new App(
    'http://127.0.0.1:1/',
    { profile: home, browser: '/nowhere' },
    { version: '1' },
  );
  const opening = assert.rejects(app.open(), /The gateway is closing/);
  await app.close();
  await opening;
  await removeFolder(home);
});

test('a2a: a task whose app cannot be reached, or that is cancelled before, is unstarted', async () => {
  const app = new App('ws://127.0.0.1:1/', {}, { version: '1' });
  const statuses = [];
  const emitStatus = (state, { parts, metadata }) =>
    statuses.push([state, metadata.outcome, parts[0].text]);
  const message = { parts: [{ data: { skill: 'x' } }] };
  for (const signal of [new AbortController().signal, AbortSignal.abort('enough')])
    await executor(app)({ task: { id: 't' }, message, signal, emitStatus });
  assert.deepEqual(statuses[0].slice(0, 2), ['failed', 'unstarted']);
  assert.match(statuses[0][2], /^DISCONNECTED: .*\nIt never began/s);
  assert.deepEqual(statuses[1].slice(0, 2), ['canceled', 'unstarted']);
  await app.close();
});
