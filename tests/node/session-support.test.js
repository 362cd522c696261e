// The answer of `supports`, from what an app says of a capability.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { supportOf } from '../../js/session/capability-support.js';

const met = { description: 'a key', met: true };
const unmet = { description: 'a printer', met: false };

describe('a capability is supported', () => {
  const SUPPORTED = { supported: true, available: true };
  const NOT_NOW = { supported: true, available: false };
  for (const [what, capability, expected] of [
    [
      'not, if it is unknown',
      undefined,
      { supported: false, available: false, reason: 'Unknown capability' },
    ],
    ['and available, if nothing says otherwise', { name: 'x' }, SUPPORTED],
    ['but not available, if it says so', { available: false }, NOT_NOW],
    ['and available, if it says that oddly', { available: 0 }, SUPPORTED],
    [
      'and available, if its requirements are met',
      { requirements: [met] },
      { ...SUPPORTED, requirements: [met] },
    ],
    [
      'but not available, if a requirement is not met, with the first of these as its reason',
      { requirements: [met, unmet, { ...unmet, description: 'paper' }] },
      {
        ...NOT_NOW,
        reason: 'a printer',
        requirements: [met, unmet, { ...unmet, description: 'paper' }],
      },
    ],
    [
      'but not available, if a requirement that says nothing of itself is not met',
      { requirements: [{ met: false }] },
      { ...NOT_NOW, reason: 'A requirement is not met', requirements: [{ met: false }] },
    ],
    [
      'with its features and alternatives',
      { features: { pdf: true }, alternatives: ['y'] },
      { ...SUPPORTED, features: { pdf: true }, alternatives: ['y'] },
    ],
    [
      'whatever it gives as its requirements',
      { requirements: 'many' },
      { ...SUPPORTED, requirements: 'many' },
    ],
  ]) {
    test(what, () => assert.deepEqual(supportOf(capability), expected));
  }

  test('by its first 64 requirements', () => {
    const many = Array(64).fill(met);
    assert.equal(supportOf({ requirements: [...many, unmet] }).available, true);
    assert.equal(supportOf({ requirements: [...many.slice(1), unmet] }).available, false);
  });
});
