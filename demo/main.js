// npm run demo: three operations at once in Node, then a page on two sites. `--once` stops before
// the page.
import { fileURLToPath } from 'node:url';
import { runHeadless } from './headless.js';
import { startServer } from './server.js';

const gateway = fileURLToPath(new URL('../packages/gateway/src/main.js', import.meta.url));
const ok = await runHeadless(console.log);
console.log(
  ok
    ? '\nOne completed, one cancelled, one timed out, and the session went on.'
    : '\nNot as expected.',
);
if (!ok) process.exit(1);
if (!process.argv.includes('--once')) {
  const { hostUrl, appUrl } = await startServer(Number(process.env.PORT ?? 8080));
  console.log(
    `\nThe same in a browser: open ${hostUrl} (its app is on another site, ${appUrl}). Ctrl+C ends it.`,
  );
  console.log(
    `\nThe app in an MCP client, from any folder: claude mcp add demo -- node ${gateway} mcp ${appUrl}`,
  );
}
