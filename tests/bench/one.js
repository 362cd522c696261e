import { sites } from '../support/browser.js';
const site = await sites();
const page = await site.browser.newPage();
await page.goto(`${site.hostOrigin}/tests/bench/pages/bench.html`);
await page.waitForFunction(() => window.isReady);
await page.evaluate(
  (src) => window.open_(src),
  `${site.appOrigin}/tests/bench/pages/echo.html?${encodeURIComponent(site.hostOrigin)}`,
);
for (let i = 0; i < 8; i++) {
  const [a, b] = await page.evaluate(() => window.oneAtATime(1000));
  console.log('one', (a / b).toFixed(2), a.toFixed(0), b.toFixed(0));
}
for (let i = 0; i < 6; i++) {
  const [a, b] = await page.evaluate(() => window.inFlight(1000, 5));
  console.log('1000', (a / b).toFixed(3), a.toFixed(1), b.toFixed(1));
}
for (let i = 0; i < 3; i++)
  console.log(
    'core10',
    (await page.evaluate(() => window.core(10, 300000))).map((x) => x.toFixed(0)).join(' '),
  );
for (let i = 0; i < 3; i++)
  console.log(
    'core100k',
    (await page.evaluate(() => window.core(100000, 300000))).map((x) => x.toFixed(0)).join(' '),
  );
await site.close();
