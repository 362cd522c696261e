// What a JSON Schema literal says as a type, beside what json-schema-to-ts makes of it. Each line
// must compile.
import type { FromSchema } from 'abp-bridge';
import type { FromSchema as Theirs } from 'json-schema-to-ts';
import { is, type Equal } from './equal.js';

/**
 * The same as theirs. Ours leaves out the index signature of members that a schema does not name,
 * so theirs has none.
 */
type Same<S> = Equal<FromSchema<S>, S extends Parameters<typeof theirs>[0] ? Theirs<S> : never>;
declare function theirs(schema: import('json-schema-to-ts').JSONSchema): void;

is<Same<{ type: 'string' }>>();
is<Same<{ type: 'integer' }>>();
is<Same<{ type: ['string', 'null'] }>>();
is<Same<{ readonly type: readonly ['number', 'boolean'] }>>();
is<Same<{ const: { readonly a: 1 } }>>();
is<Same<{ enum: ['a', 1, null] }>>();
is<Same<{ type: 'array'; items: { type: 'string' } }>>();
is<Same<{ type: 'array' }>>();
is<Same<{ type: 'object' }>>();
is<Same<{ type: 'object'; additionalProperties: { type: 'number' } }>>();
is<Same<{ anyOf: [{ type: 'string' }, { type: 'number' }] }>>();
is<Same<{ oneOf: [{ const: 'a' }, { type: 'array'; items: { type: 'null' } }] }>>();
is<Same<{ description: 'anything' }>>();
is<Same<true>>();
is<Same<false>>();
type Nested = {
  readonly type: 'object';
  readonly properties: {
    readonly title: { readonly type: 'string'; readonly minLength: 1 };
    readonly tags: {
      readonly type: 'array';
      readonly items: { readonly enum: readonly ['a', 'b'] };
    };
    readonly size: {
      readonly type: 'object';
      readonly properties: { readonly w: { readonly type: 'number' } };
      readonly required: readonly ['w'];
      readonly additionalProperties: false;
    };
  };
  readonly required: readonly ['title', 'size'];
  readonly additionalProperties: false;
};
is<Same<Nested>>();

/** What is ours alone, or better. */
type Open = { type: 'object'; properties: { a: { type: 'string' } }; required: ['a', 'b'] };
is<Equal<FromSchema<Open>, { a: string; b: unknown }>>();
type WithDefault = { type: 'object'; properties: { a: { type: 'string'; default: 'x' } } };
is<Equal<FromSchema<WithDefault>, { a?: string }>>();
type Pair = { type: 'array'; prefixItems: [{ type: 'string' }, { type: 'number' }]; items: false };
is<Equal<FromSchema<Pair>, [string?, number?]>>();
is<Equal<FromSchema<Pair & { minItems: 2 }>, [string, number]>>();
type Rest = {
  type: 'array';
  prefixItems: [{ type: 'string' }];
  minItems: 1;
  items: { type: 'null' };
};
is<Equal<FromSchema<Rest>, [string, ...null[]]>>();
type Either = {
  type: 'object';
  properties: { a: { type: 'string' }; b: { type: 'number' } };
  anyOf: [{ required: ['a'] }, { required: ['b'] }];
};
is<Equal<FromSchema<Either>, { a: string; b?: number } | { b: number; a?: string }>>();
type All = {
  allOf: [
    { type: 'object'; properties: { a: { type: 'string' } }; required: ['a'] },
    { properties: { b: { type: 'number' } } },
  ];
};
is<Equal<FromSchema<All>, { a: string; b?: number }>>();
type Tree = {
  $defs: {
    node: {
      type: 'object';
      properties: {
        name: { type: 'string' };
        children: { type: 'array'; items: { $ref: '#/$defs/node' } };
      };
      required: ['name'];
    };
  };
  $ref: '#/$defs/node';
};
declare const tree: FromSchema<Tree>;
const name: string | undefined = tree.children?.[0]?.children?.[0]?.name;
// @ts-expect-error a node's name is text
const wrong: number = tree.name;
export { name, wrong };
/** A schema that is no literal says nothing. */
is<Equal<FromSchema<{ type: string }>, unknown>>();
is<Equal<FromSchema<object>, unknown>>();
