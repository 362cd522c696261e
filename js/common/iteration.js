/**
 * Reads the stream that a handler returned to its end: an async iterable or a `ReadableStream`,
 * chunk by chunk.
 */
import { breathe } from './breathe.js';
import { AbpError, saysCancelled, toErrorObject } from './errors.js';
import { iteratorOf } from './iterator-of.js';
import { copyOf } from './copy.js';
import { transferOf } from './transfer.js';
import { sizeOf } from './value-size.js';

/** The most bytes collected for a caller that reads no chunks. Each chunk counts as at least 64. */
const MAX_COLLECTED = 2 ** 26;

/** Reads the chunks of a handler, one by one, until its call has ended. */
export class Iteration {
  #iterator;
  /**
   * Settles when the source has ended after `#close()`, with the error of its cleanup, if any.
   * @type {Promise<{ error: unknown } | void> | undefined}
   */
  #closing;
  /** True if the end of the source may be the effect of `stop()`. */
  #isCut = false;
  /** True after `stop()`. */
  stopped = false;

  /** @param {unknown} source the handler's return value */
  constructor(source) {
    this.#iterator = iteratorOf(source);
  }

  /**
   * Takes all chunks. Throws errors of the source and of `take`, after the source's `finally` has
   * run, and errors of that `finally`.
   * @param {(chunk: unknown) => Promise<unknown> | void} take may return a promise, which is
   *   awaited before the next chunk is made
   * @returns {Promise<{ returned: boolean, value?: unknown, isPartial?: boolean }>} the return
   *   value of the source; `returned` is false if it was stopped before its end, and its `finally`
   *   has run; `isPartial` is true if it was stopped after its end, but before the end was read
   */
  async run(take) {
    let broken;
    try {
      while (!this.stopped) {
        const { done, value } = await this.#iterator.next();
        if (done && !this.#isCut) return { returned: true, value };
        if (done || this.stopped) break;
        try {
          // Most chunks need no wait.
          const taken = take(value);
          if (taken) await taken;
        } catch (error) {
          this.#close(error);
          throw error;
        }
      }
    } finally {
      // The source's `finally` is part of it.
      broken = await this.#closing;
    }
    if (broken) throw broken.error;
    const isPartial = this.#iterator.isDone === true;
    return { returned: isPartial, isPartial };
  }

  /**
   * Stops reading: the source ends where it waits, in `yield`.
   * @param {unknown} [reason]
   */
  stop(reason) {
    this.stopped = true;
    this.#close(reason);
  }

  /**
   * Lets the source's `finally` run.
   * @param {unknown} [reason]
   */
  #close(reason) {
    this.#closing ??= Promise.resolve()
      .then(() => {
        // A generator reaches its own end before it takes this; other sources cut off the read.
        this.#isCut =
          this.#iterator[Symbol.toStringTag] !== 'AsyncGenerator' && 'return' in this.#iterator;
        return this.#iterator.return?.(reason);
      })
      .then(
        () => {},
        (error) => {
          if (error === reason || saysCancelled(error)) return undefined;
          console.error("abp-bridge: a stream's cleanup failed:", error);
          return { error };
        },
      );
  }
}

/**
 * The error that ends a stream whose chunk cannot be sent.
 * @param {unknown} error the reason
 */
export const chunkUnsent = (error) =>
  new AbpError(
    'OPERATION_FAILED',
    `A chunk cannot be sent: ${toErrorObject(error).message} (docs/errors.md#what-cannot-be-sent)`,
  );

/**
 * Collects the chunks of a source for a caller that reads none, up to 64 MiB, as copies of their
 * state when the source yielded them.
 */
export class Collection {
  /** @type {unknown[]} */
  chunks = [];
  #left = MAX_COLLECTED;

  /**
   * @param {unknown} chunk
   * @returns {Promise<void> | undefined} resolves after a turn of the event loop, now and then, so
   *   that a cancel can arrive
   */
  add(chunk) {
    this.#left -= Math.max(64, sizeOf(chunk));
    if (this.#left < 0) {
      const why = 'The stream is too long to be collected; use client.stream()';
      throw new AbpError('OPERATION_FAILED', `${why}: ${MAX_COLLECTED} bytes`);
    }
    try {
      this.chunks.push(copyOf(chunk, transferOf(chunk)));
    } catch (error) {
      throw chunkUnsent(error);
    }
    return breathe();
  }
}
