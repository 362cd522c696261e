// The policy of views: what a view may load, and which permissions it has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowOf, policyOf } from '../src/policy.js';

test('without metadata a view may load nothing', () => {
  const policy = policyOf(undefined);
  for (const part of [
    "default-src 'none'",
    "script-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'none'",
    "frame-src 'none'",
    "base-uri 'self'",
    "object-src 'none'",
    "form-action 'none'",
  ]) {
    assert.ok(policy.split('; ').includes(part), `${part} in ${policy}`);
  }
  assert.ok(!policy.includes('eval'));
});

test('metadata names the sources a view may load, and no name can end a directive', () => {
  const directive = (csp, name) =>
    policyOf(csp)
      .split('; ')
      .find((part) => part.startsWith(`${name} `));
  const csp = {
    connectDomains: ['https://api.example', 'wss://live.example:8443'],
    resourceDomains: ['https://*.cdn.example/lib/'],
    frameDomains: ['https://maps.example'],
    baseUriDomains: ['https://base.example'],
  };
  assert.equal(
    directive(csp, 'connect-src'),
    "connect-src 'self' https://api.example wss://live.example:8443",
  );
  for (const name of ['script-src', 'style-src', 'img-src', 'font-src', 'media-src']) {
    assert.ok(directive(csp, name).endsWith(' https://*.cdn.example/lib/'), name);
  }
  assert.equal(directive(csp, 'frame-src'), 'frame-src https://maps.example');
  assert.equal(directive(csp, 'base-uri'), 'base-uri https://base.example');
  const evil = [
    'https://x; script-src *',
    '*',
    "'unsafe-eval'",
    "'none'",
    'https:',
    'https://*',
    'x y',
    'javascript:',
    'https://x\n',
    'https://x,https://y',
    '',
    5,
    null,
    {},
    ['https://x'],
  ];
  assert.equal(policyOf({ connectDomains: evil, resourceDomains: evil }), policyOf({}));
  for (const odd of [
    'https://x',
    5,
    null,
    { length: 1e9 },
    Object.assign([], { length: 2 ** 32 - 1 }),
  ]) {
    assert.equal(policyOf({ connectDomains: odd }), policyOf({}));
    assert.equal(policyOf(odd), policyOf({}));
  }
});

test('permissions are those of the metadata that are known', () => {
  const permissions = { camera: {}, clipboardWrite: {}, usb: {} };
  assert.equal(allowOf(permissions), 'camera *; clipboard-write *');
  assert.equal(allowOf({ microphone: {} }, 'https://x.example'), 'microphone https://x.example');
  for (const odd of [undefined, null, 5, 'camera', []]) assert.equal(allowOf(odd), '');
});
