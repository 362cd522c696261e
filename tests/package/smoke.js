// Uses the package as its reader would: both sides in one place, a result, a cancel, a schema.
import { connect, expose } from 'abp-bridge';

export async function smoke() {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    {
      app: { id: 'smoke.app', name: 'Smoke', version: '1' },
      capabilities: {
        double: {
          inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
          handler: ({ n }) => n * 2,
        },
        hang: (_params, { signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          ),
      },
    },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'smoke', version: '1' } });
  const controller = new AbortController();
  const hanging = client.call('hang', {}, { signal: controller.signal });
  controller.abort('enough');
  const outcome = [
    (await client.call('double', { n: 21 })).data,
    (await client.call('double', { n: 'x' })).error.code,
    (await hanging).error.message,
  ].join();
  client.close();
  app.close();
  return outcome;
}
