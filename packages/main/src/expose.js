/**
 * The app's door. The core begins to load with the page, so that no agent waits for it; not in js/app/expose.js, whose file other
 * entries use parts of.
 */
import { Exposed as App, expose as exposeApp } from '../../../js/app/expose.js';
import { parts } from '../../../js/common/parts.js';
import { ready } from '../../../js/driver/abp-core.js';

parts.trace = () => import('../../inspector/src/trace.js');
parts.foreign = () => import('../../automation/src/foreign/exposed-app.js');
parts.manifest = () => import('../../automation/src/discovery/manifest.js');
void ready();

/** An app that agents can call, as `expose` returns it. */
export const Exposed = App;
/** Makes an app's capabilities callable; js/app/expose.js says how. */
export const expose = exposeApp;
