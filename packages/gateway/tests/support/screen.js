/** A screen for windows, where there is none to look at. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** @returns {Promise<{ env: { DISPLAY: string }, close: () => Promise<void> }>} */
export async function startScreen() {
  const screen = spawn('Xvfb', ['-displayfd', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const [display] = await once(screen.stdio[3], 'data');
  return {
    env: { DISPLAY: `:${String(display).trim()}` },
    async close() {
      screen.kill();
      await once(screen, 'close');
    },
  };
}
