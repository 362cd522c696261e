/**
 * The scenario of A2A's cancellation example: one agent, three tasks of ten steps, the middle one
 * cancelled.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTaskClient, createTaskServer } from '@abp-bridge/a2a';

const STEPS = 10;
/** @typedef {'A' | 'B' | 'C'} Name */

const NAMES = /** @type {const} */ (['A', 'B', 'C']);
/** The expected end of each task. @type {Record<Name, string>} */
const EXPECTED = { A: 'completed', B: 'canceled', C: 'completed' };

/**
 * An agent whose tasks take ten steps of a second, and which counts its steps.
 * @param {number} step ms
 */
async function startAgent(step) {
  /** Steps by task, and those that ran after the end of the task. */
  const steps = { A: 0, B: 0, C: 0 };
  let afterCancel = 0;
  const agent = createTaskServer({
    card: {
      name: 'SlowAgent',
      description: 'Takes ten steps; can be cancelled at any point',
      skills: [{ id: 'slow', name: 'slow' }],
    },
    async execute({ message, task, signal, emitArtifact }) {
      const name = /** @type {Name} */ (message.parts[0].text);
      for (let n = 1; n <= STEPS; n++) {
        await sleep(step, undefined, { signal });
        if (task.terminal) afterCancel++;
        steps[name]++;
        emitArtifact({ artifactId: `step-${n}`, parts: [{ text: `step ${n}/${STEPS}` }] });
      }
    },
  });
  const server = createServer(agent.handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    steps,
    get afterCancel() {
      return afterCancel;
    },
    close() {
      agent.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Progress as bars that are redrawn, or line by line if that is impossible. */
class Bars {
  /** @type {Partial<Record<Name, string>>} */
  #rows = {};
  #drawn = false;

  /** @param {{ write: (text: string) => unknown, isTTY?: boolean }} output */
  constructor(output) {
    this.output = output;
  }

  /**
   * @param {Name} name
   * @param {number} step
   * @param {string} state
   * @param {string} [time]
   */
  show(name, step, state, time = '') {
    const bar = '█'.repeat(step).padEnd(STEPS, '·');
    const row = `${name} ${bar} ${String(step).padStart(2)}/${STEPS} ${state.padEnd(9)} ${time}`;
    this.#rows[name] = row.trimEnd();
    if (!this.output.isTTY) {
      this.output.write(`${this.#rows[name]}\n`);
      return;
    }
    const rows = NAMES.map((each) => `\x1b[2K${this.#rows[each] ?? each}\n`);
    this.output.write(`${this.#drawn ? `\x1b[${rows.length}A` : ''}${rows.join('')}`);
    this.#drawn = true;
  }
}

/**
 * @param {object} options
 * @param {number} options.speed as a multiple of a step a second
 * @param {number} [options.cancelAfter] seconds
 * @param {{ write: (text: string) => unknown, isTTY?: boolean }} options.output
 * @returns {Promise<{ ok: boolean, states: Record<string, string>, steps: Record<string, number>,
 *   afterCancel: number }>}
 */
export async function runScenario({ speed, cancelAfter = 3, output }) {
  const second = 1000 / speed;
  const agent = await startAgent(second);
  const client = createTaskClient(agent.url);
  const bars = new Bars(output);
  const print = (/** @type {string} */ line) => output.write(`${line}\n`);
  const stop = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const subscribe = async (/** @type {Name} */ name) => {
    const stream = client.subscribe(name, name === 'B' ? { signal: stop.signal } : {});
    let step = 0;
    let started = 0;
    let time;
    for await (const event of stream) {
      if (!started) {
        // The clock of a task begins with it, and excludes the time of connecting.
        started = performance.now();
        if (name === 'B') timer = setTimeout(() => stop.abort(), cancelAfter * second);
      }
      if (event.kind === 'artifact') step++;
      const { state = 'submitted' } = stream.task?.status ?? {};
      const took = (performance.now() - started) / second;
      if (event.kind === 'status' && state !== 'working') time = `after ${took.toFixed(1)} s`;
      bars.show(name, step, state, time);
    }
    return { name, id: stream.task?.id ?? '' };
  };
  const streams = await Promise.all(NAMES.map(subscribe));
  clearTimeout(timer);

  print(
    `\nB was to be cancelled after ${cancelAfter} s; a task alone takes ${STEPS} steps of 1 s.`,
  );
  print('The final states, read back with tasks/get:');
  /** @type {Record<string, string>} */
  const states = {};
  for (const { name, id } of streams) {
    states[name] = (await client.get(id)).status.state;
    print(`  ${name} ${states[name].padEnd(9)} ${agent.steps[name]} steps`);
  }
  const { steps, afterCancel } = agent;
  print(`Steps that ran after their task was cancelled: ${afterCancel}`);
  agent.close();
  const ok =
    NAMES.every((name) => states[name] === EXPECTED[name]) &&
    afterCancel === 0 &&
    steps.A === STEPS &&
    steps.C === STEPS;
  return { ok, states, steps, afterCancel };
}
