/**
 * The entries of the package, as one looks for them: what most people need, and apart from it what only those need who speak
 * another protocol. README and the site list them so. A test fails if one is missing.
 * @type {{ title: string, says: string, entries: Record<string, string> }[]}
 */
export const GROUPS = [
  {
    title: 'Apps and agents',
    says: 'Most need only this one.',
    entries: {
      '.': 'the two sides of a call: `expose` an app, `connect` to it',
    },
  },
  {
    title: 'WebSocket',
    says: 'The app is on a server, or behind a socket.',
    entries: { './websocket': 'WebSockets as the way between app and agent' },
  },
  {
    title: 'Popups and extensions',
    says: 'The app is in another window, or in a part of a browser extension.',
    entries: {
      './window': 'windows as the way: a popup of a page, or its opener',
      './extension': 'the ports of browser extensions as the way',
    },
  },
  {
    title: 'Workers',
    says: 'Work that would block the page, and is stopped even if it never pauses.',
    entries: { './pool': 'tasks for a pool of workers' },
  },
  {
    title: 'Frameworks',
    says: 'A connection and a call that end with their component.',
    entries: {
      './react': 'hooks',
      './vue': 'composables',
      './svelte': 'stores',
    },
  },
  {
    title: 'Builds',
    says: 'What a page is built with.',
    entries: { './vite': 'a plugin for Vite: the core is asked for in time' },
  },
  {
    title: 'Inspector',
    says: 'See what goes on, and keep it.',
    entries: {
      './inspector': 'the element `<abp-inspector>`: calls and messages, live',
      './recorder': 'writes down what happened, to be played again',
      './warnings': 'the console’s warnings, to be silenced or sent elsewhere',
    },
  },
  {
    title: 'Keys that outlive the app',
    says: 'No work is done twice, also when the app was restarted in between.',
    entries: {
      './keys-indexeddb': 'kept in a browser',
      './keys-sqlite': 'kept in Node',
    },
  },
  {
    title: 'Apps in a driven browser',
    says: 'For agents in Node.',
    entries: {
      './automation': 'with Puppeteer or Playwright',
      './discover': 'whether there is an app at an address',
    },
  },
  {
    title: 'For other protocols',
    says: 'You need none of these to call an app of your own.',
    entries: {
      './webmcp': 'WebMCP: an app’s capabilities as tools of its page',
      './settled': 'WebMCP: what became of the calls of other people’s tools',
      './mcp-apps': 'MCP Apps: views, and hosts that show them',
      './mcp-apps/view': 'MCP Apps: a view, in one file',
      './mcp-apps/app': 'MCP Apps: a view that is an app, too, in one file',
      './mcp-apps/sandbox': 'MCP Apps: the page between a host and a view',
      './a2a': 'A2A: tasks of agents',
      './a2a-store': 'A2A: tasks that outlive their process',
      './tasks': 'the table of tasks, without A2A’s messages',
      './rpc': 'JSON-RPC: ACP, LSP and MCP',
      './adapters/acp': 'our transports for the ACP SDK',
      './adapters/mcp': 'our transports for the MCP SDKs',
      './adapters/a2a-sdk': 'our tasks behind the A2A SDK',
    },
  },
];
