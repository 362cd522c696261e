/** Types of the values that schemas describe. Types only: no code. */

/**
 * The parts of Standard Schema that this library uses; schemas of zod, valibot and arktype have
 * them. A schema must also be convertible to JSON Schema (Standard JSON Schema), because agents get
 * that as a description.
 */
export interface StandardSchema<Input = any, Output = any> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => any;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: { readonly input: ToJsonSchema; readonly output: ToJsonSchema };
  };
}

type ToJsonSchema = (options: {
  target: 'draft-2020-12';
  libraryOptions?: any;
}) => Record<string, unknown>;

/** `any` in place of `unknown`, so that values of unknown type can be used freely. */
type Loose<T> = unknown extends T ? any : T;

type SideOf<S, Side extends string> = Loose<
  '~standard' extends keyof S
    ? S extends { readonly '~standard': { readonly types?: infer T } }
      ? Member<NonNullable<T>, Side>
      : unknown
    : FromSchema<S>
>;

/** The input of a schema: a value as its sender writes it. */
export type InputOf<S> = SideOf<S, 'input'>;

/** The output of a schema: defaults are filled in, and texts may have become dates. */
export type OutputOf<S> = SideOf<S, 'output'>;

// --- JSON Schemas that are written as literals ---------------------------------------------------

/** Shows an intersection of objects as one object. */
type Flat<T> = T extends infer U ? { [K in keyof U]: U[K] } : never;

/** A literal without the `readonly` that its inference adds. */
type Writable<T> = T extends object ? { -readonly [K in keyof T]: Writable<T[K]> } : T;

/**
 * A member of a type; `unknown` if it has none. Here and below, members are looked up and not
 * matched by `extends`: before TypeScript 6 that fails for a literal with further members.
 */
type Member<T, K> = K extends keyof T ? T[K] : unknown;

/** The elements of a list; `never` for other types. */
type Elements<T> = T extends readonly (infer E)[] ? E : never;

/** The names that a schema requires. */
type RequiredBy<S> = Extract<Elements<Member<S, 'required'>>, string>;

/**
 * The type of the values that a JSON Schema (draft 2020-12) accepts, as far as a type can express
 * it: numbers have no bounds, texts no patterns, and `not` and `if` are ignored. Parts that the
 * schema leaves open are `unknown`.
 */
export type FromSchema<S, Root = S> = unknown extends S
  ? unknown
  : S extends boolean
    ? S extends false
      ? never
      : unknown
    : '$ref' extends keyof S
      ? FromReference<Member<S, '$ref'>, Root>
      : 'const' extends keyof S
        ? Writable<Member<S, 'const'>>
        : 'enum' extends keyof S
          ? Writable<Elements<Member<S, 'enum'>>>
          : 'anyOf' extends keyof S
            ? FromBranch<Omit<S, 'anyOf'>, Elements<Member<S, 'anyOf'>>, Root>
            : 'oneOf' extends keyof S
              ? FromBranch<Omit<S, 'oneOf'>, Elements<Member<S, 'oneOf'>>, Root>
              : 'allOf' extends keyof S
                ? FromParts<Omit<S, 'allOf'>, Member<S, 'allOf'>, Root>
                : FromType<Member<S, 'type'>, S, Root>;

/** One type for each branch of `anyOf` and `oneOf`, combined with the other keywords. */
type FromBranch<S, Branch, Root> = Branch extends unknown
  ? '$ref' extends keyof Branch
    ? Both<FromSchema<S, Root>, FromReference<Member<Branch, '$ref'>, Root>>
    : FromSchema<Merged<S, Branch>, Root>
  : never;

/** One type for all parts of `allOf`. */
type FromParts<S, Parts, Root> = Parts extends readonly [infer First, ...infer Rest]
  ? '$ref' extends keyof First
    ? Both<FromReference<Member<First, '$ref'>, Root>, FromParts<S, Rest, Root>>
    : FromParts<Merged<S, First>, Rest, Root>
  : FromSchema<S, Root>;

type Both<A, B> = unknown extends A ? B : unknown extends B ? A : Flat<A & B>;

/** One schema for two that both apply. */
type Merged<A, B> = Flat<
  Omit<A, keyof B | 'properties' | 'required'> &
    Omit<B, 'properties' | 'required'> &
    ('properties' extends keyof A | keyof B
      ? { properties: Flat<Member<A, 'properties'> & Member<B, 'properties'>> }
      : unknown) & { required: (RequiredBy<A> | RequiredBy<B>)[] }
>;

/** A reference within the schema: `#`, `#/$defs/name`, or `#/definitions/name`. */
type FromReference<Reference, Root> = Reference extends '#'
  ? FromSchema<Root, Root>
  : Reference extends `#/${infer Group}/${infer Name}`
    ? FromSchema<Member<Member<Root, Group>, Name>, Root>
    : unknown;

interface Primitives {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type FromType<Type, S, Root> = Type extends keyof Primitives
  ? Primitives[Type]
  : Type extends 'array'
    ? FromArray<S, Root>
    : Type extends 'object'
      ? FromObject<Member<S, 'properties'>, RequiredBy<S>, Member<S, 'additionalProperties'>, Root>
      : Type extends readonly (infer T)[]
        ? FromType<T, S, Root>
        : unknown;

type FromArray<S, Root> =
  Member<S, 'prefixItems'> extends infer P extends readonly unknown[]
    ? [
        ...(Member<S, 'minItems'> extends P['length']
          ? FromEach<P, Root>
          : Partial<FromEach<P, Root>>),
        ...(Member<S, 'items'> extends false ? [] : FromSchema<Member<S, 'items'>, Root>[]),
      ]
    : FromSchema<Member<S, 'items'>, Root>[];

type FromEach<P, Root> = {
  -readonly [I in keyof P]: FromSchema<P[I], Root>;
};

/**
 * Other members than those of the schema are allowed, as with any type; `additionalProperties`
 * gives them a type.
 */
type FromObject<Properties, Required extends string, Additional, Root> = Flat<
  Pick<FromEach<Properties, Root>, Required & keyof Properties> &
    Partial<Omit<FromEach<Properties, Root>, Required>> & {
      [K in Exclude<Required, keyof Properties>]: unknown;
    } & (Additional extends false
      ? unknown
      : unknown extends Additional
        ? unknown extends Properties
          ? { [name: string]: unknown }
          : unknown
        : {
            [name: string]:
              FromSchema<Additional, Root> | FromSchema<Properties[keyof Properties], Root>;
          })
>;
