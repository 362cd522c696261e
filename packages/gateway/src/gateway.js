/** The apps, their tools, and the calls that run, for however many clients there are. */
import { hasStopped } from './app.js';
import { discover, isPublic } from 'abp-bridge/discover';
import { MAX_MESSAGE, ResultFiles } from './result-files.js';
import { failureOf, toolResult } from './results.js';
import { learn, recall } from './learnt.js';
import { Run, Runs } from './runs.js';
import { SchemaChecker } from './schema-checker.js';
import { ToolNames } from './tool-names.js';
import { cleanText } from './texts.js';
import { MAX_TOOLS, toolOf } from './tools.js';
import { HANDLE_NAMES } from './mcp-tools.js';
import { unlessAborted } from './waiting.js';
import { InvalidRequest } from './errors.js';

/** How long calls may take to stop when the gateway closes, in ms. */
const CLOSING = 3000;
/** When an app that could not be reached is tried again, in ms, at first and at most. */
const FIRST_RETRY = 5000;
const LAST_RETRY = 60_000;
/** Characters of a schema that a failure shows. */
const MAX_SHOWN = 2000;
/** How long a manifest may take, in ms. */
const MANIFEST_TIMEOUT = 5000;

/**
 * @typedef {import('./tools.js').Capability} Capability
 * @typedef {import('./tools.js').Tool} Tool
 */

/**
 * @typedef {object} Target An app as the gateway names it.
 * @property {import('./app.js').App} app
 * @property {string} prefix begins its tools' names
 * @property {string} [label] what descriptions call it, where there are several
 */

export class Gateway {
  #targets;
  #names;
  #log;
  /** The tools of an app, as they were last known. @type {Map<Target, Tool[]>} */
  #tools = new Map();
  /** Apps whose tools are those of another time: no page has confirmed them yet. @type {Set<Target>} */
  #unconfirmed = new Set();
  /** Each app's schemas are checked by a thread of its own. @type {Map<Target, SchemaChecker>} */
  #checkers = new Map();
  /** Apps that could not be reached, and when the next try is. @type {Map<Target, ReturnType<typeof setTimeout>>} */
  #awaited = new Map();
  runs = new Runs();
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
      this.#checkers.set(target, new SchemaChecker());
      target.app.watchers.add(() => void this.#refresh(target));
    }
  }

  // --- Tools ---------------------------------------------------------------------------------------

  /**
   * Every tool, complete. The first time this opens the apps; where a manifest says what one can do, that is not
   * waited for.
   * @returns {Promise<Tool[]>}
   * @throws {Error} when no app can be reached
   */
  async listTools() {
    const lists = await Promise.allSettled(this.#targets.map((target) => this.#toolsOf(target)));
    const failed = lists.filter((list) => list.status === 'rejected');
    for (const { reason } of failed) this.#log(reason.message);
    lists.forEach(({ status }, at) => status === 'rejected' && this.#await(this.#targets[at]));
    if (failed.length && failed.length === lists.length) throw failed[0].reason;
    return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
  }

  /**
   * Tries again now and then to reach an app, and announces its tools when it is up.
   * @param {Target} target
   * @param {number} [delay] ms
   */
  #await(target, delay = FIRST_RETRY) {
    if (this.#awaited.has(target)) return;
    const tryAgain = async () => {
      const capabilities = await target.app.listCapabilities().catch(() => undefined);
      this.#awaited.delete(target);
      if (!capabilities) return this.#await(target, Math.min(2 * delay, LAST_RETRY));
      this.#put(target, capabilities);
      for (const listener of this.listeners) listener();
    };
    const timer = setTimeout(() => void tryAgain(), delay);
    timer.unref();
    this.#awaited.set(target, timer);
  }

  /** @param {Target} target */
  async #toolsOf(target) {
    const known = this.#tools.get(target);
    if (known) return known;
    const opened = target.app
      .listCapabilities()
      .then((capabilities) => this.#update(target, capabilities));
    opened.catch((error) => this.#log(error.message));
    const { profile, url } = target.app;
    const learnt = profile && recall(profile, url);
    if (learnt) {
      opened.catch(() => this.#await(target));
      this.#unconfirmed.add(target);
      return this.#name(target, learnt);
    }
    return new Promise((resolve, reject) => {
      opened.then(resolve, reject);
      void this.#manifestOf(target).then((found) => {
        if (found) resolve(this.#tools.get(target) ?? this.#name(target, found));
      });
    });
  }

  /** @param {Target} target @returns {Promise<Capability[] | undefined>} */
  async #manifestOf({ app: { url } }) {
    if (!/^http/.test(url.protocol)) return undefined;
    // What the page names is asked only of its own origin: it must not make the gateway ask others, and another origin's
    // manifest says nothing of this app.
    const options = {
      sameOrigin: true,
      allowPrivate: !isPublic(url.hostname),
      timeout: MANIFEST_TIMEOUT,
    };
    const found = await discover(url, options).catch(() => undefined);
    return found?.supported ? found.manifest.capabilities : undefined;
  }

  /**
   * The tools of an app, by its own word.
   * @param {Target} target
   * @param {Capability[]} capabilities
   */
  #put(target, capabilities) {
    this.#unconfirmed.delete(target);
    if (target.app.profile) learn(target.app.profile, target.app.url, capabilities);
    return this.#name(target, capabilities);
  }

  /**
   * @param {Target} target
   * @param {Capability[]} capabilities
   */
  #name(target, capabilities) {
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
    if (capabilities) this.#update(target, capabilities);
  }

  /**
   * Takes an app's own word for its tools, and announces what has changed.
   * @param {Target} target
   * @param {Capability[]} capabilities
   */
  #update(target, capabilities) {
    const before = this.#tools.get(target);
    const tools = this.#put(target, capabilities);
    if (before && JSON.stringify(before) !== JSON.stringify(tools)) {
      for (const listener of this.listeners) listener();
    }
    return tools;
  }

  // --- Calls ---------------------------------------------------------------------------------------

  /**
   * Begins a call.
   * @param {string} name of the tool
   * @param {unknown} args
   * @param {object} caller
   * @param {boolean} caller.canAsk whether it can be asked
   * @param {import('./runs.js').Owner} caller.owner which session it is
   * @param {AbortSignal} [caller.signal] of its request: nothing is begun once that is aborted
   * @returns {Promise<Run>}
   * @throws {InvalidRequest} when there is no such tool, or no room
   */
  async start(name, args, { canAsk, owner, signal }) {
    if (!this.#names.meaningOf(name)) await unlessAborted(this.listTools(), signal);
    const meaning = this.#names.meaningOf(name);
    if (!meaning)
      throw new InvalidRequest(`There is no tool ${JSON.stringify(name.slice(0, 200))}`);
    const { target, capability } = meaning;
    const listed = this.#toolNamed(target, name);
    const run = new Run(this.runs, {
      tool: name,
      owner,
      promisesData: listed?.outputSchema !== undefined,
      canAsk,
      execute: async (options) => {
        const change = await this.#changeOf(target, listed, options.signal);
        if (change) {
          return {
            cancelled: false,
            result: failureOf('CAPABILITY_UNAVAILABLE', change, { retryable: true }),
          };
        }
        const response = await target.app.call(capability, args ?? {}, options);
        const checker = /** @type {SchemaChecker} */ (this.#checkers.get(target));
        const { files } = this;
        const result = await toolResult(response, {
          outputSchema: listed?.outputSchema,
          files,
          checker,
          owner,
          progress: run.progress,
        });
        return { cancelled: hasStopped(response), result };
      },
    });
    return run;
  }

  /**
   * @param {Target} target
   * @param {string} name
   */
  #toolNamed(target, name) {
    return this.#tools.get(target)?.find((each) => each.name === name);
  }

  /**
   * Waits for the app where its tools are those of another time.
   * @param {Target} target
   * @param {Tool | undefined} listed the tool, as it was listed
   * @param {AbortSignal} [signal]
   * @returns {Promise<string | undefined>} how the tool has changed, in words for whoever calls it
   */
  async #changeOf(target, listed, signal) {
    if (!listed || !this.#unconfirmed.has(target)) return undefined;
    try {
      await unlessAborted(target.app.open(), signal);
    } catch {
      return undefined; // The call says so itself.
    }
    await this.#refresh(target);
    const now = this.#toolNamed(target, listed.name);
    if (!now) return 'The app no longer has this tool: list the tools again';
    const [before, after] = [listed, now].map(({ inputSchema, outputSchema }) =>
      JSON.stringify([inputSchema, outputSchema]),
    );
    if (before === after) return undefined;
    const schema = cleanText(JSON.stringify(now.inputSchema), MAX_SHOWN);
    return `The tool has changed since it was listed, and was not called. Its arguments now: ${schema}`;
  }

  /**
   * Cancels what runs, waits a while for it to stop, and ends the browsers.
   * @param {string} reason
   */
  async close(reason) {
    for (const timer of this.#awaited.values()) clearTimeout(timer);
    for (const run of this.runs.tasks.all) run.abort(reason);
    const ended = Promise.all(this.runs.tasks.all.map((run) => run.ended));
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSING).unref())]);
    await Promise.all(this.#targets.map(({ app }) => app.close()));
    await Promise.all([...this.#checkers.values()].map((checker) => checker.close()));
    await this.files.close();
  }

  /** Ends the browsers at once. */
  kill() {
    for (const { app } of this.#targets) app.kill();
  }
}
