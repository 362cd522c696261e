// A page with the inspector on it, which a test connects to an app in an iframe.
import { connect } from '/parts/main/index.js';
import '/packages/inspector/src/index.js';
import { recordSession } from '/tests/support/recorded.js';

window.inspector = document.querySelector('abp-inspector');
window.recordSession = recordSession;
window.open_ = async (src, origin, options) => {
  const iframe = document.createElement('iframe');
  iframe.src = src;
  document.body.append(iframe);
  window.client = await connect(iframe, {
    origin,
    agent: { name: 'inspected', version: '1' },
    onElicitation: () => true,
    timeout: 300_000,
    ...options,
  });
  await window.inspector.attach(window.client);
};
window.isReady = true;
