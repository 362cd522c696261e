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

/** What an app has no word for, in both versions. */
const LACKING = {
  'an app completes nothing': ['completion-complete'],
  'the only resources are results that are files': [
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
  ],
  'an app has no prompts': [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
  ],
};
/** Scenarios of both versions that a server passes whose tools are an app's. */
const SHARED = [
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'tools-call-with-progress',
  'json-schema-2020-12',
  'server-sse-multiple-streams',
  'resources-list',
  'dns-rebinding-protection',
];

/**
 * The suites: which release of it, and for which version of the protocol; the scenarios that apply,
 * those that ask for what such a server does not have, and those that warn, which counts as either.
 */
const SUITES = {
  '2025-11-25': {
    release: '0.1.16',
    apply: [
      'server-initialize',
      'ping',
      'tools-call-elicitation',
      'elicitation-sep1034-defaults',
      ...SHARED,
    ],
    lacking: {
      ...LACKING,
      'an app writes no log for the client': ['logging-set-level', 'tools-call-with-logging'],
      'an app asks the user, not the model': ['tools-call-sampling'],
      "the protocol's choice is one of labelled options, not each of MCP's five forms of it": [
        'elicitation-sep1330-enums',
      ],
      'nobody subscribes to a result': ['resources-subscribe', 'resources-unsubscribe'],
    },
    // Asks for a tool that closes its own response, which no app can.
    warns: ['server-sse-polling'],
  },
  '2026-07-28': {
    release: '0.2.0-alpha.12',
    options: ['--spec-version', '2026-07-28'],
    apply: [
      'sep-2164-resource-not-found',
      'http-header-validation',
      ...['unsupported-methods', 'ignore-extra-params'].map(inputRequired),
      ...SHARED,
    ],
    lacking: {
      ...LACKING,
      'its tools log, and ask for sampling; 24 of its 28 checks pass': ['server-stateless'],
      'it also lists prompts; its other checks pass': ['caching'],
      'a page names no headers': ['http-custom-header-server-validation'],
      'it wants a name of its own for a question': [inputRequired('basic-elicitation')],
      'an app asks the user, not the model, and for no roots': [
        ...[
          'basic-sampling',
          'basic-list-roots',
          'multiple-input-requests',
          'capability-check',
        ].map(inputRequired),
      ],
      'only tools ask': [inputRequired('non-tool-request')],
    },
    // They leave their question open. While somebody else's is, nobody is asked, so each needs a
    // gateway of its own.
    alone: ['request-state', 'multi-round', 'result-type', 'tampered-state'].map(inputRequired),
    // They find that nobody is asked, and warn.
    warns: ['missing-input-response', 'validate-input'].map(inputRequired),
  },
};

/** @param {string} what */
function inputRequired(what) {
  return `input-required-result-${what}`;
}

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

/**
 * Runs the suite against a gateway of its own.
 * @param {string} release
 * @param {string[]} options
 */
async function runSuite(release, options) {
  const site = await startSite();
  const page = readFileSync(new URL('../pages/app.html', import.meta.url), 'utf8');
  const body = page.replace('pages/app.js', 'pages/conformance.js');
  site.extra.set('/conformance', { type: 'text/html', body });
  const proxy = await startProxy();
  const gateway = startGateway([
    'mcp',
    `${site.origin}/conformance`,
    '--temporary',
    '--http',
    '127.0.0.1:0',
    '--token',
    TOKEN,
    '--allow-origin',
    proxy.origin,
  ]);
  try {
    proxy.to(/http:\S+/.exec(await lineMatching(gateway.stderr, /serves MCP at/))[0]);
    const command = ['conformance', 'server', '--url', `${proxy.origin}/mcp`, ...options];
    return await runPackage(`@modelcontextprotocol/conformance@${release}`, command);
  } finally {
    gateway.kill('SIGTERM');
    await once(gateway, 'close');
    proxy.close();
    site.close();
  }
}

for (const [version, suite] of Object.entries(SUITES)) {
  const { release, options = [], apply, lacking, alone = [], warns } = suite;
  test(`the scenarios of the conformance suite ${release} for ${version} that apply to an app pass`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    // The suite fails, too, when one of these passes.
    const baseline = join(folder, 'baseline.yml');
    const others = [...Object.values(lacking).flat(), ...alone, ...warns];
    writeFileSync(baseline, `server:\n${others.map((name) => `  - ${name}\n`).join('')}`);
    const all = ['--suite', 'all', '--expected-failures', baseline, ...options];
    const { code, stdout } = await runSuite(release, all);
    assert.equal(code, 0, stdout);
    const passed = [...stdout.matchAll(/^✓ (\S+):/gm)].map(([, name]) => name);
    assert.deepEqual(passed.sort(), [...apply, ...warns].sort(), stdout);
  });
  for (const scenario of alone) {
    test(`so does ${scenario}`, async () => {
      const { code, stdout } = await runSuite(release, ['--scenario', scenario, ...options]);
      assert.equal(code, 0, stdout);
    });
  }
}
