/** A handler that has returned, or thrown, what it called still does. Loaded then. */
import { safely } from '../common/errors.js';

/**
 * The caller of a call is told that it still runs now, and the core then, when what it called says what became of it.
 * @param {import('../session/call.js').Call} call
 * @param {any} response what its handler has given: its outcome is `running`
 * @param {any} told what was returned or thrown, which may have `settled`
 * @returns {Promise<any>} the response, in the end
 */
export async function goOn(call, response, told) {
  const { rare } = call;
  // The core knows a call to this app by itself.
  const settled = safely(() => told.settled);
  if (!settled) {
    rare.report ??= rare.late;
    return response;
  }
  call.given = response;
  call.tell((x, pointer, handle) => x.goes_on(pointer, handle));
  const became = await Promise.resolve(settled)
    .then(({ report, outcome }) => ({ report, outcome }))
    .catch(() => undefined);
  rare.report ??= became?.report;
  const outcome = became?.outcome ?? 'unknown';
  return { ...response, cancelled: true, metadata: { ...response.metadata, outcome } };
}
