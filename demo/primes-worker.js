// The worker of primes.count: a sieve, segment by segment, that never returns to the event loop.
import { serve } from '../js/workers/pool.js';

const SEGMENT = 1 << 16;

serve({
  /** @param {{ below: number }} params */
  count({ below }, { token, progress }) {
    const root = Math.ceil(Math.sqrt(below));
    const small = [];
    const composite = new Uint8Array(root + 1);
    for (let n = 2; n <= root; n++) {
      if (composite[n]) continue;
      small.push(n);
      for (let multiple = n * n; multiple <= root; multiple += n) composite[multiple] = 1;
    }
    let primes = 0;
    const segment = new Uint8Array(SEGMENT);
    for (let from = 2; from < below; from += SEGMENT) {
      token.throwIfCancelled();
      segment.fill(0);
      const to = Math.min(from + SEGMENT, below);
      for (const n of small) {
        if (n * n >= to) break;
        const first = Math.max(n * n, Math.ceil(from / n) * n);
        for (let multiple = first; multiple < to; multiple += n) segment[multiple - from] = 1;
      }
      for (let n = from; n < to; n++) primes += 1 - segment[n - from];
      if (((from - 2) / SEGMENT) % 64 === 0) progress({ progress: from, total: below });
    }
    return { primes };
  },
});
