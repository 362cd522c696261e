/** Work in steps, whose effects are requests to a URL, or lines in a file. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * @param {{ url?: string, file?: string, steps?: number, step?: number }} how `step` in ms
 * @param {AbortSignal} stop
 * @param {(done: number, of: number) => unknown} [onStep]
 */
export async function work({ url, file, steps = 10, step = 50 }, stop, onStep) {
  for (let done = 1; done <= steps; done++) {
    stop.throwIfAborted();
    await effect({ url, file });
    await onStep?.(done, steps);
    await sleep(step);
  }
}

/** @param {{ url?: string, file?: string }} where */
export async function effect({ url, file }) {
  if (file) appendFileSync(file, 'done\n');
  else await (await fetch(url)).text();
}
