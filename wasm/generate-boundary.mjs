// Writes what JavaScript must know of a module, from the C that decides it: the enumerators of its header, where
// the fields of structs lie, and the exports of its boundary with their types.
//
//   node wasm/generate-boundary.mjs <name> [<abi.h>]   writes js/core/<name>-boundary.js, and <abi.h> for the compiler
//   node wasm/generate-boundary.mjs --check            fails if one of the three is out of date
//
// ABI is a digest of all that. The module carries the same number, so that a module and a shim that were not built
// together say so when they first meet.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const MODULES = {
  abp: {
    headers: ['src/abp.h', 'wasm/action.h'],
    boundary: ['wasm/boundary.h', 'wasm/action.h', 'wasm/abp_boundary.c'],
    structs: { ACTION: 'abp_action', CONFIG: 'abp_config' },
  },
  rpc: {
    headers: ['src/abp_rpc.h'],
    boundary: ['wasm/boundary.h', 'wasm/action.h', 'wasm/rpc_boundary.c'],
    structs: { CONFIG: 'abp_peer_config' },
  },
  tasks: {
    headers: ['src/abp_tasks.h'],
    boundary: ['wasm/boundary.h', 'wasm/tasks_boundary.c'],
    structs: { CONFIG: 'abp_tasks_config' },
  },
};

/** Bytes of C's types in WebAssembly, where they are not 4: enumerations, int, size_t and pointers are. */
const SIZES = { uint8_t: 1, uint64_t: 8, double: 8 };

const read = (file) => readFileSync(file, 'utf8').replace(/\/\*[^]*?\*\//g, '');

/** Each enumerator without its prefix: ABP_SESSION_READY is SESSION_READY. A bundler puts its number in its place. */
function* enumerators(file) {
  for (const [, body] of read(file).matchAll(/enum (?:\w+ )?\{([^}]*)\}/g)) {
    let next = 0;
    for (const entry of body.split(',').map((text) => text.trim())) {
      if (!entry) continue;
      const [, name, value = next] = /^ABP_(\w+)(?: = (-?\d+))?$/.exec(entry) ?? [];
      if (!name) throw new Error(`${file}: cannot read the enumerator "${entry}"`);
      next = Number(value) + 1;
      yield [name, Number(value)];
    }
  }
}

/** The offset of each field of a struct, in bytes. */
function fieldsOf(files, struct) {
  const source = files.map(read).join('\n');
  const body = new RegExp(`typedef struct ${struct} \\{([^}]*)\\}`).exec(source)?.[1];
  if (!body) throw new Error(`there is no struct ${struct}`);
  let at = 0;
  const fields = [];
  for (const field of body.split(';').map((text) => text.trim())) {
    if (!field) continue;
    const [, type, pointer, name, places = 1] =
      /^(?:const )?(?:enum )?(\w+) (\*?)(\w+)(?:\[(\d+)\])?$/.exec(field) ?? [];
    if (!name) throw new Error(`${struct}: cannot read the field "${field}"`);
    const size = pointer ? 4 : (SIZES[type] ?? 4);
    at = Math.ceil(at / size) * size;
    fields.push([name, at]);
    at += size * Number(places);
  }
  return fields;
}

const typeOf = (type) => {
  const [, of] = /^(?:const )?(abp_\w+|\w+) \*$/.exec(type) ?? [];
  if (of?.startsWith('abp_')) return `Pointer<'${of}'>`;
  return type === 'void' ? 'void' : 'number';
};

/** The exports of a boundary: [name, type], as JSDoc has it. */
function* exportsOf(files) {
  const pattern = /EXPORT\("(\w+)"\)\s*((?:const )?\w+ \*?)\s*\w+\(([^)]*)\)/g;
  for (const file of files) {
    for (const [, name, result, list] of read(file).matchAll(pattern)) {
      const parameters = list === 'void' ? [] : list.split(',').map((text) => text.trim());
      const typed = parameters.map((parameter) => {
        const [, type, parameterName] = /^(.*?)(\w+)$/.exec(parameter.replace(/\s+/g, ' '));
        return `${parameterName}: ${typeOf(type.trim())}`;
      });
      yield [name, `(${typed.join(', ')}) => ${typeOf(result.trim())}`];
    }
  }
}

function generate(name) {
  const { headers, boundary, structs } = MODULES[name];
  const constants = headers.flatMap((file) => [...enumerators(file)]);
  const layouts = Object.entries(structs).map(([as, struct]) => [
    as,
    struct,
    fieldsOf(headers, struct),
  ]);
  const text = [
    ...constants.map(([key, value]) => `export const ${key} = ${value};`),
    ...layouts.map(([as, struct, fields]) => {
      const lines = fields.map(([key, at]) => `  ${key}: ${at},`).join('\n');
      return `\n/** Where the fields of ${struct} lie, in bytes. */\nexport const ${as} = {\n${lines}\n};`;
    }),
    `\n/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/**
 * What the module exports; ${boundary.at(-1)} says what each means.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
${[...exportsOf(boundary)].map(([key, type]) => ` * @property {${type}} ${key}`).join('\n')}
 */`,
  ].join('\n');
  const abi = createHash('sha256').update(text).digest().readUInt32BE() >>> 1;
  const js = `// Generated from ${headers.join(', ')} and ${boundary.at(-1)} by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/core/instance.js. */
export const ABI = ${abi};

${text}
`;
  const asserts = layouts.flatMap(([, struct, fields]) =>
    fields.map(
      ([key, at]) => `_Static_assert(offsetof(${struct}, ${key}) == ${at}, "${struct}.${key}");`,
    ),
  );
  return { js, c: `#define ABP_ABI ${abi}u\n${asserts.join('\n')}\n` };
}

const pathOf = (name) => `js/core/${name}-boundary.js`;
const current = (name) => {
  try {
    return readFileSync(pathOf(name), 'utf8');
  } catch {
    return '';
  }
};

const [, , name, header] = process.argv;
if (name === '--check') {
  const stale = Object.keys(MODULES).filter((module) => current(module) !== generate(module).js);
  if (stale.length) {
    console.error(
      `out of date: ${stale.map(pathOf).join(', ')}: run npm run build and commit what it changes`,
    );
    process.exit(1);
  }
} else {
  const { js, c } = generate(name);
  // A file that is as it was keeps its time, so that nothing is built again because of it.
  if (current(name) !== js) writeFileSync(pathOf(name), js);
  if (header) {
    mkdirSync(dirname(header), { recursive: true });
    writeFileSync(header, c);
  }
}
