// npm run demo:a2a: three tasks of one A2A agent at once, the middle one cancelled. `--speed 20` is
// 20 times as fast.
import { runScenario } from './a2a-scenario.js';

const at = process.argv.indexOf('--speed');
const speed = at < 0 ? 1 : Number(process.argv[at + 1]);
if (!(speed > 0)) {
  console.error('--speed takes a number above 0');
  process.exit(2);
}
const { ok } = await runScenario({ speed, output: process.stdout });
console.log(ok ? '\nAs it should be.' : '\nNot as expected.');
process.exitCode = ok ? 0 : 1;
