import { connect } from 'abp-bridge';
import { example } from './example.js';

const { add, onRun } = example('stream');
const start = () => new Worker(new URL('./stream-app.js', import.meta.url), { type: 'module' });
const client = await connect(start, { agent: { name: 'site', version: '1.0' } });

onRun(async (signal) => {
  const stream = client.stream('story.tell', {}, { signal });
  try {
    for await (const word of stream) add(word);
  } catch (error) {
    add(`… ${error.message}`); // what has come is kept
  }
  const { success, data } = await stream.response; // the app has stopped, too
  if (success) add(`(${data.words} words)`);
});
