import { connect } from 'abp-bridge';
import { example } from './example.js'; // the buttons and the text

const { iframe, bar, say, onRun, run } = example('stop');
const client = await connect(iframe, {
  origin: location.origin,
  agent: { name: 'site', version: '1.0' },
});

onRun(async (signal) => {
  say('The app writes a report, which takes twenty seconds. Press Stop.');
  const result = await client.call(
    'report.write',
    {},
    { signal, onProgress: ({ percentage }) => (bar.value = percentage) },
  );
  const { outcome, report } = result.metadata ?? {};
  if (result.success) say(`Finished: ${result.data.written} pages are written.`);
  else if (outcome === 'stopped')
    say(
      `Outcome: ${outcome}. The app has stopped: ${report?.written ?? 0} of 100 pages are written.`,
    );
  else say(`Outcome: ${outcome}. ${result.error.message}`);
});
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) run();
