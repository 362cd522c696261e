import { sites } from '../support/browser.js';
const site = await sites();
const page = await site.browser.newPage();
await page.goto(`${site.hostOrigin}/tests/bench/pages/bench.html`);
await page.waitForFunction(() => window.isReady);
await page.evaluate(
  (src) => window.open_(src),
  `${site.appOrigin}/tests/bench/pages/echo.html?${encodeURIComponent(site.hostOrigin)}`,
);
await page.evaluate(() => window.oneAtATime(3000));
for (const target of [page, page.frames()[1]]) {
  const s = await page.context().newCDPSession(target);
  await s.send('Profiler.enable');
  await s.send('Profiler.setSamplingInterval', { interval: 100 });
  await s.send('Profiler.start');
  const t = await page.evaluate(() => window.oneAtATime(3000));
  console.log(t);
  const { profile } = await s.send('Profiler.stop');
  const self = {};
  const dt = profile.timeDeltas;
  profile.samples.forEach((id, i) => {
    const n = profile.nodes.find((n) => n.id === id);
    const k =
      n.callFrame.functionName +
      ' ' +
      n.callFrame.url.split('/').pop() +
      ':' +
      n.callFrame.lineNumber;
    self[k] = (self[k] ?? 0) + dt[i];
  });
  for (const [k, v] of Object.entries(self)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 22))
    console.log((v / 1000).toFixed(1), k);
}
await site.close();
