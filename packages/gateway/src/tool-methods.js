/** MCP's methods of tools: the apps' capabilities, and the tools for calls that take long. */
import { attend } from './attend.js';
import { CANCEL, HANDLE_NAMES, HANDLE_TOOLS, STATUS, stillRunning } from './handle-tools.js';
import { answering } from './mcp-client.js';
import { extensionTask, legacyTask } from './task-views.js';

/**
 * @typedef {import('./run.js').Run} Run
 * @typedef {import('./mcp-client.js').Context} Context
 * @typedef {{ name: string, arguments?: Record<string, unknown>, task?: unknown }} CallParams
 */

/** The open question of a run, as both tools and tasks of the newer version show it. @param {Run} run */
export const questionsOf = ({ question }) =>
  question && {
    [question.key]: { method: 'elicitation/create', params: question.form.params },
  };

/**
 * @param {Run} run
 * @param {string} requestState
 */
const inputRequired = (run, requestState) => ({
  resultType: 'input_required',
  inputRequests: questionsOf(run),
  requestState,
});

/**
 * @param {import('@modelcontextprotocol/server').Server} server
 * @param {import('./mcp-client.js').McpClient} client
 */
export function serveTools(server, client) {
  const { gateway, isModern, owner, hasHandles } = client;
  const { runs, patience } = gateway;

  server.setRequestHandler(
    'tools/list',
    answering(async () => {
      const tools = [...(await gateway.listTools()), ...(hasHandles ? HANDLE_TOOLS : [])];
      if (isModern) return { tools };
      const execution = { taskSupport: /** @type {const} */ ('optional') };
      return {
        tools: tools.map((tool) =>
          HANDLE_NAMES.includes(tool.name) ? tool : { ...tool, execution },
        ),
      };
    }),
  );

  server.setRequestHandler(
    'tools/call',
    answering(
      async (/** @type {{ params: CallParams }} */ { params }, /** @type {Context} */ ctx) => {
        if (hasHandles && HANDLE_NAMES.includes(params.name)) return useHandle(params, ctx);
        const binding = JSON.stringify([params.name, params.arguments ?? {}]);
        const state = ctx.mcpReq.requestState();
        const run =
          state === undefined
            ? await gateway.start(params.name, params.arguments, {
                canAsk: client.canAsk(ctx),
                owner,
                signal: ctx.mcpReq.signal,
              })
            : runs.resume(String(state), binding, owner, ctx.mcpReq.inputResponses);
        const isTask = !isModern && params.task;
        const event = isTask ? 'late' : await attend(client, run, ctx, { patience, owns: true });
        if (event === 'ended') return run.result;
        client.handOver(run, ctx);
        if (event === 'asked') return inputRequired(run, runs.suspend(run, binding));
        runs.remember(run);
        if (isTask) return { task: legacyTask(run), content: [] };
        return client.knowsTasks(ctx)
          ? { resultType: 'task', ...extensionTask(run), content: [] }
          : stillRunning(run, { isOwnTool: true });
      },
    ),
  );

  /**
   * @param {CallParams} params
   * @param {Context} ctx
   */
  async function useHandle({ name, arguments: args }, ctx) {
    const state = ctx.mcpReq.requestState();
    const run = runs.find(args?.handle, owner);
    const binding = JSON.stringify([name, run.id]);
    if (state !== undefined) runs.resume(String(state), binding, owner, ctx.mcpReq.inputResponses);
    if (name === STATUS) return run.result ?? stillRunning(run);
    if (name === CANCEL) run.abort('the client cancelled');
    const event = await attend(client, run, ctx, { patience, owns: false });
    if (event === 'asked' && client.canAsk(ctx)) {
      return inputRequired(run, runs.suspend(run, binding));
    }
    return run.result ?? stillRunning(run);
  }
}
