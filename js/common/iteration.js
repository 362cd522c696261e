/**
 * What a handler streams, driven to its end: an async iterable or a `ReadableStream`, chunk by
 * chunk.
 */
import { breathe } from './breathe.js';
import { AbpError, saysCancelled, toErrorObject } from './errors.js';
import { iteratorOf } from './iterator-of.js';
import { copyOf } from './copy.js';
import { transferOf } from './transfer.js';
import { sizeOf } from './value-size.js';

/**
 * At most so many bytes are collected for a caller that reads no chunks. Each chunk counts as at
 * least 64.
 */
const MAX_COLLECTED = 2 ** 26;

/** What a handler yields, chunk by chunk, until its call has ended. */
export class Iteration {
  #iterator;
  /**
   * Settles when the iterator has ended, once it was told to, with what that threw.
   * @type {Promise<{ error: unknown } | void> | undefined}
   */
  #closing;
  /** Whether what it gives as its end may come of being told to stop. */
  #isCut = false;
  /** Whether it was told to stop. */
  stopped = false;

  /** @param {unknown} source what a handler returned */
  constructor(source) {
    this.#iterator = iteratorOf(source);
  }

  /**
   * Takes all chunks. Throws what the source or `take` throws, when the source's `finally` has run;
   * also what that throws.
   * @param {(chunk: unknown) => Promise<unknown> | void} take may return a promise, which is waited
   *   for before the next chunk is made
   * @returns {Promise<{ returned: boolean, value?: unknown, isPartial?: boolean }>} what the source
   *   returned; `returned` is false if it was stopped before its end, and its `finally` has run;
   *   `isPartial` if it was stopped after its end, of which nobody had read
   */
  async run(take) {
    let broken;
    try {
      while (!this.stopped) {
        const { done, value } = await this.#iterator.next();
        if (done && !this.#isCut) return { returned: true, value };
        if (done || this.stopped) break;
        try {
          // Most chunks need not be waited for.
          const taken = take(value);
          if (taken) await taken;
        } catch (error) {
          this.#close(error);
          throw error;
        }
      }
    } finally {
      // The source's own end is part of it.
      broken = await this.#closing;
    }
    if (broken) throw broken.error;
    const isPartial = this.#iterator.isDone === true;
    return { returned: isPartial, isPartial };
  }

  /**
   * Nobody waits for chunks any more: the source ends where it waits, in `yield`.
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
        // A generator comes to its own end before it takes this; others end what is read.
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
 * What ends a stream with a chunk that cannot be sent.
 * @param {unknown} error why it cannot
 */
export const chunkUnsent = (error) =>
  new AbpError(
    'OPERATION_FAILED',
    `A chunk cannot be sent: ${toErrorObject(error).message} (docs/errors.md#what-cannot-be-sent)`,
  );

/**
 * The chunks of a source whose caller reads none, up to 64 MiB, as they were when the source gave
 * them.
 */
export class Collection {
  /** @type {unknown[]} */
  chunks = [];
  #left = MAX_COLLECTED;

  /**
   * @param {unknown} chunk
   * @returns {Promise<void> | undefined} lets a cancel in now and then
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
