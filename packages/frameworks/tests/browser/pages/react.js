// The page of the tests in React: a connection, and a component with a call that can be taken away.
import { StrictMode, createElement as h, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useCall, useConnection } from '/packages/frameworks/src/react.js';

function Calls({ client, name }) {
  const { call, cancel, pending, progress, response } = useCall(client, name);
  return h(
    'div',
    {},
    h('button', { id: 'call', onClick: () => void call({ n: 1 }) }),
    h('button', { id: 'cancel', onClick: () => cancel('the button') }),
    h('output', { id: 'call-state' }, JSON.stringify({ pending, progress, response })),
  );
}

function Writer({ src, origin, name }) {
  const [iframe, setIframe] = useState(null);
  const [calls, setCalls] = useState(true);
  const agent = { name: 'react', version: '1' };
  const onNotification = (event) => (window.events ??= []).push(event);
  const { client, status, error } = useConnection(iframe, { origin, agent, onNotification });
  window.client = client;
  window.toggle = () => setCalls(!calls);
  return h(
    'div',
    {},
    h('iframe', { src, ref: setIframe }),
    h('output', { id: 'status' }, status),
    h('output', { id: 'error' }, error?.code ?? ''),
    calls && h(Calls, { client, name }),
  );
}

window.mount = (props) => {
  const root = createRoot(document.querySelector('#root'));
  root.render(h(StrictMode, {}, h(Writer, props)));
  window.unmount = () => root.unmount();
};
