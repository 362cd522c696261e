/** What the sides are told of the parts that stand on the shim. */
import { parts } from '../../../js/common/parts.js';
import { windowAbp } from '../../page/src/window-abp.js';
import { describe, requireJson } from '../../schemas/src/describe.js';

/** Tells an agent's side. */
export function fillForAgents() {
  parts.trace = () => import('../../inspector/src/trace.js');
}

/** Tells an app's side. */
export function fillForApps() {
  fillForAgents();
  parts.foreign = () => import('../../automation/src/foreign/foreign-capabilities.js');
  parts.manifest = () => import('../../automation/src/discovery/manifest.js');
  parts.memory = () => import('../../keys/src/memory.js');
  parts.windowAbp = windowAbp;
  parts.describe = describe;
  parts.requireJson = requireJson;
}
