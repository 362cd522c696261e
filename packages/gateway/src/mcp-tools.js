/** MCP's methods of tools: the apps' capabilities; and a handle for calls that take long, with tools that wait for it, ask for it and cancel it. */
import { attend } from './attend.js';
import { extensionTask, legacyTask } from './mcp-tasks.js';
import { progressText } from './progress.js';

/**
 * @typedef {import('./runs.js').Run} Run
 * @typedef {import('./mcp-server.js').Context} Context
 * @typedef {{ name: string, arguments?: Record<string, unknown>, task?: unknown }} CallParams
 */

const WAIT = 'call_wait';
const STATUS = 'call_status';
const CANCEL = 'call_cancel';
export const HANDLE_NAMES = [WAIT, STATUS, CANCEL];

/** @param {string} name @param {string} title @param {string} description @param {Record<string, boolean>} annotations */
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
 * What a client is told of a call that still runs.
 * @param {Run} run
 * @param {boolean} [isOwnTool] whether the answer is that of the tool that was called first
 */
function stillRunning({ progress, id, tool, state, promisesData }, isOwnTool = false) {
  const percentage = Number.isFinite(progress?.percentage)
    ? Math.round(progress?.percentage)
    : undefined;
  const message = progress ? progressText(progress) : '';
  const status = state === 'input_required' ? state : 'working';
  const so = [percentage !== undefined && `${percentage} %`, message].filter(Boolean).join(', ');
  const asks =
    status === 'input_required' ? ` The app asks a question: ${WAIT} puts it to the user.` : '';
  const text = `${tool} still runs${so ? ` (${so})` : ''}. Its handle is ${id}: ${WAIT} waits for the result, ${STATUS} says how far it is, ${CANCEL} cancels it.${asks}`;
  return {
    content: [{ type: 'text', text }],
    // Clients refuse a result without the data that its tool promises, unless it is an error.
    ...(isOwnTool && promisesData && { isError: true }),
    _meta: {
      'abp-bridge/call': {
        handle: id,
        status,
        ...(percentage !== undefined && { percentage }),
        ...(message && { message }),
      },
    },
  };
}

/** @param {Run} run @param {string} binding what the client must say again */
const inputRequired = (run, binding) => ({
  resultType: 'input_required',
  inputRequests: run.inputRequests,
  requestState: run.suspend(binding),
});

/** @param {import('./mcp-server.js').McpServer} server */
export function serveTools(server) {
  const { gateway, isModern, owner } = server;
  const { runs, patience } = gateway;
  // Else no call is answered before its end.
  const hasHandles = patience !== Infinity;

  server.handle('tools/list', async () => {
    const tools = await gateway.listTools();
    const execution = { taskSupport: /** @type {const} */ ('optional') };
    const shown = isModern ? tools : tools.map((tool) => ({ ...tool, execution }));
    return { tools: [...shown, ...(hasHandles ? HANDLE_TOOLS : [])] };
  });

  server.handle('tools/call', async (/** @type {CallParams} */ params, ctx) => {
    const { signal, inputResponses } = ctx.mcpReq;
    const state = ctx.mcpReq.requestState();
    const comeBack = (/** @type {string} */ binding) =>
      runs.resume(String(state), binding, owner, inputResponses);
    const { name, arguments: args = {} } = params;
    if (hasHandles && HANDLE_NAMES.includes(name)) {
      const run = runs.find(args.handle, owner);
      const binding = JSON.stringify([name, run.id]);
      if (state !== undefined) comeBack(binding);
      if (name === STATUS) return run.result ?? stillRunning(run);
      if (name === CANCEL) run.abort('the client cancelled');
      const event = await attend(server, run, ctx, { patience, owns: false });
      if (event === 'asked' && server.canAsk(ctx)) return inputRequired(run, binding);
      return run.result ?? stillRunning(run);
    }
    const binding = JSON.stringify([name, args]);
    const caller = { canAsk: server.canAsk(ctx), owner, signal };
    const run = state === undefined ? await gateway.start(name, args, caller) : comeBack(binding);
    const isTask = !isModern && params.task;
    const event = isTask ? 'late' : await attend(server, run, ctx, { patience, owns: true });
    if (event === 'ended') {
      void runs.release(run);
      return run.result;
    }
    server.handOver(run, ctx);
    if (event === 'asked') return inputRequired(run, binding);
    if (isTask) return { task: legacyTask(run), content: [] };
    return server.knowsTasks(ctx)
      ? { resultType: 'task', ...extensionTask(run), content: [] }
      : stillRunning(run, true);
  });
}
