/** Connects the shim to the parts that it uses. */
import { parts } from '../../js/common/parts.js';
import { describe, requireJson } from '../schemas/describe.js';

/** Sets the parts of an agent's side. */
export function fillForAgents() {
  parts.trace = () => import('../trace/trace.js');
}

/** Sets the parts of an app's side. */
export function fillForApps() {
  fillForAgents();
  parts.foreign = () => import('../../js/foreign/foreign-capabilities.js');
  parts.manifest = () => import('../discovery/manifest.js');
  parts.memory = () => import('../keys/memory.js');
  parts.describe = describe;
  parts.requireJson = requireJson;
}
