/** For handlers that end by reporting that a call made by them still runs. Loaded on demand. */
import { safely } from '../common/errors.js';
import { EMPTY } from '../common/values.js';

/**
 * Answers the caller now that the call still runs, and waits for the outcome of the call that its
 * handler made.
 * @param {import('../session/call.js').Call} call
 * @param {any} response the handler's response; its outcome is `running`
 * @param {any} value the returned or thrown value, which may have `settled`
 * @returns {Promise<any>} the final response
 */
export async function goOn(call, response, value) {
  const extra = call.ensureExtra();
  const settled = safely(() => value.settled);
  // The core itself tracks a call to this app.
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
