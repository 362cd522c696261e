// Pages that change what all objects, lists and promises do, as old libraries have done: calls
// between such a host or app and one that is as the language has it. tests/node/patched.test.js has
// the rest.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sites } from '../support/browser.js';
import { PATCHES } from '../support/patches.js';

let site;
before(async () => {
  site = await sites();
});
after(() => site.close());

const VALUES = [5, [], [1, [2]], { list: ['x'] }, Array.from({ length: 100 }, (_, i) => i)];
/** A script that patches the pages of one site before anything else runs there. */
const scriptFor = (name, origin) =>
  `if (location.origin === '${origin}') ({ ${PATCHES[name]} })[${JSON.stringify(name)}]()`;

for (const name of ['an old Prototype.js', 'a toJSON of all objects'])
  for (const where of ['host', 'app'])
    test(`the ${where} has ${name}`, async () => {
      const context = await site.browser.newContext();
      const page = await context.newPage();
      try {
        await page.addInitScript(scriptFor(name, site[`${where}Origin`]));
        await page.goto(site.hostUrl);
        await page.waitForFunction(() => window.isReady);
        for (const upgrade of ['frames', 'none']) {
          // As text, since drivers do not read values in such pages as they are.
          const told = await page.evaluate(
            async ([src, origin, upgrade, values]) => {
              await window.open_({ src, origin, upgrade });
              const { client } = window;
              const calls = JSON.parse(values).map((value) => client.call('echo', value));
              const answers = await Promise.all(calls);
              const shown = (value) =>
                Array.isArray(value)
                  ? `[${[].slice.call(value).map(shown)}]`
                  : Object(value) === value
                    ? `{"list":${shown(value.list)}}`
                    : typeof value === 'string'
                      ? `"${value}"`
                      : `${value}`;
              return shown(answers.map(({ data }) => data));
            },
            [site.appUrl({}), site.appOrigin, upgrade, JSON.stringify(VALUES)],
          );
          assert.equal(told, JSON.stringify(VALUES), upgrade);
        }
      } finally {
        await context.close();
      }
    });
