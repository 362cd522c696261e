/** Runs a section of a transcript against a pair of sides, in Node or in a page. */

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
 * @param {import('./sections.js').Section} section
 * @param {{ do(side: string, ...words: string[]): unknown, settle(): Promise<void>, log: Log }}
 *   pair
 * @returns what was seen and what should have been
 */
export async function play(section, pair) {
  const expected = { agent: [], app: [] };
  const limit = AbortSignal.timeout(120_000); // what is never seen is told; a busy machine is slow
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
  return { seen: pair.log.lines, expected };
}
