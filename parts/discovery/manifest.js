/**
 * The manifest: a site's description of its app, for use before a connection. It is unverified
 * data: nothing in it is run, merged or trusted.
 */
import { requireBounded } from '../../js/untrusted/bounds.js';
import { AbpError } from '../../js/common/errors.js';
import { getOwn } from '../../js/common/values.js';
import { jsonSchemaOf } from '../schemas/describe.js';

/** The most bytes of a manifest's text. */
export const MAX_MANIFEST_BYTES = 1 << 20;
const MAX_CAPABILITIES = 100;
const MAX_DEPTH = 64;

/** @import { Manifest } from '../../js/types/parts.js' */

/**
 * The members of an app and of a capability that belong in a manifest: those that are the same for
 * every user at any time.
 */
const OF_APP = ['id', 'name', 'version', 'description', 'homepage', 'icon', 'support'];
const OF_CAPABILITY = ['description', 'annotations', 'experimental', 'deprecated'];

/** The members of a requirement. A manifest cannot have `met`, which depends on the user. */
const OF_REQUIREMENT = ['type', 'description', 'resolution'];

/**
 * @param {unknown} object
 * @param {readonly string[]} keys
 */
const pick = (object, keys) => Object.fromEntries(keys.map((key) => [key, getOwn(object, key)]));

/** @param {unknown} value */
const isText = (value) => typeof value === 'string' && value !== '';

/** @param {string} what */
const invalid = (what) => new AbpError('INVALID_MANIFEST', `The manifest ${what}`);

/**
 * Reads a manifest and checks what the protocol requires of it.
 * @param {string} text
 * @returns {Manifest}
 * @throws {AbpError} INVALID_MANIFEST, with a message that explains the mistake
 */
export function parseManifest(text) {
  /** @type {any} */
  let manifest;
  try {
    manifest = JSON.parse(text);
  } catch {
    throw invalid('is not JSON');
  }
  try {
    requireBounded(manifest, { maxDepth: MAX_DEPTH });
  } catch {
    throw invalid(`is nested more than ${MAX_DEPTH} levels deep`);
  }
  const { abp: version, app, capabilities } = pick(manifest, ['abp', 'app', 'capabilities']);
  if (typeof version !== 'string' || !/^\d+\.\d+$/.test(version)) {
    throw invalid('needs abp: the version of the protocol, such as "0.1"');
  }
  if (!['id', 'name', 'version'].every((key) => isText(getOwn(app, key)))) {
    throw invalid('needs app: { id, name, version }');
  }
  if (!Array.isArray(capabilities)) throw invalid('needs capabilities: a list');
  if (capabilities.length > MAX_CAPABILITIES) {
    const count = `${capabilities.length} capabilities`;
    throw invalid(`names ${count}; at most ${MAX_CAPABILITIES} are allowed`);
  }
  const nameless = capabilities.findIndex((capability) => !isText(getOwn(capability, 'name')));
  if (nameless >= 0) throw invalid(`has no name for capabilities[${nameless}]`);
  return manifest;
}

/**
 * Warnings about a valid manifest, for the author of an agent.
 * @param {Manifest} manifest the result of `parseManifest`
 * @returns {string[]}
 */
export function warningsOf({ abp, capabilities }) {
  const warnings = [];
  // In any version the app decides at `initialize`. Some of the protocol's pages call this version
  // 1.0.
  if (abp !== '0.1' && abp !== '1.0') {
    warnings.push(`The manifest is for ABP ${abp.slice(0, 20)}; this library speaks 0.1`);
  }
  const names = new Set();
  for (const capability of capabilities) {
    const name = JSON.stringify(capability.name.slice(0, 200));
    if (names.has(capability.name)) warnings.push(`${name} is listed more than once`);
    names.add(capability.name);
    if (getOwn(capability, 'experimental') === true) warnings.push(`${name} is experimental`);
    if (getOwn(capability, 'deprecated') === true) warnings.push(`${name} is deprecated`);
  }
  return warnings;
}

/**
 * The description of a capability's requirements for agents.
 * @param {string} name
 * @param {unknown} requirements
 */
function requirementsOf(name, requirements) {
  if (requirements === undefined || requirements === null) return undefined;
  if (!Array.isArray(requirements)) {
    const what = `requirements of capability ${name}`;
    throw new AbpError('INVALID_PARAMS', `${what} must be a list of objects`);
  }
  return requirements.map((requirement) => pick(requirement, OF_REQUIREMENT));
}

/**
 * Makes the manifest of an app's definition, as `discover` reads it. Serve it as JSON, and name its
 * address in the page's head: `<link rel="abp-manifest" href="/abp.json">`.
 * @param {{ app: Manifest['app'], capabilities: Record<string, object> }} definition the definition
 *   passed to `expose`
 * @returns {Manifest}
 * @throws {AbpError} INVALID_MANIFEST if something required is missing, or a limit is exceeded;
 *   INVALID_PARAMS if a schema is invalid, or requirements are not a list
 */
export function manifestOf({ app, capabilities }) {
  const text = JSON.stringify({
    abp: '0.1',
    app: pick(app, OF_APP),
    capabilities: Object.entries(capabilities).map(([name, capability]) => ({
      name,
      ...pick(capability, OF_CAPABILITY),
      inputSchema: jsonSchemaOf(name, 'inputSchema', getOwn(capability, 'inputSchema')),
      outputSchema: jsonSchemaOf(name, 'outputSchema', getOwn(capability, 'outputSchema')),
      requirements: requirementsOf(name, getOwn(capability, 'requirements')),
    })),
  });
  if (new TextEncoder().encode(text).length > MAX_MANIFEST_BYTES)
    throw invalid('is larger than 1 MiB');
  return parseManifest(text);
}
