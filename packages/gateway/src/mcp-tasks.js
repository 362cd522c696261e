/** MCP's tasks, in both versions: their methods, which the SDK has not, and calls as tasks. */
import {
  MissingRequiredClientCapabilityError,
  RELATED_TASK_META_KEY,
} from '@modelcontextprotocol/server';
import { attend } from './attend.js';
import { InvalidRequest } from './errors.js';
import { OUTCOME } from './outcomes.js';
import { progressText } from './progress.js';
import { PATIENCE_WITH_CLIENTS } from './runs.js';
import { cleanText } from './texts.js';

/** The extension that made tasks of 2026-07-28. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** How often a client should ask for a task, in ms. */
const POLL_INTERVAL = 1000;

/**
 * @typedef {import('./runs.js').Run} Run
 * @typedef {import('./mcp-server.js').Context} Context
 * @typedef {import('./mcp-server.js').McpServer} McpServer
 */

// --- Calls as tasks --------------------------------------------------------------------------------

/** @param {Run} run */
function taskOf({ id, createdAt, updatedAt, result, progress }) {
  const failure = result?.isError ? result.content[0]?.text : '';
  const words = result ? cleanText(failure, 500) : progress && progressText(progress);
  // What became of the work of one that did not succeed.
  const outcome = result?._meta?.[OUTCOME];
  return {
    taskId: id,
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    ...(words && { statusMessage: words }),
    ...(outcome ? { _meta: { [OUTCOME]: outcome } } : {}),
  };
}

/** How long it is kept from its creation on, if nobody asks again. @param {Run} run */
const timeToLive = ({ began }) => Math.round(performance.now() - began) + PATIENCE_WITH_CLIENTS;

/** A task of 2025-11-25. There, a tool's own failure is a failed task. @param {Run} run */
export const legacyTask = (run) => ({
  ...taskOf(run),
  status: run.state === 'completed' && run.result?.isError ? 'failed' : run.state,
  ttl: timeToLive(run),
  pollInterval: POLL_INTERVAL,
});

/** A task of 2026-07-28. @param {Run} run */
export const extensionTask = (run) => ({
  ...taskOf(run),
  status: run.state,
  ttlMs: timeToLive(run),
  pollIntervalMs: POLL_INTERVAL,
});

// --- Their methods ---------------------------------------------------------------------------------

/** A schema for params of methods that the SDK does not know. @param {(params: any) => boolean} isValid */
const schemasOf = (isValid) => ({
  params: {
    '~standard': {
      version: 1,
      vendor: 'abp-bridge-gateway',
      validate: (/** @type {unknown} */ value) =>
        isValid(value) ? { value } : { issues: [{ message: 'taskId must be a string' }] },
    },
  },
});
const WITH_TASK = schemasOf((params) => typeof params?.taskId === 'string');

/**
 * @param {McpServer} server
 * @param {Record<string, (run: Run, ctx: Context) => unknown>} methods by name
 * @param {(ctx: Context) => void} [check] throws for clients that know no tasks
 */
function serve(server, methods, check) {
  for (const [method, handler] of Object.entries(methods)) {
    const handle = (/** @type {{ taskId: string }} */ { taskId }, /** @type {Context} */ ctx) => {
      check?.(ctx);
      return handler(server.gateway.runs.find(taskId, server.owner), ctx);
    };
    server.handle(method, handle, WITH_TASK);
  }
}

/** Serves `tasks/…` of 2026-07-28. @param {McpServer} server */
export function serveTasks(server) {
  const methods = {
    'tasks/get': (/** @type {Run} */ run) => ({
      ...extensionTask(run),
      ...(run.state === 'completed' && { result: run.result }),
      ...(run.state === 'input_required' && { inputRequests: run.inputRequests }),
    }),
    'tasks/update': (/** @type {Run} */ run, /** @type {Context} */ ctx) => {
      run.answerOneOf(ctx.mcpReq.inputResponses);
      return {};
    },
    'tasks/cancel': (/** @type {Run} */ run) => {
      // What really becomes of it, `tasks/get` tells.
      run.abort('the client cancelled the task');
      return {};
    },
  };
  serve(server, methods, (ctx) => {
    const requiredCapabilities = { extensions: { [TASKS]: {} } };
    if (!server.knowsTasks(ctx))
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
  });
}

/** Serves `tasks/…` of 2025-11-25. @param {McpServer} server */
export function serveLegacyTasks(server) {
  const { owner } = server;
  const { runs } = server.gateway;
  const list = () => ({ tasks: runs.of(owner).map(legacyTask) });
  server.handle(
    'tasks/list',
    list,
    schemasOf(() => true),
  );
  serve(server, {
    'tasks/get': legacyTask,
    'tasks/result': async (run, ctx) => {
      const meta = { [RELATED_TASK_META_KEY]: { taskId: run.id } };
      await attend(server, run, ctx, { patience: Infinity, owns: false, meta });
      return { ...run.result, _meta: { ...run.result?._meta, ...meta } };
    },
    'tasks/cancel': async (run) => {
      const hadEnded = run.result;
      run.abort('the client cancelled the task');
      // That it is cancelled may be said only when it is.
      await run.ended;
      if (!hadEnded && run.state === 'cancelled') return legacyTask(run);
      throw new InvalidRequest(`The task has ended as ${legacyTask(run).status}`);
    },
  });
}
