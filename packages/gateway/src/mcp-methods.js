/**
 * MCP's methods. Tools are the apps' capabilities. A call that takes long is answered with a task,
 * for which both versions have methods (the SDK has none), or with a handle, for which the gateway
 * has three tools. Resources are results in files.
 */
import {
  MissingRequiredClientCapabilityError,
  RELATED_TASK_META_KEY,
} from '@modelcontextprotocol/server';
import { identify } from './earlier.js';
import { InvalidRequest } from './errors.js';
import { OUTCOME } from './outcomes.js';
import { progressText } from './progress.js';
import { PATIENCE_WITH_CLIENTS } from './runs.js';
import { cleanText } from './texts.js';
import { HANDLE_NAMES } from './tools.js';

/** The extension that introduced tasks of 2026-07-28. */
export const TASKS = 'io.modelcontextprotocol/tasks';
/** Ms between a client's requests for a task. */
const POLL_INTERVAL = 1000;

/**
 * @typedef {import('./runs.js').Run} Run
 * @typedef {import('./mcp-server.js').Context} Context
 * @typedef {import('./mcp-server.js').McpServer} McpServer
 */

/** @param {McpServer} server */
export function serveMethods(server) {
  serveTools(server);
  serveTasks(server);
  const { files } = server.gateway;
  server.handle('resources/list', () => ({
    resources: files
      .of(server.owner)
      .map(({ uri, name, mimeType, size }) => ({ uri, name, mimeType, size })),
  }));
  server.handle('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.handle('resources/read', async ({ uri }) => {
    const contents = await files.read(uri, server.owner);
    if (!contents) throw new InvalidRequest('Unknown resource: only results can be read', { uri });
    return { contents: [contents] };
  });
}

// --- Tools ---------------------------------------------------------------------------------------

const [WAIT, STATUS, CANCEL] = HANDLE_NAMES;

/**
 * @param {string} name
 * @param {string} title
 * @param {string} description
 * @param {Record<string, boolean>} annotations
 */
const handleTool = (name, title, description, annotations) => ({
  name,
  title,
  description,
  inputSchema: {
    type: 'object',
    properties: { handle: { type: 'string', description: 'from the answer of the call' } },
    required: ['handle'],
    additionalProperties: false,
  },
  annotations: { ...annotations, openWorldHint: false },
});
const HANDLE_TOOLS = [
  handleTool(
    WAIT,
    'Wait for a call',
    'Waits for a call that took too long to answer at once, and returns its result, or reports that it is still running.',
    { readOnlyHint: true },
  ),
  handleTool(
    STATUS,
    'Ask for a call',
    'Reports the progress of a call that took too long to answer at once.',
    { readOnlyHint: true },
  ),
  handleTool(
    CANCEL,
    'Cancel a call',
    'Cancels a call that took too long to answer at once, and reports the outcome: cancelled, or its result if the app finished first.',
    { destructiveHint: true, idempotentHint: true },
  ),
];

/**
 * The answer for a call that still runs.
 * @param {Run} run
 * @param {boolean} [isOwnTool] whether it answers the call itself
 */
function stillRunning({ progress, id, tool, state, promisesData }, isOwnTool = false) {
  const percentage = Number.isFinite(progress?.percentage) && Math.round(progress?.percentage);
  const message = progress ? progressText(progress) : '';
  const so = [percentage !== false && `${percentage} %`, message].filter(Boolean).join(', ');
  const asks =
    state === 'input_required' ? ` The app asks a question: ${WAIT} puts it to the user.` : '';
  const text = `${tool} still runs${so ? ` (${so})` : ''}. Its handle is ${id}: ${WAIT} waits for the result, ${STATUS} says how far it is, ${CANCEL} cancels it.${asks}`;
  return {
    content: [{ type: 'text', text }],
    // Clients reject a result without the data that its tool promises, unless it is an error.
    ...(isOwnTool && promisesData && { isError: true }),
    _meta: {
      'abp-bridge/call': {
        handle: id,
        status: asks ? state : 'working',
        ...(percentage !== false && { percentage }),
        ...(message && { message }),
      },
    },
  };
}

/**
 * @param {Run} run
 * @param {string} binding that the client must repeat
 */
const inputRequired = (run, binding) => ({
  resultType: 'input_required',
  inputRequests: run.inputRequests,
  requestState: run.suspend(binding),
});

/** @param {McpServer} server */
function serveTools(server) {
  const { gateway, isModern, owner } = server;
  const { runs, patience } = gateway;
  // Otherwise no call is answered before its end.
  const hasHandles = patience !== Infinity;

  server.handle('tools/list', async () => {
    const tools = await gateway.listTools();
    const execution = { taskSupport: /** @type {const} */ ('optional') };
    const shown = isModern ? tools : tools.map((tool) => ({ ...tool, execution }));
    return { tools: [...shown, ...(hasHandles ? HANDLE_TOOLS : [])] };
  });

  server.handle('tools/call', async ({ name, arguments: args = {}, task }, ctx) => {
    const { signal, id, _meta, inputResponses, requestState } = ctx.mcpReq;
    const state = requestState();
    const identity = identify(_meta, owner, name, args);
    const { reader } = identity;
    const comeBack = (/** @type {string} */ binding) =>
      runs.resume(String(state), binding, owner, inputResponses);
    if (hasHandles && HANDLE_NAMES.includes(name)) {
      const run = runs.find(args.handle, owner);
      const binding = JSON.stringify([name, run.id]);
      if (state !== undefined) comeBack(binding);
      if (name === CANCEL) run.abort('the client cancelled');
      const event = name !== STATUS && (await server.attend(run, ctx, { patience }));
      if (event === 'asked' && server.canAsk(ctx)) return inputRequired(run, binding);
      return server.tell(run.result ?? stillRunning(run), run, ctx, reader);
    }
    // Also while its app is being opened.
    const exchange = server.exchange?.();
    if (exchange) exchange.goesOn = identity.continues;
    const binding = JSON.stringify([name, args]);
    const caller = { canAsk: server.canAsk(ctx), owner, signal, requestId: id, identity };
    const run = state === undefined ? await gateway.start(name, args, caller) : comeBack(binding);
    const isTask = !isModern && task;
    const event = isTask ? 'late' : await server.attend(run, ctx, { patience, owns: true });
    if (event === 'ended' && run.result) return server.tell(run.result, run, ctx, reader);
    const answer = server.handOver(run, ctx);
    if (event === 'asked') return inputRequired(run, binding);
    if (isTask) return { task: taskOf(run, false), content: [] };
    return server.knowsTasks(ctx)
      ? { resultType: 'task', ...taskOf(run, isModern), content: [] }
      : server.tell(stillRunning(run, true), run, ctx, reader, answer);
  });
}

// --- Tasks ---------------------------------------------------------------------------------------

/**
 * @param {Run} run
 * @param {boolean} isModern whether in the form of 2026-07-28, else of 2025-11-25
 */
export function taskOf({ id, state, createdAt, updatedAt, began, result, progress }, isModern) {
  // In the older version a tool's own failure is a failed task.
  const status = state === 'completed' && result?.isError && !isModern ? 'failed' : state;
  // Measured from its creation, if it is not requested again.
  const ttl = Math.round(performance.now() - began) + PATIENCE_WITH_CLIENTS;
  const failure = result?.isError ? result.content[0]?.text : '';
  const words = result ? cleanText(failure, 500) : progress && progressText(progress);
  // The outcome of the work, if it did not succeed.
  const outcome = result?._meta?.[OUTCOME];
  return {
    taskId: id,
    status,
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    ...(words && { statusMessage: words }),
    ...(outcome ? { _meta: { [OUTCOME]: outcome } } : {}),
    ...(isModern
      ? { ttlMs: ttl, pollIntervalMs: POLL_INTERVAL }
      : { ttl, pollInterval: POLL_INTERVAL }),
  };
}

/**
 * Serves `tasks/…`, of 2026-07-28 or of 2025-11-25.
 * @param {McpServer} server
 */
function serveTasks(server) {
  const { gateway, isModern, owner } = server;
  const { runs } = gateway;
  /**
   * @param {string} method
   * @param {(run: Run, ctx: Context) => unknown} handler
   */
  const serve = (method, handler) => {
    const handle = (/** @type {any} */ params, /** @type {Context} */ ctx) => {
      if (typeof params?.taskId !== 'string') throw new InvalidRequest('taskId must be a string');
      const requiredCapabilities = { extensions: { [TASKS]: {} } };
      if (isModern && !server.knowsTasks(ctx))
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
      const run = runs.find(params.taskId, owner);
      if (run.result && method === 'get') server.answered(run, ctx);
      return handler(run, ctx);
    };
    server.handle(`tasks/${method}`, handle, true);
  };
  if (isModern) {
    serve('get', (run) => ({
      ...taskOf(run, isModern),
      ...(run.state === 'completed' && { result: run.result }),
      ...(run.state === 'input_required' && { inputRequests: run.inputRequests }),
    }));
    serve('update', (run, ctx) => {
      run.answerOneOf(ctx.mcpReq.inputResponses);
      return {};
    });
    serve('cancel', (run) => {
      // `tasks/get` returns its real end.
      run.abort('the client cancelled the task');
      return {};
    });
    return;
  }
  const toTask = (/** @type {Run} */ run) => taskOf(run, isModern);
  server.handle('tasks/list', () => ({ tasks: runs.named(owner).map(toTask) }), true);
  serve('get', toTask);
  serve('result', async (run, ctx) => {
    const meta = { [RELATED_TASK_META_KEY]: { taskId: run.id } };
    await server.attend(run, ctx, { patience: Infinity, meta });
    server.answered(run, ctx);
    return { ...run.result, _meta: { ...run.result?._meta, ...meta } };
  });
  serve('cancel', async (run) => {
    const hadEnded = run.result;
    run.abort('the client cancelled the task');
    // It may be reported as cancelled only when it is.
    await run.ended;
    if (!hadEnded && run.state === 'cancelled') return toTask(run);
    throw new InvalidRequest(`The task has ended as ${toTask(run).status}`);
  });
}
