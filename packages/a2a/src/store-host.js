/** What a store needs of the agent whose tasks it keeps. */
import { limitOf } from '../../../js/common/values.js';
import { refusal } from './refusals.js';
import { timeOf } from './requests.js';
import { TASKS_DEFAULT_REMEMBER_MS } from './tasks-boundary.js';

/** @import { Host } from './store/store.js' */

/**
 * @param {object} parts of an agent
 * @param {import('./tasks-core.js').TaskLimits} [parts.limits]
 * @param {number} [parts.grace] ms
 * @param {import('./shown-tasks.js').ShownTasks} parts.shown
 * @param {(...run: Parameters<import('./runs.js').Runs['run']>) => Promise<void>} parts.run
 * @param {import('./store/push.js').Pushes} [parts.pushes]
 * @param {import('./store/telemetry.js').Reports} [parts.reports]
 * @returns {Host}
 */
export const hostOf = ({ limits = {}, grace = 0, shown, run, pushes, reports }) => ({
  limits,
  grace: limitOf(grace),
  busy: refusal,
  adopt: (replica, origin) => shown.adopt(replica, origin),
  drop: (entry) => shown.drop(entry),
  status: (...told) => shown.status(...told),
  artifact: (...told) => shown.artifact(...told),
  learn: (...told) => shown.learn(...told),
  lost: (entry) => shown.lost(entry),
  run: ({ entry }, owner, { prompt, info }) => {
    if (entry && prompt && info) void run(entry, owner, { prompt, info });
  },
  requestOf: (entry, saved, traceparent) => ({
    headers: /** @type {Record<string, string>} */ (traceparent ? { traceparent } : {}),
    user: entry?.task.user,
    tenant: entry?.task.tenant,
    extensions: [],
    metadata: undefined,
    acceptedOutputModes: [],
    ...saved,
  }),
  deadline: (entry) => {
    const since = entry ? Date.parse(timeOf(entry.task)) : Date.now();
    return since + (limits.rememberFor ?? TASKS_DEFAULT_REMEMBER_MS);
  },
  notify: (entry, status) => {
    reports?.told(status.state);
    pushes?.notify(entry, status);
  },
  delivered: async (entry) => pushes?.delivered(entry) ?? true,
  leaseLost: () => reports?.leaseLost(),
  unreadable: () => reports?.unreadable(),
});
