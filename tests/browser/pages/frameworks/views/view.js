// A view of MCP Apps in React under StrictMode. What happens is posted to the host's page.
import { StrictMode, createElement as h, useEffect, useState } from 'react';
import { useDocumentTheme, useHostStyles, useView } from '../../../../../parts/frameworks/react.js';
import { createRoot } from 'react-dom/client';
import { createView, expose, toolsOf } from '../../../../../packages/mcp-apps/src/app.js';

const note = (line) => parent.postMessage({ note: line }, '*');
const app = expose(
  { app: { id: 'v', name: 'V', version: '1' }, capabilities: { echo: (params) => params } },
  { origins: [] },
);
const OPTIONS = { app: { name: 'V', version: '1' }, tools: toolsOf(app) };

/** The ways to begin and to end with an effect. */
const WAYS = {
  signal(options, begun) {
    const controller = new AbortController();
    createView({ ...options, signal: controller.signal }).then(begun, () => {});
    return () => controller.abort();
  },
  close(options, begun) {
    const view = createView(options);
    view.then(begun, () => {});
    return () => void view.then((made) => made.close()).catch(() => {});
  },
};

function View({ way, number }) {
  const [input, setInput] = useState();
  useEffect(
    () =>
      WAYS[way](
        { ...OPTIONS, onToolInput: ({ arguments: args }) => setInput(args) },
        async (view) => {
          const { structuredContent } = await view.callTool('echo', { number });
          note(`begun ${structuredContent.number}`);
        },
      ),
    [way, number],
  );
  useEffect(() => {
    if (input) note(`input ${JSON.stringify(input)} ${number}`);
  }, [input, number]);
  return h('p', {}, number);
}

function Hooked({ number }) {
  const [input, setInput] = useState();
  const state = useView(createView, {
    ...OPTIONS,
    onToolInput: ({ arguments: args }) => setInput([number, args]),
  });
  useHostStyles(state);
  const theme = useDocumentTheme();
  useEffect(() => note(`theme ${theme}`), [theme]);
  useEffect(() => {
    if (input) note(`input ${JSON.stringify(input)}`);
  }, [input]);
  const { view, error } = state;
  useEffect(() => {
    void view
      ?.callTool('echo', { number })
      .then(({ structuredContent }) => note(`begun ${structuredContent.number}`));
  }, [view, number]);
  useEffect(() => {
    if (error) note(`failed ${error.message}`);
  }, [error]);
  return h('p', {}, number);
}

const root = document.body.appendChild(document.createElement('div'));
const react = createRoot(root);
const render = (way, number) =>
  react.render(
    number && h(StrictMode, {}, h(way === 'hooks' ? Hooked : View, { way, number, key: number })),
  );
addEventListener('message', ({ data }) => {
  if (data?.render) render(...data.render);
});
note('loaded');
