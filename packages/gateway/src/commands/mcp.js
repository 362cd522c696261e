/** `mcp`: an MCP server on stdio, or over HTTP. */
import { StdioServerTransport, serveStdio as serve } from '@modelcontextprotocol/server/stdio';
import { appOf } from '../app.js';
import { log, seconds, usageError } from '../errors.js';
import { Gateway } from '../gateway.js';
import { createServer } from '../mcp-server.js';
import { prefixOf } from '../tools.js';
import { lineOf } from '../texts.js';

/** Well below the shortest clock of a host, which is a minute. */
const DEFAULT_PATIENCE = 45_000;

/**
 * The apps by their prefixes: `writer=https://writer.example/`, or a prefix made of the host.
 * @param {string[]} addresses
 * @param {import('../commands.js').Values} values
 * @param {{ version: string }} context
 */
function targetsOf(addresses, values, context) {
  const several = addresses.length > 1;
  /** @type {string[]} */
  const prefixes = [];
  return addresses.map((text) => {
    const [, name, address = text] = /^([A-Za-z0-9_]+)=(.+)$/.exec(text) ?? [];
    const app = appOf(address, values, context);
    const prefix = several || name ? prefixOf(name ?? app.url.host) : '';
    // Else one app could name a capability so that its tool is taken for the other's.
    const other = prefixes.find((each) => each.startsWith(prefix) || prefix.startsWith(each));
    if (other !== undefined) {
      throw usageError(
        `The prefixes ${other} and ${prefix} begin with one another: name the apps differently, as in one=${address}`,
      );
    }
    prefixes.push(prefix);
    return { app, prefix, ...(several && { label: app.url.host }) };
  });
}

/** @param {string[]} addresses @param {import('../commands.js').Values} values @param {{ version: string }} context */
export async function execute(addresses, values, context) {
  if (values.profile && addresses.length > 1) {
    throw usageError('--profile is for one app: two cannot share a profile');
  }
  const patience = seconds(values.patience, 'patience') ?? DEFAULT_PATIENCE;
  const gateway = new Gateway(targetsOf(addresses, values, context), {
    patience: patience || Infinity,
    out: values.out,
    log,
    name: 'abp-bridge-gateway',
    version: context.version,
  });
  const served = values.http
    ? await (
        await import('../http.js')
      ).serveHttp(gateway, /** @type {typeof values & { http: string }} */ (values))
    : serveStdio(gateway);
  const why = await Promise.race([served.ended, signalled(gateway)]);
  await gateway.close(why);
  await served.close();
  // What a page or a driver left behind keeps nothing alive.
  process.exit(0);
}

/**
 * MCP over stdin and stdout. Whoever reads stdout expects messages, so nothing else is written there.
 * @param {Gateway} gateway
 * @returns {{ ended: Promise<string>, close: () => Promise<void> }} `ended` resolves once the client has disconnected
 */
function serveStdio(gateway) {
  console.log = console.info = console.debug = console.error;
  /** @type {import('@modelcontextprotocol/server').Server | undefined} */
  let server;
  // There is one client.
  const owner = {};
  gateway.listeners.add(() => void server?.sendToolListChanged().catch(() => {}));
  const transport = new StdioServerTransport();
  const served = serve(({ era }) => (server = createServer(gateway, era, { owner })), {
    transport,
    onerror: (error) => log(lineOf(error.message)),
  });
  // It is closed when a pipe is, and when the client sends more than it takes at once.
  const { onclose } = transport;
  const ended = new Promise((resolve) => {
    transport.onclose = () => {
      onclose?.();
      resolve('the client disconnected');
    };
  });
  return { ended, close: () => served.close() };
}

/** @param {Gateway} gateway @returns {Promise<string>} which signal came; a second one ends the process at once */
function signalled(gateway) {
  return new Promise((resolve) => {
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
      process.once(signal, () => {
        resolve(`the gateway was ended by ${signal}`);
        process.once(signal, () => {
          gateway.kill();
          process.exit(1);
        });
      });
    }
    process.once('uncaughtException', (error) => {
      log(`failed: ${lineOf(error.stack, 2000)}`);
      gateway.kill();
      process.exit(1);
    });
  });
}
