// An app that has a `window.abp` of its own, as the protocol's documentation writes one, put behind a port.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { connect, expose } from '../../js/index.js';

const AGENT = { name: 'the agent', version: '7' };

/** What the documentation's samples come to, as far as it is of use here. */
function sampleApp() {
  const running = new Map();
  const said = [];
  const app = {
    protocolVersion: '0.1',
    app: { id: 'a.b', name: 'A', version: '1' },
    said,
    async initialize(params) {
      said.push(['initialize', params.agent, params.requestedCapabilities]);
      if (app.refuses) return { success: false, error: app.refuses };
      const capabilities = [{ name: 'echo', available: true }];
      const features = { notifications: false, progress: false, elicitation: false };
      return {
        sessionId: `s${said.length}`,
        protocolVersion: '0.1',
        app: app.app,
        capabilities,
        features,
      };
    },
    async shutdown() {
      said.push(['shutdown']);
    },
    async listCapabilities() {
      return [{ name: 'echo', description: 'Says it again', available: true }];
    },
    async call(capability, params, { callId, progressToken } = {}) {
      switch (capability) {
        case 'echo':
          return { success: true, data: params };
        case 'fail':
          return { success: false, error: { code: 'OWN', message: 'no', retryable: true } };
        case 'steps':
          app.onProgress?.({ operationId: progressToken, progress: 1, total: 2 });
          return { success: true };
        case 'ask':
          return app.onElicitation({ method: 'elicitation/input', params });
        case 'hang':
          return new Promise((resolve) => {
            running.set(callId, () => resolve({ success: false, cancelled: true }));
          });
      }
      const message = `No ${capability}`;
      return { success: false, error: { code: 'UNKNOWN_CAPABILITY', message, retryable: false } };
    },
    async cancel(callId, reason) {
      said.push(['cancel', reason]);
      running.get(callId)?.();
      return { callId, cancelled: running.delete(callId) };
    },
  };
  return app;
}

let channel, app, exposed;
beforeEach(() => {
  channel = new MessageChannel();
  app = sampleApp();
  exposed = expose(app, { port: channel.port1 });
});
afterEach(() => {
  exposed.close();
  channel.port1.close();
  channel.port2.close();
});
const open = (options) => connect(channel.port2, { agent: AGENT, ...options });

test('its capabilities are called as they are, and its agent is who calls', async () => {
  const client = await open({ requestedCapabilities: ['echo'] });
  assert.deepEqual(client.app, app.app);
  const [{ name, description }] = await client.listCapabilities();
  assert.deepEqual([name, description], ['echo', 'Says it again']);
  assert.deepEqual(app.said, [['initialize', AGENT, ['echo']]]);
  const content = new Uint8Array([1, 2]).buffer;
  const { data } = await client.call('echo', { a: 1, file: { content, mimeType: 'x/y' } });
  assert.deepEqual([data.a, data.file.content.byteLength], [1, 2]);
  assert.equal((await client.call('fail')).error.code, 'OWN');
  assert.equal((await client.call('nothing')).error.code, 'UNKNOWN_CAPABILITY');
});

test('a cancel reaches it, and the call is cancelled', async () => {
  const client = await open();
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  await client.call('echo');
  controller.abort('enough');
  const { cancelled, error } = await pending;
  assert.deepEqual([cancelled, error.message], [true, 'enough']);
  assert.deepEqual(app.said.at(-1), ['cancel', 'enough']);
});

test('progress, notifications, questions and changes of what it can do come through', async () => {
  const heard = [];
  const client = await open({
    onElicitation: ({ params }) => params.toUpperCase(),
    onNotification: (event, data) => heard.push([event, data]),
  });
  const onProgress = ({ percentage }) => heard.push(percentage);
  await client.call('steps', {}, { onProgress });
  assert.equal((await client.call('ask', 'name?')).data, 'NAME?');
  app.onNotification({ event: 'e', data: 1 });
  await client.call('echo');
  assert.deepEqual(heard, [50, ['e', 1]]);
});

test('its session ends with that of its last agent, and another one begins anew', async () => {
  const client = await open();
  client.close();
  while (app.said.length < 2) await new Promise(setImmediate);
  assert.deepEqual(app.said.at(-1), ['shutdown']);
  const { port1, port2 } = new MessageChannel();
  const { portTransport } = await import('../../js/transports/port.js');
  exposed.accept(portTransport(port1));
  const next = await connect(port2, { agent: AGENT });
  assert.equal((await next.call('echo', 1)).data, 1);
  assert.equal(app.said.at(-1)[0], 'initialize');
  port1.close();
  port2.close();
});

test('an agent that it refuses hears why', async () => {
  app.refuses = { code: 'PERMISSION_DENIED', message: 'not you', retryable: false };
  await assert.rejects(open(), { code: 'PERMISSION_DENIED', message: 'not you' });
});

test('an agent hears that it describes itself in no JSON, and its session ends', async () => {
  app.listCapabilities = async () => [{ name: 'echo', annotations: { limits: [1n] } }];
  await assert.rejects(open(), {
    code: 'INVALID_PARAMS',
    message: /capabilities\.0\.annotations\.limits\.0 is a bigint/,
  });
  while (app.said.length < 2) await new Promise(setImmediate);
  assert.deepEqual(app.said.at(-1), ['shutdown']);
});
