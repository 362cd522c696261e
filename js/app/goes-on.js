/** A handler has returned, or thrown, that what it called still runs. Loaded then. */
import { safely } from '../common/errors.js';
import { EMPTY } from '../common/values.js';

/**
 * The caller of a call is told that it still runs now, and the core then, when what it called says
 * what became of it.
 * @param {import('../session/call.js').Call} call
 * @param {any} response what the handler has given: its outcome is `running`
 * @param {any} value what was returned or thrown, which may have `settled`
 * @returns {Promise<any>} the response, in the end
 */
export async function goOn(call, response, value) {
  const extra = call.ensureExtra();
  const settled = safely(() => value.settled);
  // The core knows a call to this app by itself.
  if (!settled) {
    extra.report ??= extra.lateReport;
    return response;
  }
  call.given = response;
  call.feed(call.endpoint.core.x.goes_on);
  const { report, outcome = 'unknown' } = await Promise.resolve(settled)
    .then(({ report, outcome }) => ({ report, outcome }))
    .catch(() => EMPTY);
  extra.report ??= report;
  return { ...response, cancelled: true, metadata: { ...response.metadata, outcome } };
}
