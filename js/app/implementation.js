/**
 * An app that was made without this library: an object of the form of `window.abp`, served over an iframe, a port or
 * a socket. Apps differ in many details that our agent already copes with, so an agent of this library calls it, in its
 * page.
 */
import { connect } from '../agent/client.js';
import { requireJson } from '../common/errors.js';
import { readResponse } from '../wire/messages.js';
import { localPage, pageEvents } from '../automation/local-page.js';
import { pageTransport } from '../automation/page.js';

/** Tells agents about it. @typedef {Pick<import('./expose.js').Exposed, 'notify' | 'sessions'>} Audience */

/**
 * The page in which an app is found.
 * @param {unknown} abp
 */
function pageOf(abp) {
  const own = globalThis.window && /** @type {any} */ (window).abp === abp;
  return localPage(own ? globalThis : { ...pageEvents(), abp });
}

/** Takes the place of a Registry. */
export class Implementation {
  /** @type {Promise<import('../agent/client.js').Client> | undefined} */
  #client;
  /** @type {unknown[]} */
  #capabilities = [];
  #abp;
  #audience;
  /** Contexts of the calls that run. @type {Set<import('./registry.js').CallContext>} */
  #running = new Set();

  /**
   * @param {any} abp
   * @param {Audience} audience
   */
  constructor(abp, audience) {
    this.#abp = abp;
    this.#audience = audience;
    this.app = abp.app;
  }

  /**
   * Begins its session, unless it has one.
   * @param {ReturnType<typeof import('./connection.js').sessionOf>} session of the first agent that wants one
   * @returns {Promise<void>} resolves when it has a session; rejects with the app's error
   */
  async begin(session) {
    this.#client ??= this.#connect(session);
    try {
      const client = await this.#client;
      const capabilities = await client.listCapabilities();
      requireJson('what the app says of itself', client.app, 'app');
      requireJson('what the app says of itself', capabilities, 'capabilities');
      this.app = client.app;
      this.#capabilities = capabilities;
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** @param {ReturnType<typeof import('./connection.js').sessionOf>} session */
  #connect({ agent, requestedCapabilities, allowedRequests }) {
    const { name = 'unknown', version = '0' } = agent;
    /** @type {Promise<void> | undefined} */
    let after;
    const open = async () => {
      const transport = await pageTransport(pageOf(this.#abp), { after });
      after = transport.ended;
      return transport;
    };
    return connect(open, {
      agent: { name, version },
      requestedCapabilities,
      allowedRequests,
      onElicitation: (request) => this.#ask(request),
      onNotification: (event, data) => this.#audience.notify(event, data),
      onProgress: (info) => {
        for (const session of this.#audience.sessions) session.notifyProgress(info);
      },
      onDisconnect: () => (this.#client = undefined),
    });
  }

  /** Its question belongs to the call that runs, if there is only one; otherwise any agent may answer. @param {any} request */
  #ask(request) {
    const [context, another] = this.#running;
    if (context && !another) return context.elicit(request);
    return this.#audience.sessions.at(-1)?.elicit(request);
  }

  /** Ends its session: nobody has one with it any more. */
  end() {
    void this.#client?.then(
      (client) => client.close(),
      () => {},
    );
    this.#client = undefined;
  }

  list() {
    return this.#capabilities;
  }

  /** The app checks calls itself. */
  rejectionFor() {
    return 0;
  }

  /**
   * @param {import('../wire/messages.js').Request} request
   * @param {import('./registry.js').CallContext} context
   */
  async run({ name, params }, context) {
    const { signal, progress, progressToken, input } = context;
    const client = await this.#client;
    this.#running.add(context);
    try {
      const onProgress = progressToken === undefined ? undefined : progress;
      const options = { signal, onProgress, input };
      const said = await client?.call(/** @type {string} */ (name), params, options);
      // With other members it would be taken for data.
      const { success, data, error, cancelled, metadata } = readResponse(said);
      return success ? { success, data, metadata } : { success, error, cancelled, metadata };
    } finally {
      this.#running.delete(context);
    }
  }
}
