// The agent: calls the app in the iframe, and stops the call when the user says so.
import { connect } from 'abp-bridge';

const APP = 'http://localhost:8081';

const find = (selector) => document.querySelector(selector);
const [run, stop, bar] = ['#run', '#stop', 'progress'].map(find);
const say = (text) => (find('output').textContent = text);

const client = await connect(find('iframe'), {
  origin: APP, // exactly the origin of the iframe's src
  agent: { name: 'my-agent', version: '1.0' },
}).catch((error) => {
  say(error.message);
  throw error;
});
say('Connected');
run.disabled = false;

run.onclick = async () => {
  const controller = new AbortController();
  stop.onclick = () => controller.abort('the user pressed stop');
  run.disabled = true;
  stop.disabled = false;
  say('Working');
  const result = await client.call(
    'report.write',
    { pages: find('input').valueAsNumber },
    { signal: controller.signal, onProgress: ({ percentage = 0 }) => (bar.value = percentage) },
  );
  run.disabled = false;
  stop.disabled = true;
  if (result.success) say(result.data.text);
  else if (result.metadata?.outcome === 'stopped')
    say(`Stopped after ${result.metadata.progress?.progress ?? 0} pages: ${result.error.message}`);
  else if (result.metadata?.outcome === 'unknown')
    say(`Not known whether it was done: ${result.error.message}`); // the app is gone
  else if (result.cancelled)
    say(`Not stopped, but ${result.metadata?.outcome}: ${result.error.message}`); // 'finished', 'running', …
  else say(`It failed: ${result.error.message}`);
};
