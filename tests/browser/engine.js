// The suite of one engine, in one process and one browser: each file is a suite, so its hooks are its own. ENGINE and
// CORE say which (tests/support/browser.js). A file runs by itself, too: node --test tests/browser/trust.test.js
import { after, describe } from 'node:test';
import { ENGINE, shareBrowser } from '../support/browser.js';

const files = ['transcripts', 'session', 'trust', 'faults', 'websocket', 'workers', 'a2a'];
// What other people's packages do is theirs to test in every engine.
if (ENGINE === 'chromium') files.push('rpc');
after(shareBrowser());
for (const name of files) describe(name, () => import(`./${name}.test.js`));
