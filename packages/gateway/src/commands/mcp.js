/** `mcp`: an MCP server on stdio, or over HTTP. */
import { StdioServerTransport, serveStdio as serve } from '@modelcontextprotocol/server/stdio';
import { App } from '../app.js';
import { log, seconds, usageError } from '../errors.js';
import { Gateway } from '../gateway.js';
import { McpServer } from '../mcp-server.js';
import { unguessable } from '../runs.js';
import { signalled } from '../signals.js';
import { prefixOf } from '../tools.js';
import { lineOf } from '../texts.js';
import { deferred } from '../waiting.js';

/** Well below the shortest time limit of a host, which is a minute. */
const DEFAULT_PATIENCE = 45_000;

/**
 * The apps by their prefixes: `writer=https://writer.example/`, or a prefix made from the host.
 * @type {(...given: Parameters<import('../commands.js').Execute>)
 *   => import('../gateway.js').Named[]}
 */
function targetsOf(addresses, values, context) {
  const several = addresses.length > 1;
  /** @type {string[]} */
  const prefixes = [];
  return addresses.map((/** @type {string} */ text) => {
    const [, name, address = text] = /^([A-Za-z0-9_]+)=(.+)$/.exec(text) ?? [];
    const app = new App(address, values, context);
    const prefix = several || name ? prefixOf(name ?? app.url.host) : '';
    // Otherwise one app could name a capability so that its tool would be taken for the other's.
    const other = prefixes.find((each) => each.startsWith(prefix) || prefix.startsWith(each));
    if (other !== undefined)
      throw usageError(
        `The prefixes ${other} and ${prefix} begin with one another: name the apps differently, as in one=${address}`,
      );
    prefixes.push(prefix);
    return { app, prefix, ...(several && { label: app.url.host }) };
  });
}

/** @type {import('../commands.js').Execute} */
export async function execute(addresses, values, context) {
  if (values.profile && addresses.length > 1)
    throw usageError('--profile is for one app: two cannot share a profile');
  const patience = seconds(values.patience, 'patience') ?? DEFAULT_PATIENCE;
  const gateway = new Gateway(targetsOf(addresses, values, context), {
    patience: patience || Infinity,
    out: values.out,
    log,
    name: 'abp-bridge-gateway',
    version: context.version,
  });
  const { http } = values;
  const served = http
    ? await (await import('../http.js')).serveHttp(gateway, { ...values, http })
    : serveStdio(gateway);
  process.once('uncaughtException', (error) => {
    log(`failed: ${lineOf(error.stack, 2000)}`);
    process.exit(1);
  });
  const ended = signalled().then((signal) => `the gateway was ended by ${signal}`);
  const why = await Promise.race([served.ended, ended]);
  await gateway.close(why);
  await served.close();
  // A client that does not read must not delay the exit.
  process.exit(0);
}

/**
 * MCP over stdin and stdout. Clients expect messages on stdout, so nothing else is written there.
 * @param {Gateway} gateway
 */
function serveStdio(gateway) {
  console.log = console.info = console.debug = console.error;
  /** @type {McpServer | undefined} */
  let server;
  // There is one client.
  const owner = unguessable();
  gateway.listeners.add(() => void server?.sendToolListChanged().catch(() => {}));
  const transport = new StdioServerTransport();
  const served = serve(({ era }) => (server = new McpServer(gateway, era, { owner })), {
    transport,
    onerror: (error) => log(lineOf(error.message)),
  });
  // It is closed with a pipe, and when the client sends more at once than allowed.
  const { onclose } = transport;
  /** @type {ReturnType<typeof deferred<string>>} */
  const { promise: ended, resolve } = deferred();
  transport.onclose = () => {
    onclose?.();
    resolve('the client disconnected');
  };
  return { ended, close: () => served.close() };
}
