/**
 * What a host of MCP bundles is told: how the gateway is started, and what a person is asked for.
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
      // Empty finds a browser that is installed.
      env: { CHROME_PATH: '${user_config.browser}' },
    },
  },
  // What an app can do is known when it is open.
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
