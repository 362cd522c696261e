/**
 * A test's own clock: what has a time limit is late when the test says so, however long the machine
 * takes. Intervals, immediates and other processes keep their own time.
 * @param {import('node:test').TestContext} t
 * @returns {{ advance(ms: number): void, pass(ms: number): void, fire(): void }} `pass` lets time
 *   go by in which no timer has had its turn, as when the thread was busy; `fire` gives it to them
 */
export function useClock(t) {
  // Whole: what is added to it and taken away again is what it was.
  let now = Math.ceil(performance.now());
  let passed = 0;
  const clearReal = clearTimeout;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clearMocked = clearTimeout;
  // Timers that began before are real: those of Node's fetch fail when what they are about is gone.
  t.mock.method(globalThis, 'clearTimeout', (timer) => {
    clearReal(timer);
    clearMocked(timer);
  });
  t.mock.method(performance, 'now', () => now);
  return {
    advance(ms) {
      now += ms;
      t.mock.timers.tick(ms);
    },
    pass(ms) {
      now += ms;
      passed += ms;
    },
    fire() {
      t.mock.timers.tick(passed);
      passed = 0;
    },
  };
}
