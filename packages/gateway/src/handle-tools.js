/** Calls that outlast a host's patience: a handle, and tools that wait for it, ask for it and cancel it. */
import { progressText } from './progress.js';

export const WAIT = 'call_wait';
export const STATUS = 'call_status';
export const CANCEL = 'call_cancel';
export const HANDLE_NAMES = [WAIT, STATUS, CANCEL];

const inputSchema = {
  type: 'object',
  properties: { handle: { type: 'string', description: 'from the answer of the call' } },
  required: ['handle'],
  additionalProperties: false,
};

export const HANDLE_TOOLS = [
  {
    name: WAIT,
    title: 'Wait for a call',
    description:
      'Waits for a call that took too long to answer at once, and returns its result, or reports that it is still running.',
    inputSchema,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: STATUS,
    title: 'Ask for a call',
    description: 'Reports the progress of a call that took too long to answer at once.',
    inputSchema,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: CANCEL,
    title: 'Cancel a call',
    description:
      'Cancels a call that took too long to answer at once, and reports the outcome: cancelled, or its result if the app finished first.',
    inputSchema,
    annotations: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];

/**
 * What a client is told of a call that still runs.
 * @param {import('./run.js').Run} run
 * @param {{ isOwnTool?: boolean }} [options] `isOwnTool`: the answer is that of the tool that was called first
 */
export function stillRunning(run, { isOwnTool = false } = {}) {
  const { progress: last, id, tool } = run;
  const percentage =
    last && Number.isFinite(last.percentage) ? Math.round(last.percentage) : undefined;
  const message = last ? progressText(last) : '';
  const status = run.state === 'input_required' ? 'input_required' : 'working';
  const so = [percentage !== undefined && `${percentage} %`, message].filter(Boolean).join(', ');
  const asks =
    status === 'input_required' ? ` The app asks a question: ${WAIT} puts it to the user.` : '';
  const text = `${tool} still runs${so ? ` (${so})` : ''}. Its handle is ${id}: ${WAIT} waits for the result, ${STATUS} says how far it is, ${CANCEL} cancels it.${asks}`;
  return {
    content: [{ type: 'text', text }],
    // Clients refuse a result without the data that its tool promises, unless it is an error.
    ...(isOwnTool && run.promisesData && { isError: true }),
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
