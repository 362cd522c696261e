/**
 * The app's entry. The core begins to load with the page, so that no agent waits for it; not in
 * js/app/expose.js, since other entries use parts of that file.
 */
import { Exposed as App } from '../../js/app/expose.js';
import { ready } from '../../js/driver/abp-core.js';
import { fillForApps } from './parts.js';

fillForApps();
void ready();

/** An app that agents can call: the result of `expose`. */
export const Exposed = /** @type {typeof import('./types/exposed.js').Exposed} */ (App);

/** @type {typeof import('./types/exposed.js').expose} see there for the inferred types */
export const expose = (definition, options) =>
  new Exposed(/** @type {any} */ (definition), options);
