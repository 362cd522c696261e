/** Work in steps, whose effects are requests to a URL, or lines in a file. */
import { EventEmitter, once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const stops = new EventEmitter();
let [calls, heard] = [0, 0];

/** The server has heard a stop. */
export function hear() {
  heard++;
  stops.emit('heard');
}

/**
 * A call begins.
 * @returns {() => Promise<void>} until a stop is heard, of any call: so that none is too late on a
 *   busy machine. The first call, which nobody stops, does not wait
 */
export function holdOf() {
  const [isFirst, before] = [calls++ === 0, heard];
  return async () => {
    while (!isFirst && heard === before) await once(stops, 'heard');
  };
}

/**
 * @param {{ url?: string, file?: string, steps?: number, step?: number, holds?: boolean }} how
 *   `step` in ms; `holds`: after half of the steps it waits for a stop
 * @param {AbortSignal} stop
 * @param {(done: number, of: number) => unknown} [onStep]
 */
export async function work({ url, file, steps = 10, step = 60, holds }, stop, onStep) {
  const held = holdOf();
  for (let done = 1; done <= steps; done++) {
    stop.throwIfAborted();
    await effect({ url, file });
    await onStep?.(done, steps);
    if (holds && done === steps / 2) await held();
    await sleep(step);
  }
}

/** @param {{ url?: string, file?: string }} where */
export async function effect({ url, file }) {
  if (file) appendFileSync(file, 'done\n');
  else await (await fetch(url)).text();
}
