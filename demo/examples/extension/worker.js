// The app in the extension's worker. The browser ends an idle worker after 30 s, and starts it
// again for a connection. All of this runs while it starts, so that it receives that connection.
import { expose } from 'abp-bridge';
import { servePorts } from 'abp-bridge/transports';

const app = expose({
  app: { id: 'example.extension', name: 'Example', version: '1.0' },
  capabilities: {
    'primes.count': async ({ below }, { breathe, progress }) => {
      let count = 0;
      for (let n = 2; n < below; n++) {
        if (n % 1000 === 0) {
          await breathe(); // lets a cancel in
          progress({ progress: n, total: below });
        }
        if (isPrime(n)) count++;
      }
      return { count };
    },
  },
});
servePorts(app); // this extension's own pages

function isPrime(n) {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}
