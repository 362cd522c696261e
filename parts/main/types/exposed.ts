/** The types that `expose` infers of an app. Types only: no code. */
import type {
  ExposeOptions as AppOptions,
  Exposed as App,
  Interface,
  ServeOptions as AppServeOptions,
} from '../../../js/app/expose.js';
import type { CallContext, Described } from '../../../js/app/registry.js';
import type { AnyFunction, IsAny, contract } from '../../../js/types/app.js';
import type { Response } from '../../../js/wire/messages.js';
import type { KeyStore } from '../../keys/store.js';
import type { InputOf, OutputOf } from '../../schemas/types.js';

/** The options of `expose`. */
export type ExposeOptions = AppOptions & Pick<ServeOptions, 'keys'>;
/** The agents that an app serves, and how. */
export type ServeOptions = AppServeOptions & {
  /**
   * A store that remembers calls with an `idempotencyKey` after the app has ended (default: in
   * memory).
   */
  keys?: KeyStore;
};

/** An app that agents can call: the result of `expose`. */
export declare class Exposed extends App {
  /**
   * Adds or replaces a capability, and notifies the agents.
   * @param name of the capability
   * @param capability a handler, or an object that has one
   */
  set<const S, const O, H>(name: string, capability: TypedCapability<S, O, H>): void;
}

/**
 * The first argument of `expose`. `S` and `O` are the schemas of params and results, and `H` the
 * handlers, each by name.
 */
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

/**
 * The capability passed to `set` of an exposed app: `S` and `O` are the schemas, and `H` is the
 * handler.
 */
export type TypedCapability<S, O, H> =
  | (Described & {
      inputSchema?: S;
      outputSchema?: O;
      handler: H & ((params: OutputOf<S>, context: CallContext) => unknown);
    } & Kept<H, O>)
  | (H & ((params: any, context: CallContext) => unknown));

/**
 * `unknown`, which accepts everything, if the handler's result matches its `outputSchema`, or is
 * the protocol's response. This is checked here and not in the handler's own type: the context of a
 * `const` type parameter would make all results `readonly`.
 */
type Kept<H, O> = unknown extends O
  ? unknown
  : LastOf<Awaited<ReturnType<FunctionOf<H>>>> extends Wide<InputOf<O>> | Response<Wide<InputOf<O>>>
    ? unknown
    : { handler: { 'does not return what its outputSchema takes': InputOf<O> } };

/**
 * `unknown`, which accepts everything, if a capability has known members only: a misspelt one would
 * have no effect. `H` has the whole object beside its handler, because a handler may also be given
 * without an object.
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

/** The final result of a handler. */
type LastOf<R> = R extends AsyncGenerator<any, infer D> | Generator<any, infer D> ? D : R;

/**
 * A type in which literal types are replaced by string, number and boolean: a handler's literals
 * are inferred as such.
 */
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

/** The handler, given as such or in an object. */
type FunctionOf<H> = Extract<H, AnyFunction>;

/** The type of a capability for its callers: a function of its params. */
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

/** An app with capabilities of known names, params and results: the result of `expose`. */
export type ExposedApp<C> = Exposed & { readonly [contract]?: C };

/** The result of `expose` for a definition with these schemas and handlers. */
export type Inferred<S, O, H> = ExposedApp<{
  [K in keyof H]: Signature<S[K & keyof S], O[K & keyof O], H[K]>;
}>;

/**
 * Makes an app's capabilities callable by agents. With `const app = expose(…)`, `connect<typeof
 * app>(…)` has their types: names, params and results.
 * @template S schemas of params by name
 * @template O schemas of results by name
 * @template H handlers by name
 * @param definition the app and its capabilities, or a foreign `window.abp`
 * @param options who may call the app, and its settings
 * @example
 * expose(
 *   {
 *     app: { id: 'example.writer', name: 'Writer', version: '1.0' },
 *     capabilities: { 'text.count': ({ text }) => text.split(' ').length },
 *   },
 *   { origins: ['https://agent.example'] }, // who may call
 * );
 */
export declare function expose<const S, const O, H>(
  definition: TypedDefinition<S, O, H> | Interface,
  options?: ExposeOptions,
): Inferred<S, O, H>;
