/** An agent whose every answer the test writes itself. It speaks 1.0. */
import { once } from 'node:events';
import { createServer } from 'node:http';

/** One request that came, and how it is answered. */
class Asked {
  #response;

  /**
   * @param {any} rpc
   * @param {import('node:http').ServerResponse} response
   */
  constructor(rpc, response) {
    this.rpc = rpc;
    this.#response = response;
    /** Resolves once the client has disconnected, or has all of the answer. */
    this.closed = once(response, 'close');
  }

  /** @param {object} body of the JSON-RPC response */
  answer(body) {
    this.raw(
      200,
      'application/json',
      JSON.stringify({ jsonrpc: '2.0', id: this.rpc?.id, ...body }),
    );
  }

  /**
   * @param {number} status
   * @param {string} type
   * @param {string} body
   * @param {object} [headers]
   */
  raw(status, type, body, headers) {
    this.#response.writeHead(status, { 'content-type': type, ...headers }).end(body);
  }

  /** @param {string} [type] */
  open(type = 'text/event-stream') {
    this.#response.writeHead(200, { 'content-type': type }).flushHeaders();
    return this;
  }

  /** @param {object} result */
  frame(result) {
    return this.text(`data: ${JSON.stringify({ jsonrpc: '2.0', id: this.rpc.id, result })}\n\n`);
  }

  /**
   * @param {string} id
   * @param {string} state
   */
  status(id, state) {
    return this.frame({ statusUpdate: { taskId: id, status: { state: `TASK_STATE_${state}` } } });
  }

  /**
   * @param {string} id
   * @param {string} artifactId
   * @param {string} text
   * @param {boolean} [append]
   */
  artifact(id, artifactId, text, append = false) {
    const artifact = { artifactId, parts: [{ text }] };
    return this.frame({ artifactUpdate: { taskId: id, artifact, append } });
  }

  /** @param {string} text */
  text(text) {
    this.#response.write(text);
    return this;
  }

  /**
   * Writes for as long as somebody reads. Resolves with how much that was.
   * @param {string} text
   */
  async endless(text, most = Infinity) {
    let sent = 0;
    while (!this.#response.destroyed && sent < most) {
      sent += text.length;
      if (!this.#response.write(text)) {
        await Promise.race([once(this.#response, 'drain'), this.closed]);
      }
    }
    return sent;
  }

  end() {
    this.#response.end();
  }

  /** Breaks the connection. */
  destroy() {
    this.#response.destroy();
  }
}

/**
 * @param {string} id
 * @param {string} state
 * @param {object[]} [artifacts]
 */
export const task = (id, state, artifacts) => ({
  id,
  status: { state: `TASK_STATE_${state}` },
  ...(artifacts && { artifacts }),
});

/**
 * Starts an agent. `next(method)` awaits the next request of a method, the first of which are kept.
 */
export async function startAgent() {
  /** @type {Asked[]} */
  const arrived = [];
  const seen = [];
  let wake = () => {};
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const rpc = text ? JSON.parse(text) : undefined;
    seen.push(rpc?.method ?? request.url);
    const asked = new Asked(rpc, response);
    asked.name = rpc?.method ?? request.url;
    asked.headers = request.headers;
    arrived.push(asked);
    wake();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    /** Methods and paths, as they came. */
    seen,
    /**
     * @param {string} name
     * @returns {Promise<any>}
     */
    async next(name) {
      for (;;) {
        const at = arrived.findIndex((asked) => asked.name === name);
        if (at >= 0) return arrived.splice(at, 1)[0];
        await new Promise((resolve) => (wake = resolve));
      }
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
