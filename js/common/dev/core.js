/** What is said where the core cannot be loaded. */
import { AbpError, reasonText } from '../errors.js';

/** The core cannot be loaded as JavaScript either. @param {unknown} cause why not */
export function withoutCore(cause) {
  const why = `WebAssembly is forbidden here, and its replacement did not load: ${reasonText(cause)}`;
  return new AbpError('NOT_SUPPORTED', `${why} (docs/errors.md#webassembly)`, { cause });
}
