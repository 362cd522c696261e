// An agent whose app is in an iframe.
import { connect } from '/parts/main/index.js';

let client;
window.begin = async (url, options) => {
  const iframe = document.createElement('iframe');
  iframe.src = url;
  document.body.append(iframe);
  client = await connect(iframe, {
    origin: new URL(url).origin,
    agent: { name: 'a', version: '1' },
    owner: 'the same agent',
    timeout: 300_000,
    ...options,
  });
  return client.memory;
};
window.pay = (order, options) => client.call('pay', { order }, options);
window.memory = () => client.memory;
