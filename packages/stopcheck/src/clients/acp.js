/** ACP, by the official SDK: a prompt turn, and `session/cancel`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { client as acpClient, ndJsonStream } from '@agentclientprotocol/sdk';
import { errorWord, textOf } from './words.js';

/**
 * @typedef {import('../call.js').Call} Call
 * @typedef {import('../options.js').Options} Options
 */

/** Ms in which a program must end when its input has ended, and when it was told to. */
const ENDING = 2000;
const METHOD_NOT_FOUND = -32601;

/**
 * @param {Options} options
 * @returns {import('../checked.js').Way}
 */
export const reach = (options) => ({ open: () => open(options) });

/**
 * @param {Options} options
 * @returns {Promise<import('../trial.js').Session>}
 */
async function open({ command: [command, ...args] }) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const gone = once(child, 'close').catch(() => {});
  const failed = once(child, 'error').then(([error]) => Promise.reject(error));
  failed.catch(() => {});
  child.stdin.on('error', () => {});
  let isClosed = false;
  /** By the ids of their sessions. @type {Map<string, Call>} */
  const calls = new Map();
  const app = acpClient({ name: 'stopcheck' });
  app.onRequest('session/request_permission', async ({ params }) => {
    const call = calls.get(params.sessionId);
    call?.say('question', undefined, params.toolCall.title ?? 'permission');
    // The protocol: a turn that was cancelled has its questions answered so.
    if (call?.leavesQuestions) {
      await new Promise((resolve) => call.controller.signal.addEventListener('abort', resolve));
      return { outcome: { outcome: 'cancelled' } };
    }
    const option = params.options.find(({ kind }) => kind.startsWith('allow')) ?? params.options[0];
    return { outcome: { outcome: 'selected', optionId: option.optionId } };
  });
  app.onNotification('session/update', ({ params }) => {
    const text = String(params.update.sessionUpdate);
    calls.get(params.sessionId)?.say('stream', 'running', text);
  });
  const stream = ndJsonStream(
    /** @type {any} */ (Writable.toWeb(child.stdin)),
    /** @type {any} */ (Readable.toWeb(child.stdout)),
  );
  const connection = app.connect(stream);
  const { agent } = connection;
  const { protocolVersion } = await Promise.race([
    agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} }),
    failed,
  ]);
  const newSession = () => agent.request('session/new', { cwd: process.cwd(), mcpServers: [] });

  /** @param {Call} call */
  async function prompt(call) {
    const { sessionId } = await newSession();
    calls.set(sessionId, call);
    call.begun = performance.now();
    if (call.isOvertaken) await stopSession(sessionId);
    const text = /** @type {const} */ ({ type: 'text', text: call.input });
    const answer = agent.request('session/prompt', { sessionId, prompt: [text] });
    call.name(sessionId);
    // Stop was pressed when there was no session yet.
    if (call.controller.signal.aborted) void stopSession(sessionId);
    try {
      const { stopReason } = /** @type {any} */ (await answer);
      call.say('answer', stopReason === 'cancelled' ? 'stopped' : 'finished', stopReason);
    } catch (error) {
      const { code, message } = /** @type {any} */ (error);
      if (isClosed) return;
      call.say('answer', errorWord(textOf(error), code), `error ${code}: ${message}`);
    }
  }
  const stopSession = (/** @type {string} */ sessionId) =>
    agent.notify('session/cancel', { sessionId });
  return {
    client: `@agentclientprotocol/sdk 2.x, ACP v${protocolVersion}`,
    pid: child.pid,
    lacks: {},
    start(call) {
      const end = () => call.end();
      prompt(call).then(end, end);
    },
    stop(call) {
      call.controller.abort();
      if (call.id) void stopSession(call.id);
    },
    stopById: (call) => call.id && stopSession(call.id),
    stopUnknown: () => stopSession('a session that never was'),
    async ping() {
      try {
        await agent.request('_stopcheck/ping', {});
      } catch (error) {
        if (/** @type {any} */ (error).code !== METHOD_NOT_FOUND) throw error;
      }
    },
    async close() {
      isClosed = true;
      connection.close();
      child.stdin.end();
      setTimeout(() => child.kill(), ENDING).unref();
      setTimeout(() => child.kill('SIGKILL'), 2 * ENDING).unref();
      await gone;
    },
  };
}
