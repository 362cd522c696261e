/**
 * The apps, their tools, and the calls that run, for however many clients there are. How it is
 * made:
 *
 * - `main.js` reads the command line by the table in `commands.js`, `commands/` has what each
 *   command does, and `signals.js` what ends it.
 * - `app.js` is one app: an agent's session, made when it is needed and again when it was lost,
 *   over a socket, in a page (`page-way.js`, with a browser of its own: `profile.js`,
 *   `unattended.js`, `find-browser.js`), or in the browser of another gateway that has the profile
 *   (`profile-socket.js`, `shared-app.js`).
 * - `mcp-server.js` is what a client of MCP sees, on stdio (`commands/mcp.js`) or HTTP (`http.js`,
 *   `http-guard.js`), and waits with a request for what becomes of a call; `mcp-methods.js` has its
 *   tools, tasks and resources.
 * - A call: `tools/call` asks `Gateway.start` for a run (`runs.js`), whose `app.call` is a call of
 *   the core's. Its progress (`progress.js`) and its questions (`questions.js`) go to the request
 *   that waits; its response becomes a tool's result (`results.js`, with `plain.js`, `outcomes.js`,
 *   `files.js`, `schema-checker.js`), and tells of earlier calls (`earlier.js`). If that takes
 *   long, the request is answered with a task or a handle, and another one asks for the run.
 * - The core decides what becomes of a call, and, as for A2A's tasks, which state a run is in, when
 *   nobody asks for it any more, and how long its result is kept. Here are values: what apps said
 *   last, results, questions, files.
 * - `commands/a2a.js` gives an app to `createTaskServer` of `@abp-bridge/a2a` as its executor.
 */
import { discover, isPublic } from 'abp-bridge/discover';
import { repeatOf } from './earlier.js';
import { InvalidRequest } from './errors.js';
import { MAX_MESSAGE, ResultFiles } from './files.js';
import { learn, recall } from './profile.js';
import { toolResult } from './results.js';
import { Run, Runs } from './runs.js';
import { SchemaChecker } from './schema-checker.js';
import { failed } from './shared-app.js';
import { cleanText } from './texts.js';
import { HANDLE_NAMES, MAX_TOOLS, ToolNames, toolOf } from './tools.js';
import { unlessAborted, within } from './waiting.js';

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
 * @typedef {object} Named An app, what begins its tools' names, and what descriptions call it,
 *   where there are several.
 * @property {import('./app.js').App} app
 * @property {string} prefix
 * @property {string} [label]
 * @typedef {object} Known What is known of it besides.
 * @property {SchemaChecker} checker of its schemas: a thread of its own
 * @property {Tool[]} [tools] as they were last known
 * @property {boolean} [isRecalled] whether they are those of another time, which no page has
 *   confirmed yet
 * @property {ReturnType<typeof setTimeout>} [retry] it could not be reached, and is tried again
 *
 * @typedef {Named & Known} Target
 */

export class Gateway {
  #targets;
  #log;
  /** @type {ToolNames<Target>} */
  #names = new ToolNames(HANDLE_NAMES);
  runs = new Runs();
  /** Hear that the list of tools has changed. @type {Set<() => void>} */
  listeners = new Set();

  /**
   * @param {Named[]} targets
   * @param {{ patience: number, out?: string, log: (line: string) => void, name: string,
   *   version: string }} options `patience`: ms after which a call is answered with a handle or a
   *   task; `out`: folder of large results
   */
  constructor(targets, { patience, out, log, name, version }) {
    this.#targets = targets.map((named) => {
      /** @type {Target} */
      const target = { ...named, checker: new SchemaChecker() };
      target.app.watchers.add(() => void this.#refresh(target));
      return target;
    });
    this.#log = log;
    this.patience = patience;
    this.serverInfo = { name, version };
    this.files = new ResultFiles(out);
  }

  // --- Tools -------------------------------------------------------------------------------------

  /**
   * Every tool, complete. The first time this opens the apps; where a manifest says what one can
   * do, that is not waited for.
   * @returns {Promise<Tool[]>}
   * @throws {Error} when no app can be reached
   */
  async listTools() {
    const lists = await Promise.allSettled(this.#targets.map((target) => this.#toolsOf(target)));
    const [failure] = lists.flatMap((list) => (list.status === 'rejected' ? [list.reason] : []));
    if (failure && lists.every(({ status }) => status === 'rejected')) throw failure;
    return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
  }

  /**
   * Tries again now and then to reach an app, and announces its tools when it is up.
   * @param {Target} target
   * @param {number} [delay] ms
   */
  #retry(target, delay = FIRST_RETRY) {
    const tryAgain = async () => {
      const capabilities = await target.app.listCapabilities().catch(() => undefined);
      target.retry = undefined;
      if (!capabilities) return this.#retry(target, Math.min(2 * delay, LAST_RETRY));
      this.#put(target, capabilities);
      this.#announce();
    };
    target.retry ??= setTimeout(() => void tryAgain(), delay).unref();
  }

  #announce() {
    for (const listener of this.listeners) listener();
  }

  /**
   * @param {Target} target
   * @returns {Promise<Tool[]>}
   */
  async #toolsOf(target) {
    const { app, tools } = target;
    if (tools) return tools;
    const opened = app.listCapabilities().then((capabilities) => this.#put(target, capabilities));
    opened.catch(({ message }) => {
      this.#log(message);
      this.#retry(target);
    });
    const learnt = app.profile && recall(app.profile, app.url);
    if (!learnt) {
      // Where there is a manifest, it is faster than the app.
      const found = manifestOf(app.url).then(
        (capabilities) => capabilities && (target.tools ?? this.#name(target, capabilities)),
      );
      return (await Promise.race([opened, found])) ?? opened;
    }
    target.isRecalled = true;
    return this.#name(target, learnt);
  }

  /**
   * Takes an app's own word for its tools, and announces what has changed.
   * @param {Target} target
   * @param {Capability[]} capabilities
   */
  #put(target, capabilities) {
    const { tools: before, app } = target;
    target.isRecalled = false;
    if (app.profile) learn(app.profile, app.url, capabilities);
    const tools = this.#name(target, capabilities);
    if (before && JSON.stringify(before) !== JSON.stringify(tools)) this.#announce();
    return tools;
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
      .map((each) => toolOf(each, this.#names.of(target, each.name), target.label))
      .filter((tool) => (room -= Buffer.byteLength(JSON.stringify(tool))) >= 0);
    if (tools.length < usable.length) {
      const { href } = target.app.url;
      this.#log(`${href} has ${usable.length} capabilities; ${tools.length} are shown`);
    }
    return (target.tools = tools);
  }

  /** @param {Target} target */
  async #refresh(target) {
    const capabilities = await target.app.knownCapabilities();
    if (capabilities) this.#put(target, capabilities);
  }

  // --- Calls -------------------------------------------------------------------------------------

  /**
   * Begins a call.
   * @param {string} name of the tool
   * @param {unknown} args
   * @param {object} caller
   * @param {boolean} caller.canAsk whether it can be asked
   * @param {string | undefined} caller.owner which session it is
   * @param {AbortSignal} [caller.signal] of its request: nothing is begun once that is aborted
   * @param {string | number} [caller.requestId]
   * @param {import('./earlier.js').Identity} caller.identity who calls, and what
   * @returns {Promise<Run>}
   * @throws {InvalidRequest} when there is no such tool, or no room
   */
  async start(name, args, { canAsk, owner, signal, requestId, identity }) {
    const { key: idempotencyKey } = identity;
    if (!this.#names.meaningOf(name)) await unlessAborted(this.listTools(), signal);
    const { target, capability } = this.#names.meaningOf(name) ?? {};
    if (!target || capability === undefined)
      throw new InvalidRequest(`There is no tool ${JSON.stringify(name.slice(0, 200))}`);
    const listed = toolNamed(target, name);
    const outputSchema = listed?.outputSchema;
    const before = this.runs.sameAs(identity);
    const doubt = before?.task.doubt;
    const run = new Run(this.runs, {
      tool: name,
      owner,
      identity,
      requestId,
      promisesData: outputSchema !== undefined,
      canAsk,
      execute: async (options) => {
        const change = listed && (await this.#changeOf(target, listed, options.signal));
        // A key is known to the memory that the first call was made to, and to no other.
        const memory = idempotencyKey && before?.result ? (before.memory ?? null) : undefined;
        const keyed = { ...options, idempotencyKey, memory };
        // An app that was loaded again would not know it.
        const isOther = memory !== undefined && before?.identity.args !== identity.args;
        const told =
          change ?? (isOther ? undefined : await target.app.call(capability, args ?? {}, keyed));
        const { error, metadata } = told ?? {};
        const isReused = error?.code === 'KEY_REUSED' && metadata?.outcome === 'unstarted';
        const response = told && !isReused ? told : reused(identity.named);
        const { files } = this;
        const { checker } = target;
        const { progress } = run;
        const delivery = { outputSchema, files, checker, owner, progress };
        return { response, result: await toolResult(response, delivery) };
      },
    });
    if (before && doubt && !idempotencyKey && !listed?.annotations?.readOnlyHint)
      run.repeats = repeatOf(before, doubt);
    return run;
  }

  /**
   * Waits for the app where its tools are those of another time.
   * @param {Target} target
   * @param {Tool} listed the tool, as it was listed
   * @param {AbortSignal} [signal]
   * @returns {Promise<import('./app.js').Result | undefined>} the response to a call of a tool that
   *   has changed: what it is now
   */
  async #changeOf(target, listed, signal) {
    if (!target.isRecalled) return undefined;
    try {
      await unlessAborted(target.app.open(), signal);
    } catch {
      return undefined; // The call says so itself.
    }
    await this.#refresh(target);
    const now = toolNamed(target, listed.name);
    if (!now) return unavailable('The app no longer has this tool: list the tools again');
    const [before, after] = [listed, now].map(({ inputSchema, outputSchema }) =>
      JSON.stringify([inputSchema, outputSchema]),
    );
    if (before === after) return undefined;
    const schema = cleanText(JSON.stringify(now.inputSchema), MAX_SHOWN);
    return unavailable(
      `The tool has changed since it was listed, and was not called. Its arguments now: ${schema}`,
    );
  }

  /**
   * Cancels what runs, waits a while for it to stop, and ends the browsers.
   * @param {string} reason
   */
  async close(reason) {
    for (const { retry, app } of this.#targets) {
      clearTimeout(retry);
      app.probe(CLOSING);
    }
    const runs = this.runs.tasks.all;
    for (const run of runs) run.abort(reason);
    const ended = Promise.all(runs.map((run) => run.ended));
    await within(CLOSING, ended).catch(() => {});
    await Promise.all(this.#targets.map(({ app }) => app.close()));
    await Promise.all(this.#targets.map(({ checker }) => checker.close()));
    await this.files.close();
  }
}

/** @param {string} message */
const unavailable = (message) =>
  failed('CAPABILITY_UNAVAILABLE', message, {
    retryable: true,
    metadata: { outcome: 'unstarted' },
  });

/**
 * In the client's words: its app knows the key by another name.
 * @param {string | undefined} key
 */
const reused = (key) =>
  failed(
    'KEY_REUSED',
    `The key ${JSON.stringify(key)} belongs to a call with other arguments: give this one a key of its own`,
    { metadata: { outcome: 'unstarted' } },
  );

/**
 * @param {Target} target
 * @param {string} name
 */
const toolNamed = ({ tools }, name) => tools?.find((each) => each.name === name);

/**
 * What the manifest of an app's page says, if it has one.
 * @param {URL} url
 * @returns {Promise<Capability[] | undefined>}
 */
async function manifestOf(url) {
  if (!/^http/.test(url.protocol)) return undefined;
  // What the page names is asked only of its own origin: it must not make the gateway ask others,
  // and another origin's manifest says nothing of this app.
  const allowPrivate = !isPublic(url.hostname);
  const options = { sameOrigin: true, allowPrivate, timeout: MANIFEST_TIMEOUT };
  const found = await discover(url, options).catch(() => undefined);
  return found?.supported ? found.manifest.capabilities : undefined;
}
