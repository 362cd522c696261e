// The worker of route.plan: a search that returns to the event loop only to check for a cancel. Two
// parts of the round are swapped at random, and worse rounds are accepted ever more rarely
// (simulated annealing).
import { serve } from 'abp-bridge/pool';

serve({
  /** @param {{ stops: [number, number][], seconds: number }} params */
  async plan({ stops, seconds }, { breathe, progress }) {
    const order = stops.map((_, i) => i);
    const n = stops.length;
    const apart = (/** @type {number} */ a, /** @type {number} */ b) =>
      Math.hypot(stops[a][0] - stops[b][0], stops[a][1] - stops[b][1]);
    let length = order.reduce((sum, stop, i) => sum + apart(stop, order[(i + 1) % n]), 0);
    const begin = performance.now();
    let shown = 0;
    for (let share = 0; share < 1;) {
      await breathe();
      const heat = 20 * (1 - share) ** 3 + 0.001;
      for (let i = 0; i < 2000; i++) {
        const from = Math.floor(Math.random() * n);
        const to = (from + 1 + Math.floor(Math.random() * (n - 2))) % n;
        const [low, high] = from < to ? [from + 1, to] : [to + 1, from];
        const [a, b, c, d] = [low - 1, low, high, (high + 1) % n].map((at) => order[(at + n) % n]);
        const change = apart(a, c) + apart(b, d) - apart(a, b) - apart(c, d);
        if (low >= high || (change > 0 && Math.random() >= Math.exp(-change / heat))) continue;
        for (let l = low, h = high; l < h; l++, h--) [order[l], order[h]] = [order[h], order[l]];
        length += change;
      }
      const spent = (performance.now() - begin) / 1000;
      share = Math.min(1, spent / seconds);
      if (spent - shown < 0.1 && share < 1) continue;
      shown = spent;
      progress({ progress: share, total: 1, status: `${Math.round(length)} km` });
    }
    return { order, km: Math.round(length) };
  },
});
