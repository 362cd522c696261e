/**
 * The app's door. The core begins to load with the page, so that no agent waits for it; not in
 * js/app/expose.js, whose file other entries use parts of.
 */
import { Exposed as App } from '../../js/app/expose.js';
import { ready } from '../../js/driver/abp-core.js';
import { fillForApps } from './parts.js';

fillForApps();
void ready();

/** An app that agents can call, as `expose` returns it. */
export const Exposed = /** @type {typeof import('./types/exposed.js').Exposed} */ (App);

/** @type {typeof import('./types/exposed.js').expose} what it infers is said there */
export const expose = (definition, options) =>
  new Exposed(/** @type {any} */ (definition), options);
