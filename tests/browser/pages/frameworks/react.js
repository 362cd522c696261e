// The page of the tests in React: a connection, and a component with a call that can be taken away.
import { Activity, StrictMode, createElement as h, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useCall, useConnection } from '/parts/frameworks/react.js';

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

function Writer({ src, origin, name, options }) {
  const [iframe, setIframe] = useState(null);
  const [calls, setCalls] = useState(true);
  const agent = { name: 'react', version: '1' };
  const onNotification = (event) => (window.events ??= []).push(event);
  const { client, status, error } = useConnection(iframe, {
    ...options,
    origin,
    agent,
    onNotification,
  });
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

/** Keeps the component while it is hidden: its effects end, and begin again. */
function Panel(props) {
  const [shown, setShown] = useState(true);
  window.show = setShown;
  return h(Activity, { mode: shown ? 'visible' : 'hidden' }, h(Writer, props));
}

window.mount = (props) => {
  const root = createRoot(document.querySelector('#root'));
  root.render(h(StrictMode, {}, h(Panel, props)));
  window.unmount = () => root.unmount();
};
