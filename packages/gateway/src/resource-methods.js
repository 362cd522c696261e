/** MCP's methods of resources: results that are files, and nothing else. */
import { InvalidRequest } from './errors.js';
import { answering } from './mcp-client.js';

/**
 * @param {import('@modelcontextprotocol/server').Server} server
 * @param {import('./mcp-client.js').McpClient} client
 */
export function serveResources(server, { gateway: { files }, owner }) {
  server.setRequestHandler('resources/list', () => ({
    resources: files
      .of(owner)
      .map(({ uri, name, mimeType, size }) => ({ uri, name, mimeType, size })),
  }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler(
    'resources/read',
    answering(async ({ params: { uri } }) => {
      const contents = await files.read(uri, owner);
      if (!contents)
        throw new InvalidRequest('Unknown resource: only results can be read', { uri });
      return { contents: [contents] };
    }),
  );
}
