/**
 * Apps of ABP and tools of WebMCP in a page, and apps of ABP behind a WebSocket: by the client of
 * this library. The outcome of a call is in its response.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { basename, dirname } from 'node:path';
import { connectPage } from '@abp-bridge/automation';
import { connect } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/transports';
import puppeteer from 'puppeteer-core';
import sirv from 'sirv';
import { WebSocket } from 'ws';
import { agree } from './words.js';

/**
 * @typedef {import('../call.js').Call} Call
 * @typedef {import('../options.js').Options} Options
 */

/** What a browser needs for it. */
const WEBMCP = '--enable-features=WebMCP,WebMCPTesting';
const AGENT = { name: 'stopcheck', version: '1' };

/**
 * Serves the folder of a page.
 * @param {string} path
 */
async function serve(path) {
  const server = createServer(sirv(dirname(path), { dev: true }));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/${encodeURIComponent(basename(path))}`, server };
}

/**
 * Opens the page, which stays while lines to it are closed and opened.
 * @param {Options} options
 * @returns {Promise<{ page: import('puppeteer-core').Page, close: () => Promise<void> }>}
 */
async function openBrowser({ address = '', protocol, browser, 'browser-arg': more = [] }) {
  const served = /^https?:/.test(address) ? undefined : await serve(address);
  const launched = await puppeteer.launch({
    ...(browser ? { executablePath: browser } : { channel: 'chrome' }),
    args: [...(protocol === 'webmcp' ? [WEBMCP] : []), ...more],
  });
  const page = await launched.newPage();
  await page.goto(served?.url ?? address);
  return {
    page,
    async close() {
      await launched.close();
      served?.server.close();
    },
  };
}

/**
 * @param {Options} options
 * @returns {import('../checked.js').Way}
 */
export function reach(options) {
  const { address = '', protocol } = options;
  /** Who asks again is known by it. */
  const owner = randomUUID();
  /** @type {ReturnType<typeof openBrowser> | undefined} */
  let opened;
  return {
    async open() {
      /** @type {Set<Call>} */
      const running = new Set();
      const how = { agent: AGENT, owner, onElicitation: answerBy(running) };
      if (/^wss?:/.test(address)) {
        const dial = () => {
          const socket = new WebSocket(address);
          return webSocketTransport(/** @type {import('abp-bridge/transports').Socket} */ (socket));
        };
        return sessionOf(await connect(dial, how), running, options);
      }
      const { page } = await (opened ??= openBrowser(options));
      return sessionOf(
        await connectPage(page, { ...how, webmcp: protocol === 'webmcp' }),
        running,
        options,
      );
    },
    async close() {
      await (await opened)?.close();
    },
  };
}

/**
 * @param {Set<Call>} running
 * @returns {(question: any) => Promise<any>}
 */
const answerBy = (running) => async (question) => {
  const { method, params } = question;
  const [call] = [...running].slice(-1);
  call?.say('question', undefined, params?.message ?? params?.prompt ?? method);
  if (call?.leavesQuestions) await new Promise(() => {});
  return params?.schema ? agree(params.schema) : (params?.options?.[0]?.value ?? true);
};

/**
 * @param {import('abp-bridge').Client} client
 * @param {Set<Call>} running its calls
 * @param {Options} options
 * @returns {Promise<import('../trial.js').Session>}
 */
async function sessionOf(client, running, { tool, protocol }) {
  const webmcp = protocol === 'webmcp';
  const names = (await client.listCapabilities()).map(({ name }) => name);
  if (!names.includes(tool)) {
    client.close();
    throw new Error(`There is no ${JSON.stringify(tool)}: there are ${names.join(', ')}`);
  }
  const keys = client.features.outcomes;
  return {
    client: `abp-bridge, ${webmcp ? 'WebMCP' : 'ABP 0.1'}`,
    lacks: webmcp ? { before: 'a call that is not made has no name' } : {},
    keys,
    limits: true,
    start(call) {
      running.add(call);
      const { limit, key, wantsProgress } = call;
      const { signal } = call.controller;
      // A call that is repeated has another id, and the same key.
      call.name(randomUUID());
      if (call.isOvertaken) void client.cancel(call.id);
      const given = {
        signal,
        callId: call.id,
        ...(limit && { timeout: limit }),
        ...(keys && { idempotencyKey: key }),
        ...(wantsProgress && {
          onProgress: (/** @type {any} */ { percentage }) =>
            call.say('stream', 'running', `${percentage} %`),
        }),
      };
      void client.call(tool, call.input, given).then((response) => {
        running.delete(call);
        // A browser that is told to stop rejects at once, and so does this client at its own time
        // limit: the tool has said nothing.
        const isStopped = signal.aborted || response.error?.code === 'TIMEOUT';
        if (response.success || !webmcp || !isStopped) sayResponse(call, response);
        call.end();
      });
    },
    stop: (call, reason) => call.controller.abort(reason),
    async stopById(call) {
      await client.cancel(call.id);
    },
    async stopUnknown(call) {
      const { cancelled, reason } = await client.cancel('a call that never was');
      call.say('cancel', cancelled ? 'stopped' : undefined, reason ?? `cancelled: ${cancelled}`);
    },
    ping: () => client.listCapabilities(),
    async close() {
      client.close();
    },
  };
}

/**
 * @param {Call} call
 * @param {any} response
 */
function sayResponse(call, { success, error, metadata }) {
  if (success) call.say('answer', 'finished', 'success');
  else call.say('answer', metadata?.outcome ?? 'failed', `${error?.code}: ${error?.message}`);
}
