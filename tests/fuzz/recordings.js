// Makes seeds of the target `recordings`, in the folder given: recordings of whole sessions, as far
// as the target reads.
import { mkdirSync, writeFileSync } from 'node:fs';
import { recordSession } from '../support/recorded.js';

/** What the target reads of an input, in characters. */
const MAX_LENGTH = 4000;
const [, , folder] = process.argv;

mkdirSync(folder, { recursive: true });
for (const upgrade of ['frames', 'none']) {
  const { text } = await recordSession({ upgrade });
  // Notes are for people, and are not played.
  const lines = text.split('\n').filter((line) => line && !line.startsWith('{"note":'));
  // An endpoint is made by its first input; the others follow in pieces.
  const made = lines.filter((line) => line.includes('"create"'));
  const rest = lines.filter((line) => !line.includes('"create"'));
  for (let at = 0, piece = 0; at < rest.length; piece++) {
    let seed = `${made.join('\n')}\n`;
    while (at < rest.length && seed.length + rest[at].length < MAX_LENGTH)
      seed += `${rest[at++]}\n`;
    if (seed.length + (rest[at]?.length ?? 0) >= MAX_LENGTH && rest[at]?.length > MAX_LENGTH / 2)
      at++;
    writeFileSync(`${folder}/${upgrade}-${piece}`, seed);
  }
}
process.exit();
