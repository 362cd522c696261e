/**
 * An agent and an app that do what a transcript says. They run in Node and in pages, on this
 * library or on the plain peers: what they need is `client.call`, `client.cancel` and handlers.
 */

const line = (...words) => words.filter((word) => word !== undefined && word !== '').join(' ');

export class AgentDriver {
  #controllers = new Map();

  /**
   * @param {(line: string) => void} log
   */
  constructor(log) {
    this.log = log;
  }

  /** What a plain client hears of progress goes by operationId; ours hands it to the call. */
  onProgress = (info) => this.#progress(info.operationId, info);

  #progress(id, { progress, total, percentage }) {
    this.log(`agent: progress ${id} ${progress}/${total} ${percentage}%`);
  }

  async #call(id, signal, { timeout, name = 'work' }) {
    const options = { signal, callId: id, onProgress: (info) => this.#progress(id, info) };
    if (timeout) options.timeout = Number(timeout);
    const response = await this.client.call(name, {}, options);
    const { success, cancelled, error } = response;
    if (success) this.log(`agent: ${id} completed`);
    else if (cancelled)
      this.log(`agent: ${id} ${error?.code === 'TIMEOUT' ? 'timed out' : 'cancelled'}`);
    else this.log(`agent: ${id} failed ${error.code}`);
  }

  async do(what, id, ...words) {
    const text = words.join(' ');
    switch (what) {
      case 'call':
      case 'call-aborted': {
        const controller = new AbortController();
        if (what === 'call-aborted') controller.abort('already');
        if (!this.#controllers.has(id)) this.#controllers.set(id, controller);
        void this.#call(id, controller.signal, Object.fromEntries(words.map((w) => w.split('='))));
        return;
      }
      case 'abort':
        this.#controllers.get(id).abort(new DOMException(text, 'AbortError'));
        return;
      case 'cancel': {
        const answer = await this.client.cancel(id, text || undefined);
        this.log(line('agent: cancel', id, String(answer.cancelled), answer.reason));
        return;
      }
      case 'close':
        this.client.close();
        return;
      default:
        throw new Error(`the agent cannot ${what}`);
    }
  }
}

export class AppDriver {
  #calls = new Map();

  /** @param {(line: string) => void} log */
  constructor(log) {
    this.log = log;
    this.handlers = {
      work: (_params, context) => this.#work(context),
      /** A round trip: whatever was sent before has arrived. */
      barrier: () => 'here',
    };
  }

  #work({ signal, callId, progress }) {
    this.log(`app: start ${callId}`);
    signal.addEventListener('abort', () => {
      const { name, message } = signal.reason;
      if (name !== 'AbortError') this.log(`app: wrong reason ${name}`);
      // Without words from the other side, each library has its own.
      this.log(
        line(
          'app: abort',
          callId,
          /^(The operation was )?cancelled$|aborted/.test(message) ? '' : message,
        ),
      );
    });
    return new Promise((resolve, reject) => this.#calls.set(callId, { resolve, reject, progress }));
  }

  do(what, id, ...words) {
    const call = this.#calls.get(id);
    switch (what) {
      case 'return':
        return call.resolve('done');
      case 'fail':
        return call.reject(new Error('broken'));
      case 'abort-error':
        return call.reject(new DOMException('stopped', 'AbortError'));
      case 'progress':
        return call.progress({ progress: Number(words[0]), total: Number(words[1]) });
      default:
        throw new Error(`the app cannot ${what}`);
    }
  }
}
