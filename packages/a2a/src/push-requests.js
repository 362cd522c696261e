/** Requests about push notifications: a client says where a task's states are to be sent, and asks what it has said. */
import { AbpError } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { DIALECTS, getField } from './dialects.js';
import { newId } from './ids.js';
import { unsupported } from './refusals.js';

/** @import { Asked } from './operations.js' */
/** @import { Entry } from './shown-tasks.js' */
/** @import { PushConfig, Pushes } from './store/push.js' */
/** @import { TaskLogs } from './store/store.js' */

/** @param {string} method */
export const changesPushes = (method) => /set$|delete$|^Create|^Delete/.test(method);

/**
 * Answers one.
 * @param {Asked} asked
 * @param {string} method
 * @param {string} taskId
 * @param {Entry} entry of that task
 * @param {{ pushes: Pushes, logs: TaskLogs }} parts
 * @returns {Promise<unknown>} the result
 */
export async function configurePush({ dialect, params }, method, taskId, entry, { pushes, logs }) {
  const { replica, pushes: configs, task } = entry;
  const flat = dialect === DIALECTS['1.0'];
  const print = (/** @type {PushConfig} */ one) =>
    pushes.print({ ...one, version: dialect.name }, taskId);
  if (/list$|^List/.test(method)) {
    const printed = await Promise.all([...configs.values()].map(print));
    return flat ? { configs: printed, nextPageToken: '' } : printed;
  }
  if (/set$|^Create/.test(method)) {
    if (task.terminal) throw unsupported(task, 'modified');
    const given = getField(params, 'pushNotificationConfig') ?? (flat ? params : undefined);
    const config = await pushes.read(given, dialect, flat ? newId() : taskId);
    pushes.requireRoom(configs, config);
    await logs.change(replica, { k: 'push', config });
    return print(config);
  }
  const named = flat ? getOwn(params, 'id') : getOwn(params, 'pushNotificationConfigId');
  const id = String(named ?? configs.keys().next().value);
  const config = configs.get(id);
  if (changesPushes(method)) {
    if (config && !task.terminal) await logs.change(replica, { k: 'unpush', id });
    configs.delete(id);
    return flat ? {} : null;
  }
  if (!config) throw new AbpError('TASK_NOT_FOUND', dialect.notFound(`${taskId}, ${id}`));
  return print(config);
}
