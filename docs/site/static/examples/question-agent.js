import { connect } from 'abp-bridge';
import { example } from './example.js';

const { iframe, say, ask, onRun } = example('question');
const client = await connect(iframe, {
  origin: location.origin,
  agent: { name: 'site', version: '1.0' },
  // The question goes away when its time is over, and with its call.
  onElicitation: async ({ params }, { signal }) => ({
    confirmed: await ask(params.message, signal),
  }),
});

onRun(async (signal) => {
  const names = ['draft.txt', 'notes.txt'];
  const result = await client.call('files.delete', { names }, { signal });
  if (result.success) say(`${result.data.deleted} files are deleted`);
  else say(`${result.error.code}: ${result.error.message}`);
});
