/**
 * Ways to join JSON-RPC peers, ours and others', and handlers that behave in the ways that matter.
 */
import { createPeer } from '../../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { CANCEL } from './dialects.js';

/**
 * A way for two to speak without a line in between: what one posts, the other hears in a task of
 * its own, in order, as JSON would carry it.
 */
export function linkedTransports() {
  const { port1, port2 } = new MessageChannel();
  return [portTransport(port1), portTransport(port2)];
}

/** Writes down what crosses a transport, as `direction` one way and `back` the other. */
export function recording(transport, log, direction, back) {
  const note = (dir, msg) => log.push({ dir, msg: msg === undefined ? msg : structuredClone(msg) });
  const tap = {
    post(message, transfer) {
      note(direction, message);
      transport.post(message, transfer);
    },
    onMessage() {},
    close: () => transport.close(),
  };
  transport.onMessage = (message, ports) => {
    if (back) note(back, message);
    tap.onMessage(message, ports);
  };
  transport.onClose = (why) => tap.onClose?.(why);
  transport.onUnreadable = (error) => tap.onUnreadable?.(error);
  return tap;
}

/** Two of our peers, and their messages in the order in which they were sent. */
export function peerPair(dialect, { a = {}, b = {} } = {}) {
  const [left, right] = linkedTransports();
  const log = [];
  return {
    a: createPeer(recording(left, log, 'a2b'), { dialect, ...a }),
    b: createPeer(recording(right, log, 'b2a'), { dialect, ...b }),
    log,
    /** Sends any message to b. */
    toB: (message) => left.post(message),
    sent: (dir) => log.filter((entry) => entry.dir === dir).map(({ msg }) => msg),
  };
}

/**
 * One of our peers, and a script as the other side: `post` sends to our peer, `heard` has what our
 * peer has sent.
 */
export function scriptedPeer(dialect, options = {}) {
  const waiting = [];
  const heard = [];
  const transport = {
    post(message) {
      heard.push(structuredClone(message));
      for (const wake of waiting.splice(0)) wake();
    },
    onMessage() {},
    close() {
      transport.closed = true;
    },
    closed: false,
  };
  const peer = createPeer(transport, { dialect, ...options });
  return {
    peer,
    heard,
    transport,
    /** Messages of one read. */
    post: (...messages) => {
      for (const message of messages) transport.onMessage(message, []);
    },
    /** Resolves when our peer has sent this many messages. */
    async said(count) {
      while (heard.length < count) await new Promise((wake) => waiting.push(wake));
      return heard;
    },
    /**
     * Resolves when our peer has done all that it does at once: it answers this request last. As a
     * request, a cancel is unknown to every peer.
     */
    async quiet() {
      const id = `quiet ${heard.length}`;
      transport.onMessage({ jsonrpc: '2.0', id, method: CANCEL[dialect][0] }, []);
      while (!heard.some((message) => message.id === id)) {
        await new Promise((wake) => waiting.push(wake));
      }
      heard.splice(
        heard.findIndex((message) => message.id === id),
        1,
      );
      await new Promise((resolve) => setImmediate(resolve));
      return heard;
    },
  };
}

/** Resolves when the signal fires. */
export const fired = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });

/** A gate that a test opens, and at which it can wait for somebody to come. */
export function gate() {
  const parts = {};
  parts.opened = new Promise((resolve) => (parts.open = resolve));
  parts.reached = new Promise((resolve) => (parts.reach = resolve));
  return parts;
}

/** How a promise ended, as one value: `{ ok }` or `{ err }`. */
export const outcome = (promise) =>
  promise.then(
    (ok) => ({ ok }),
    (err) => ({ err }),
  );

/**
 * Object streams as the ACP SDK has them, one end as ours.
 * @returns {[import('../../src/index.js').ChannelTransport, { readable: ReadableStream,
 *   writable: WritableStream }]}
 */
export function streamPair() {
  const there = new TransformStream();
  const back = new TransformStream();
  const writer = there.writable.getWriter();
  const reader = back.readable.getReader();
  const transport = {
    post: (message) => void writer.write(structuredClone(message)).catch(() => {}),
    onMessage() {},
    close() {
      writer.close().catch(() => {});
      reader.cancel().catch(() => {});
    },
  };
  const read = async () => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return transport.onClose?.();
      transport.onMessage(value, []);
    }
  };
  // Nothing is read before somebody listens.
  queueMicrotask(() => read().catch(() => transport.onClose?.()));
  return [transport, { readable: there.readable, writable: back.writable }];
}
