// The program behind a pipe that is slow to pass on: what comes before the answer of a tool's call
// comes with it, in one chunk, as it does to a client that is busy. Arguments: the program's.
import { spawnGateway } from './spawn-gateway.js';

const child = spawnGateway(process.argv.slice(2), { stdio: ['inherit', 'pipe', 'inherit'] });
let text = '';
child.stdout.setEncoding('utf8');
child.stdout.on('data', (chunk) => {
  text += chunk;
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const last = whole.trimEnd().split('\n').at(-1);
  if (!last || JSON.parse(last).method === 'notifications/progress') return;
  process.stdout.write(whole);
  text = text.slice(whole.length);
});
child.once('close', () => process.exit());
process.once('SIGTERM', () => child.kill('SIGTERM'));
