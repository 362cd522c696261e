/** `a2a`: the app as an A2A agent, one skill a capability. */
import { createTaskServer } from '@abp-bridge/a2a';
import { App, hasStopped } from '../app.js';
import { keepAliveOf, serveGuarded } from '../http-guard.js';
import { toPlain } from '../plain.js';
import { progressText } from '../progress.js';
import { failureFrom } from '../results.js';
import { cleanText } from '../texts.js';
import { signalled } from '../signals.js';
import { unlessAborted } from '../waiting.js';

/** Ms that a cancelled task may take to report its outcome. */
const GRACE = 5000;

/** @typedef {import('@abp-bridge/a2a').ExecutorContext} ExecutorContext */

/**
 * The request in a message: a data part `{ skill, params }`, or the skill's name in
 * `metadata.skill` and its params in a data part or as JSON in the text.
 * @param {ExecutorContext['message']} message
 */
function requestOf({ parts, metadata }) {
  const data = /** @type {any} */ (parts.find((part) => part.data !== undefined)?.data);
  if (typeof data?.skill === 'string') return { skill: data.skill, params: data.params ?? {} };
  const skill = typeof metadata?.skill === 'string' ? metadata.skill : undefined;
  if (data !== undefined) return { skill, params: data };
  const text = parts.find((part) => typeof part.text === 'string')?.text ?? '';
  if (!skill) return { skill: text.trim(), params: {} };
  try {
    return { skill, params: text.trim() ? JSON.parse(text) : {} };
  } catch {
    return { skill, params: { text } };
  }
}

/**
 * Calls the skill that a message names, and reports the call's outcome.
 * @param {import('../app.js').App} app
 * @returns {(context: ExecutorContext) => Promise<void>}
 */
export const executor = (app) => async (context) => {
  const { message, signal, emitStatus, emitArtifact } = context;
  const { skill, params } = requestOf(message);
  // If the app cannot be reached, the call returns the reason.
  const capabilities = await unlessAborted(app.listCapabilities(), signal).catch(() => undefined);
  if (!skill || capabilities?.every(({ name }) => name !== skill)) {
    const names = (capabilities ?? []).slice(0, 50).map(({ name }) => name);
    const known = names.length ? ` There are: ${cleanText(names.join(', '), 4000)}` : '';
    const text = `Say which skill in a data part { skill, params }.${known}`;
    emitStatus('rejected', { parts: [{ text }], metadata: { outcome: 'unstarted' } });
    return;
  }
  /** @type {import('../progress.js').Info | undefined} */
  let progress;
  const response = await app.call(skill, params, {
    signal,
    owner: context.task.id,
    onProgress: (info) => {
      progress = info;
      const words = progressText(info);
      const percent = Number.isFinite(info.percentage) ? `${info.percentage} %` : '';
      emitStatus('working', [percent, words].filter(Boolean).join(' '));
    },
  });
  if (!response.success) {
    const { outcome, report } = /** @type {import('../outcomes.js').Became} */ (
      response.metadata ?? {}
    );
    emitStatus(hasStopped(response) && signal.aborted ? 'canceled' : 'failed', {
      parts: [{ text: failureFrom(response, progress).content[0].text }],
      ...(outcome && { metadata: { outcome, ...(report !== undefined && { report }) } }),
    });
    return;
  }
  /** @type {import('@abp-bridge/a2a').Part[]} */
  const parts = [];
  /** @type {import('../plain.js').Describe} */
  const put = ({ bytes, mimeType, filename }, rest) => {
    const raw = Buffer.from(bytes).toString('base64');
    const named = filename && { filename: cleanText(filename, 200) };
    parts.push({ raw, mediaType: mimeType, ...named });
    return { ...rest, mimeType, size: bytes.length };
  };
  const data = await toPlain(response.data, put);
  await toPlain(response.downloads, put);
  emitArtifact({ artifactId: 'result', parts: [{ data }, ...parts] });
  // Set here, so that a late cancel does not hide it.
  emitStatus('completed');
};

/** @type {import('../commands.js').Execute} */
export async function execute([address], values, context) {
  const app = new App(address, values, context);
  const ended = signalled();
  try {
    const said = await Promise.race([app.describe(), ended]);
    if (typeof said === 'string') return;
    const { app: about, capabilities } = said;
    const skills = capabilities.map(({ name, description }) => ({
      id: name,
      name: cleanText(name, 256),
      description: cleanText(description, 4096) || cleanText(name, 256),
      tags: [],
    }));
    const agent = createTaskServer(
      {
        card: {
          name: cleanText(about?.name, 256),
          description: cleanText(about?.description, 4096) || 'A web app',
          version: cleanText(about?.version, 64),
          skills,
        },
        execute: executor(app),
      },
      // The guard checks the host names.
      { grace: GRACE, hosts: '*', keepAlive: keepAliveOf(values) },
    );
    const service = { what: 'A2A', where: values.http ?? '127.0.0.1:0', path: '/' };
    const server = await serveGuarded(service, values, (request, response, problem) => {
      if (!problem) return void agent.handle(request, response);
      response.writeHead(problem.status, { 'content-type': 'text/plain', ...problem.headers });
      response.end(problem.message);
    });
    await ended;
    agent.close();
    server.close();
    server.closeAllConnections();
  } finally {
    await app.close();
  }
}
