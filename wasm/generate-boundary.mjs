// Writes the parts of a module that JavaScript must know, from the C code that defines them: the
// enumerators of its header, the offsets of the fields of structs, and the exports of its boundary
// with their types. Each enumeration, and each number type of C, is a type of its own, so that
// passing one for another does not compile.
//
//   node wasm/generate-boundary.mjs <name> [<abi.h>]   writes <name>-boundary.js, and <abi.h> for the compiler
//   node wasm/generate-boundary.mjs --check            fails if one of these files is out of date
//
// ABI is a digest of all that. The module has the same number, so that a module and a shim that
// were not built together fail at once.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** The modules, and the folders of their boundaries in JavaScript. */
const MODULES = {
  abp: {
    folder: 'js/driver',
    headers: ['src/abp.h', 'src/wire_abp.h', 'wasm/boundary.h', 'wasm/action.h'],
    boundary: ['wasm/boundary.h', 'wasm/action.h', 'wasm/abp_boundary.c'],
    structs: { ACTION: 'abp_action', BODY: 'abp_body', CONFIG: 'abp_config' },
    names: { KINDS: 'abp_kind', SESSIONS: 'abp_session' },
    fields: { FIELDS: 'abp_config' },
    words: { FATES: 'abp_fate' },
  },
  rpc: {
    folder: 'packages/rpc/src',
    headers: ['src/abp_rpc.h'],
    boundary: ['wasm/boundary.h', 'wasm/action.h', 'wasm/rpc_boundary.c'],
    structs: { CONFIG: 'abp_peer_config' },
  },
  tasks: {
    folder: 'packages/a2a/src',
    headers: ['src/abp_tasks.h'],
    boundary: ['wasm/boundary.h', 'wasm/tasks_boundary.c'],
    structs: { CONFIG: 'abp_tasks_config' },
  },
};

/**
 * The sizes of C's types in WebAssembly, in bytes; enumerations, int, size_t and pointers have 4.
 */
const SIZES = { uint8_t: 1, uint64_t: 8, double: 8 };

const read = (file) => readFileSync(file, 'utf8').replace(/\/\*[^]*?\*\//g, '');

/** The name in JavaScript of a type in C: abp_task_state is TaskState. */
const nameOf = (type) =>
  ({ abp_call: 'Handle', abp_error: 'ErrorCode' })[type] ??
  type.replace(/^abp/, '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The number types of C with one meaning each, for which JavaScript has a type each. */
const numbersOf = (files) =>
  [...files].flatMap((file) =>
    [...read(file).matchAll(/\benum (abp_\w+) \{|typedef u?int32_t (abp_\w+);/g)]
      .map(([, enumeration, number]) => enumeration ?? number)
      .filter((type) => !/_(default|shift)$/.test(type)),
  );

/** Each enumerator without its prefix, its number, and its type: ABP_SESSION_READY is SESSION_READY. */
function* enumerators(file) {
  for (const [, type, body] of read(file).matchAll(/enum (?:(\w+) )?\{([^}]*)\}/g)) {
    if (type && !type.startsWith('abp_')) continue; // C's own
    let next = 0;
    for (const entry of body.split(',').map((text) => text.trim())) {
      if (!entry) continue;
      const [, name, value = next] = /^ABP_(\w+)(?: = (-?\d+))?$/.exec(entry) ?? [];
      if (!name) throw new Error(`${file}: cannot read the enumerator "${entry}"`);
      next = Number(value) + 1;
      yield [name, Number(value), type];
    }
  }
}

/** Each word of the wire that JavaScript also needs: ABP_TYPE_CALL is TYPE_CALL. */
const wordsOf = (file) =>
  [...read(file).matchAll(/#define ABP_(TYPE_\w+) ("[^"]*")/g)].map(
    ([, name, text]) => `export const ${name} = ${text.replaceAll('"', "'")};`,
  );

/**
 * The names of an enumeration's numbers, for people and tools: ABP_SESSION_READY of abp_session is
 * 'ready'.
 */
function namesOf(file, of) {
  const found = [...enumerators(file)].filter(([, , type]) => type === of);
  return found.map(([name, value], i) => {
    if (value !== i) throw new Error(`${of}: ${name} is not ${i}`);
    return name.replace(`${of.slice('abp_'.length).toUpperCase()}_`, '').toLowerCase();
  });
}

/**
 * The name of a configuration's field in JavaScript: stream_chunks is streamChunks, and grace_ms,
 * in ms, is grace.
 */
const optionOf = (field) =>
  ({ max_id: 'maxIdLength', max_text: 'maxControlLength', remember_ms: 'rememberFor' })[field] ??
  field.replace(/_ms$/, '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** Each field of a struct: its name, its offset in bytes, and its type if that is a single number. */
function fieldsOf(files, struct) {
  const source = files.map(read).join('\n');
  const body = new RegExp(`typedef struct ${struct} \\{([^}]*)\\}`).exec(source)?.[1];
  if (!body) throw new Error(`there is no struct ${struct}`);
  let at = 0;
  const fields = [];
  for (const field of body.split(';').map((text) => text.trim())) {
    if (!field) continue;
    const [, type, pointer, name, places] =
      /^(?:const )?(?:enum )?(\w+) (\*?)(\w+)(?:\[(\d+)\])?$/.exec(field) ?? [];
    if (!name) throw new Error(`${struct}: cannot read the field "${field}"`);
    const size = pointer ? 4 : (SIZES[type] ?? 4);
    at = Math.ceil(at / size) * size;
    fields.push([name, at, pointer || places ? undefined : type]);
    at += size * Number(places ?? 1);
  }
  return fields;
}

const typeOf = (type, numbers) => {
  const [, of] = /^(?:const )?(abp_\w+|\w+) \*$/.exec(type) ?? [];
  if (of?.startsWith('abp_')) return `Pointer<'${of}'>`;
  if (type === 'void') return 'void';
  const name = type.replace(/^enum /, '');
  return numbers.includes(name) ? nameOf(name) : 'number';
};

/** The exports of a boundary: [name, type], as in JSDoc. */
function* exportsOf(files, numbers) {
  const pattern = /EXPORT\("(\w+)"\)\s*((?:const |enum )?\w+ \*?)\s*\w+\(([^)]*)\)/g;
  for (const file of files) {
    for (const [, name, result, list] of read(file).matchAll(pattern)) {
      const parameters = list === 'void' ? [] : list.split(',').map((text) => text.trim());
      const typed = parameters.map((parameter) => {
        const [, type, parameterName] = /^(.*?)(\w+)$/.exec(parameter.replace(/\s+/g, ' '));
        return `${parameterName}: ${typeOf(type.trim(), numbers)}`;
      });
      yield [name, `(${typed.join(', ')}) => ${typeOf(result.trim(), numbers)}`];
    }
  }
}

/** The parts of a list or an object as lines. */
const linesOf = (parts) => parts.map((part) => `  ${part},\n`).join('');

/** Texts as a constant, as Prettier writes it: in one line if that fits. */
function listOf(as, texts, [open, close] = ['[', ']']) {
  const quoted = texts.map((text) => `'${text}'`);
  const line = `export const ${as} = ${open}${quoted.join(', ')}${close};`;
  return line.length <= 100 ? line : `export const ${as} = ${open}\n${linesOf(quoted)}${close};`;
}

/** An object as a constant. */
const tableOf = (as, entries) =>
  `export const ${as} = {\n${linesOf(entries.map(([key, value]) => `${key}: ${value}`))}};`;

/** Handles, numbers of calls, failures and responses can be 0 for none. */
const brand = (type) =>
  `/** @typedef {${/_(call|task|number|failure|response)$/.test(type) ? '0 | ' : ''}Brand<'${type}'>} ${nameOf(type)} */`;

function generate(name) {
  const { folder, headers, boundary, structs, words = {} } = MODULES[name];
  // A package with a core of its own imports the driver entry of the main package.
  const instance = folder.startsWith('packages/') ? 'abp-bridge/driver' : './instance.js';
  const numbers = numbersOf(new Set(['src/abp.h', ...headers, ...boundary]));
  const constants = headers.flatMap((file) => [...enumerators(file)]);
  const layouts = Object.entries(structs).map(([as, struct]) => [
    as,
    struct,
    fieldsOf(headers, struct),
  ]);
  const kept = layouts
    .filter(([as]) => as === 'CONFIG')
    .flatMap(([, , fields]) => fields.filter(([, , type]) => numbers.includes(type)))
    .map(([key, , type]) => ` & { ${optionOf(key)}: ${nameOf(type)} }`)
    .join('');
  const body = [
    // A bundler inlines the numbers.
    ...constants.map(([key, value, type]) => {
      const typed = numbers.includes(type) ? `/** @type {${nameOf(type)}} */ (${value})` : value;
      return `export const ${key} = ${typed};`;
    }),
    ...headers.flatMap(wordsOf),
    ...layouts.map(([as, struct, fields]) => {
      const where = `\n/** The offsets of the fields of ${struct}, in bytes. */\n`;
      // The fields of a configuration are looked up by name; a bundler inlines the other offsets.
      if (as !== 'CONFIG')
        return (
          where +
          fields
            .filter(([key]) => !/_length$/.test(key)) // the length follows its text
            .map(([key, at]) => `export const ${as}_${key.toUpperCase()} = ${at};`)
            .join('\n')
        );
      return (
        where +
        tableOf(
          as,
          fields.map(([key, at]) => [optionOf(key), at]),
        )
      );
    }),
    ...Object.entries(words).map(([as, type]) => {
      const any = ['/** @type {any[]} */ ([', '])'];
      const list = listOf(as, namesOf(headers[0], type), any);
      return `\n/** By ${type}, as on the wire. */\n${list}`;
    }),
    `
/**
 * A configuration, as JavaScript fills it in; absent fields take their defaults.
 * @typedef {Partial<Record<keyof typeof CONFIG, number>${kept}>} Config
 */

/**
 * The exports of the module; ${boundary.at(-1)} describes them.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
${[...exportsOf(boundary, numbers)].map(([key, type]) => ` * @property {${type}} ${key}`).join('\n')}
 */`,
  ].join('\n');
  const used = numbers.filter((type) => new RegExp(`\\b${nameOf(type)}\\b`).test(body));
  const text = [...used.map(brand), '', body].join('\n');
  const abi = createHash('sha256').update(text).digest().readUInt32BE() >>> 1;
  const js = `// Generated from ${headers.join(', ')} and ${boundary.at(-1)} by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/driver/instance.js. */
export const ABI = ${abi};

/** @import { Brand, Pointer } from '${instance}' */

${text}
`;
  const asserts = layouts.flatMap(([, struct, fields]) =>
    fields.map(
      ([key, at]) => `_Static_assert(offsetof(${struct}, ${key}) == ${at}, "${struct}.${key}");`,
    ),
  );
  return { js, c: `#define ABP_ABI ${abi}u\n${asserts.join('\n')}\n` };
}

/** Written to a file of their own, which a page that only loads the core does not load. */
function generateNames(name) {
  const { headers, names, fields } = MODULES[name];
  const [header] = headers;
  const constant = (as, texts) => `${listOf(as, texts)}\n`;
  const lists = Object.entries(names).map(
    ([as, type]) => `/** By ${type}. */\n${constant(as, namesOf(header, type))}`,
  );
  const layouts = Object.entries(fields).map(([as, struct]) => {
    const ordered = fieldsOf(headers, struct).map(([field]) => field);
    return `/** The fields of ${struct} in their order, by their names in C. */\n${constant(as, ordered)}`;
  });
  const from = `// Generated from ${header} by wasm/generate-boundary.mjs: change that instead.`;
  return `${from}\n\n${[...lists, ...layouts].join('\n')}`;
}

/** The JavaScript files of a module, with their texts. */
const filesOf = (name) => [
  [`${MODULES[name].folder}/${name}-boundary.js`, generate(name).js],
  ...(MODULES[name].names ? [[`parts/trace/${name}-names.js`, generateNames(name)]] : []),
];
const current = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

const [, , name, header] = process.argv;
if (name === '--check') {
  const stale = Object.keys(MODULES)
    .flatMap(filesOf)
    .filter(([path, text]) => current(path) !== text)
    .map(([path]) => path);
  if (stale.length) {
    console.error(`out of date: ${stale.join(', ')}: run npm run build and commit what it changes`);
    process.exit(1);
  }
} else {
  // A file that has not changed keeps its time, so that nothing is built again because of it.
  for (const [path, text] of filesOf(name)) if (current(path) !== text) writeFileSync(path, text);
  if (header) {
    mkdirSync(dirname(header), { recursive: true });
    writeFileSync(header, generate(name).c);
  }
}
