/** A nats-server of a test, with JetStream in a folder of its own. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';

/** The environment may name another one than PATH has. */
export const NATS_SERVER = process.env.NATS_SERVER ?? 'nats-server';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

export class NatsServer {
  #folder = mkdtempSync(join(tmpdir(), 'abp-nats-'));
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #process;
  port = 0;
  /** All that were opened. @type {import('@nats-io/transport-node').NatsConnection[]} */
  connections = [];

  /**
   * @param {string[]} [more] options
   * @param {Record<string, string>} [env] for its configuration
   */
  async start(more = [], env = {}) {
    this.port ||= await freePort();
    const at = ['-a', '127.0.0.1', '-p', String(this.port)];
    const options = ['-js', '-sd', this.#folder, ...at, ...more];
    this.#process = spawn(NATS_SERVER, options, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    const said = /** @type {import('node:stream').Readable} */ (this.#process.stderr);
    let log = '';
    for await (const chunk of said.iterator({ destroyOnReturn: false })) {
      log += chunk;
      if (log.includes('Server is ready')) break;
    }
    if (!log.includes('Server is ready')) throw new Error(`nats-server did not start:\n${log}`);
    said.resume();
    return this;
  }

  /**
   * @param {NatsServer[]} [others]
   * @param {object} [more] options
   */
  async connect(others = [], more = {}) {
    const servers = [this, ...others].map(({ port }) => `127.0.0.1:${port}`);
    const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 50, ...more };
    const connection = await connect(options);
    this.connections.push(connection);
    return connection;
  }

  /** @param {NodeJS.Signals} [signal] */
  async stop(signal = 'SIGTERM') {
    if (!this.#process) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill(signal);
    await ended;
    this.#process = undefined;
  }

  /** Stops its process, as a machine that is suspended does. Resolves when it does nothing more. */
  async pause() {
    this.#process?.kill('SIGSTOP');
    const state = () => execFileSync('ps', ['-o', 'stat=', '-p', String(this.#process?.pid)]);
    while (!String(state()).startsWith('T')) await new Promise(setImmediate);
  }

  resume() {
    this.#process?.kill('SIGCONT');
  }

  async close() {
    await Promise.all(this.connections.map((connection) => connection.close()));
    await this.stop('SIGKILL');
    rmSync(this.#folder, { recursive: true });
  }
}

/** Three servers that are one. */
export async function startCluster() {
  const ports = [await freePort(), await freePort(), await freePort()];
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`);
  const servers = ports.map((port, i) =>
    new NatsServer().start([
      '-name',
      `n${i}`,
      '-cluster_name',
      'three',
      '-routes',
      routes.join(','),
      '-cluster',
      `nats://127.0.0.1:${port}`,
    ]),
  );
  return Promise.all(servers);
}
