// The agent: calls the app in the iframe, and stops the call when the user says so.
import { AbpError, connect } from 'abp-bridge';
import type { App } from '../app/app.ts';

const one = <E extends Element>(selector: string) => document.querySelector<E>(selector)!;
const run = one<HTMLButtonElement>('#run');
const stop = one<HTMLButtonElement>('#stop');
const bar = one<HTMLProgressElement>('progress');
const output = one<HTMLOutputElement>('output');

const client = await connect<App>(one<HTMLIFrameElement>('iframe'), {
  origin: 'http://localhost:5174',
  agent: { name: 'my-agent', version: '1.0' },
}).catch((error: AbpError) => {
  output.value = error.message;
  throw error;
});
output.value = 'Connected';
run.disabled = false;

run.onclick = async () => {
  const controller = new AbortController();
  stop.onclick = () => controller.abort('the user pressed stop');
  [run.disabled, stop.disabled] = [true, false];
  output.value = 'Working';
  const result = await client.call(
    'report.write',
    { pages: 200 },
    {
      signal: controller.signal,
      onProgress: ({ percentage = 0 }) => (bar.value = percentage),
    },
  );
  [run.disabled, stop.disabled] = [false, true];
  if (result.success) output.value = result.data.text;
  else if (result.metadata?.outcome === 'stopped')
    output.value = `Stopped after ${result.metadata.progress?.progress ?? 0} pages: ${result.error.message}`;
  else if (result.metadata?.outcome === 'unknown')
    output.value = `Not known whether it was done: ${result.error.message}`; // the app is gone
  else if (result.cancelled)
    output.value = `Not stopped, but ${result.metadata?.outcome}: ${result.error.message}`; // 'finished', 'running', …
  else output.value = `It failed: ${result.error.message}`;
};
