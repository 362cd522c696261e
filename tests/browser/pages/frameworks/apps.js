// A host of MCP Apps in React under StrictMode.
import { StrictMode, createElement as h, useEffect, useRef } from 'react';
import { createRoot } from 'react-dom/client';
import { connect } from '/parts/main/index.js';
import { createHost } from '/packages/mcp-apps/src/index.js';

window.log = [];
const note = (line) => void window.log.push(line);
addEventListener('message', ({ data }) => data?.note && note(data.note));
for (const level of ['error', 'warn']) {
  const { [level]: print } = console;
  console[level] = (...said) => (note(`${level}: ${said[0]}`), print(...said));
}

const server = (_method, { arguments: args }) => ({ content: [], structuredContent: args });

function Host({ sandbox, html, csp, number }) {
  const ref = useRef(null);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let made;
    createHost(ref.current, {
      host: { name: 'host', version: '1' },
      sandbox,
      resource: { text: html, _meta: { ui: { csp } } },
      server,
      signal,
      onClose: () => note('closed'),
    }).then(
      (host) => {
        made = host;
        if (signal.aborted) return host.close();
        host.toolInput({ of: number });
        window.host = host;
        note(`host ${number}`);
      },
      () => {},
    );
    return () => {
      controller.abort();
      void made?.close();
    };
  }, [sandbox, html, number]);
  return h('iframe', { ref, id: 'view' });
}

window.render = (props) => {
  window.react ??= createRoot(document.querySelector('#root'));
  window.react.render(props && h(StrictMode, {}, h(Host, props)));
};
window.frame = () => document.querySelector('#view');
window.say = (message) => window.frame().contentWindow.postMessage(message, '*');
window.callEcho = async (params) => {
  const client = await connect(() => window.host.transport(), {
    agent: { name: 'agent', version: '1' },
    onDisconnect: () => note('agent lost'),
  });
  return (await client.call('echo', params)).data;
};
window.isReady = true;
