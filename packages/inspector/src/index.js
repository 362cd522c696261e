/** Defines `<abp-inspector>`: see docs/tracing.md#the-inspector. */
import { AbpInspector } from './element.js';

export { AbpInspector };

globalThis.customElements?.define('abp-inspector', AbpInspector);

/** @typedef {import('./element.js').Target} Target */
