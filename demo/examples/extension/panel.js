// The agent: calls the app in the worker, and the one in the page that the user looks at.
import { connect } from 'abp-bridge';
import { extensionTransport } from 'abp-bridge/transports';

const agent = { name: 'example-panel', version: '1.0' };
const name = 'abp-bridge';
const { count, stop, words, bar, said } = Object.fromEntries(
  ['count', 'stop', 'words', 'bar', 'said'].map((id) => [id, document.getElementById(id)]),
);

// Each session has a port of its own, which starts the worker if it does not run.
window.worker = await connect(() => extensionTransport(chrome.runtime.connect({ name })), {
  agent,
  reconnect: true,
});

count.onclick = async () => {
  const controller = new AbortController();
  stop.onclick = () => controller.abort('the user pressed stop');
  stop.disabled = false;
  const result = await window.worker.call(
    'primes.count',
    { below: 50_000_000 },
    { signal: controller.signal, onProgress: ({ percentage = 0 }) => (bar.value = percentage) },
  );
  stop.disabled = true;
  said.value = result.success ? `${result.data.count} primes` : outcomeOf(result);
};

words.onclick = async () => {
  const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  try {
    const page = await connect(() => extensionTransport(chrome.tabs.connect(tab.id, { name })), {
      agent,
    });
    const result = await page.call('page.words');
    said.value = result.success ? `${result.data.words} words` : outcomeOf(result);
    page.close();
  } catch (error) {
    said.value = error.message; // a page in which no content script runs
  }
};

/**
 * The outcome of a call that was not a success: `unknown` if the worker was ended during the call.
 */
function outcomeOf({ cancelled, error, metadata }) {
  return `${cancelled ? 'Cancelled' : error.code}: ${metadata?.outcome ?? 'failed'}`;
}
