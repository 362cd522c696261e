import { expose } from 'abp-bridge';

function isPrime(n) {
  for (let i = 2; i * i <= n; i++) if (n % i === 0) return false;
  return true;
}

expose(
  {
    app: { id: 'example.primes', name: 'Primes', version: '1.0' },
    capabilities: {
      'primes.count': async ({ below }, { breathe, progress }) => {
        let primes = 0;
        for (let n = 2; n < below; n++) {
          if (isPrime(n)) primes++;
          if (n % 1000) continue;
          await breathe(); // lets a cancel in, and throws once the agent has changed its mind
          progress({ progress: n, total: below });
        }
        progress({ progress: below, total: below });
        return primes;
      },
    },
  },
  { origins: [location.origin] },
);
