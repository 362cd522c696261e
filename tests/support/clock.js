/**
 * A test's own clock: what has a time limit is late when the test says so, however long the machine takes. Intervals,
 * immediates and other processes keep their own time.
 * @param {import('node:test').TestContext} t
 * @returns {{ advance(ms: number): void }}
 */
export function useClock(t) {
  let now = performance.now();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => now);
  return {
    advance(ms) {
      now += ms;
      t.mock.timers.tick(ms);
    },
  };
}
