/** A backend whose records a test holds back or refuses. */
import { memoryBackend } from '../../src/index.js';

export const [WORKING, DONE] = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];

/**
 * A backend that stores nothing between `hold()` and `release()`; `change` replaces some of its
 * methods.
 */
export function heldBackend(change = (_backend) => ({})) {
  const backend = memoryBackend();
  let gate = Promise.resolve();
  let open = () => {};
  const own = {
    append: async (...given) => {
      await gate;
      return backend.append(...given);
    },
    ...change(backend),
  };
  return {
    backend: { ...backend, ...own },
    hold: () => void (gate = new Promise((resolve) => (open = resolve))),
    release: () => open(),
  };
}
