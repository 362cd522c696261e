// The lines that the document gives to paste: each is of its client's form, and starts what the
// program takes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { parseArgs } from 'node:util';
import { COMMANDS } from '../src/commands.js';

const text = readFileSync(new URL('../docs/gateway.md', import.meta.url), 'utf8');
const section = text.slice(text.indexOf('## Lines to paste'), text.indexOf('Users report this'));
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (client|---)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

const CLIENTS = [
  'Claude Code',
  'Claude Desktop',
  'VS Code',
  'Cursor',
  'Codex',
  'Gemini CLI',
  'Zed',
  'Goose',
  'opencode',
  'LM Studio',
  'Windsurf',
  'Copilot CLI',
];

/** The entry of a server, however deep a client wants it. */
function entryOf(json) {
  const [[, inner]] = Object.entries(json);
  return ['command', 'url', 'httpUrl', 'serverUrl', 'type'].some((key) => Object.hasOwn(json, key))
    ? json
    : entryOf(inner);
}

test('there is a line for each client, and JSON is JSON', () => {
  const named = rows.map(([, client]) => client);
  for (const client of CLIENTS) assert.ok(named.includes(client), client);
  const lines = rows.flatMap((cells) => cells.map((cell) => /^`(\{.+\})`/.exec(cell)?.[1] ?? []));
  const entries = lines.flat().map((line) => entryOf(JSON.parse(line)));
  assert.ok(entries.length > 8);
  for (const entry of entries) {
    const url = entry.url ?? entry.httpUrl ?? entry.serverUrl;
    if (url) {
      assert.equal(new URL(url).pathname, '/mcp');
      assert.match(entry.headers.Authorization, /^Bearer /);
      continue;
    }
    const words = [entry.command, entry.args ?? []].flat();
    assert.deepEqual(words.slice(0, 4), ['npx', '-y', 'abp-bridge-gateway', 'mcp']);
    const { options, takes } = COMMANDS.mcp;
    const { positionals } = parseArgs({ args: words.slice(4), options, allowPositionals: true });
    assert.ok(positionals.length >= takes[0]);
  }
});

test('until it is on npm, a client starts the file that npm has installed', () => {
  const [, json] = /## Until it is on npm.*?```json\n(.*?)```/s.exec(text);
  const { command, args } = entryOf(JSON.parse(json));
  const about = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const installed = posix.join('/node_modules', about.name, about.bin[about.name]);
  assert.deepEqual([command, args[1]], ['node', 'mcp']);
  assert.ok(args[0].endsWith(installed), args[0]);
});
