/** An app of others' making that is exposed in its own page. Loaded by those that have one. */
import { REPORTERS } from '../../../page/src/reporters.js';
import { foreignApp } from './foreign-app.js';
import { ForeignCapabilities } from './foreign-capabilities.js';

/**
 * The capabilities of an app of others' making in this page.
 * @param {unknown} abp its interface
 * @param {import('../../../../js/app/expose.js').Exposed} exposed
 */
export function foreignCapabilities(abp, exposed) {
  // It looks for the functions by which it reports where it was found.
  const own = /** @type {{ abp?: unknown } | undefined} */ (globalThis.window)?.abp === abp;
  return new ForeignCapabilities(foreignApp(REPORTERS, own ? globalThis : { abp }), {
    notify: (event, data) => exposed.notify(event, data),
    notifyProgress(info) {
      for (const session of exposed.sessions) session.notifyProgress(info);
    },
    elicit: (request) => exposed.sessions.at(-1)?.elicit(request),
  });
}
