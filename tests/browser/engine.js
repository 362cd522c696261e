// The suite of one engine, in one process and one browser: each file is a suite, so its hooks are
// its own. ENGINE and CORE say which (tests/support/browser.js), SUITES which files, or `not` and
// which it leaves out. A file runs by itself, too: node --test tests/browser/trust.test.js
import { after, describe } from 'node:test';
import { ENGINE, shareBrowser } from '../support/browser.js';

const all = [
  'transcripts',
  'transports',
  'session',
  'outcomes',
  'frames',
  'frames-return',
  'copies',
  'trust',
  'errors',
  'faults',
  'websocket',
  'workers',
];
const packages = ['a2a', 'mcp-apps'];
// What other people's packages do is theirs to test in every engine.
if (ENGINE === 'chromium') packages.push('rpc');
// The engines' stores are theirs to test; and other drivers do not tell of windows that open.
if (ENGINE === 'chromium') all.push('keys', 'windows');
/** @param {string} name */
const fileOf = (name) =>
  all.includes(name) ? `./${name}.test.js` : `../../packages/${name}/tests/browser/${name}.test.js`;
const [first = 'not', ...named] = process.env.SUITES?.split(' ').filter(Boolean) ?? [];
const files =
  first === 'not'
    ? [...all, ...packages].filter((name) => !named.includes(name))
    : [first, ...named];
after(shareBrowser());
for (const name of files) describe(name, () => import(fileOf(name)));
