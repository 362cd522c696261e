/** What `expose` infers of an app, and what a client knows of it. Types only: nothing of this runs. */
import type { CallOptions } from '../agent/client.js';
import type { Response } from '../wire/messages.js';
import type { CallContext, Described, Registry } from '../app/registry.js';
import type { Exposed } from '../app/expose.js';
import type { FromSchema } from './json-schema.js';

// --- Schemas ----------------------------------------------------------------------------------------

/**
 * What we use of a schema that follows Standard Schema, as those of zod, valibot and arktype do. It must also be able to
 * say itself as JSON Schema (Standard JSON Schema), because agents are told what a capability takes.
 */
export interface StandardSchema<Input = any, Output = any> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => any;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: {
        target: 'draft-2020-12';
        libraryOptions?: any;
      }) => Record<string, unknown>;
      readonly output: (options: {
        target: 'draft-2020-12';
        libraryOptions?: any;
      }) => Record<string, unknown>;
    };
  };
}

/** A JSON Schema, as an object or a boolean, or a {@link StandardSchema}. */
export type Schema = object | boolean;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** `any` in place of `unknown`: what is not known may be used as one likes. */
type Loose<T> = unknown extends T ? any : T;

type StandardTypes<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T>
  : never;

/** What a schema takes: a value as its sender writes it. */
export type InputOf<S> = Loose<
  '~standard' extends keyof S
    ? StandardTypes<S> extends { readonly input: infer I }
      ? I
      : unknown
    : FromSchema<S>
>;

/** What a schema makes of what it takes: defaults are filled in, and texts may have become dates. */
export type OutputOf<S> = Loose<
  '~standard' extends keyof S
    ? StandardTypes<S> extends { readonly output: infer O }
      ? O
      : unknown
    : FromSchema<S>
>;

// --- What expose infers -----------------------------------------------------------------------------

/** What `expose` is given. By name, `S` and `O` are the schemas of params and results, and `H` the handlers. */
export interface TypedDefinition<S, O, H> {
  app: { id: string; name: string; version: string; description?: string; [more: string]: unknown };
  /** By name: a handler, or an object with one. */
  capabilities: { [K in keyof S]: { inputSchema?: S[K] } | Function } & {
    [K in keyof O]: { outputSchema?: O[K] } | Function;
  } & {
    [K in keyof H]:
      | (Described & {
          handler: H[K] & ((params: OutputOf<S[K & keyof S]>, context: CallContext) => unknown);
        } & Kept<H[K], O[K & keyof O]>)
      | (H[K] & ((params: any, context: CallContext) => unknown));
  } & NoInfer<{ [K in keyof H]: Spelt<H[K]> }>;
}

/** What `set` of an exposed app is given: `S` and `O` are the schemas, and `H` is the handler. */
export type TypedCapability<S, O, H> =
  | (Described & {
      inputSchema?: S;
      outputSchema?: O;
      handler: H & ((params: OutputOf<S>, context: CallContext) => unknown);
    } & Kept<H, O>)
  | (H & ((params: any, context: CallContext) => unknown));

/**
 * Nothing to object to, if what a handler returns is what its `outputSchema` takes, or the protocol's response. It is asked
 * here and not of the handler's own type: the context of a `const` type parameter would make all results `readonly`.
 */
type Kept<H, O> = unknown extends O
  ? unknown
  : LastOf<Awaited<ReturnType<FunctionOf<H>>>> extends Wide<InputOf<O>> | Response<Wide<InputOf<O>>>
    ? unknown
    : { handler: { 'does not return what its outputSchema takes': InputOf<O> } };

/**
 * Nothing to object to, if a capability has no members but those that there are: a misspelt one would do nothing. `H` has
 * the whole object beside its handler, because a handler may stand by itself.
 */
type Spelt<H> =
  IsAny<H> extends true
    ? unknown
    : [Exclude<H, AnyFunction>] extends [never]
      ? unknown
      : {
          [K in Exclude<keyof Exclude<H, AnyFunction>, Member>]: `${K &
            string} is not a member of a capability`;
        };

type Member = keyof Described | 'inputSchema' | 'outputSchema' | 'handler';

/** What a handler gives in the end. */
type LastOf<R> = R extends AsyncGenerator<any, infer D> | Generator<any, infer D> ? D : R;

/** A type with all texts, numbers and booleans for those that it names: a handler's literals are inferred as such. */
type Wide<T> =
  IsAny<T> extends true
    ? any
    : T extends string
      ? string
      : T extends number
        ? number
        : T extends boolean
          ? boolean
          : T extends Builtin
            ? T
            : { [K in keyof T]: Wide<T[K]> };

type Builtin = ArrayBuffer | ArrayBufferView | Blob | Date | Map<any, any> | Set<any> | AnyFunction;

type AnyFunction = (...args: any) => any;

/** The handler, whether it stood by itself or in an object. */
type FunctionOf<H> = Extract<H, AnyFunction>;

/** A capability as its callers see it: a function of its params. */
type Signature<S, O, H> = (
  ...args: unknown extends S
    ? Parameters<FunctionOf<H>> extends []
      ? []
      : [params: Parameters<FunctionOf<H>>[0]]
    : [params: InputOf<S>]
) => unknown extends O
  ? ReturnType<FunctionOf<H>>
  : ReturnType<FunctionOf<H>> extends AsyncGenerator<infer Chunk> | Generator<infer Chunk>
    ? AsyncGenerator<Chunk, OutputOf<O>>
    : Promise<OutputOf<O>>;

declare const contract: unique symbol;

/** An app whose capabilities are known by name, with their params and results: what `expose` returns. */
export type ExposedApp<C> = Exposed & { readonly [contract]?: C };

/** What `expose` returns for a definition whose schemas and handlers are these. */
export type Inferred<S, O, H> = ExposedApp<{
  [K in keyof H]: Signature<S[K & keyof S], O[K & keyof O], H[K]>;
}>;

// --- What a client knows ----------------------------------------------------------------------------

/**
 * The capabilities of an app as functions by name. An app is `typeof app`, where `app` is what `expose` returned, or such a
 * type itself, written by hand.
 */
export type CapabilitiesOf<App> =
  IsAny<App> extends true
    ? Record<string, (params?: any) => any>
    : App extends Exposed
      ? App extends { readonly [contract]?: infer C }
        ? unknown extends C
          ? Record<string, (params?: any) => any>
          : C
        : never
      : App;

/** The names of an app's capabilities. It is inferred so that the compiler's messages list the names. */
export type NameOf<App> = keyof CapabilitiesOf<App> & string extends infer Name extends string
  ? Name
  : never;

type Callable<App, Name> = Extract<
  CapabilitiesOf<App>[Name & keyof CapabilitiesOf<App>],
  AnyFunction
>;

/** The params of a capability. */
export type ParamsOf<App, Name extends NameOf<App>> =
  Parameters<Callable<App, Name>> extends [] ? {} | undefined : Parameters<Callable<App, Name>>[0];

/** What `call` and the like take after the name. Params that need no member may be left out. */
export type CallArguments<App, Name extends NameOf<App>, Options = CallOptions> =
  {} extends ParamsOf<App, Name>
    ? [params?: ParamsOf<App, Name>, options?: Options]
    : undefined extends ParamsOf<App, Name>
      ? [params?: ParamsOf<App, Name>, options?: Options]
      : [params: ParamsOf<App, Name>, options?: Options];

type Returned<App, Name> = Awaited<ReturnType<Callable<App, Name>>>;

/** Whether a handler returned a response of the protocol: an object with no members but these. */
type IsResponse<R> = R extends { success: boolean }
  ? Exclude<PresentIn<R>, 'success' | 'data' | 'error' | 'cancelled' | 'metadata'> extends never
    ? true
    : false
  : false;

/** The members that are not always undefined: TypeScript adds those of the other results of a handler. */
type PresentIn<R> = { [K in keyof R]-?: [R[K]] extends [undefined] ? never : K }[keyof R];

/** The data of what a handler returned. */
type DataIn<R> =
  IsAny<R> extends true
    ? any
    : R extends unknown
      ? IsResponse<R> extends true
        ? R extends { success: false }
          ? never
          : R extends { data?: infer D }
            ? D
            : undefined
        : R extends void
          ? undefined
          : R extends Streamed
            ? CollectedFrom<R>
            : R
      : never;

/** What a handler may return to stream. */
type Streamed = AsyncIterable<any> | Generator<any> | ReadableStream<any>;

/** The data of a stream: what its generator returns or, if that is nothing, its chunks. */
type CollectedFrom<R> = R extends AsyncGenerator<any, infer D> | Generator<any, infer D>
  ? [D] extends [void]
    ? ChunkIn<R>[]
    : D
  : ChunkIn<R>[];

type ChunkIn<R> =
  IsAny<R> extends true
    ? any
    : R extends AsyncIterable<infer C> | Generator<infer C>
      ? C
      : R extends ReadableStream<infer C>
        ? C
        : never;

/** The chunks that a capability streams. */
export type ChunkOf<App, Name extends NameOf<App>> = ChunkIn<Returned<App, Name>>;

/** The codes of the errors that a handler returned; not those that it throws, which no type tells. */
type CodesIn<R> =
  IsAny<R> extends true
    ? never
    : R extends { success: false; error: { code: infer C extends string } }
      ? string extends C
        ? never
        : C
      : never;

/** The data that a capability gives. */
export type DataOf<App, Name extends NameOf<App>> = DataIn<Returned<App, Name>>;

/** The response to a call of a capability. */
export type ResponseOf<App, Name extends NameOf<App>> = Response<
  DataOf<App, Name>,
  CodesIn<Returned<App, Name>>
>;

// --- What stands on an app --------------------------------------------------------------------------

/** What `expose` hands to its option `webmcp`. */
export interface ServedApp {
  exposed: Exposed;
  /** Its capabilities; none if the app was made without this library. */
  registry?: Registry | undefined;
  /** The exact origins that `expose` was given. */
  origins: string[];
}

/** Begins to serve an app, and returns what tells it of changes and of the end. */
export type WebMcp = (app: ServedApp) => { changed(): void; close(): void };
