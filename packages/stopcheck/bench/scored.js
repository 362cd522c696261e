/**
 * The implementations that are scored. Commands run in `build/scored/FOLDER`, in which the packages
 * are installed. In texts, these stand for what is known when it runs:
 *
 * - `{port}`: a free port, on which `serve` listens
 * - `{model}`: the port of the model of fake-model.mjs, which is started if this is named
 * - `{chromium}`: the path of the browser
 * - `{bench}`, `{repository}`: these folders
 *
 * Placeholders of stopcheck itself are left to it.
 *
 * @typedef {object} Scored
 * @property {string} name of the row
 * @property {string} [package] of npm; `name` by default; '' if it is not one
 * @property {string} version
 * @property {Record<string, string>} [packages] that it needs besides
 * @property {'mcp' | 'a2a' | 'acp' | 'abp' | 'webmcp'} protocol
 * @property {string} how the client reaches it
 * @property {string} [server] of bench/servers, copied into the folder
 * @property {Record<string, string>} [files] written into the folder
 * @property {Record<string, string>} [copies] paths in the repository of files of the folder
 * @property {string[]} [serve] the command of a server
 * @property {string} [address] of what is checked
 * @property {string[]} [command] of what is checked
 * @property {Record<string, string>} [env] of both commands
 * @property {string} [tool]
 * @property {object} [args] of the tool
 * @property {string} [text] for agents
 * @property {string[]} [options] of stopcheck
 * @property {Record<string, string>} [without] presses that are left out, and why
 * @property {string} [note] that explains the row
 */

const ZOD = { zod: '4.6.7' };
const STEPS = { tool: 'slow', args: { url: '{witness}', steps: 8 } };
/** Lines in a file, one each 250 ms, by a shell. */
const LINES = 'for i in 1 2 3 4 5 6 7 8; do echo $i >> {file}; sleep 0.25; done';
const HTTP = { how: 'HTTP', address: 'http://127.0.0.1:{port}/mcp' };

const SDK2 = { '@modelcontextprotocol/node': '2.1.2', ...ZOD };
const TMCP = {
  '@tmcp/adapter-zod': '0.1.7',
  '@tmcp/transport-http': '0.9.0',
  '@tmcp/transport-stdio': '0.5.0',
  '@remix-run/node-fetch-server': '0.14.2',
  ...ZOD,
};
const GZIP = {
  tool: 'gzip-file-as-resource',
  args: { name: 'a.gz', data: '{witness:2000}', outputType: 'resource' },
};
/** The first call starts the browser, and its long pause says nothing of the others. */
const BROWSER = { options: ['--quiet', '1000'] };
const NAVIGATE = {
  env: { DOCKER_CONTAINER: '1', PUPPETEER_EXECUTABLE_PATH: '{chromium}' },
  ...BROWSER,
  tool: 'puppeteer_navigate',
  args: { url: '{witness:2000}' },
};
/** A proxy before a server on the SDK. */
const PROXY = {
  packages: { '@modelcontextprotocol/sdk': '1.32.2', ...ZOD },
  protocol: /** @type {const} */ ('mcp'),
  server: 'mcp-sdk-1.mjs',
};
const BEHIND =
  'The server behind it, over stdio, is that of the rows of `@modelcontextprotocol/sdk`.';
const SUPERGATEWAY = [
  'node',
  'node_modules/supergateway/dist/index.js',
  '--stdio',
  'node mcp-sdk-1.mjs',
  '--outputTransport',
  'streamableHttp',
  '--logLevel',
  'none',
];

const A2A = {
  protocol: /** @type {const} */ ('a2a'),
  how: 'HTTP',
  address: 'http://127.0.0.1:{port}/',
};
/** For agents of the model. */
const RUN_LINES = `run \`${LINES}\``;
const RUN_FETCH = 'run `{witness}`';
const GEMINI = {
  GEMINI_API_KEY: 'none',
  GEMINI_MODEL: 'gemini-2.5-flash',
  GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:{model}',
};
const CODEX = [
  'model = "fake"',
  'model_provider = "fake"',
  'approval_policy = "never"',
  'sandbox_mode = "danger-full-access"',
  '[model_providers.fake]',
  'name = "Fake"',
  'base_url = "http://127.0.0.1:{model}/v1"',
  'env_key = "FAKE_KEY"',
  'wire_api = "responses"',
];
const CODEX_ROW = {
  package: '@zed-industries/codex-acp',
  version: '0.16.0',
  protocol: /** @type {const} */ ('acp'),
  how: 'stdio',
  command: ['node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp'],
  env: { FAKE_KEY: 'none', OPENAI_API_KEY: 'none' },
  text: RUN_LINES,
};
/** So that the page has the polyfill. */
const NO_NATIVE = ['--browser-arg=--disable-features=WebMCP,WebMCPTesting'];
const DEAF =
  'A stop ends the call of the client, and does not reach the tool: `execute` gets no signal. WebMCP of the browser is off.';
const UNREACHED =
  'It takes `notifications/cancelled` from the SDK, and looks for an entry that it never makes: `this.abortSignal` does not fire.';
const ONE_PAGE =
  'All calls share one page, so that calls at the same time end each other. Stop could not be pressed with neighbours.';
const OURS = 'this repository';
const APP = {
  'abp.html': 'packages/stopcheck/tests/servers/pages/abp.html',
  'work.js': 'packages/stopcheck/tests/servers/pages/work.js',
  'abp-bridge.bundle.js': 'dist/page/abp-bridge.bundle.js',
};
/** @param {string} name of a page with the WebMCP tool */
const webmcpPage = (name) => ({
  'page.html': `packages/stopcheck/bench/servers/pages/${name}.html`,
  'slow-tool.js': 'packages/stopcheck/bench/servers/pages/slow-tool.js',
});
const APP_STEPS = { tool: 'slow', args: { url: '{witness}', steps: 8, step: 250 } };

/** @type {Scored[]} */
export const SCORED = [
  {
    name: '@modelcontextprotocol/sdk, stdio',
    package: '@modelcontextprotocol/sdk',
    version: '1.32.2',
    packages: ZOD,
    protocol: 'mcp',
    how: 'stdio',
    server: 'mcp-sdk-1.mjs',
    command: ['node', 'mcp-sdk-1.mjs'],
    ...STEPS,
    note: 'The transport for stdio does not notice the end of its input: the program works until the client ends it.',
  },
  {
    name: '@modelcontextprotocol/sdk, HTTP',
    package: '@modelcontextprotocol/sdk',
    version: '1.32.2',
    packages: ZOD,
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-sdk-1.mjs',
    serve: ['node', 'mcp-sdk-1.mjs', '{port}'],
    ...STEPS,
  },
  {
    name: 'fetch-mcp',
    version: '0.0.5',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/fetch-mcp/cli.js'],
    tool: 'fetch_url',
    args: { url: '{witness:2000}', raw: true },
  },
  {
    name: 'mcp-server-commands',
    version: '0.5.0',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/mcp-server-commands/build/index.js'],
    tool: 'run_command',
    args: { command: LINES },
  },
  {
    name: '@modelcontextprotocol/server, stdio',
    package: '@modelcontextprotocol/server',
    version: '2.4.0',
    packages: SDK2,
    protocol: 'mcp',
    how: 'stdio',
    server: 'mcp-sdk-2.mjs',
    command: ['node', 'mcp-sdk-2.mjs'],
    ...STEPS,
  },
  {
    name: '@modelcontextprotocol/server, HTTP, 2026-07-28',
    package: '@modelcontextprotocol/server',
    version: '2.4.0',
    packages: SDK2,
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-sdk-2.mjs',
    serve: ['node', 'mcp-sdk-2.mjs', '{port}'],
    ...STEPS,
    options: ['--revision', '2026-07-28'],
  },
  {
    name: '@modelcontextprotocol/server, HTTP, 2025-11-25',
    package: '@modelcontextprotocol/server',
    version: '2.4.0',
    packages: SDK2,
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-sdk-2.mjs',
    serve: ['node', 'mcp-sdk-2.mjs', '{port}'],
    ...STEPS,
    note: '`createMcpHandler` answers each request of this revision by a server of its own, which a later cancel does not reach.',
  },
  {
    name: '@modelcontextprotocol/server-everything, stdio',
    package: '@modelcontextprotocol/server-everything',
    version: '2026.8.31',
    protocol: 'mcp',
    how: 'stdio',
    command: [
      'node',
      'node_modules/@modelcontextprotocol/server-everything/dist/index.js',
      'stdio',
    ],
    ...GZIP,
  },
  {
    name: '@modelcontextprotocol/server-everything, HTTP',
    package: '@modelcontextprotocol/server-everything',
    version: '2026.8.31',
    protocol: 'mcp',
    ...HTTP,
    serve: [
      'node',
      'node_modules/@modelcontextprotocol/server-everything/dist/index.js',
      'streamableHttp',
    ],
    env: { PORT: '{port}' },
    ...GZIP,
  },
  {
    name: '@tokenizin/mcp-npx-fetch',
    version: '1.0.0',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@tokenizin/mcp-npx-fetch/dist/index.js'],
    tool: 'fetch_html',
    args: { url: '{witness:2000}' },
  },
  {
    name: '@kazuph/mcp-fetch',
    version: '1.6.3',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@kazuph/mcp-fetch/dist/index.js'],
    env: { MCP_FETCH_DISABLE_SSRF_GUARD: '1' },
    tool: 'imageFetch',
    args: { url: '{witness:2000}', images: false, raw: true },
  },
  {
    name: '@mcp-get-community/server-curl',
    version: '0.1.0',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@mcp-get-community/server-curl/dist/index.js'],
    tool: 'curl',
    args: { url: '{witness:2000}' },
  },
  {
    name: '@agent-infra/mcp-server-commands',
    version: '1.2.18',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@agent-infra/mcp-server-commands/dist/index.cjs'],
    tool: 'run_command',
    args: { command: LINES },
  },
  {
    name: 'mcp-server-code-runner',
    version: '0.1.8',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/mcp-server-code-runner/dist/cli.js'],
    tool: 'run-code',
    args: { languageId: 'shellscript', code: LINES },
    note: 'All calls write their code into one file, so that calls at the same time run the code of one of them. Stop could not be pressed with neighbours.',
  },
  {
    name: '@wonderwhy-er/desktop-commander, start_process',
    package: '@wonderwhy-er/desktop-commander',
    version: '0.2.52',
    protocol: 'mcp',
    how: 'stdio',
    command: [
      'node',
      'node_modules/@wonderwhy-er/desktop-commander/dist/index.js',
      '--no-onboarding',
    ],
    tool: 'start_process',
    args: { command: LINES, timeout_ms: 4000 },
    note: 'The process that `start_process` starts is meant to outlive the call: other tools read its output and end it.',
  },
  {
    name: '@wonderwhy-er/desktop-commander, read_file',
    package: '@wonderwhy-er/desktop-commander',
    version: '0.2.52',
    protocol: 'mcp',
    how: 'stdio',
    command: [
      'node',
      'node_modules/@wonderwhy-er/desktop-commander/dist/index.js',
      '--no-onboarding',
    ],
    tool: 'read_file',
    args: { path: '{witness:2000}', isUrl: true },
  },
  {
    name: 'chrome-devtools-mcp',
    version: '1.11.0',
    protocol: 'mcp',
    how: 'stdio',
    command: [
      'node',
      'node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js',
      '--headless',
      '--isolated',
      '--executablePath={chromium}',
      '--chromeArg=--no-sandbox',
      '--no-usage-statistics',
    ],
    ...BROWSER,
    tool: 'evaluate_script',
    args: {
      pageId: 1,
      function:
        "async () => { for (let i = 0; i < 8; i++) { await fetch('{witness}', { mode: 'no-cors' }); await new Promise((r) => setTimeout(r, 250)); } return 1; }",
    },
  },
  {
    name: '@playwright/mcp',
    version: '0.0.83',
    protocol: 'mcp',
    how: 'stdio',
    command: [
      'node',
      'node_modules/@playwright/mcp/cli.js',
      '--headless',
      '--isolated',
      '--no-sandbox',
      '--executable-path={chromium}',
    ],
    ...BROWSER,
    tool: 'browser_run_code_unsafe',
    args: {
      code: "async (page) => { for (let i = 0; i < 8; i++) { await page.goto('{witness}'); await page.waitForTimeout(250); } return 1; }",
    },
    note: ONE_PAGE,
  },
  {
    name: '@modelcontextprotocol/server-puppeteer',
    version: '2025.5.12',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@modelcontextprotocol/server-puppeteer/dist/index.js'],
    ...NAVIGATE,
    note: ONE_PAGE,
  },
  {
    name: 'puppeteer-mcp-server',
    version: '0.7.2',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/puppeteer-mcp-server/dist/index.js'],
    ...NAVIGATE,
    note: ONE_PAGE,
  },
  {
    name: '@executeautomation/playwright-mcp-server',
    version: '1.0.12',
    protocol: 'mcp',
    how: 'stdio',
    command: ['node', 'node_modules/@executeautomation/playwright-mcp-server/dist/index.js'],
    env: { CHROME_EXECUTABLE_PATH: '{chromium}' },
    ...BROWSER,
    tool: 'playwright_navigate',
    args: { headless: true, url: '{witness:2000}' },
    note: ONE_PAGE,
  },
  {
    name: 'fastmcp, stdio',
    package: 'fastmcp',
    version: '4.20.16',
    packages: ZOD,
    protocol: 'mcp',
    how: 'stdio',
    server: 'fastmcp.mjs',
    command: ['node', 'fastmcp.mjs'],
    ...STEPS,
  },
  {
    name: 'tmcp, stdio',
    package: 'tmcp',
    version: '1.20.0',
    packages: TMCP,
    protocol: 'mcp',
    how: 'stdio',
    server: 'tmcp.mjs',
    command: ['node', 'tmcp.mjs'],
    ...STEPS,
    note: '`server.ctx.signal` is undefined with the transport for stdio.',
  },
  {
    name: 'tmcp, HTTP',
    package: 'tmcp',
    version: '1.20.0',
    packages: TMCP,
    protocol: 'mcp',
    ...HTTP,
    server: 'tmcp.mjs',
    serve: ['node', 'tmcp.mjs', '{port}'],
    ...STEPS,
    note: '`server.ctx.signal` fires when the request is closed, and not by `notifications/cancelled`, which the client sends.',
  },
  {
    name: 'mcp-lite',
    version: '0.10.0',
    packages: { ...ZOD, hono: '4.13.19', '@hono/node-server': '1.19.19' },
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-lite.mjs',
    serve: ['node', 'mcp-lite.mjs', '{port}'],
    ...STEPS,
    note: 'Its handlers get no signal, by its documentation and its types.',
  },
  {
    name: 'mcp-framework, stdio',
    package: 'mcp-framework',
    version: '0.2.22',
    packages: { zod: '3.25.76' },
    protocol: 'mcp',
    how: 'stdio',
    server: 'mcp-framework.mjs',
    command: ['node', 'mcp-framework.mjs'],
    ...STEPS,
    note: UNREACHED,
  },
  {
    name: 'mcp-framework, HTTP',
    package: 'mcp-framework',
    version: '0.2.22',
    packages: { zod: '3.25.76' },
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-framework.mjs',
    serve: ['node', 'mcp-framework.mjs', '{port}'],
    ...STEPS,
    note: UNREACHED,
  },
  {
    name: 'mcp-use',
    version: '2.5.2',
    packages: ZOD,
    protocol: 'mcp',
    ...HTTP,
    server: 'mcp-use.mjs',
    serve: ['node', 'mcp-use.mjs', '{port}'],
    ...STEPS,
    note: '`ctx.signal` fires when the connection drops, and not by `notifications/cancelled`, which the client sends.',
  },
  {
    name: 'supergateway, stateless',
    package: 'supergateway',
    version: '4.0.0',
    ...PROXY,
    ...HTTP,
    serve: [...SUPERGATEWAY, '--port', '{port}'],
    ...STEPS,
    note: `Without \`--stateful\`, each request has a program of its own, which a later cancel does not reach. ${BEHIND}`,
  },
  {
    name: 'supergateway, --stateful',
    package: 'supergateway',
    version: '4.0.0',
    ...PROXY,
    ...HTTP,
    serve: [...SUPERGATEWAY, '--stateful', '--port', '{port}'],
    ...STEPS,
    note: BEHIND,
  },
  {
    name: 'mcp-proxy',
    version: '6.7.19',
    ...PROXY,
    ...HTTP,
    serve: [
      'node',
      'node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs',
      '--host',
      '127.0.0.1',
      '--port',
      '{port}',
      '--',
      'node',
      'mcp-sdk-1.mjs',
    ],
    ...STEPS,
    note: BEHIND,
  },
  {
    name: 'mcp-remote',
    version: '0.15.1',
    ...PROXY,
    how: 'stdio',
    serve: ['node', 'mcp-sdk-1.mjs', '{port}'],
    command: [
      'node',
      'node_modules/mcp-remote/dist/proxy.js',
      'http://127.0.0.1:{port}/mcp',
      '--allow-http',
      '--transport',
      'http-only',
    ],
    ...STEPS,
    note: 'The server behind it, over HTTP with sessions, is that of the rows of `@modelcontextprotocol/sdk`. When the line is closed, that server gets no cancel.',
  },
  {
    name: 'fastmcp, HTTP',
    package: 'fastmcp',
    version: '4.20.16',
    packages: ZOD,
    protocol: 'mcp',
    ...HTTP,
    server: 'fastmcp.mjs',
    serve: ['node', 'fastmcp.mjs', '{port}'],
    ...STEPS,
  },
  {
    name: '@a2a-js/sdk',
    version: '1.3.0',
    packages: { express: '5.3.0' },
    server: 'a2a-sdk.mjs',
    serve: ['node', 'a2a-sdk.mjs', '{port}'],
    ...A2A,
    text: '{witness}',
  },
  {
    name: '@google/adk',
    version: '2.0.0',
    packages: { express: '5.3.0' },
    server: 'google-adk.mjs',
    serve: ['node', 'google-adk.mjs', '{port}'],
    ...A2A,
    text: '{witness}',
    note: 'It answers a cancel with an error: cancellation is not supported.',
  },
  {
    name: '@google/gemini-cli-a2a-server',
    version: '0.25.2',
    files: {
      'home/.gemini/settings.json': JSON.stringify({
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    },
    serve: ['node', 'node_modules/@google/gemini-cli-a2a-server/dist/a2a-server.mjs'],
    env: {
      ...GEMINI,
      CODER_AGENT_PORT: '{port}',
      // Nobody is asked for permission.
      GEMINI_YOLO_MODE: 'true',
    },
    ...A2A,
    text: RUN_LINES,
    options: ['--input-ends'],
    note: 'It ends each turn in the state `input-required`. Its task can then still be canceled, so that answers differ after the press `after`.',
  },
  {
    name: '@voltagent/a2a-server',
    version: '2.0.3',
    packages: {
      '@ai-sdk/openai-compatible': '2.0.92',
      '@voltagent/core': '2.10.0',
      '@voltagent/server-hono': '2.0.14',
      ...ZOD,
    },
    server: 'voltagent.mjs',
    serve: ['node', 'voltagent.mjs', '{port}', '{model}'],
    ...A2A,
    text: RUN_FETCH,
    note: 'Each event of its stream begins with U+001E, so that the official client cannot read it.',
  },
  {
    name: '@mastra/core',
    version: '1.71.0',
    packages: {
      '@hono/node-server': '1.19.19',
      '@mastra/hono': '1.7.9',
      hono: '4.13.19',
      ...ZOD,
    },
    server: 'mastra.mjs',
    serve: ['node', 'mastra.mjs', '{port}', '{model}'],
    ...A2A,
    text: RUN_FETCH,
  },
  {
    name: '@agentclientprotocol/sdk 1.8.0, its example agent',
    package: '@agentclientprotocol/sdk',
    version: '1.8.0',
    packages: ZOD,
    protocol: 'acp',
    how: 'stdio',
    command: ['node', 'node_modules/@agentclientprotocol/sdk/dist/examples/agent.js'],
    text: 'hello',
    note: 'It does nothing that can be seen from outside: only its words are scored.',
  },
  {
    name: '@agentclientprotocol/sdk',
    version: '2.4.0',
    protocol: 'acp',
    how: 'stdio',
    server: 'acp-sdk.mjs',
    command: ['node', 'acp-sdk.mjs'],
    text: '{witness}',
  },
  {
    name: '@qwen-code/qwen-code',
    version: '0.24.4',
    protocol: 'acp',
    how: 'stdio',
    command: ['node', 'node_modules/@qwen-code/qwen-code/cli.js', '--acp', '--auth-type', 'openai'],
    env: {
      OPENAI_BASE_URL: 'http://127.0.0.1:{model}/v1',
      OPENAI_API_KEY: 'none',
      OPENAI_MODEL: 'fake',
      QWEN_TELEMETRY_ENABLED: 'false',
    },
    text: RUN_LINES,
  },
  {
    name: '@google/gemini-cli',
    version: '0.61.0',
    files: {
      'home/.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    },
    protocol: 'acp',
    how: 'stdio',
    command: ['node', 'node_modules/@google/gemini-cli/bundle/gemini.js', '--acp'],
    env: GEMINI,
    text: RUN_LINES,
  },
  {
    name: 'opencode-ai',
    version: '1.18.33',
    protocol: 'acp',
    how: 'stdio',
    command: ['node_modules/opencode-linux-x64/bin/opencode', 'acp'],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        share: 'disabled',
        model: 'fake/fake',
        small_model: 'fake/fake',
        permission: { bash: 'ask' },
        provider: {
          fake: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Fake',
            options: { baseURL: 'http://127.0.0.1:{model}/v1', apiKey: 'none' },
            models: {
              fake: { name: 'fake', tool_call: true, limit: { context: 100_000, output: 4000 } },
            },
          },
        },
      }),
    },
    text: RUN_LINES,
  },
  {
    name: '@zed-industries/codex-acp, exec_command',
    files: { 'home/.codex/config.toml': CODEX.join('\n') },
    ...CODEX_ROW,
    note: `The model calls \`exec_command\`, Codex's default, whose process can outlive its call.`,
  },
  {
    name: '@zed-industries/codex-acp, shell_command',
    files: {
      'home/.codex/config.toml': [...CODEX, '[features]', 'unified_exec = false'].join('\n'),
    },
    ...CODEX_ROW,
    note: `The feature \`unified_exec\` is off.`,
  },
  {
    name: 'WebMCP of Chromium',
    package: '',
    version: '{chromium}',
    protocol: 'webmcp',
    how: 'a page',
    copies: webmcpPage('native'),
    address: 'page.html',
    ...STEPS,
  },
  {
    name: '@mcp-b/webmcp-polyfill',
    version: '5.1.0',
    protocol: 'webmcp',
    how: 'a page',
    copies: webmcpPage('webmcp-polyfill'),
    address: 'page.html',
    options: NO_NATIVE,
    ...STEPS,
    note: DEAF,
  },
  {
    name: '@mcp-b/global',
    version: '5.1.0',
    protocol: 'webmcp',
    how: 'a page',
    copies: webmcpPage('mcp-b-global'),
    address: 'page.html',
    options: NO_NATIVE,
    ...STEPS,
    note: DEAF,
  },
  {
    name: 'the pattern of the ABP documentation',
    package: '',
    version: '0.1',
    protocol: 'abp',
    how: 'a page',
    copies: { 'page.html': 'packages/stopcheck/bench/servers/pages/abp-docs.html' },
    address: 'page.html',
    ...STEPS,
    note: 'A cancelled call is answered with `{ success: false, cancelled: true }`. To the client, abp-bridge, this does not say what became of the work.',
  },
  {
    name: 'abp-bridge',
    package: '',
    version: OURS,
    protocol: 'abp',
    how: 'a page',
    copies: APP,
    address: 'abp.html',
    ...APP_STEPS,
  },
  {
    name: 'abp-bridge-gateway',
    package: '',
    version: OURS,
    protocol: 'mcp',
    how: 'stdio',
    copies: APP,
    serve: ['node', '{bench}/servers/folder.mjs', '{port}'],
    command: [
      'node',
      '{repository}/packages/gateway/src/main.js',
      'mcp',
      'http://127.0.0.1:{port}/abp.html',
      '--temporary',
      '--browser={chromium}',
      '--browser-arg=--no-sandbox',
    ],
    ...APP_STEPS,
    note: 'It serves the app of the row `abp-bridge`.',
  },
  {
    name: '@abp-bridge/a2a',
    package: '',
    version: OURS,
    serve: ['node', '{bench}/servers/our-a2a.mjs', '{port}'],
    ...A2A,
    text: '{witness}',
  },
  {
    name: '@abp-bridge/rpc',
    package: '',
    version: OURS,
    protocol: 'acp',
    how: 'stdio',
    command: ['node', '{bench}/servers/our-acp.mjs'],
    text: '{witness}',
  },
];
