import type { CallOutcome } from '../../js/types/outcome.js';
import type { ErrorObject } from '../../js/common/errors.js';
import type { ProgressInfo } from '../../js/wire/messages.js';

/**
 * What became of a call that has a key. A store keeps it as it is: everything in it can be cloned
 * as by `structuredClone`.
 */
export interface KeyEnded {
  /** What became of the handler's work. */
  outcome: CallOutcome;
  /** Whether the call was cancelled, or its time was over. */
  cancelled: boolean;
  /** What the handler returned, if that is kept. A store may leave out what is too large for it. */
  value?: unknown;
  /** What it failed with. */
  error?: ErrorObject;
  /** What the handler reported last. */
  report?: any;
  /** Its last progress. */
  progress?: ProgressInfo;
  /**
   * Stands for its params: the key is theirs as long as it is kept. Without it, a call with any
   * params may use the key.
   */
  digest?: string;
  /** Whether the key may be used again: the next call with it runs. */
  again?: boolean;
}

/**
 * What a store knows of a key when a call with it wants to begin:
 *
 * - `begun`: nothing, or that it may be used again. It is written down now that a call with it
 *   begins, durably; `report` is what the handler reported that was stopped before its end
 * - `running`: a call with it runs, here or in another page or process that uses this store
 * - `lost`: a call with it began, where it ran is gone, and what became of it was not written
 * - `ended`: what became of it
 * - `reused`: the key is that of a call with other params
 */
export type KeyFound =
  | { state: 'begun'; report?: unknown }
  | { state: 'running' }
  | { state: 'lost' }
  | { state: 'reused' }
  | { state: 'ended'; ended: KeyEnded };

/**
 * Remembers calls that have a key for as long as it says, also when the app has ended meanwhile.
 * `begin` compares and sets at once: of all pages and processes that use the store, one is told
 * `begun`.
 */
export interface KeyStore {
  /**
   * Opens it. It may be called more than once.
   * @returns its id, which is the same for all who use this store and lasts as long as what is in
   *   it, and for how many ms a key is remembered after its call has ended
   */
  open(): Promise<{ id: string; rememberFor: number }>;
  /**
   * A call wants to begin. What the answer says is written when the promise resolves; if it
   * rejects, the call does not begin.
   * @param key some KB at most; to be compared exactly
   * @param digest stands for its params, and is kept with the key. If another one is there, the
   *   call does not begin, whatever became of the first: the answer is `reused`
   */
  begin(key: string, digest: string): Promise<KeyFound>;
  /**
   * A call that this store answered with `begun` has ended, and this became of it. From now on its
   * digest is that in `ended`, if any.
   */
  end(key: string, ended: KeyEnded): Promise<void>;
  /** Closes it. What still runs ends as `lost`. */
  close(): void | Promise<void>;
}
