/**
 * The pages, in the order in which the menu lists them. A test fails if a document in docs/ is missing.
 * @type {{ title: string, pages: { file: string, name: string }[] }[]}
 */
export const NAVIGATION = [
  {
    title: 'Begin',
    pages: [
      { file: 'README.md', name: 'Overview' },
      { file: 'docs/tutorial.md', name: 'Tutorial' },
      { file: 'docs/guides.md', name: 'All guides' },
      { file: 'docs/site/pages/examples.njk', name: 'Examples to try' },
      { file: 'docs/apps.md', name: 'Writing an app' },
      { file: 'docs/agents.md', name: 'Writing an agent' },
      { file: 'docs/recipes.md', name: 'Recipes' },
      { file: 'docs/errors.md', name: 'Errors' },
      { file: 'docs/migration.md', name: 'From other libraries' },
    ],
  },
  {
    title: 'Calls',
    pages: [
      { file: 'docs/streams.md', name: 'Streams' },
      { file: 'docs/keys.md', name: 'Keys that outlive the app' },
      { file: 'docs/workers.md', name: 'Workers' },
      { file: 'docs/typescript.md', name: 'TypeScript' },
      { file: 'docs/frameworks.md', name: 'React, Vue, Svelte' },
      { file: 'docs/tracing.md', name: 'Seeing what goes on' },
      { file: 'docs/bundlers.md', name: 'Bundlers, runtimes' },
    ],
  },
  {
    title: 'Reaching apps',
    pages: [
      { file: 'docs/websocket.md', name: 'WebSockets' },
      { file: 'docs/automation.md', name: 'Puppeteer, Playwright' },
      { file: 'docs/discovery.md', name: 'Discovery' },
      { file: 'docs/gateway.md', name: 'Gateway for MCP' },
      { file: 'docs/webmcp.md', name: 'WebMCP' },
      { file: 'docs/mcp-apps.md', name: 'MCP Apps' },
    ],
  },
  {
    title: 'Other protocols',
    pages: [
      { file: 'docs/rpc.md', name: 'JSON-RPC: ACP, LSP, MCP' },
      { file: 'docs/channels.md', name: 'Channels, adapters for SDKs' },
      { file: 'docs/a2a.md', name: 'A2A tasks' },
      { file: 'docs/a2a-fleet.md', name: 'A2A: several processes' },
    ],
  },
  {
    title: 'Reference',
    pages: [
      { file: 'docs/site/pages/api.njk', name: 'API' },
      { file: 'docs/protocol.md', name: 'The protocol' },
      { file: 'docs/states.md', name: 'States' },
      { file: 'docs/c-library.md', name: 'The C library' },
      { file: 'docs/upgrading.md', name: 'Upgrading, where it runs' },
      { file: 'docs/stability.md', name: 'What is stable' },
      { file: 'docs/benchmarks.md', name: 'Benchmarks' },
      { file: 'SECURITY.md', name: 'Security' },
      { file: 'CHANGELOG.md', name: 'Changelog' },
    ],
  },
  {
    title: 'Working on it',
    pages: [
      { file: 'docs/architecture.md', name: 'Architecture' },
      { file: 'CONTRIBUTING.md', name: 'Contributing' },
    ],
  },
];

/**
 * The page that a document becomes. All are in one folder, so that links are relative and the site may be anywhere.
 * @param {string} file
 */
export const pageOf = (file) =>
  file === 'README.md'
    ? 'index.html'
    : `${file
        .replace(/^.*\//, '')
        .replace(/\.\w+$/, '')
        .toLowerCase()}.html`;

/** Where the pages of the API reference are made, one for each entry of the package. */
export const REFERENCE = 'build/reference';

/** The name of an entry's page, without its ending. @param {string} path in the package: `.`, `./websocket` */
export const referenceOf = (path) => `api-${path.slice(2).replaceAll('/', '-') || 'abp-bridge'}`;
