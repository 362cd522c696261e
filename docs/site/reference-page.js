/**
 * A page of the API reference from TypeDoc's model: Markdown, with HTML where Markdown has no word for it. Each function has its
 * whole signature, what it takes in one table, what is required first, and an example.
 */
import { ReflectionKind } from 'typedoc';

/** @import { Comment, DeclarationReflection, ParameterReflection, Reflection, SignatureReflection, SomeType } from 'typedoc' */
/** @typedef {{ text: string, href?: string, kind?: string }} Piece of a signature @typedef {Piece[]} Pieces */

/** Characters of a signature that stand in one line. */
const WIDTH = 76;
/** Characters of a type that a table shows; what is longer is shown where its own name is. */
const MAX_TYPE = 240;

/** Escapes characters with a meaning in Markdown, as HTML. @param {string} text */
const escape = (text) =>
  text.replace(/[&<>"|*_[\]\\`{}]/g, (character) => `&#${character.codePointAt(0)};`);

/** @param {Pieces} pieces */
const lengthOf = (pieces) => pieces.reduce((sum, { text }) => sum + text.length, 0);

/** @param {Pieces} pieces as HTML */
const html = (pieces) =>
  pieces
    .map(({ text, href, kind }) => {
      const safe = escape(text);
      if (href) return `<a href="${href}">${safe}</a>`;
      return kind ? `<span class="token ${kind}">${safe}</span>` : safe;
    })
    .join('');

/** @param {string} text @param {string} [kind] @returns {Pieces} */
const piece = (text, kind) => [{ text, kind }];

/** @param {Pieces[]} list @param {string} between @returns {Pieces} */
const join = (list, between) =>
  list.flatMap((each, i) => (i ? [{ text: between }, ...each] : each));

/** @param {Reflection} reflection what a user can see of a kind with members */
export const membersOf = (reflection) =>
  /** @type {DeclarationReflection[]} */ (
    /** @type {any} */ (reflection).children ??
      /** @type {any} */ (reflection).type?.declaration?.children ??
      []
  ).filter(({ flags, name }) => !flags.isExternal && !name.startsWith('['));

/** The utility types of TypeScript that have members. */
const UTILITIES = ['Partial', 'Required', 'Omit', 'Pick'];
/** The types that options are made of, from which a table of members is made. */
const isOptions = (/** @type {string} */ name) => /(Options|Definition)$/.test(name);

/**
 * The members of an object type, however it is put together.
 * @param {SomeType | undefined} type
 * @returns {DeclarationReflection[] | undefined} undefined if it is no such type
 */
export function expand(type) {
  if (type?.type === 'reflection')
    return type.declaration.children && !type.declaration.signatures
      ? membersOf(type.declaration)
      : undefined;
  if (type?.type === 'intersection') {
    const parts = type.types.map(expand);
    if (parts.some((part) => !part)) return undefined;
    const members = new Map();
    for (const member of /** @type {DeclarationReflection[][]} */ (parts).flat()) {
      const before = members.get(member.name);
      // `A & { origin: string }` is A with an origin that is required, about which A has the words.
      const merged = before
        ? Object.assign(Object.create(member), {
            comment: member.comment ?? before.comment,
            flags: { isOptional: before.flags.isOptional && member.flags.isOptional },
          })
        : member;
      members.set(member.name, merged);
    }
    return [...members.values()];
  }
  if (type?.type !== 'reference') return undefined;
  const [first, keys] = type.typeArguments ?? [];
  if (UTILITIES.includes(type.name) && !type.reflection) {
    const named = keys?.type === 'union' ? keys.types : [keys];
    const has = (/** @type {DeclarationReflection} */ { name }) =>
      named.some((key) => key?.type === 'literal' && key.value === name);
    const isOptional = type.name === 'Partial';
    const members = expand(first);
    return type.name === 'Omit' || type.name === 'Pick'
      ? members?.filter((member) => has(member) === (type.name === 'Pick'))
      : members?.map((member) => Object.assign(Object.create(member), { flags: { isOptional } }));
  }
  const target = /** @type {DeclarationReflection | undefined} */ (type.reflection);
  if (!target) return undefined;
  return target.kindOf(ReflectionKind.Interface) ? membersOf(target) : expand(target.type);
}

/** The parts of a type that options may be: those of a union each. @param {SomeType | undefined} type @returns {SomeType[]} */
const alternatives = (type) => (type?.type === 'union' ? type.types : type ? [type] : []);

/** @param {SomeType} type whether its members are expanded where it is used */
const isExpandable = (type) =>
  (type.type === 'reference' && isOptions(type.name)) ||
  (type.type === 'intersection' && type.types.some(isExpandable)) ||
  (type.type === 'reference' &&
    UTILITIES.includes(type.name) &&
    isExpandable(/** @type {any} */ (type.typeArguments)[0]));

/** Finds the default of an option, which its text has in parentheses. */
const DEFAULT =
  /\s*\(((?:[\d_.]+|Infinity|true|false|all|none|`?'[^']*'`?|no limit|in memory|the |one |what |as |each |whether |\*)[^()]*)\)/;

/**
 * @param {object} site
 * @param {Map<Reflection, string>} site.pages
 * @param {(entry: string, name?: string) => string | undefined} site.samples
 * @param {(named: string) => string} site.documentNamed the path of a document from the root
 */
export function renderer({ pages, samples, documentNamed }) {
  /** The anchors of each page. @type {Map<Reflection, string>} */
  const ids = new Map();

  /** @param {Reflection | undefined} target @returns {string | undefined} */
  const hrefOf = (target) => {
    for (let at = target; at; at = at.parent) {
      const page = pages.get(at);
      if (page)
        return target === at
          ? page
          : ids.has(/** @type {Reflection} */ (target))
            ? `${page}#${ids.get(/** @type {Reflection} */ (target))}`
            : undefined;
    }
    return undefined;
  };

  /** @param {SomeType | undefined} type @returns {Pieces} */
  function typed(type) {
    if (!type) return piece('any');
    switch (type.type) {
      case 'intrinsic':
        return piece(type.name, 'builtin');
      case 'literal':
        return piece(
          typeof type.value === 'string' ? `'${type.value}'` : String(type.value),
          'string',
        );
      case 'reference': {
        const target = /** @type {any} */ (type.reflection);
        const end = target?.isReference?.() ? target.getTargetReflectionDeep() : target;
        const href = type.refersToTypeParameter ? undefined : hrefOf(end);
        const name = { text: type.name, href, kind: 'class-name' };
        const given = type.typeArguments?.length
          ? [...piece('<'), ...join(type.typeArguments.map(typed), ', '), ...piece('>')]
          : [];
        return [name, ...given];
      }
      case 'array':
        return [...enclosed(type.elementType, true), ...piece('[]')];
      case 'union':
        return join(
          type.types.map((each) => enclosed(each)),
          ' | ',
        );
      case 'intersection':
        return join(
          type.types.map((each) => enclosed(each)),
          ' & ',
        );
      case 'tuple':
        return [...piece('['), ...join((type.elements ?? []).map(typed), ', '), ...piece(']')];
      case 'namedTupleMember':
        return [...piece(`${type.name}${type.isOptional ? '?' : ''}: `), ...typed(type.element)];
      case 'optional':
        return [...typed(type.elementType), ...piece('?')];
      case 'rest':
        return [...piece('...'), ...typed(type.elementType)];
      case 'typeOperator':
        return [...piece(`${type.operator} `, 'keyword'), ...typed(type.target)];
      case 'query':
        return [...piece('typeof ', 'keyword'), ...typed(type.queryType)];
      case 'indexedAccess':
        return [...typed(type.objectType), ...piece('['), ...typed(type.indexType), ...piece(']')];
      case 'predicate':
        return [
          ...piece(`${type.asserts ? 'asserts ' : ''}${type.name}`),
          ...(type.targetType ? [...piece(' is ', 'keyword'), ...typed(type.targetType)] : []),
        ];
      case 'conditional':
        return [
          ...typed(type.checkType),
          ...piece(' extends ', 'keyword'),
          ...typed(type.extendsType),
          ...piece(' ? '),
          ...typed(type.trueType),
          ...piece(' : '),
          ...typed(type.falseType),
        ];
      case 'mapped':
        return [
          ...piece(`{ [${type.parameter} in `),
          ...typed(type.parameterType),
          ...piece(`]${type.optionalModifier ?? ''}: `),
          ...typed(type.templateType),
          ...piece(' }'),
        ];
      case 'reflection':
        return declared(type.declaration);
      default:
        return piece(type.toString());
    }
  }

  /** A type within another, in parentheses if it is a function or a choice. @param {SomeType} type @param {unknown} [all] @returns {Pieces} */
  const enclosed = (type, all) =>
    (type.type === 'reflection' && type.declaration.signatures) ||
    type.type === 'conditional' ||
    (all && ['union', 'intersection', 'typeOperator', 'query'].includes(type.type))
      ? [...piece('('), ...typed(type), ...piece(')')]
      : typed(type);

  /** An object type or a function type. @param {DeclarationReflection} declaration @returns {Pieces} */
  function declared(declaration) {
    const { signatures = [], children = [], indexSignatures = [] } = declaration;
    if (signatures.length && !children.length)
      return [...parameters(signatures[0]), ...piece(' => '), ...typed(signatures[0].type)];
    const members = [
      ...signatures.map((each) => [...parameters(each), ...piece(': '), ...typed(each.type)]),
      ...children.map((member) => {
        const optional = member.flags.isOptional ? '?' : '';
        const [method] = member.signatures ?? [];
        return method
          ? [
              ...piece(`${member.name}${optional}`),
              ...parameters(method),
              ...piece(': '),
              ...typed(method.type),
            ]
          : [
              ...piece(`${member.name}${optional}: `),
              ...typed(member.type ?? member.getSignature?.type),
            ];
      }),
      ...indexSignatures.map((each) => [
        ...piece(`[${each.parameters?.[0].name}: `),
        ...typed(each.parameters?.[0].type),
        ...piece(']: '),
        ...typed(each.type),
      ]),
    ];
    return members.length ? [...piece('{ '), ...join(members, '; '), ...piece(' }')] : piece('{}');
  }

  /** @param {SignatureReflection | DeclarationReflection} of @returns {Pieces} its type parameters */
  const generics = ({ typeParameters }) =>
    typeParameters?.length
      ? [
          ...piece('<'),
          ...join(
            typeParameters.map((each) => [
              ...(each.flags.isConst ? piece('const ', 'keyword') : []),
              ...piece(each.name),
              ...(each.type ? [...piece(' extends ', 'keyword'), ...typed(each.type)] : []),
              ...(each.default ? [...piece(' = '), ...typed(each.default)] : []),
            ]),
            ', ',
          ),
          ...piece('>'),
        ]
      : [];

  /** @param {ParameterReflection} parameter @returns {Pieces} */
  const parameter = ({ flags, name, defaultValue, type }) => [
    ...piece(`${flags.isRest ? '...' : ''}${name === '__namedParameters' ? 'options' : name}`),
    ...piece(`${flags.isOptional || defaultValue ? '?' : ''}: `),
    ...typed(type),
  ];

  /** @param {SignatureReflection} signature @returns {Pieces} */
  const parameters = (signature) => [
    ...generics(signature),
    ...piece('('),
    ...join((signature.parameters ?? []).map(parameter), ', '),
    ...piece(')'),
  ];

  /**
   * A signature: in a line, or with a line for each parameter.
   * @param {Pieces} before
   * @param {SignatureReflection} signature
   * @param {string} [arrow] before what it returns
   */
  function written(before, signature, arrow = ': ') {
    const made = /^constructor/.test(signature.name)
      ? []
      : [...piece(arrow), ...typed(signature.type)];
    const line = [...before, ...parameters(signature), ...made];
    const given = signature.parameters ?? [];
    if (lengthOf(line) <= WIDTH || !given.length) return html(line);
    const each = given.map((one) => `  ${html(parameter(one))},\n`).join('');
    return `${html([...before, ...generics(signature), ...piece('(')])}\n${each}${html([...piece(')'), ...made])}`;
  }

  const code = (/** @type {string} */ inner) =>
    `<pre class="signature" tabindex="0" data-pagefind-weight="0.5"><code>${inner}</code></pre>\n`;

  /** @param {import('typedoc').CommentDisplayPart[] | undefined} parts @returns {string} Markdown */
  const prose = (parts) =>
    (parts ?? [])
      .map((part) => {
        if (part.kind !== 'inline-tag') return linked(part.text);
        const href = hrefOf(/** @type {any} */ (part.target));
        return href ? `[${part.text.trim()}](${href.replace('.html', '.md')})` : part.text;
      })
      .join('')
      .trim();

  /** With links to the documents that it names. @param {string} text */
  const linked = (text) =>
    text.replace(
      /(?<![\w/`])(docs\/[\w-]+\.md)(#[\w-]+)?/g,
      (_, file, at = '') => `[${file}](../../${documentNamed(file)}${at})`,
    );

  /** @param {Comment | undefined} comment @param {string} tag */
  const block = (comment, tag) => comment?.blockTags.filter((each) => each.tag === tag) ?? [];

  /** @param {Comment | undefined} comment @returns {string} */
  const examples = (comment) =>
    block(comment, '@example')
      .map(({ content }) => `\n${prose(content)}\n`)
      .join('');

  /**
   * @typedef {object} Row
   * @property {string} name
   * @property {string} [id]
   * @property {boolean} [optional]
   * @property {string} [when] where it is required, if that is not everywhere
   * @property {Pieces} type
   * @property {string} [more] how a type is said that is too long
   * @property {string} text
   */

  /** One table. What is required comes first. @param {Row[]} rows @param {string} label */
  function table(rows, label) {
    const sorted = [
      ...rows.filter(({ optional }) => !optional),
      ...rows.filter(({ optional }) => optional),
    ];
    const isChoice = rows.some(({ optional }) => optional);
    const lines = sorted.map(({ name, id, optional, when, type, text }) => {
      const [shown, standard] = optional ? [text, DEFAULT.exec(text)?.[1]] : [text];
      const duty = optional ? '' : `<br><span class="required">required${when ?? ''}</span>`;
      const long = lengthOf(type) > MAX_TYPE;
      return [
        `<tr><td><code${id ? ` id="${id}"` : ''} data-pagefind-weight="10">${escape(name)}</code>${isChoice ? duty : ''}</td>`,
        `<td><code class="type">${html(long ? clipped(type) : type)}</code></td>`,
        isChoice ? `<td>\n\n${standard ?? ''}\n\n</td>` : '',
        `<td>\n\n${shown}\n\n</td></tr>`,
      ].join('');
    });
    return `<div class="scroll" tabindex="0" role="group" aria-label="${label}"><table class="members">
<thead><tr><th>name</th><th>type</th>${isChoice ? '<th>default</th>' : ''}<th>what it is</th></tr></thead>
<tbody>${lines.join('\n')}</tbody></table></div>\n`;
  }

  /** @param {Pieces} pieces the beginning of a long type */
  function clipped(pieces) {
    let length = 0;
    const shown = pieces.filter(({ text }) => (length += text.length) <= MAX_TYPE - 40);
    return [...shown, ...piece(' …')];
  }

  /** @param {DeclarationReflection} member @param {string} [within] @returns {Row} */
  function rowOf(member, within) {
    const signature = member.getSignature ?? member.signatures?.[0];
    const comment = member.comment ?? signature?.comment;
    const returned = prose(block(comment, '@returns')[0]?.content);
    return {
      name: member.name,
      id: within && `${within}.${member.name.toLowerCase()}`,
      optional: member.flags.isOptional,
      type: member.signatures
        ? [
            ...parameters(member.signatures[0]),
            ...piece(' => '),
            ...typed(member.signatures[0].type),
          ]
        : typed(member.type ?? signature?.type),
      text: [prose(comment?.summary), returned].filter(Boolean).join('. '),
    };
  }

  /** Expands the options that parameters take; fails if it cannot. @param {SignatureReflection[]} signatures @param {string} id */
  function optionsOf(signatures, id) {
    /** By parameter. @type {Map<string, { row: Row, taken: number, required: number[] }[]>} */
    const tables = new Map();
    for (const [i, { parameters: given = [] }] of signatures.entries()) {
      for (const { name, type, comment } of given) {
        const told = (comment?.summary ?? [])
          .map((part) =>
            part.kind === 'inline-tag' && part.target instanceof Object
              ? /** @type {any} */ (part.target)
              : undefined,
          )
          .filter((target) => target?.kind && isOptions(target.name));
        const types = [...alternatives(type).filter(isExpandable)];
        const sets = [
          ...types.map((each) => /** @type {const} */ ([each, expand(each)])),
          ...told.map(
            (target) =>
              /** @type {const} */ ([
                target,
                target.kindOf(ReflectionKind.Interface) ? membersOf(target) : expand(target.type),
              ]),
          ),
        ];
        for (const [each, members] of sets) {
          if (!members) throw new Error(`The options of ${id} cannot be expanded: ${each}`);
          const label = told.length ? 'options' : name === '__namedParameters' ? 'options' : name;
          const rows = tables.get(label) ?? [];
          tables.set(label, rows);
          for (const member of members) {
            const row = rowOf(member, id);
            const known = rows.find((other) => other.row.name === row.name);
            if (!known) rows.push({ row, taken: 1, required: row.optional ? [] : [i] });
            else {
              known.taken++;
              known.row.text ||= row.text;
              if (!row.optional) known.required.push(i);
              known.row.optional &&= row.optional;
            }
          }
        }
      }
    }
    return [...tables].map(([label, rows]) => {
      const listed = rows.map(({ row, required }) => ({
        ...row,
        when:
          required.length && required.length < signatures.length && signatures.length > 1
            ? ` (signature ${required.map((i) => i + 1).join(', ')})`
            : '',
      }));
      return `\n**\`${label}\`**\n\n${table(listed, `Members of ${label}`)}\n`;
    });
  }

  /**
   * @param {SignatureReflection[]} signatures
   * @param {Pieces} before the name
   * @param {string} id
   * @param {{ sample?: string, arrow?: string }} [how] `sample` is its example if it has none of its own
   */
  function functionOf(signatures, before, id, { sample, arrow } = {}) {
    const out = [code(signatures.map((each) => written(before, each, arrow)).join('\n\n')), ''];
    for (const each of signatures) {
      const text = prose(each.comment?.summary);
      if (text) out.push(signatures.length > 1 ? `- ${text.replaceAll('\n', ' ')}` : text);
    }
    out.push('');
    /** @type {Map<string, Row>} */
    const rows = new Map();
    for (const { parameters: given = [], typeParameters = [] } of signatures) {
      for (const one of given) {
        const row = {
          name:
            one.name === '__namedParameters'
              ? 'options'
              : `${one.flags.isRest ? '...' : ''}${one.name}`,
          optional: Boolean(one.flags.isOptional || one.defaultValue),
          type: typed(one.type),
          text: prose(one.comment?.summary),
        };
        const known = rows.get(row.name);
        if (!known || (row.text.length > known.text.length && !known.text)) rows.set(row.name, row);
      }
      for (const one of typeParameters) {
        const text = prose(one.comment?.summary);
        if (text && !rows.has(`<${one.name}>`))
          rows.set(`<${one.name}>`, {
            name: `<${one.name}>`,
            optional: true,
            type: one.type ? typed(one.type) : piece('any'),
            text,
          });
      }
    }
    if (rows.size) out.push(table([...rows.values()], 'Parameters'), '');
    out.push(...optionsOf(signatures, id));
    const returns = [
      ...new Set(signatures.map(({ comment }) => prose(block(comment, '@returns')[0]?.content))),
    ].filter(Boolean);
    for (const text of returns) out.push(`**Returns** ${text}`, '');
    for (const { content } of signatures.flatMap(({ comment }) => block(comment, '@throws')))
      out.push(`**Throws** ${prose(content)}`, '');
    const own = signatures.map(({ comment }) => examples(comment)).join('');
    if (own || sample) out.push(`**Example**`, '', own || sample || '');
    return out.join('\n');
  }

  /** Gives what an entry exports its anchors. @param {DeclarationReflection} module */
  function anchor(module) {
    const taken = new Set();
    for (const exported of module.children ?? []) {
      let id = exported.name.toLowerCase();
      while (taken.has(id)) id += '-1';
      taken.add(id);
      ids.set(exported, id);
      for (const member of membersOf(exported)) {
        const name = member.name.replace('constructor', 'new').toLowerCase();
        ids.set(member, `${id}.${name}`);
      }
    }
  }

  /** @param {DeclarationReflection} exported @param {string} entry @param {(member: DeclarationReflection) => boolean} isShown */
  function classOf(exported, entry, isShown) {
    const out = [];
    const members = membersOf(exported).filter(
      (member) => !member.inheritedFrom?.reflection?.flags.isExternal && isShown(member),
    );
    const [constructor] = members.filter((member) => member.kindOf(ReflectionKind.Constructor));
    const base = exported.extendedTypes?.length
      ? [...piece(' extends ', 'keyword'), ...join(exported.extendedTypes.map(typed), ', ')]
      : [];
    out.push(
      code(
        html([
          ...piece('class ', 'keyword'),
          ...piece(exported.name, 'class-name'),
          ...generics(exported),
          ...base,
        ]),
      ),
      prose(exported.comment?.summary),
      '',
    );
    const made = constructor?.signatures?.filter(
      (each) => !/^Use /.test(prose(each.comment?.summary)),
    );
    const id = /** @type {string} */ (ids.get(exported));
    const sample = examples(exported.comment) || samples(entry, exported.name);
    if (sample) out.push('**Example**', '', sample, '');
    if (made?.length) {
      out.push(
        `<h4 id="${id}.new"><code data-pagefind-weight="10">new ${exported.name}()</code></h4>`,
        '',
      );
      out.push(
        functionOf(
          made,
          [...piece('new ', 'keyword'), ...piece(exported.name, 'class-name')],
          `${id}.new`,
        ),
        '',
      );
    }
    const properties = members.filter(
      (member) =>
        member.kindOf(ReflectionKind.Property | ReflectionKind.Accessor) && !member.flags.isStatic,
    );
    if (properties.length) {
      const rows = properties.map((member) => ({ ...rowOf(member, id), optional: false }));
      out.push(table(rows, `Properties of ${exported.name}`), '');
    }
    for (const method of members.filter((member) => member.kindOf(ReflectionKind.Method))) {
      const { signatures = [], name, flags } = method;
      const own = flags.isStatic ? `${exported.name}.${name}` : name;
      const at = `${id}.${name.toLowerCase()}`;
      out.push(`<h4 id="${at}"><code data-pagefind-weight="10">${escape(own)}()</code></h4>`, '');
      out.push(functionOf(signatures, piece(own, 'function'), at), '');
    }
    return out.join('\n');
  }

  /** @param {DeclarationReflection} exported */
  function typeOf(exported) {
    const id = /** @type {string} */ (ids.get(exported));
    const { type } = exported;
    const isInterface = exported.kindOf(ReflectionKind.Interface);
    const members = isInterface ? membersOf(exported) : expand(type);
    const [call] = type?.type === 'reflection' ? (type.declaration.signatures ?? []) : [];
    const out = [];
    if (call && !members?.length) {
      const name = [
        ...piece('type ', 'keyword'),
        ...piece(exported.name, 'class-name'),
        ...generics(exported),
        ...piece(' = '),
      ];
      const comment = call.comment?.summary.length
        ? call
        : Object.assign(Object.create(call), { comment: exported.comment });
      return functionOf([comment], name, id, { arrow: ' => ' });
    }
    const isAlone = isInterface || type?.type === 'reflection';
    const base = exported.extendedTypes?.length
      ? [...piece(' extends ', 'keyword'), ...join(exported.extendedTypes.map(typed), ', ')]
      : [];
    if (!isAlone || !members)
      out.push(
        code(
          html([
            ...piece('type ', 'keyword'),
            ...piece(exported.name, 'class-name'),
            ...generics(exported),
            ...(type ? [...piece(' = '), ...typed(type)] : base),
          ]),
        ),
      );
    else if (exported.typeParameters || base.length)
      out.push(
        code(
          html([
            ...piece('interface ', 'keyword'),
            ...piece(exported.name, 'class-name'),
            ...generics(exported),
            ...base,
          ]),
        ),
      );
    out.push(prose(exported.comment?.summary), '', examples(exported.comment));
    if (members?.length)
      out.push(
        table(
          members.map((member) => rowOf(member, id)),
          `Members of ${exported.name}`,
        ),
        '',
      );
    return out.join('\n');
  }

  /** @param {DeclarationReflection} module @param {string} entry @param {(exported: DeclarationReflection, member: DeclarationReflection) => boolean} isShown */
  function page(module, entry, isShown) {
    const out = [];
    const exports = module.children ?? [];
    const kinds = [
      ['Functions', ReflectionKind.Function],
      ['Classes', ReflectionKind.Class],
      ['Variables', ReflectionKind.Variable],
      ['Types', ReflectionKind.Interface | ReflectionKind.TypeAlias | ReflectionKind.Enum],
      ['From other entries', ReflectionKind.Reference],
    ];
    for (const [title, kind] of /** @type {[string, number][]} */ (kinds)) {
      const listed = exports.filter((each) => each.kindOf(kind));
      if (!listed.length) continue;
      out.push(`## ${title}`, '');
      for (const exported of listed) {
        const id = /** @type {string} */ (ids.get(exported));
        const isFunction = kind === ReflectionKind.Function;
        if (kind === ReflectionKind.Reference) {
          const target = /** @type {any} */ (exported).getTargetReflectionDeep();
          out.push(`- [\`${exported.name}\`](${hrefOf(target)?.replace('.html', '.md')})`);
          continue;
        }
        out.push(
          `<h3 id="${id}"><code data-pagefind-weight="10">${exported.name}${isFunction ? '()' : ''}</code></h3>`,
          '',
        );
        if (isFunction)
          out.push(
            functionOf(exported.signatures ?? [], piece(exported.name, 'function'), id, {
              sample: samples(entry, exported.name),
            }),
          );
        else if (kind === ReflectionKind.Class)
          out.push(classOf(exported, entry, (member) => isShown(exported, member)));
        else if (kind === ReflectionKind.Variable)
          out.push(
            code(
              html([
                ...piece('const ', 'keyword'),
                ...piece(exported.name),
                ...piece(': '),
                ...typed(exported.type),
              ]),
            ),
            prose(exported.comment?.summary),
          );
        else out.push(typeOf(exported));
        out.push('');
      }
      out.push('');
    }
    const text = out.join('\n');
    const sample = text.includes('**Example**') ? undefined : samples(entry);
    return sample ? `**Example**\n\n${sample}\n\n${text}` : text;
  }
  return { anchor, page };
}
