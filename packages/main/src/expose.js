/**
 * The app's door. The core begins to load with the page, so that no agent waits for it; not in js/app/expose.js, whose file other
 * entries use parts of.
 */
import { Exposed as App } from '../../../js/app/expose.js';
import { ready } from '../../../js/driver/abp-core.js';
import { fillForApps } from './parts.js';

fillForApps();
void ready();

/** @import { Definition, Interface } from '../../../js/app/expose.js' */
/** @import { ExposeOptions, Inferred, TypedDefinition } from '../types/exposed.js' */

/** An app that agents can call, as `expose` returns it. */
export const Exposed = /** @type {typeof import('../types/exposed.js').Exposed} */ (App);

/**
 * Makes an app's capabilities callable. With `const app = expose(…)`, `connect<typeof app>(…)` knows them: their names, params
 * and results.
 * @template const S schemas of params by name
 * @template const O schemas of results by name
 * @template H handlers by name
 * @param {TypedDefinition<S, O, H> | Interface} definition what it can do, or its own `window.abp`
 * @param {ExposeOptions} [options] who may call, and how
 * @returns {Inferred<S, O, H>}
 */
export function expose(definition, options) {
  return new Exposed(/** @type {Definition | Interface} */ (definition), options);
}
