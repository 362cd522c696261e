/** Reads tests/transcripts/*.md. */
import { readFileSync, readdirSync } from 'node:fs';

/** The section that is played where one has to do: a call is cancelled, and another completes. */
export const CANCEL_AND_CALL = 'The session goes on after a cancel';

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
  const files = readdirSync(folder).filter((name) => /^(?!README).*\.md$/.test(name));
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
