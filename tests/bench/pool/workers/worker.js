// The worker of the benchmark: a bare echo, and tasks that compute.
import { serve } from '../../../../parts/workers/pool.js';
import { ownerPort } from '../../../../js/transports/owners.js';

const port = ownerPort();
port.addEventListener('message', ({ data }) => data === 'ping' && port.postMessage('pong'));

/** Some arithmetic that no compiler leaves out. */
const step = (x) => {
  x ^= x << 13;
  x ^= x >>> 17;
  return x ^ (x << 5);
};

serve({
  echo: (params) => params,
  /** Computes until its token says stop, which it asks every so many rounds. */
  asks: (_params, { token, progress }) => {
    progress({ progress: 0 });
    for (let x = 1, i = 0; ; i++) {
      x = step(x);
      if ((i & 255) === 0) token.throwIfCancelled();
    }
  },
  /** Computes until it is ended. Its beat shows when that is. */
  deaf: ({ beat }, { progress }) => {
    progress({ progress: 0 });
    for (let x = 1; ; x = step(x)) Atomics.add(beat, 0, 1);
  },
  /** What so many rounds take, in ms, asking every `every`th (0: never). */
  rounds: ({ rounds, every }, { token }) => {
    const begun = performance.now();
    let x = 1;
    if (every === 0) for (let i = 0; i < rounds; i++) x = step(x);
    else {
      const mask = every - 1;
      for (let i = 0; i < rounds; i++) {
        x = step(x);
        if ((i & mask) === 0) token.throwIfCancelled();
      }
    }
    return { ms: performance.now() - begun, x };
  },
});
