// Records what a version of this library says to itself: node record-wire.js <its main module> <its
// version>
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { record } from './old-wire.js';

const [path, name] = process.argv.slice(2);
const version = await import(pathToFileURL(resolve(path)).href);
for (const upgrade of ['frames', 'port', 'none']) {
  const file = new URL(`../transcripts/old/${name}-${upgrade}.jsonl`, import.meta.url);
  writeFileSync(file, await record(version, upgrade), { flag: 'wx' });
}
