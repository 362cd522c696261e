// MCP's own conformance suite, over HTTP, on an app that has the tools which it asks for.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lineMatching, startGateway } from '../support/program.js';
import { startSite } from '../support/site.js';
import { runPackage } from './packages.js';

const TOKEN = 'a-token-of-the-tests';

/** Scenarios that a server passes whose tools are an app's. */
const APPLY = [
  ...['server-initialize', 'ping', 'tools-list', 'tools-call-simple-text', 'tools-call-image'],
  ...['tools-call-audio', 'tools-call-embedded-resource', 'tools-call-mixed-content'],
  ...['tools-call-error', 'tools-call-with-progress', 'tools-call-elicitation'],
  ...['json-schema-2020-12', 'elicitation-sep1034-defaults', 'server-sse-multiple-streams'],
  ...['resources-list', 'dns-rebinding-protection'],
];

/** Those that ask for what such a server does not have. */
const NOT_APPLICABLE = {
  'an app writes no log for the client': ['logging-set-level', 'tools-call-with-logging'],
  'an app completes nothing': ['completion-complete'],
  'an app asks the user, not the model': ['tools-call-sampling'],
  "the protocol's choice is one of labelled options, not each of MCP's five forms of it": [
    'elicitation-sep1330-enums',
  ],
  'the only resources are results that are files': [
    ...['resources-read-text', 'resources-read-binary', 'resources-templates-read'],
    ...['resources-subscribe', 'resources-unsubscribe'],
  ],
  'an app has no prompts': [
    ...['prompts-list', 'prompts-get-simple', 'prompts-get-with-args'],
    ...['prompts-get-embedded-resource', 'prompts-get-with-image'],
  ],
};
/** Asks for a tool that closes its own response, which no app can. The suite warns, and counts that as either. */
const WARNS = 'server-sse-polling';

/** The suite cannot show a token: this adds it, and is the server's own name towards it. */
async function startProxy() {
  let target;
  const server = createServer((incoming, outgoing) => {
    const { host } = incoming.headers;
    const headers = {
      ...incoming.headers,
      authorization: `Bearer ${TOKEN}`,
      host: host === own ? target.host : host,
    };
    const { method, url } = incoming;
    const options = { hostname: target.hostname, port: target.port, path: url, method, headers };
    const onward = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.once('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = `127.0.0.1:${server.address().port}`;
  return {
    origin: `http://${own}`,
    to: (url) => (target = new URL(url)),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

test('the scenarios of the conformance suite that apply to an app pass', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  const site = await startSite();
  const page = readFileSync(new URL('../pages/app.html', import.meta.url), 'utf8');
  const body = page.replace('pages/app.js', 'pages/conformance.js');
  site.extra.set('/conformance', { type: 'text/html', body });
  const proxy = await startProxy();
  const gateway = startGateway([
    ...['mcp', `${site.origin}/conformance`, '--temporary', '--http', '127.0.0.1:0'],
    ...['--token', TOKEN, '--allow-origin', proxy.origin],
  ]);
  try {
    proxy.to(/http:\S+/.exec(await lineMatching(gateway.stderr, /serves MCP at/))[0]);
    // The suite fails, too, when one of these passes.
    const baseline = join(folder, 'baseline.yml');
    const others = [...Object.values(NOT_APPLICABLE).flat(), WARNS];
    writeFileSync(baseline, `server:\n${others.map((name) => `  - ${name}\n`).join('')}`);
    const { code, stdout } = await runPackage(
      '@modelcontextprotocol/conformance@0.1.16',
      ['conformance', 'server', '--url', `${proxy.origin}/mcp`, '--suite', 'all'].concat(
        '--expected-failures',
        baseline,
      ),
    );
    assert.equal(code, 0, stdout);
    const passed = [...stdout.matchAll(/^✓ (\S+):/gm)].map(([, name]) => name);
    assert.deepEqual(passed.sort(), [...APPLY, WARNS].sort(), stdout);
  } finally {
    gateway.kill('SIGTERM');
    await once(gateway, 'close');
    proxy.close();
    site.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
