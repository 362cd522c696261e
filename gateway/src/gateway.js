/** The apps, their tools, and the calls that run, for however many clients there are. */
import { hasStopped } from './app.js';
import { discover } from 'abp-bridge/discover';
import { MAX_MESSAGE, ResultFiles } from './result-files.js';
import { toolResult } from './results.js';
import { Run, unguessable } from './run.js';
import { ToolNames } from './tool-names.js';
import { MAX_TOOLS, toolOf } from './tools.js';
import { HANDLE_NAMES } from './handle-tools.js';

/** Runs that are remembered, of all clients. */
const MAX_RUNS = 1024;
/** How long the result of one that nobody waited for is kept, in ms. */
const KEEP_RESULT = 10 * 60_000;
/** How long a question waits for its answer, and a handle for somebody to ask for it, in ms. */
export const PATIENCE_WITH_CLIENTS = 10 * 60_000;
/** How long calls may take to stop when the gateway closes, in ms. */
const CLOSING = 3000;
/** How long a manifest may take, in ms. */
const MANIFEST_TIMEOUT = 5000;

/**
 * @typedef {object} Target An app as the gateway names it.
 * @property {import('./app.js').App} app
 * @property {string} prefix begins its tools' names
 * @property {string} [label] what descriptions call it, where there are several
 */

/** A request that can be mended by whoever made it. */
export class InvalidRequest extends Error {}

export class Gateway {
  #targets;
  #names;
  #log;
  /** The tools of an app, as they were last known. @type {Map<Target, any[]>} */
  #tools = new Map();
  /** Runs that a client may ask for, by id. @type {Map<string, Run>} */
  #runs = new Map();
  /** Those under way, whoever knows of them. @type {Set<Run>} */
  #active = new Set();
  /** Runs that wait for a client to come back, by `requestState`. */
  #rounds = /** @type {Map<string, { run: Run, binding: string, key: string, timer: any }>} */ (
    new Map()
  );
  /** Hear that the list of tools has changed. @type {Set<() => void>} */
  listeners = new Set();

  /**
   * @param {Target[]} targets
   * @param {{ patience: number, out?: string, log: (line: string) => void, name: string, version: string }} options
   *   `patience`: ms after which a call is answered with a handle or a task; `out`: folder of large results
   */
  constructor(targets, { patience, out, log, name, version }) {
    this.#targets = targets;
    this.#log = log;
    this.#names = /** @type {ToolNames<Target>} */ (new ToolNames(HANDLE_NAMES));
    this.patience = patience;
    this.serverInfo = { name, version };
    this.files = new ResultFiles(out);
    for (const target of targets) {
      target.app.onCapabilitiesChanged = () => void this.#refresh(target);
    }
  }

  // --- Tools ---------------------------------------------------------------------------------------

  /**
   * Every tool, complete. The first time this opens the apps; where a manifest says what one can do, that is not
   * waited for.
   * @returns {Promise<any[]>}
   * @throws {Error} when no app can be reached
   */
  async listTools() {
    const lists = await Promise.allSettled(this.#targets.map((target) => this.#toolsOf(target)));
    const failed = lists.filter((list) => list.status === 'rejected');
    for (const { reason } of failed) this.#log(reason.message);
    if (failed.length && failed.length === lists.length) throw failed[0].reason;
    return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
  }

  /** @param {Target} target */
  async #toolsOf(target) {
    const known = this.#tools.get(target);
    if (known) return known;
    const opened = target.app.listCapabilities();
    const capabilities = await new Promise((resolve, reject) => {
      opened.then(resolve, reject);
      void this.#manifestOf(target).then((found) => found && resolve(found));
    });
    opened.catch((error) => this.#log(error.message));
    return this.#put(target, await (this.#tools.has(target) ? opened : capabilities));
  }

  /** @param {Target} target @returns {Promise<any[] | undefined>} */
  async #manifestOf({ app: { url } }) {
    if (!/^http/.test(url.protocol)) return undefined;
    const options = { allowPrivate: true, timeout: MANIFEST_TIMEOUT };
    const found = await discover(url, options).catch(() => undefined);
    return found?.supported ? found.manifest.capabilities : undefined;
  }

  /**
   * @param {Target} target
   * @param {any[]} capabilities
   */
  #put(target, capabilities) {
    const usable = capabilities.filter(
      ({ name }, at) =>
        typeof name === 'string' && name && capabilities.findIndex((c) => c.name === name) === at,
    );
    const shown = usable.slice(0, MAX_TOOLS);
    this.#names.add(
      target,
      shown.map(({ name }) => name),
    );
    // One app's schemas cost no other app its place in the list.
    let room = MAX_MESSAGE / this.#targets.length;
    const tools = shown
      .map((capability) =>
        toolOf(capability, this.#names.of(target, capability.name), target.label),
      )
      .filter((tool) => (room -= Buffer.byteLength(JSON.stringify(tool))) >= 0);
    if (tools.length < usable.length) {
      this.#log(
        `${target.app.url.href} has ${usable.length} capabilities; ${tools.length} are shown`,
      );
    }
    this.#tools.set(target, tools);
    return tools;
  }

  /** @param {Target} target */
  async #refresh(target) {
    const capabilities = await target.app.knownCapabilities();
    if (!capabilities) return;
    const before = this.#tools.get(target);
    const tools = this.#put(target, capabilities);
    if (!before || JSON.stringify(before) === JSON.stringify(tools)) return;
    for (const listener of this.listeners) listener();
  }

  // --- Calls ---------------------------------------------------------------------------------------

  /**
   * Begins a call.
   * @param {string} name of the tool
   * @param {any} args
   * @param {boolean} canAsk whether whoever calls can be asked
   * @returns {Promise<Run>}
   * @throws {InvalidRequest} when there is no such tool, or no room
   */
  async start(name, args, canAsk) {
    if (!this.#names.meaningOf(name)) await this.listTools();
    const meaning = this.#names.meaningOf(name);
    if (!meaning)
      throw new InvalidRequest(`There is no tool ${JSON.stringify(name.slice(0, 200))}`);
    if (this.#active.size >= MAX_RUNS) throw new InvalidRequest('Too many calls are under way');
    const { target, capability } = meaning;
    const run = new Run({
      tool: name,
      canAsk,
      execute: async (options) => {
        const response = await target.app.call(capability, args ?? {}, options);
        const tool = this.#tools.get(target)?.find((each) => each.name === name);
        const result = await toolResult(response, tool?.outputSchema, this.files);
        return { cancelled: hasStopped(response), result };
      },
    });
    this.#active.add(run);
    void run.ended.then(() => this.#active.delete(run));
    return run;
  }

  /**
   * Remembers a run, so that a client may ask for it by its id. One that nobody asks for is ended.
   * @param {Run} run
   */
  remember(run) {
    if (!this.#runs.has(run.id)) {
      if (this.#runs.size >= MAX_RUNS) this.#forgetOldest();
      this.#runs.set(run.id, run);
      void run.ended.then(() => {
        setTimeout(() => this.#runs.delete(run.id), KEEP_RESULT).unref();
      });
    }
    this.touch(run);
    return run;
  }

  /** What clients may ask for. */
  get remembered() {
    return [...this.#runs.values()];
  }

  #forgetOldest() {
    const [oldest] = [...this.#runs.values()].sort(
      (a, b) => Number(b.terminal) - Number(a.terminal),
    );
    oldest.abort('too many calls are under way');
    this.#runs.delete(oldest.id);
  }

  /**
   * Somebody asked for it, so somebody still wants it.
   * @param {Run} run
   */
  touch(run) {
    clearTimeout(run.lease);
    if (run.terminal) return;
    run.lease = setTimeout(
      () => run.abort('nobody has asked for it any more'),
      PATIENCE_WITH_CLIENTS,
    );
    run.lease.unref();
  }

  /**
   * @param {unknown} id
   * @returns {Run}
   * @throws {InvalidRequest} when there is none
   */
  find(id) {
    const run = typeof id === 'string' ? this.#runs.get(id) : undefined;
    if (!run) throw new InvalidRequest('There is no such call, or it was forgotten');
    this.touch(run);
    return run;
  }

  /**
   * Lets a run wait until its client comes back with an answer, once.
   * @param {Run} run whose question is open
   * @param {string} binding what the client must say again
   * @returns {string} what it must bring
   */
  suspend(run, binding) {
    const state = unguessable();
    const timer = setTimeout(() => {
      this.#rounds.delete(state);
      run.abort('nobody answered in time');
    }, PATIENCE_WITH_CLIENTS);
    timer.unref();
    const key = run.question?.key ?? '';
    this.#rounds.set(state, { run, binding, key, timer });
    return state;
  }

  /**
   * The run that a client has come back for.
   * @param {string} state
   * @param {string} binding
   * @param {Record<string, any> | undefined} answers by key; one that is missing is asked for again
   * @returns {Run}
   * @throws {InvalidRequest} when nobody was given that state, or it was used, or for another request
   */
  resume(state, binding, answers) {
    const round = this.#rounds.get(state);
    if (!round || round.binding !== binding) {
      throw new InvalidRequest('requestState is unknown, used, expired, or of another request');
    }
    this.#rounds.delete(state);
    clearTimeout(round.timer);
    const { run, key } = round;
    if (run.question?.key === key && answers && Object.hasOwn(answers, key)) {
      run.answer(answers[key]);
    }
    return run;
  }

  /**
   * Cancels what runs, waits a while for it to stop, and ends the browsers.
   * @param {string} reason
   */
  async close(reason) {
    const running = [...this.#active];
    for (const run of running) run.abort(reason);
    const ended = Promise.all(running.map((run) => run.ended));
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSING).unref())]);
    await Promise.all(this.#targets.map(({ app }) => app.close()));
    await this.files.close();
  }

  /** Ends the browsers at once. */
  kill() {
    for (const { app } of this.#targets) app.kill();
  }
}
