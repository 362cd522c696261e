/**
 * The measured servers: the gateway in both versions of MCP, and the nearest alternative for the
 * same app.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectClient } from '../tests/support/clients.js';

/** Too heavy for a dependency. */
const DEVTOOLS = 'chrome-devtools-mcp@1.11.0';
const folder = fileURLToPath(new URL('../../../build/peers', import.meta.url));

/**
 * @typedef {object} Peer An MCP server with a connected client, before any request.
 * @property {Awaited<ReturnType<typeof connectClient>>} mcp
 * @property {() => Promise<void>} open makes the app ready to be called
 * @property {(capability: string, params: object, options?: object) => Promise<any>} call
 */

/**
 * @param {string} url
 * @param {import('../tests/support/clients.js').Kind} kind
 * @returns {Promise<Peer>}
 */
async function gateway(url, kind) {
  const mcp = await connectClient(kind, { args: ['mcp', url, '--temporary'] });
  return {
    mcp,
    open: async () => {},
    call: (name, params, options) => mcp.call(name.replace('.', '_'), params, options),
  };
}

/**
 * Evaluates a script in the page, which calls the page's own `window.abp`.
 * @param {string} url
 * @returns {Promise<Peer>}
 */
async function devtools(url) {
  const [name] = DEVTOOLS.split('@');
  const program = join(folder, 'node_modules', name, 'build/src/bin', `${name}.js`);
  if (!existsSync(program)) {
    const options = ['--silent', '--no-audit', '--no-fund', '--prefix', folder];
    execFileSync('npm', ['install', ...options, DEVTOOLS], { stdio: 'inherit' });
  }
  const browser = ['--headless', '--isolated', '--executablePath'];
  browser.push(process.env.CHROMIUM ?? '/usr/bin/chromium');
  // The gateway's browser has the same flags.
  for (const flag of ['--disable-gpu', '--disable-sync', '--disable-background-networking']) {
    browser.push(`--chromeArg=${flag}`);
  }
  if (process.getuid?.() === 0) browser.push('--chromeArg=--no-sandbox');
  const args = [program, ...browser, '--no-usage-statistics', '--no-performance-crux'];
  const mcp = await connectClient('2.x', { command: { command: process.execPath, args } });
  let pageId;
  const evaluate = async (source, options) => {
    const params = { pageId, function: source, waitForStableDom: false };
    const { isError, content } = await mcp.call('evaluate_script', params, options);
    if (isError) throw new Error(content[0].text);
    return content;
  };
  return {
    mcp,
    async open() {
      const opened = (await mcp.call('new_page', { url })).content[0].text;
      pageId = Number(/^(\d+): .*\[selected\]/m.exec(opened)[1]);
      const agent = { protocolVersion: '0.1', agent: { name: 'bench', version: '1' } };
      await evaluate(`async () => Boolean(await window.abp.initialize(${JSON.stringify(agent)}))`);
    },
    call: (name, params, options) =>
      evaluate(
        `async () => (await window.abp.call('${name}', ${JSON.stringify(params)})).data`,
        options,
      ),
  };
}

/**
 * By name; the others are compared with the first.
 * @type {Record<string, (url: string) => Promise<Peer>>}
 */
export const PEERS = {
  'gateway, 2025-11-25': (url) => gateway(url, '2.x'),
  'gateway, 2026-07-28': (url) => gateway(url, '2.x modern'),
  'chrome-devtools-mcp 1.11.0': devtools,
};
