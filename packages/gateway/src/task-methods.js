/** MCP's methods of tasks, in both versions. The SDK has none. */
import {
  MissingRequiredClientCapabilityError,
  RELATED_TASK_META_KEY,
} from '@modelcontextprotocol/server';
import { attend } from './attend.js';
import { InvalidRequest } from './errors.js';
import { TASKS } from './mcp-client.js';
import { extensionTask, legacyTask } from './task-views.js';
import { questionsOf } from './tool-methods.js';

/**
 * @typedef {import('./run.js').Run} Run
 * @typedef {import('./mcp-client.js').Context} Context
 * @typedef {import('./mcp-client.js').McpClient} McpClient
 * @typedef {{ taskId: string }} WithTask
 */

/**
 * A schema for params of methods that the SDK does not know.
 * @param {(params: unknown) => boolean} isValid
 */
const paramsSchema = (isValid) => ({
  '~standard': {
    version: 1,
    vendor: 'abp-bridge-gateway',
    validate: (/** @type {unknown} */ value) =>
      isValid(value) ? { value } : { issues: [{ message: 'taskId must be a string' }] },
  },
});
const WITH_TASK = {
  params: paramsSchema(
    (params) => typeof (/** @type {Partial<WithTask> | undefined} */ (params)?.taskId) === 'string',
  ),
};
const ANY = { params: paramsSchema(() => true) };

/**
 * Serves `tasks/…` of 2026-07-28.
 * @param {McpClient} client
 */
export function serveTasks(client) {
  const { gateway, owner } = client;

  /**
   * @param {string} method
   * @param {(run: Run, ctx: Context) => object} handler
   */
  const task = (method, handler) =>
    client.handle(method, WITH_TASK, (/** @type {WithTask} */ { taskId }, ctx) => {
      if (!client.knowsTasks(ctx)) {
        const requiredCapabilities = { extensions: { [TASKS]: {} } };
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
      }
      return handler(gateway.runs.find(taskId, owner), ctx);
    });

  task('tasks/get', (run) => ({
    ...extensionTask(run),
    ...(run.state === 'completed' && { result: run.result }),
    ...(run.state === 'input_required' && { inputRequests: questionsOf(run) }),
  }));
  task('tasks/update', (run, { mcpReq: { inputResponses } }) => {
    const key = run.question?.key;
    if (key && inputResponses && Object.hasOwn(inputResponses, key)) {
      run.answer(inputResponses[key]);
    }
    return {};
  });
  task('tasks/cancel', (run) => {
    // What really becomes of it, `tasks/get` tells.
    run.abort('the client cancelled the task');
    return {};
  });
}

/**
 * Serves `tasks/…` of 2025-11-25.
 * @param {McpClient} client
 */
export function serveLegacyTasks(client) {
  const { owner } = client;
  const { runs } = client.gateway;

  /**
   * @param {string} method
   * @param {(run: Run, ctx: Context) => unknown} handler
   */
  const task = (method, handler) =>
    client.handle(method, WITH_TASK, (/** @type {WithTask} */ { taskId }, ctx) =>
      handler(runs.find(taskId, owner), ctx),
    );

  client.handle('tasks/list', ANY, () => ({ tasks: runs.of(owner).map(legacyTask) }));
  task('tasks/get', legacyTask);
  task('tasks/result', async (run, ctx) => {
    const meta = { [RELATED_TASK_META_KEY]: { taskId: run.id } };
    await attend(client, run, ctx, { patience: Infinity, owns: false, meta });
    return { ...run.result, _meta: { ...run.result?._meta, ...meta } };
  });
  task('tasks/cancel', async (run) => {
    if (!run.terminal) {
      run.abort('the client cancelled the task');
      // That it is cancelled may be said only when it is.
      await run.ended;
      if (run.state === 'cancelled') return legacyTask(run);
    }
    throw new InvalidRequest(`The task has ended as ${legacyTask(run).status}`);
  });
}
