/**
 * The entries of the packages by the names under which they are imported, as one looks for them: what most people need, and after it the
 * neighbours, of which a project needs those that it has chosen. The site lists them so. A test fails if one is missing.
 * @type {{ title: string, says: string, entries: Record<string, string> }[]}
 */
export const GROUPS = [
  {
    title: 'Apps and agents',
    says: 'Most need only this one.',
    entries: {
      'abp-bridge': 'the two sides of a call: `expose` an app, `connect` to it',
    },
  },
  {
    title: 'Ways to an app',
    says: 'The app is on a server, in another window, or in a part of a browser extension.',
    entries: {
      'abp-bridge/transports': 'WebSockets, windows and the ports of browser extensions',
      'abp-bridge/discover': 'whether there is an app at an address',
    },
  },
  {
    title: 'Workers',
    says: 'Work that would block the page, and is stopped even if it never pauses.',
    entries: { 'abp-bridge/pool': 'tasks for a pool of workers' },
  },
  {
    title: 'Keys that outlive the app',
    says: 'No work is done twice, also when the app was restarted in between.',
    entries: { 'abp-bridge/keys': 'kept in a browser, or in Node' },
  },
  {
    title: 'Frameworks',
    says: 'A connection and a call that end with their component.',
    entries: {
      'abp-bridge/react': 'hooks',
      'abp-bridge/vue': 'composables',
      'abp-bridge/svelte': 'stores',
    },
  },
  {
    title: 'Builds',
    says: 'What a page is built with.',
    entries: { 'abp-bridge/vite': 'a plugin for Vite: the core is asked for in time' },
  },
  {
    title: 'Neighbours: tools',
    says: 'Packages of their own, for who develops an app or drives one.',
    entries: {
      '@abp-bridge/inspector': 'the element `<abp-inspector>`: calls and messages, live',
      '@abp-bridge/inspector/recorder': 'writes down what happened, to be played again',
      '@abp-bridge/automation': 'apps in pages that Puppeteer or Playwright drives',
    },
  },
  {
    title: 'Neighbours: other protocols',
    says: 'Packages of their own. You need none of these to call an app of your own.',
    entries: {
      '@abp-bridge/rpc': 'JSON-RPC: ACP, LSP and MCP',
      '@abp-bridge/rpc/adapters/acp': 'our transports for the ACP SDK',
      '@abp-bridge/rpc/adapters/mcp': 'our transports for the MCP SDKs',
      '@abp-bridge/mcp-apps': 'MCP Apps: views, and hosts that show them',
      '@abp-bridge/mcp-apps/view': 'MCP Apps: a view, in one file',
      '@abp-bridge/mcp-apps/app': 'MCP Apps: a view that is an app, too, in one file',
      '@abp-bridge/mcp-apps/sandbox': 'MCP Apps: the page between a host and a view',
      '@abp-bridge/webmcp': 'WebMCP: an app’s capabilities as tools of its page',
      '@abp-bridge/webmcp/settled': 'WebMCP: what became of the calls of other people’s tools',
      '@abp-bridge/webmcp/page-tools': 'WebMCP: the tools of a page that a program drives',
      '@abp-bridge/a2a': 'A2A: tasks of agents',
      '@abp-bridge/a2a-store': 'A2A: tasks that outlive their process, in SQLite or NATS',
      '@abp-bridge/a2a/store': 'what these backends are made of',
      '@abp-bridge/a2a/tasks': 'the table of tasks, without A2A’s messages',
      '@abp-bridge/a2a/adapters/a2a-sdk': 'our tasks behind the A2A SDK',
    },
  },
  {
    title: 'For packages that stand on the core',
    says: 'The neighbours are made of it. It is for packages of the same version, and may change in each.',
    entries: {
      'abp-bridge/driver': 'the machine that drives a core, transports, and what both need',
    },
  },
];
