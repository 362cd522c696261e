// The numbers that cross the boundary are C's: what js/core.js says of them must be what src/abp.h says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as core from '../../js/core.js';

const header = readFileSync(new URL('../../src/abp.h', import.meta.url), 'utf8').replace(
  /\/\*[^]*?\*\//g,
  '',
);

/** The enumerators of an enum of abp.h, by name. */
function enumerators(name) {
  const [, body] = new RegExp(`enum ${name} \\{([^}]*)\\}`).exec(header);
  let next = 0;
  const found = {};
  for (const entry of body.split(',').map((text) => text.trim())) {
    const [, key, value] = /^(\w+)(?: = (-?\d+))?$/.exec(entry) ?? [];
    if (key) found[key] = next = value === undefined ? next : Number(value);
    next++;
  }
  return found;
}

const ENUMS = [
  ['Kind', 'abp_kind', (key) => `ABP_${key}`],
  ['Role', 'abp_role', (key) => `ABP_${key}`],
  ['Outcome', 'abp_outcome', (key) => `ABP_${key}`],
  ['Status', 'abp_status', (key) => `ABP_E_${key}`],
  ['Session', 'abp_session', (key) => `ABP_SESSION_${key}`],
  ['Control', 'abp_message', (key) => `ABP_MSG_${key}`],
  ['Feature', 'abp_feature', (key) => `ABP_${key}`],
  [
    'Fault',
    'abp_error',
    (key) => (/^(CANCELLED|TIMEOUT|DISCONNECTED)$/.test(key) ? `ABP_${key}_ERROR` : `ABP_${key}`),
  ],
];

for (const [ours, theirs, nameOf] of ENUMS) {
  test(`${ours} is ${theirs}`, () => {
    const known = enumerators(theirs);
    for (const [key, value] of Object.entries(core[ours])) {
      assert.equal(known[nameOf(key)], value, nameOf(key));
    }
  });
}

test('the counters are in the order of abp_counter', async () => {
  await core.ready;
  const names = Object.keys(new core.Core(core.Role.AGENT, 0, {}, false).counters());
  const known = Object.keys(enumerators('abp_counter')).slice(0, -1);
  const inWords = (name) =>
    name
      .slice(4)
      .toLowerCase()
      .replace(/_(.)/g, (_, c) => c.toUpperCase());
  // IN_FLIGHT_OUT is inFlightOut.
  assert.deepEqual(names, known.map(inWords));
});
