/** Types of an app, as a client knows it. Types only: no code. */
import type { CallOptions } from '../agent/client.js';
import type { Response } from '../wire/messages.js';
import type { Registry } from '../app/registry.js';
import type { Exposed } from '../app/expose.js';

/**
 * A JSON Schema, as an object or a boolean, or a schema that follows Standard Schema
 * (parts/schemas).
 */
export type Schema = object | boolean;

/** True if a type is `any`. */
export type IsAny<T> = 0 extends 1 & T ? true : false;

/** A function of any type. */
export type AnyFunction = (...args: any) => any;

/** The key of the member of an app's type that holds its capabilities, as functions by name. */
export declare const contract: unique symbol;

/**
 * The capabilities of an app as functions by name. An app is `typeof app`, where `app` is what
 * `expose` returned, or such a type itself, written by hand.
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

/**
 * The names of an app's capabilities. They are inferred so that the compiler's messages list them.
 */
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

/**
 * The arguments of `call` and similar methods after the name. Params can be left out if none of
 * their members is required.
 */
export type CallArguments<App, Name extends NameOf<App>, Options = CallOptions> =
  {} extends ParamsOf<App, Name>
    ? [params?: ParamsOf<App, Name>, options?: Options]
    : undefined extends ParamsOf<App, Name>
      ? [params?: ParamsOf<App, Name>, options?: Options]
      : [params: ParamsOf<App, Name>, options?: Options];

type Returned<App, Name> = Awaited<ReturnType<Callable<App, Name>>>;

/** True if a handler returned a response of the protocol: an object with these members only. */
type IsResponse<R> = R extends { success: boolean }
  ? Exclude<PresentIn<R>, 'success' | 'data' | 'error' | 'cancelled' | 'metadata'> extends never
    ? true
    : false
  : false;

/**
 * The keys of the members that are not always undefined. TypeScript adds to each result of a
 * handler the members of its other results, as undefined.
 */
type PresentIn<R> = { [K in keyof R]-?: [R[K]] extends [undefined] ? never : K }[keyof R];

/** The data in a handler's return value. */
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

/** Values that a handler can return to stream. */
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

/** The codes of the errors that a handler returns. Types do not show the errors that it throws. */
type CodesIn<R> =
  IsAny<R> extends true
    ? never
    : R extends { success: false; error: { code: infer C extends string } }
      ? string extends C
        ? never
        : C
      : never;

/** The type of a capability's data. */
export type DataOf<App, Name extends NameOf<App>> = DataIn<Returned<App, Name>>;

/** The response to a call of a capability. */
export type ResponseOf<App, Name extends NameOf<App>> = Response<
  DataOf<App, Name>,
  CodesIn<Returned<App, Name>>
>;

// --- What stands on an app -----------------------------------------------------------------------

/** The argument that `expose` passes to its option `webmcp`. */
export interface ServedApp {
  exposed: Exposed;
  /** The app's capabilities. Undefined if the app was made without this library. */
  registry?: Registry | undefined;
  /** The exact origins passed to `expose`. */
  origins: string[];
}

/** Starts to serve an app. Returns functions that report changes and the end of the app. */
export type WebMcp = (app: ServedApp) => { changed(): void; close(): void };
