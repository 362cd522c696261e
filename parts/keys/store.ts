import type { CallOutcome } from '../../js/types/outcome.js';
import type { ErrorObject } from '../../js/common/errors.js';
import type { ProgressInfo } from '../../js/wire/messages.js';

/**
 * The outcome of a call that has a key. A store keeps it as it is: all of it can be cloned by
 * `structuredClone`.
 */
export interface KeyEnded {
  /** The outcome of the handler's work. */
  outcome: CallOutcome;
  /** True if the call was cancelled, or timed out. */
  cancelled: boolean;
  /** The handler's return value, if it is kept. A store may leave out a value that is too large. */
  value?: unknown;
  /** The handler's error. */
  error?: ErrorObject;
  /** The handler's last report. */
  report?: any;
  /** Its last progress. */
  progress?: ProgressInfo;
  /**
   * The digest of the call's params. While it is kept, the key belongs to these params. Without it,
   * a call with any params may use the key.
   */
  digest?: string;
  /** True if the key may be used again: the next call with it runs. */
  again?: boolean;
}

/**
 * The state of a key in a store when a call with it wants to begin:
 *
 * - `begun`: the key is unknown, or may be used again. The store has now written, durably, that a
 *   call with it begins; `report` is the last report of an earlier run that was stopped before its
 *   end
 * - `running`: a call with it runs, here or in another page or process that uses this store
 * - `lost`: a call with it began, its page or process is gone, and its outcome was not written
 * - `ended`: the call has ended; `ended` is its outcome
 * - `reused`: the key belongs to a call with other params
 */
export type KeyFound =
  | { state: 'begun'; report?: unknown }
  | { state: 'running' }
  | { state: 'lost' }
  | { state: 'reused' }
  | { state: 'ended'; ended: KeyEnded };

/**
 * Remembers calls that have a key, for a stated time, even if the app has ended meanwhile. `begin`
 * compares and sets in one step: of all pages and processes that use the store, only one gets
 * `begun`.
 */
export interface KeyStore {
  /**
   * Opens the store. It may be called more than once.
   * @returns its id, which is the same for all users of this store and lasts as long as its
   *   entries, and for how many ms a key is remembered after its call has ended
   */
  open(): Promise<{ id: string; rememberFor: number }>;
  /**
   * A call wants to begin. When the promise resolves, the state in the answer is written; if it
   * rejects, the call does not begin.
   * @param key at most a few KB; compared exactly
   * @param digest the digest of its params, which is kept with the key. If the key has another
   *   digest, the call does not begin, whatever the outcome of the first: the answer is `reused`
   */
  begin(key: string, digest: string): Promise<KeyFound>;
  /**
   * A call for which this store returned `begun` has ended with this outcome. From now on the key's
   * digest is that in `ended`, if any.
   */
  end(key: string, ended: KeyEnded): Promise<void>;
  /** Closes the store. Calls that still run end as `lost`. */
  close(): void | Promise<void>;
}
