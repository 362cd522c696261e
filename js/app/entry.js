/**
 * The app's door. The core begins to load with the page, so that no agent waits for it; not in js/app/expose.js, whose file other
 * entries use parts of.
 */
import { Exposed as App, expose as exposeApp } from './expose.js';
import { ready } from '../core/abp-core.js';

void ready();

/** An app that agents can call, as `expose` returns it. */
export const Exposed = App;
/** Makes an app's capabilities callable; js/app/expose.js says how. */
export const expose = exposeApp;
