// The agent: calls the app in the iframe, and stops the call when the user says so.
import { useCall, useConnection } from 'abp-bridge/react';
import { useState } from 'react';

const APP = 'http://localhost:5174';
const options = { origin: APP, agent: { name: 'my-agent', version: '1.0' } };

export function Host() {
  const [iframe, setIframe] = useState(null);
  const [pages, setPages] = useState(200);
  const { client, status, error } = useConnection(iframe, options);
  const { call, cancel, pending, progress, response } = useCall(client, 'report.write');

  let text = error?.message ?? (status === 'connected' ? 'Connected' : 'Connecting');
  if (pending) text = 'Working';
  else if (response?.success) text = response.data.text;
  else if (response?.metadata?.outcome === 'stopped')
    text = `Stopped after ${response.metadata.progress?.progress ?? 0} pages: ${response.error.message}`;
  else if (response?.metadata?.outcome === 'unknown')
    text = `Not known whether it was done: ${response.error.message}`; // the app is gone
  else if (response?.cancelled)
    text = `Not stopped, but ${response.metadata?.outcome}: ${response.error.message}`; // 'finished', 'running', …
  else if (response) text = `It failed: ${response.error.message}`;

  return (
    <>
      <p>
        <label>
          Pages{' '}
          <input
            type="number"
            min="1"
            value={pages}
            onChange={({ target }) => setPages(target.valueAsNumber)}
          />
        </label>{' '}
        <button
          id="run"
          disabled={status !== 'connected' || pending}
          onClick={() => call({ pages })}
        >
          Run
        </button>{' '}
        <button id="stop" disabled={!pending} onClick={() => cancel('the user pressed stop')}>
          Stop
        </button>
      </p>
      <progress value={progress?.percentage ?? 0} max="100" aria-label="Progress" />
      <p>
        <output>{text}</output>
      </p>
      <iframe ref={setIframe} src={`${APP}/`} title="The app" />
    </>
  );
}
