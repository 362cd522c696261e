// An A2A agent on a port of its own, and requests to it as raw as they are on the wire.
import { EventEmitter, once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import { after } from 'node:test';
import { createTaskServer } from '../../src/index.js';

export const CARD = {
  name: 'SlowAgent',
  description: 'A slow 10-step agent',
  version: '1.0',
  skills: [{ id: 'slow_task', name: 'slow_task', description: 'Runs 10 steps', tags: ['cancel'] }],
};

export const deferred = () => Promise.withResolvers?.() ?? withResolvers();
function withResolvers() {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  return all;
}

/** Serves an executor until `close`. */
export async function serve(execute, options = {}, card = CARD, reply = undefined) {
  const agent = createTaskServer({ card, execute, reply }, options);
  const http = createServer(agent.handle);
  // A slow machine's client would send by what the server closes just then.
  http.keepAliveTimeout = 0;
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    agent,
    http,
    url: `http://127.0.0.1:${http.address().port}/`,
    async close() {
      agent.close();
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

/** `serve`, for a file of tests: what it has served is closed when the file has ended. */
export function servingUntilEnd() {
  const served = [];
  after(() => Promise.all(served.map((server) => server.close())));
  return async (...args) => {
    const server = await serve(...args);
    served.push(server);
    return server;
  };
}

/** What each version calls what, and how a message looks in it. */
export const VERSIONS = {
  '1.0': {
    headers: { 'a2a-version': '1.0' },
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    resubscribe: 'SubscribeToTask',
    list: 'ListTasks',
    message: (text) => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] }),
  },
  0.3: {
    headers: {},
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    resubscribe: 'tasks/resubscribe',
    message: (text) => ({
      kind: 'message',
      messageId: crypto.randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text }],
    }),
  },
  gem: {
    headers: {},
    send: 'tasks/send',
    stream: 'tasks/sendSubscribe',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    resubscribe: 'tasks/resubscribe',
    list: 'tasks/list',
    message: (text) => ({ messageId: crypto.randomUUID(), role: 'user', parts: [{ text }] }),
  },
};

/** Posts text as it is. */
export const post = (url, body, headers = {}) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });

let ids = 0;
const bodyOf = (method, params, id = ++ids) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

/** One request, one answer. */
export async function ask(url, method, params, headers) {
  const response = await post(url, bodyOf(method, params), headers);
  return response.json();
}

/**
 * One request, a stream: `next()` gives the next frame (its event's name and its data), or
 * undefined when the stream has ended; `rest()` all that is left. On a connection of its own, so
 * that leaving it is leaving.
 */
export async function open(url, method, params, headers = {}, id = undefined) {
  const outgoing = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
  });
  outgoing.end(bodyOf(method, params, id));
  const [response] = await once(outgoing, 'response');
  response.setEncoding('utf8');
  response.on('error', () => {}); // cut off
  const chunks = response[Symbol.asyncIterator]();
  let text = '';
  const stream = {
    headers: response.headers,
    response,
    comments: 0,
    async next() {
      for (;;) {
        const end = text.indexOf('\n\n');
        if (end >= 0) {
          const raw = text.slice(0, end + 2);
          text = text.slice(end + 2);
          if (raw.startsWith(':')) {
            stream.comments++;
            continue;
          }
          const event = /^event: (.*)$/m.exec(raw)?.[1];
          return { raw, event, ...JSON.parse(/^data: (.*)$/m.exec(raw)[1]) };
        }
        const { done, value } = await chunks.next();
        if (done) return undefined;
        text += value;
      }
    },
    async rest() {
      const frames = [];
      for (let frame; (frame = await stream.next());) frames.push(frame);
      return frames;
    },
    leave: () => response.destroy(),
  };
  return stream;
}

/**
 * What a framework gives an agent: a request whose body it has read, and a response, of which
 * `writableLength` waits to be read.
 */
export function exchange(method, params) {
  const request = {
    method: 'POST',
    url: '/',
    headers: { 'content-type': 'application/json', ...VERSIONS['1.0'].headers },
    socket: {},
    body: bodyOf(method, params),
    resume() {},
  };
  const written = [];
  const response = Object.assign(new EventEmitter(), {
    written,
    cut: false,
    writableLength: 0,
    writeHead: () => response,
    flushHeaders() {},
    write: (text) => written.push(text),
    end() {},
    destroy: () => (response.cut = true),
  });
  return { request, response };
}

/** The name of a state without its version's spelling. */
export const plainState = (state) =>
  state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-');

/** What a frame is about, in every version: 'working', 'artifact step-1', 'completed'. */
export function updateOf({ result }) {
  const inner = result.task ?? result.statusUpdate ?? result.artifactUpdate ?? result;
  if (inner.artifact) return `artifact ${inner.artifact.artifactId}`;
  const state = plainState(inner.status.state);
  return inner.taskId ? state : `task ${state}`;
}

/** The state of the task in an answer, without its version's spelling. */
export const stateOf = ({ result }) => plainState((result.task ?? result).status.state);
