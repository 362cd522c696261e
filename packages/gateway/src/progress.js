/**
 * Progress for MCP: it rises each time, ends before the result, and includes regular signs of life.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanText } from './texts.js';

/** Ms of silence before a sign of life: hosts give up on silent calls. */
const SIGN_OF_LIFE = 20_000;
/** The increment of a sign of life, so that progress rises. */
const STEP = 0.001;
/**
 * Ms between the last progress and the result, if a client cannot be asked whether it has read the
 * progress.
 */
const DRAIN = 20;
/** Ms that a client may take to read the last progress before it gets the result. */
const MAX_DRAIN = 1000;
const MAX_MESSAGE = 500;
/** Notifications that may wait for a client. */
const MAX_WAITING = 256;

/**
 * @typedef {Partial<Record<'progress' | 'total' | 'percentage' | 'stage' | 'status'
 *   | 'estimatedRemaining', any>>} Info Progress as the app reports it: any value in any member.
 * @typedef {object} Notified
 * @property {string | number} progressToken
 * @property {number} progress
 * @property {number} [total]
 * @property {string} [message]
 */

/** @param {Info} info */
export function progressText({ stage, status, estimatedRemaining }) {
  const words = [cleanText(stage, 100), cleanText(status, MAX_MESSAGE)];
  if (Number.isFinite(estimatedRemaining) && estimatedRemaining > 0) {
    words.push(`about ${Math.ceil(estimatedRemaining / 1000)} s left`);
  }
  return words.filter(Boolean).join(': ');
}

/**
 * @param {string | number | undefined} progressToken of the request; without it nothing is sent
 * @param {(params: Notified) => Promise<void>} notify sends `notifications/progress`
 * @param {() => Promise<unknown>} [ping] requests a sign of life from the client
 */
export function progressSender(progressToken, notify, ping) {
  if (progressToken === undefined) return { report() {}, async drain() {}, stop() {} };
  let last = -Infinity;
  let sentAt = -Infinity;
  /** @type {{ total?: number, message?: string }} */
  let rest = {};
  let stopped = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** Notifications that the client has not taken yet. @type {Notified[]} */
  const waiting = [];
  /** Settles when all were taken. @type {Promise<void> | undefined} */
  let sending;
  const flush = async () => {
    for (let params = waiting.shift(); params; params = waiting.shift()) {
      sentAt = performance.now();
      await notify(params).catch(() => {});
    }
    sending = undefined;
  };
  const live = () => send(last === -Infinity ? 0 : last + STEP);
  const rearm = () => {
    clearTimeout(timer);
    timer = setTimeout(live, SIGN_OF_LIFE);
  };
  const send = (/** @type {number} */ progress) => {
    last = progress;
    // For a client that does not read, the last one replaces the others.
    if (waiting.length === MAX_WAITING) waiting.pop();
    waiting.push({ progressToken, progress, ...rest });
    sending ??= flush();
    rearm();
  };
  rearm();
  return {
    /** @param {Info} info */
    report(info) {
      if (stopped) return;
      const { percentage, progress, total } = info;
      const counts = Number.isFinite(progress);
      const value = counts ? progress : percentage;
      const most = !counts ? 100 : Number.isFinite(total) ? total : undefined;
      // The end is reported by the result.
      if (!Number.isFinite(value) || value >= (most ?? Infinity)) return;
      const message = progressText(info);
      const isNews = message !== '' && message !== rest.message;
      if (value <= last && !isNews) return;
      rest = { ...(most !== undefined && { total: most }), ...(message && { message }) };
      send(value > last ? value : last + STEP);
    },
    /**
     * Waits until the last was read. A client that reads it together with the result has forgotten
     * the token by then, and two well-known clients then end the connection.
     */
    async drain() {
      if (sentAt === -Infinity) return;
      if (sending) await Promise.race([sending, sleep(MAX_DRAIN, undefined, { ref: false })]);
      if (ping) return void (await ping().catch(() => {}));
      const left = sentAt + DRAIN - performance.now();
      if (left > 0) await sleep(left);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
