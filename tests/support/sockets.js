/**
 * Two ends of a WebSocket in one process, without a network: text goes from one to the other, and a
 * test reads along.
 */
import { webSocketTransport } from '../../parts/transports/index.js';

class SocketEnd extends EventTarget {
  readyState = 1;
  bufferedAmount = 0;
  /** What was sent from here. @type {string[]} */
  sent = [];
  /** @type {SocketEnd} */
  other = this;

  /** @param {string} text */
  send(text) {
    this.sent.push(text);
    queueMicrotask(() => this.other.dispatchEvent(new MessageEvent('message', { data: text })));
  }

  close(code = 1005, reason = '') {
    if (this.readyState === 3) return;
    for (const end of [this, this.other]) {
      end.readyState = 3;
      end.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
    }
  }
}

export function socketPair() {
  const ends = [new SocketEnd(), new SocketEnd()];
  [ends[0].other, ends[1].other] = [ends[1], ends[0]];
  return ends;
}

/**
 * The ends of a pair, as `openPair` takes them (tests/support/pair.js).
 * @param {SocketEnd[]} pair of the agent and of the app
 * @param {object} [options] of the app's transport
 */
export const overSockets =
  ([agent, app], options) =>
  async () => [
    { transport: () => webSocketTransport(agent), close: () => agent.close() },
    { transport: () => webSocketTransport(app, options), close: () => app.close() },
  ];
