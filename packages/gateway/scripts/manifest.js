/**
 * The manifest for a host of MCP bundles: how to start the gateway, and the settings to ask a
 * person for.
 * @param {{ name: string, version: string, description: string, license: string,
 *   keywords: string[], engines: { node: string } }} about the gateway's package.json
 */
export const manifestOf = ({ name, version, description, license, keywords, engines }) => ({
  manifest_version: '0.3',
  name,
  display_name: 'Web app (Agentic Browser Protocol)',
  version,
  description,
  author: { name: 'The abp-bridge authors' },
  license,
  keywords,
  server: {
    type: 'node',
    entry_point: 'server/main.js',
    mcp_config: {
      command: 'node',
      args: ['${__dirname}/server/main.js', 'mcp', '${user_config.url}'],
      // If empty, an installed browser is found.
      env: { CHROME_PATH: '${user_config.browser}' },
    },
  },
  // The tools of an app are known once it is open.
  tools_generated: true,
  compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: engines.node } },
  user_config: {
    url: {
      type: 'string',
      title: 'Address of the app',
      description: 'Such as https://writer.example/, or wss://… of an app without a page',
      required: true,
    },
    browser: {
      type: 'file',
      title: 'Browser',
      description: 'The program to run; empty takes an installed Chrome, Chromium, Edge or Brave',
      required: false,
      default: '',
    },
  },
});
