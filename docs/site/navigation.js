/**
 * The pages, in the order in which the menu lists them: the documents of `abp-bridge`, and of each neighbour its README and its
 * documents. A test fails if one is missing. `scripts/site.sh` makes those in `build`.
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
      { file: 'docs/transports.md', name: 'Windows, extensions, transports' },
      { file: 'docs/discovery.md', name: 'Discovery' },
    ],
  },
  {
    title: 'Reference',
    pages: [
      { file: 'docs/site/pages/api.njk', name: 'API' },
      { file: 'docs/protocol.md', name: 'The protocol' },
      { file: 'build/pages/states.md', name: 'States' },
      { file: 'docs/c-library.md', name: 'The C library' },
      { file: 'docs/stability.md', name: 'What is stable, where it runs' },
      { file: 'docs/benchmarks.md', name: 'Benchmarks' },
      { file: 'build/pages/sizes.md', name: 'Sizes' },
      { file: 'SECURITY.md', name: 'Security' },
      { file: 'CHANGELOG.md', name: 'Changelog' },
    ],
  },
  {
    title: 'Neighbours: tools',
    pages: [
      { file: 'packages/inspector/README.md', name: '@abp-bridge/inspector' },
      { file: 'packages/inspector/docs/inspector.md', name: 'Inspector, recordings' },
      { file: 'packages/automation/README.md', name: '@abp-bridge/automation' },
      { file: 'packages/automation/docs/automation.md', name: 'Puppeteer, Playwright' },
      { file: 'packages/gateway/README.md', name: 'abp-bridge-gateway' },
      { file: 'packages/gateway/docs/gateway.md', name: 'Gateway for MCP' },
      { file: 'packages/stopcheck/README.md', name: 'stopcheck' },
      { file: 'packages/stopcheck/docs/stopcheck.md', name: 'What it presses and asks' },
      { file: 'packages/stopcheck/docs/how-to-stop.md', name: 'How to stop, for each protocol' },
    ],
  },
  {
    title: 'Neighbours: other protocols',
    pages: [
      { file: 'packages/rpc/README.md', name: '@abp-bridge/rpc' },
      { file: 'packages/rpc/docs/rpc.md', name: 'JSON-RPC: ACP, LSP, MCP' },
      { file: 'packages/rpc/docs/channels.md', name: 'Channels, adapters for SDKs' },
      { file: 'packages/mcp-apps/README.md', name: '@abp-bridge/mcp-apps' },
      { file: 'packages/mcp-apps/docs/mcp-apps.md', name: 'MCP Apps' },
      { file: 'packages/webmcp/README.md', name: '@abp-bridge/webmcp' },
      { file: 'packages/webmcp/docs/webmcp.md', name: 'WebMCP' },
      { file: 'packages/a2a/README.md', name: '@abp-bridge/a2a' },
      { file: 'packages/a2a/docs/a2a.md', name: 'A2A tasks' },
      { file: 'packages/a2a-store/README.md', name: '@abp-bridge/a2a-store' },
      { file: 'packages/a2a-store/docs/a2a-fleet.md', name: 'A2A: several processes' },
      { file: 'packages/a2a/docs/design.md', name: 'A2A: the rules between processes' },
    ],
  },
  {
    title: 'What stopcheck found',
    pages: [
      { file: 'docs/stopcheck/scores.md', name: 'Scores' },
      { file: 'docs/stopcheck/reports.md', name: 'Reports' },
      { file: 'docs/stopcheck/observations.md', name: 'Observations' },
      {
        file: 'docs/stopcheck/acp-sdk-example-end-turn.md',
        name: 'ACP SDK: end_turn when cancelled',
      },
      {
        file: 'docs/stopcheck/codex-acp-command-goes-on.md',
        name: 'codex-acp: the command goes on',
      },
      {
        file: 'docs/stopcheck/fastmcp-stateless-no-signal.md',
        name: 'fastmcp: no signal without sessions',
      },
      {
        file: 'docs/stopcheck/gemini-cli-a2a-server-shell-goes-on.md',
        name: 'gemini-cli-a2a-server: the shell goes on',
      },
      {
        file: 'docs/stopcheck/mastra-a2a-nonblocking-not-stopped.md',
        name: 'Mastra: the tool goes on',
      },
      { file: 'docs/stopcheck/mcp-b-no-signal.md', name: 'mcp-b: tools without a signal' },
      {
        file: 'docs/stopcheck/mcp-framework-cancel-ignored.md',
        name: 'mcp-framework: cancels are ignored',
      },
      { file: 'docs/stopcheck/mcp-sdk-request-id-0.md', name: 'MCP SDK 1.x: request id 0' },
      { file: 'docs/stopcheck/opencode-webfetch-reads-on.md', name: 'opencode: webfetch reads on' },
      {
        file: 'docs/stopcheck/tmcp-stdio-answers-cancelled-call.md',
        name: 'tmcp: a cancelled request is answered',
      },
      {
        file: 'docs/stopcheck/voltagent-a2a-canceled-becomes-completed.md',
        name: 'VoltAgent: canceled becomes completed',
      },
    ],
  },
  {
    title: 'Working on it',
    pages: [
      { file: 'docs/architecture.md', name: 'Architecture' },
      { file: 'docs/decisions.md', name: 'Decisions' },
      { file: 'CONTRIBUTING.md', name: 'Contributing' },
    ],
  },
];

/** The documents, by their paths from the root; not the pages that are built with the site. */
export const DOCUMENTS = NAVIGATION.flatMap(({ pages }) => pages)
  .map(({ file }) => file)
  .filter((file) => file.endsWith('.md') && !file.startsWith('build/'));

/**
 * The document that a comment or a message names, by its path in the package: `docs/rpc.md`.
 * @param {string} named
 */
export function documentNamed(named) {
  const found = DOCUMENTS.find((file) => file === named || file.endsWith(`/${named}`));
  if (!found) throw new Error(`There is no document ${named}`);
  return found;
}

/**
 * The page that a document becomes. All are in one folder, so that links are relative and the site may be anywhere.
 * @param {string} file
 */
export function pageOf(file) {
  if (file === 'README.md') return 'index.html';
  const name = file
    .replace(/^packages\/(.*)\/README\.md$/, 'package-$1')
    .replace(/^.*\//, '')
    .replace(/\.\w+$/, '');
  return `${name.toLowerCase()}.html`;
}

/** Where the pages of the API reference are made, one for each entry of the packages. */
export const REFERENCE = 'build/reference';

/** The name of an entry's page, without its ending. @param {string} entry as it is imported */
export const referenceOf = (entry) =>
  `api-${entry.replace(/^@?abp-bridge\//, '').replaceAll('/', '.')}`;
