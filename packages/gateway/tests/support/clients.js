/** Official clients in one form, on both transports and in both versions of the protocol. */
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { PROGRAM } from './program.js';

const info = { name: 'test', version: '1' };
export const MODERN = '2026-07-28';

/** @typedef {'1.x' | '2.x' | '2.x modern'} Kind */
/** @type {Kind[]} */
export const KINDS = ['1.x', '2.x', '2.x modern'];

/**
 * @param {Kind} kind
 * @param {{ args?: string[], command?: { command: string, args: string[] }, url?: string,
 *   token?: string, env?: object, capabilities?: object, onElicit?: (params: any) => any,
 *   onListChanged?: () => void }} options `args` of the program for stdio, another program's
 *   `command`, or the `url` of one that serves HTTP
 */
export async function connectClient(kind, options) {
  const { args, url, token, env, onElicit, onListChanged } = options;
  const capabilities = options.capabilities ?? (onElicit ? { elicitation: {} } : {});
  const errors = [];
  const modern = kind === '2.x modern';
  const client =
    kind === '1.x'
      ? new Client1(info, { capabilities })
      : new Client2(info, {
          capabilities,
          ...(modern && { versionNegotiation: { mode: { pin: MODERN } } }),
        });
  client.onerror = (error) => errors.push(error.message);
  if (onElicit) {
    client.setRequestHandler(
      kind === '1.x' ? ElicitRequestSchema : 'elicitation/create',
      (request) => onElicit(request.params),
    );
  }
  if (onListChanged) {
    const method = 'notifications/tools/list_changed';
    client.setNotificationHandler(
      kind === '1.x' ? ToolListChangedNotificationSchema : method,
      onListChanged,
    );
  }
  const [Stdio, Http] = kind === '1.x' ? [Stdio1, Http1] : [Stdio2, Http2];
  let opened;
  /**
   * Resolves when a client of the older protocol reads the server's events: what is said before is
   * lost.
   */
  const listening = new Promise((resolve) => (opened = resolve));
  const transport = url
    ? new Http(new URL(url), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
        fetch: async (at, init) => {
          const response = await fetch(at, init);
          if (init?.method === 'GET' && response.ok) opened();
          return response;
        },
      })
    : new Stdio({
        ...(options.command ?? { command: process.execPath, args: [PROGRAM, ...args] }),
        env: { CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium', ...process.env, ...env },
        stderr: 'pipe',
      });
  // What nobody reads would stop the program.
  transport.stderr?.resume();
  await client.connect(transport);
  /** Calls a tool; both clients take their options in another place. */
  const call = (name, params = {}, requestOptions) =>
    kind === '1.x'
      ? client.callTool({ name, arguments: params }, undefined, requestOptions)
      : client.callTool({ name, arguments: params }, requestOptions);
  return { client, transport, call, errors, listening, close: () => client.close() };
}
