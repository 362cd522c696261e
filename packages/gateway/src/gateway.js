/**
 * The apps, their tools, and the calls in progress, for any number of clients. How it is made:
 *
 * - `main.js` reads the command line by the table in `commands.js`, `commands/` has the commands,
 *   and `signals.js` ends them.
 * - `app.js` is one app: an agent's session, made when it is needed and again when it was lost,
 *   over a socket, in a page (`page-way.js`, with a browser of its own: `profile.js`,
 *   `unattended.js`, `find-browser.js`), or in the browser of another gateway that has the profile
 *   (`profile-socket.js`, `shared-app.js`).
 * - `mcp-server.js` serves a client of MCP, on stdio (`commands/mcp.js`) or HTTP (`http.js`,
 *   `http-guard.js`), and makes a request wait for a call; `mcp-methods.js` has the tools, tasks
 *   and resources.
 * - A call: `tools/call` gets a run (`runs.js`) from `Gateway.start`, whose `app.call` is a call of
 *   the core's. Its progress (`progress.js`) and its questions (`questions.js`) go to the request
 *   that waits; its response becomes a tool's result (`results.js`, with `plain.js`, `outcomes.js`,
 *   `files.js`, `schema-checker.js`), with notes on earlier calls (`earlier.js`). If the call takes
 *   long, the request is answered with a task or a handle, and a later one requests the run.
 * - The core decides the outcome of a call, and, as for A2A's tasks, the state of a run, when it is
 *   no longer requested, and how long its result is kept. JavaScript holds values: the apps' latest
 *   reports, results, questions, files.
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

/** Ms that calls may take to stop when the gateway closes. */
const CLOSING = 3000;
/** Ms before the first retry to reach an app, and at most. */
const FIRST_RETRY = 5000;
const LAST_RETRY = 60_000;
/** Characters of a schema in an error. */
const MAX_SHOWN = 2000;
/** Ms that a manifest may take. */
const MANIFEST_TIMEOUT = 5000;

/**
 * @typedef {import('./tools.js').Capability} Capability
 * @typedef {import('./tools.js').Tool} Tool
 * @typedef {object} Named An app, the prefix of its tools' names, and its name in descriptions, if
 *   there are several.
 * @property {import('./app.js').App} app
 * @property {string} prefix
 * @property {string} [label]
 * @typedef {object} Known Further data on it.
 * @property {SchemaChecker} checker of its schemas, with its own thread
 * @property {Tool[]} [tools] the latest known
 * @property {boolean} [isRecalled] whether they are remembered from an earlier run, and no page has
 *   confirmed them yet
 * @property {ReturnType<typeof setTimeout>} [retry] the next attempt to reach it, after a failure
 *
 * @typedef {Named & Known} Target
 */

export class Gateway {
  #targets;
  #log;
  /** @type {ToolNames<Target>} */
  #names = new ToolNames(HANDLE_NAMES);
  runs = new Runs();
  /** Called when the list of tools has changed. @type {Set<() => void>} */
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
   * All tools. The first call opens the apps, and waits for those without a manifest.
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
   * Retries to reach an app at intervals, and announces its tools when it is up.
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
      // A manifest is faster than the app.
      const found = manifestOf(app.url).then(
        (capabilities) => capabilities && (target.tools ?? this.#name(target, capabilities)),
      );
      return (await Promise.race([opened, found])) ?? opened;
    }
    target.isRecalled = true;
    return this.#name(target, learnt);
  }

  /**
   * Stores the app's own list of capabilities, and announces changes.
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
    // One app's schemas must not use the other apps' share of the list.
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
   * @param {string | undefined} caller.owner its session
   * @param {AbortSignal} [caller.signal] of its request: nothing is started once that is aborted
   * @param {string | number} [caller.requestId]
   * @param {import('./earlier.js').Identity} caller.identity identifies the caller and the call
   * @returns {Promise<Run>}
   * @throws {InvalidRequest} if the tool is unknown, or there is no room
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
        // Only the memory that the first call was made to knows the key.
        const memory = idempotencyKey && before?.result ? (before.memory ?? null) : undefined;
        const keyed = { ...options, idempotencyKey, memory };
        // An app that was loaded again would not know it.
        const isOther = memory !== undefined && before?.identity.args !== identity.args;
        const answered =
          change ?? (isOther ? undefined : await target.app.call(capability, args ?? {}, keyed));
        const { error, metadata } = answered ?? {};
        const isReused = error?.code === 'KEY_REUSED' && metadata?.outcome === 'unstarted';
        const response = answered && !isReused ? answered : reused(identity.named);
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
   * Waits for the app if its tools are remembered from an earlier run.
   * @param {Target} target
   * @param {Tool} listed the tool as it was listed
   * @param {AbortSignal} [signal]
   * @returns {Promise<import('./app.js').Result | undefined>} if the tool has changed, the response
   *   to its call: an error with the present tool
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
   * Cancels running calls, waits a while for them to stop, and ends the browsers.
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
 * Names the client's own key: the app gets another one.
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
 * The capabilities in the manifest of an app's page, if it has one.
 * @param {URL} url
 * @returns {Promise<Capability[] | undefined>}
 */
async function manifestOf(url) {
  if (!/^http/.test(url.protocol)) return undefined;
  // Only URLs of the page's own origin are fetched: it must not make the gateway send requests to
  // others, and another origin's manifest does not describe this app.
  const allowPrivate = !isPublic(url.hostname);
  const options = { sameOrigin: true, allowPrivate, timeout: MANIFEST_TIMEOUT };
  const found = await discover(url, options).catch(() => undefined);
  return found?.supported ? found.manifest.capabilities : undefined;
}
