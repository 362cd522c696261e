/**
 * The manifest: what a site says of its app before anybody has spoken to the app. All of it is the site's own
 * word, and data: nothing in it is run, merged or believed.
 */
import { AbpError } from './errors.js';
import { own } from './messages.js';

/** Bytes of its text. */
export const MOST_BYTES = 1 << 20;
const MOST_CAPABILITIES = 100;
const MOST_DEPTH = 64;

/**
 * @typedef {object} Manifest What else there is in one stands in it too, unchecked.
 * @property {string} abp the protocol's version
 * @property {{ id: string, name: string, version: string, description?: string, homepage?: string, icon?: string, support?: string }} app
 * @property {{ name: string, description?: string, inputSchema?: object, outputSchema?: object, experimental?: boolean, deprecated?: boolean }[]} capabilities
 */

/** What of an app and of a capability belongs into a manifest: what holds for everybody, always. */
const OF_APP = ['id', 'name', 'version', 'description', 'homepage', 'icon', 'support'];
const OF_CAPABILITY = [
  ...['description', 'inputSchema', 'outputSchema', 'experimental', 'deprecated'],
];

/**
 * @param {any} object
 * @param {readonly string[]} keys
 */
const pick = (object, keys) => Object.fromEntries(keys.map((key) => [key, own(object, key)]));

/** @param {unknown} value */
const isText = (value) => typeof value === 'string' && value !== '';

/** @param {string} what */
const invalid = (what) => new AbpError('INVALID_MANIFEST', `The manifest ${what}`);

/**
 * Level by level, since what is deep enough to be refused is deep enough to overflow a stack.
 * @param {any} value
 */
function isTooDeep(value) {
  let level = [value];
  for (let depth = 0; level.length; depth++) {
    level = level.filter((inner) => typeof inner === 'object' && inner !== null);
    if (level.length && depth === MOST_DEPTH) return true;
    level = level.flatMap((inner) => Object.values(inner));
  }
  return false;
}

/**
 * Reads a manifest and checks what the protocol requires of it.
 * @param {string} text
 * @returns {Manifest}
 * @throws {AbpError} INVALID_MANIFEST, which says what is wrong
 */
export function parseManifest(text) {
  /** @type {any} */
  let manifest;
  try {
    manifest = JSON.parse(text);
  } catch {
    throw invalid('is not JSON');
  }
  if (isTooDeep(manifest)) throw invalid(`is nested more than ${MOST_DEPTH} levels deep`);
  const [version, app, capabilities] = ['abp', 'app', 'capabilities'].map((key) =>
    own(manifest, key),
  );
  if (typeof version !== 'string' || !/^\d+\.\d+$/.test(version)) {
    throw invalid('needs abp: the version of the protocol, such as "0.1"');
  }
  if (!['id', 'name', 'version'].every((key) => isText(own(app, key)))) {
    throw invalid('needs app: { id, name, version }');
  }
  if (!Array.isArray(capabilities)) throw invalid('needs capabilities: a list');
  if (capabilities.length > MOST_CAPABILITIES) {
    throw invalid(`names ${capabilities.length} capabilities; ${MOST_CAPABILITIES} are allowed`);
  }
  const nameless = capabilities.findIndex((capability) => !isText(own(capability, 'name')));
  if (nameless >= 0) throw invalid(`has no name for capabilities[${nameless}]`);
  return manifest;
}

/**
 * What an agent's author may want to know of a manifest that is good enough to go on.
 * @param {Manifest} manifest
 * @returns {string[]}
 */
export function warningsOf({ abp, capabilities }) {
  const warnings = [];
  // Whatever the version, `initialize` decides. Some of the protocol's pages call this one 1.0.
  if (abp !== '0.1' && abp !== '1.0') {
    warnings.push(`The manifest is for ABP ${abp.slice(0, 20)}, this library speaks 0.1`);
  }
  const names = new Set();
  for (const capability of capabilities) {
    const name = JSON.stringify(capability.name.slice(0, 200));
    if (names.has(capability.name)) warnings.push(`${name} is listed more than once`);
    names.add(capability.name);
    if (own(capability, 'experimental') === true) warnings.push(`${name} is experimental`);
    if (own(capability, 'deprecated') === true) warnings.push(`${name} is deprecated`);
  }
  return warnings;
}

/**
 * The manifest that an app's definition corresponds to, such that `discover` takes it. Serve it as JSON, and
 * name its address in the page's head: `<link rel="abp-manifest" href="/abp.json">`.
 * @param {import('./expose.js').Definition} definition what `expose` is given
 * @returns {Manifest}
 * @throws {AbpError} INVALID_MANIFEST if something required is missing, or a limit is passed
 */
export function manifestOf({ app, capabilities }) {
  const text = JSON.stringify({
    abp: '0.1',
    app: pick(app, OF_APP),
    capabilities: Object.entries(capabilities).map(([name, capability]) => ({
      name,
      ...pick(capability, OF_CAPABILITY),
    })),
  });
  if (new TextEncoder().encode(text).length > MOST_BYTES) throw invalid('is larger than 1 MiB');
  return parseManifest(text);
}
