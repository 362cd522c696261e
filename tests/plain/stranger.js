/**
 * An agent and an app that know what docs/protocol.md says of ports, signs of life, frames and
 * streams, and share no code with js/. A window is anything with `postMessage(message, transfer)`
 * and `onmessage`.
 */

const FEATURES = {
  notifications: true,
  progress: true,
  elicitation: true,
  'bridge.port': true,
  'bridge.frames': true,
  'bridge.liveness': true,
  'bridge.streams': true,
  'bridge.text': true,
};

/** Calls `on` for each entry of a frame, and for each message as an entry of kind 6. */
function entries(data, on) {
  const frame = typeof data === 'string' ? JSON.parse(data) : data;
  if (!Array.isArray(frame)) return on(6, 0, undefined, data);
  for (let i = 0; i < frame.length; i += 4) {
    const [kind, key, a, b] = frame.slice(i, i + 4);
    if (kind === 10) entries(b, on);
    else on(kind, key, a, b);
  }
}

const message = (type, payload, id) => ({ type, id, timestamp: Date.now(), payload });

/** An agent of an app in a window. */
export class StrangerAgent {
  log = [];
  #calls = new Map();
  #count = 0;
  #pongs = [];

  /** @returns {Promise<this>} when there is a session */
  async open(window) {
    const hello = crypto.randomUUID();
    this.id = hello;
    this.port = await new Promise((resolve) => {
      window.onmessage = ({ data, ports }) => {
        if (data.type !== 'initialize-result' || data.id !== hello) return;
        this.session = data.payload;
        resolve(ports[0]);
      };
      const agent = { name: 'stranger', version: '1' };
      const payload = { agent, protocolVersion: '0.1', features: FEATURES };
      window.postMessage(message('initialize', payload, hello));
    });
    this.port.onmessage = ({ data }) => entries(data, this.#hear);
    return this;
  }

  #hear = (kind, key, a, b) => {
    const call = this.#calls.get(key);
    if (kind === 1 || kind === 2) {
      const params = kind === 1 ? b : b[0];
      this.port.postMessage([3, key, 0, `${a}: ${params.question}`]);
    } else if (kind === 3) call.resolve({ success: true, data: b });
    else if (kind === 4) call.resolve(b);
    else if (kind === 5) call.progress.push(b);
    else if (kind === 7) this.log.push(`withdrawn ${key}`);
    else if (kind === 8) {
      call.chunks.push(b);
      this.port.postMessage([9, key, 1, a]);
    } else if (b.type === 'bridge/ping') {
      this.port.postMessage(message('bridge/pong', {}));
      this.onPing?.();
    } else if (b.type === 'bridge/pong') this.#pongs.shift()?.();
    else this.log.push(b.type === 'bridge/bye' ? `bye ${b.payload.persisted}` : b);
  };

  /** @returns a promise of the response, with `progress`, `chunks` and `key` */
  call(name, params, { stream, timeout = 0, progress = false } = {}) {
    const key = ++this.#count;
    const call = { key, progress: [], chunks: [] };
    const promise = new Promise((resolve) => (call.resolve = resolve));
    this.#calls.set(key, call);
    const window = stream ? [2, 1000] : [];
    const plain = !stream && !timeout && !progress;
    if (plain) this.port.postMessage([10, 0, undefined, JSON.stringify([1, key, name, params])]);
    else this.port.postMessage([2, key, name, [params, timeout, progress, ...window]]);
    return Object.assign(promise, call);
  }

  cancel(key, reason) {
    this.port.postMessage([7, key, reason, undefined]);
  }

  ping() {
    const pong = new Promise((resolve) => this.#pongs.push(resolve));
    this.port.postMessage([6, 0, undefined, message('bridge/ping', {})]);
    return pong;
  }

  bye(persisted) {
    this.port.postMessage(message('bridge/bye', { persisted }));
  }
}

/** An app that echoes, waits, counts and asks. */
export class StrangerApp {
  log = [];
  #running = new Map();
  #answers = new Map();
  #count = 0;
  #greeting;

  constructor(window) {
    window.onmessage = ({ data }) => {
      if (data.type !== 'initialize') return;
      const answer = () => message('initialize-result', this.#greeting, data.id);
      // It is repeated until it is answered, and answered again without a port.
      if (data.id === this.agent) return window.postMessage(answer());
      const { port1, port2 } = new MessageChannel();
      this.port = port1;
      this.port.onmessage = (event) => entries(event.data, this.#hear);
      this.agent = data.id;
      this.#greeting = {
        sessionId: crypto.randomUUID(),
        protocolVersion: '0.1',
        app: { id: 'stranger', name: 'Stranger', version: '1' },
        capabilities: [{ name: 'echo', available: true }],
        features: FEATURES,
      };
      window.postMessage(answer(), [port2]);
    };
  }

  #hear = async (kind, key, a, b) => {
    if (kind === 1) void this.#run(key, a, b ?? {}, []);
    else if (kind === 2) void this.#run(key, a, b[0] ?? {}, b);
    else if (kind === 3) this.#answers.get(key)(b);
    else if (kind === 4) this.#answers.get(key)(b.data);
    else if (kind === 7) {
      const error = { code: 'CANCELLED', message: a, retryable: false };
      if (this.#running.delete(key))
        this.port.postMessage([4, key, undefined, { success: false, cancelled: true, error }]);
    } else if (kind === 9) this.#running.get(key)?.(a);
    else if (b?.type === 'bridge/ping') {
      this.port.postMessage(message('bridge/pong', {}));
      this.onPing?.();
    } else this.log.push(b?.type ?? kind);
  };

  async #run(key, name, params, [, , progress, chunks, bytes]) {
    const { port } = this;
    if (name === 'echo') {
      if (progress === true) port.postMessage([5, key, undefined, { progress: 1, total: 4 }]);
      return port.postMessage([3, key, 7, params]);
    }
    if (name === 'waits') return this.#running.set(key, () => {});
    if (name === 'asks') {
      const number = ++this.#count;
      const answer = new Promise((resolve) => this.#answers.set(number, resolve));
      port.postMessage([1, number, 'elicitation/input', { question: 'Who?' }]);
      return port.postMessage([3, key, 0, await answer]);
    }
    if (name === 'counts') {
      let left = chunks;
      let granted = () => {};
      this.#running.set(key, (count) => {
        left += count;
        granted();
      });
      for (let i = 0; i < params.to; i++) {
        while (!left) await new Promise((resolve) => (granted = () => resolve(undefined)));
        left--;
        port.postMessage([8, key, 8, i]);
      }
      return port.postMessage([3, key, 0, { chunks, bytes }]);
    }
    const error = { code: 'UNKNOWN_CAPABILITY', message: name, retryable: false };
    return port.postMessage([4, key, undefined, { success: false, error }]);
  }

  bye(persisted) {
    this.port.postMessage(message('bridge/bye', { persisted }));
  }
}
