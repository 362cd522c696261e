/** What `expose` infers of an app. Types only: nothing of this runs. */
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

/** What `expose` may be given. */
export type ExposeOptions = AppOptions & Pick<ServeOptions, 'keys'>;
/** Whom an app serves, and how. */
export type ServeOptions = AppServeOptions & {
  /** Where calls with an `idempotencyKey` are remembered after the app has ended (in memory). */
  keys?: KeyStore;
};

/** An app that agents can call, as `expose` returns it. */
export declare class Exposed extends App {
  /**
   * Adds or replaces a capability, and tells the agents.
   * @param name of the capability
   * @param capability a handler, or an object that has one
   */
  set<const S, const O, H>(name: string, capability: TypedCapability<S, O, H>): void;
}

/**
 * What `expose` is given. By name, `S` and `O` are the schemas of params and results, and `H` the
 * handlers.
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

/** What `set` of an exposed app is given: `S` and `O` are the schemas, and `H` is the handler. */
export type TypedCapability<S, O, H> =
  | (Described & {
      inputSchema?: S;
      outputSchema?: O;
      handler: H & ((params: OutputOf<S>, context: CallContext) => unknown);
    } & Kept<H, O>)
  | (H & ((params: any, context: CallContext) => unknown));

/**
 * Nothing to object to, if what a handler returns is what its `outputSchema` takes, or the
 * protocol's response. It is asked here and not of the handler's own type: the context of a `const`
 * type parameter would make all results `readonly`.
 */
type Kept<H, O> = unknown extends O
  ? unknown
  : LastOf<Awaited<ReturnType<FunctionOf<H>>>> extends Wide<InputOf<O>> | Response<Wide<InputOf<O>>>
    ? unknown
    : { handler: { 'does not return what its outputSchema takes': InputOf<O> } };

/**
 * Nothing to object to, if a capability has no members but those that there are: a misspelt one
 * would do nothing. `H` has the whole object beside its handler, because a handler may stand by
 * itself.
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

/**
 * A type with all texts, numbers and booleans for those that it names: a handler's literals are
 * inferred as such.
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

/**
 * An app whose capabilities are known by name, with their params and results: what `expose`
 * returns.
 */
export type ExposedApp<C> = Exposed & { readonly [contract]?: C };

/** What `expose` returns for a definition whose schemas and handlers are these. */
export type Inferred<S, O, H> = ExposedApp<{
  [K in keyof H]: Signature<S[K & keyof S], O[K & keyof O], H[K]>;
}>;

/**
 * Makes an app's capabilities callable. With `const app = expose(…)`, `connect<typeof app>(…)`
 * knows them: their names, params and results.
 * @template S schemas of params by name
 * @template O schemas of results by name
 * @template H handlers by name
 * @param definition what it can do, or its own `window.abp`
 * @param options who may call, and how
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
