import { connect } from 'abp-bridge';
import { example } from './example.js'; // the buttons and the text

const { iframe, bar, say, onRun } = example('cancel');
const client = await connect(iframe, {
  origin: location.origin,
  agent: { name: 'site', version: '1.0' },
});

onRun(async (signal) => {
  const result = await client.call(
    'primes.count',
    { below: 10_000_000 },
    { signal, onProgress: ({ percentage }) => (bar.value = percentage) },
  );
  if (result.success) say(`${result.data} primes`);
  else say(`${result.error.code}: ${result.error.message}`);
});
