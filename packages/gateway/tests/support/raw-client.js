/** A client that writes what it likes, and keeps every line that comes back. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startGateway } from './program.js';
import { GIVE_UP } from './site.js';

export const envelope = (capabilities = {}) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
});

/**
 * Posts a message over HTTP. The response may be an answer or a stream of events.
 * @param {string} url
 * @param {string} token
 * @param {object | string} message text is sent as it is
 * @param {Record<string, string>} [headers]
 * @param {AbortSignal} [signal]
 */
export const postTo = (url, token, message, headers = {}, signal = undefined) =>
  fetch(url, {
    method: 'POST',
    signal,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
  });

/**
 * @param {string[]} args of the program
 * @param {{ modern?: boolean, capabilities?: object, env?: Record<string, string> }} [options]
 */
export async function startRaw(args, { modern = false, capabilities = {}, env } = {}) {
  const child = startGateway(args, { env });
  child.stderr.setEncoding('utf8');
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    for (const look of waiting) look();
  });
  const messages = [];
  const waiting = new Set();
  createInterface({ input: child.stdout }).on('line', (line) => {
    messages.push(JSON.parse(line));
    for (const look of waiting) look();
  });
  const closed = once(child, 'close');
  let id = 0;
  const write = (message) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  /** What is found first, sooner or later. */
  const eventually = (find) =>
    new Promise((resolve, reject) => {
      const late = () => reject(new Error(`no such message from the gateway; it said: ${stderr}`));
      const timer = setTimeout(late, GIVE_UP);
      const look = () => {
        const found = find();
        if (!found) return;
        clearTimeout(timer);
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  /** The first message that passes. */
  const seen = (passes, from = 0) => eventually(() => messages.slice(from).find(passes));
  const raw = {
    child,
    closed,
    messages,
    write,
    seen,
    get stderr() {
      return stderr;
    },
    /** Resolves when it has said such a line on stderr. */
    said: (pattern) => eventually(() => pattern.exec(stderr)),
    /** The id that the next request will have. */
    get nextId() {
      return id + 1;
    },
    /**
     * Begins a request.
     * @returns {number} its id
     */
    begin(method, params = {}) {
      const _meta = { ...(modern && envelope(capabilities)), ...params._meta };
      write({
        id: ++id,
        method,
        params: { ...params, ...(Object.keys(_meta).length && { _meta }) },
      });
      return id;
    },
    answerTo: (wanted) => seen((message) => message.id === wanted && !message.method),
    request: (method, params) => raw.answerTo(raw.begin(method, params)),
    /** The result of a tool that is given the handle of a call. */
    use: async (tool, handle) => (await raw.answerTo(raw.call(tool, { handle }))).result,
    /**
     * The same once the call has ended: on a busy machine a stop, too, may take longer than the
     * gateway's patience.
     */
    async ended(tool, handle) {
      let result = await raw.use(tool, handle);
      while (result._meta?.['abp-bridge/call']) result = await raw.use('call_wait', handle);
      return result;
    },
    cancel(requestId, reason) {
      const params = { requestId, reason, ...(modern && { _meta: envelope(capabilities) }) };
      write({ method: 'notifications/cancelled', params });
    },
    call: (name, args = {}, more = {}) =>
      raw.begin('tools/call', { name, arguments: args, ...more }),
  };
  if (!modern) {
    await raw.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities,
      clientInfo: { name: 'raw', version: '1' },
    });
    write({ method: 'notifications/initialized' });
  }
  return raw;
}
