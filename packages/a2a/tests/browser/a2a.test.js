// The A2A client in a real browser: over its fetch and streams, and over a port.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { createTaskServer } from '../../src/index.js';
import { CORE, ENGINE, sites } from '../../../../tests/support/browser.js';

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
  await page.goto(site.hostUrl);
});
after(() => site.close());

/** In the page: three tasks of an agent, the middle one cancelled at its first artifact. */
async function threeTasks(url) {
  const { createTaskClient, createTaskServer } = await import('/packages/a2a/src/index.js');
  const execute = async (context) => {
    context.emitArtifact({ artifactId: 'a', parts: [{ text: 'ä€😀' }] });
    if (context.message.parts[0].text !== 'B') return;
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
  };
  const server = createTaskServer({ card: { name: 'Agent' }, execute });
  let client;
  if (url === 'port') {
    const { portTransport } = await import('/js/transports/port.js');
    const { port1, port2 } = new MessageChannel();
    server.serve(portTransport(port2));
    client = createTaskClient(portTransport(port1));
  } else if (url === 'fetch') {
    const fetch = (to, init) => server.fetch(new Request(to, init));
    client = createTaskClient(location.origin, { fetch });
  } else client = createTaskClient(url);
  const stop = new AbortController();
  const run = async (name) => {
    const stream = client.subscribe(name, name === 'B' ? { signal: stop.signal } : {});
    for await (const event of stream) if (event.kind === 'artifact' && name === 'B') stop.abort();
    const { status, artifacts } = await client.get(stream.task.id);
    return [stream.task.status.state, status.state, artifacts[0].parts[0].text];
  };
  return Promise.all(['A', 'B', 'C'].map(run));
}
const EXPECTED = ['completed', 'canceled', 'completed'].map((state) => [state, state, 'ä€😀']);

for (const way of ['fetch', 'port']) {
  test(`three tasks of an agent in the page, over ${way}: completed, canceled, completed`, async () => {
    assert.deepEqual(await page.evaluate(threeTasks, way), EXPECTED);
  });
}

// Not every engine has service workers that are modules.
if (CORE === 'wasm' && ENGINE === 'chromium') {
  test('a service worker is an agent, although it cannot import() anything', async () => {
    const state = await page.evaluate(async () => {
      const scope = '/packages/a2a/tests/browser/pages/';
      const options = { type: 'module', scope };
      await navigator.serviceWorker.register(`${scope}agent-worker.js`, options);
      const iframe = document.createElement('iframe');
      // A page within the scope: it is controlled once it has loaded after the worker is active.
      const { active } = await navigator.serviceWorker
        .getRegistration(scope)
        .then(async (found) => {
          const worker = found.active ?? found.waiting ?? found.installing;
          while (worker.state !== 'activated')
            await new Promise((resolve) => (worker.onstatechange = resolve));
          return { active: worker };
        });
      iframe.src = `${scope}nothing-here`;
      document.body.append(iframe);
      await new Promise((resolve) => (iframe.onload = resolve));
      const method = 'SendMessage';
      const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] };
      const answer = await iframe.contentWindow.fetch(`${scope}agent`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } }),
      });
      const { result, error } = await answer.json();
      return [active.state, result?.task?.artifacts?.[0].parts[0].text ?? error];
    });
    assert.deepEqual(state, ['activated', 'done']);
  });
}

// The policy that forbids WebAssembly lets nobody out, either.
if (CORE === 'wasm') {
  test('three tasks of an agent on another origin: completed, canceled, completed', async () => {
    const agent = createTaskServer({
      card: { name: 'Agent' },
      async execute(context) {
        context.emitArtifact({ artifactId: 'a', parts: [{ text: 'ä€😀' }] });
        if (context.message.parts[0].text !== 'B') return;
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
      },
    });
    const server = createServer((request, response) => {
      response.setHeader('access-control-allow-origin', '*');
      response.setHeader('access-control-allow-headers', '*');
      if (request.method === 'OPTIONS') response.writeHead(204).end();
      else void agent.handle(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${server.address().port}/`;
    assert.deepEqual(await page.evaluate(threeTasks, url), EXPECTED);
    agent.close();
    server.closeAllConnections();
    server.close();
  });
}
