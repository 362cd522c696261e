// The host page of the browser tests: does nothing until a test asks.
import { connect } from '/js/index.js';
import { plainAgent, windowChannel } from '/tests/plain/plain.js';
import { AgentDriver } from '/tests/support/drivers.js';

/** Messages that arrived, by origin: shows that an attack was really fired. */
window.heard = {};
addEventListener('message', ({ origin }) => {
  window.heard[origin] = (window.heard[origin] ?? 0) + 1;
});

/** Replaces whatever iframe there is. */
window.embed = (src, attributes = {}) => {
  window.iframe?.remove();
  const iframe = Object.assign(document.createElement('iframe'), attributes);
  iframe.src = src;
  window.iframe = iframe;
  document.body.append(iframe);
  return iframe;
};

window.open_ = async ({ src, origin, kind = 'ours', upgrade, limits, attributes }) => {
  const iframe = window.embed(src, attributes);
  const driver = new AgentDriver((line) => window.record?.(line));
  if (kind === 'ours') {
    driver.client = await connect(iframe, {
      origin,
      upgrade,
      limits,
      agent: { name: 'test', version: '1' },
      onElicitation: ({ params }) => params,
      onDisconnect: (error) => (window.lost ??= []).push(error.code),
    });
  } else {
    await new Promise((resolve) => iframe.addEventListener('load', resolve, { once: true }));
    driver.client = await plainAgent(windowChannel(iframe.contentWindow, origin), driver);
  }
  window.driver = driver;
  window.client = driver.client;
  return driver.client.features;
};
window.connect = connect;
window.isReady = true;
