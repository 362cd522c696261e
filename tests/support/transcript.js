/** Reads tests/transcripts/*.md and runs a section against a pair of sides. */
import { readFileSync, readdirSync } from 'node:fs';

const folder = new URL('../transcripts/', import.meta.url);

/**
 * @typedef {object} Section
 * @property {string} title
 * @property {string[]} lines
 * @property {boolean} ours whether it needs this library on both sides
 * @property {Record<'agent' | 'app', Record<string, number>>} limits
 */

/** @returns {Section[]} */
export function sections() {
  const files = readdirSync(folder).filter((name) => name !== 'README.md');
  return files.flatMap((name) =>
    readFileSync(new URL(name, folder), 'utf8')
      .split(/^## /m)
      .slice(1)
      .map((text) => {
        const options = /^with: (.*)$/m.exec(text)?.[1].split(' ') ?? [];
        const limits = { agent: {}, app: {} };
        for (const [, side, key, value] of options.map(
          (o) => /^(\w+)\.(\w+)=(\d+)$/.exec(o) ?? [],
        )) {
          if (side) limits[side][key] = Number(value);
        }
        return {
          title: text.split('\n', 1)[0],
          lines: text.match(/^ {4}.*$/gm).map((line) => line.trim()),
          ours: options.includes('ours'),
          limits,
        };
      }),
  );
}

/**
 * What each side has been seen to do, for a script to wait for.
 */
export class Log {
  lines = { agent: [], app: [] };
  #waiting = [];

  /** @param {string} line such as `app: start A` */
  add(line) {
    const side = line.slice(0, line.indexOf(':'));
    this.lines[side].push(line);
    for (const check of this.#waiting.splice(0)) check();
  }

  /** Resolves when a side has been seen to do so many things. */
  async reached(side, count, limit) {
    while (this.lines[side].length < count) {
      if (limit.aborted) throw new Error(`never seen; the log is ${JSON.stringify(this.lines)}`);
      await new Promise((resolve) => {
        this.#waiting.push(resolve);
        limit.addEventListener('abort', resolve, { once: true });
      });
    }
  }
}

/**
 * @param {Section} section
 * @param {{ do(side: string, ...words: string[]): unknown, settle(): Promise<void>, log: Log }} pair
 * @param {import('node:assert').strict} assert
 */
export async function play(section, pair, assert) {
  const expected = { agent: [], app: [] };
  const limit = AbortSignal.timeout(20000);
  for (const line of section.lines) {
    if (!line.startsWith('>')) {
      expected[line.slice(0, line.indexOf(':'))].push(line);
      continue;
    }
    for (const side of ['agent', 'app']) {
      await pair.log.reached(side, expected[side].length, limit).catch((error) => {
        throw new Error(`before "${line}": ${error.message}`);
      });
    }
    const [side, ...words] = line.slice(2).split(' ');
    if (side !== 'time') await pair.do(side, ...words);
  }
  for (const side of ['agent', 'app']) await pair.log.reached(side, expected[side].length, limit);
  await pair.settle();
  assert.deepEqual(pair.log.lines, expected);
}
