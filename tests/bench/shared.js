/** What the parts of the benchmark share. */
import { fileURLToPath } from 'node:url';

export const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
export const NAMES =
  'raw-port raw-window abp-bridge comlink penpal birpc capnweb orpc mcp ext-apps vscode-jsonrpc'.split(
    ' ',
  );
/** The ratios are to this one. */
export const FLOOR = 'raw-port';
/** What the platform offers without a library. */
export const FLOORS = [FLOOR, 'raw-window'];
export const OURS = 'abp-bridge';
export const ACROSS = 'across origins';
export const SAME = 'same origin';
export const STREAMS = 'streams across origins';
export const BY_ITSELF = 'the bridge by itself';
export const HEAP = 'bytes a pending call';
export const BOUND = '1,000 in flight as JSON text, the bound';

/**
 * As a page has it. What is loaded on demand is a file of its own, and is loaded before anything
 * but a visit is timed.
 */
export const bundling = {
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  splitting: true,
  logLevel: 'error',
};

/** The median of a list, its ends, and the middle half. */
export function spread(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  return { median: at(0.5), low: sorted[0], high: sorted.at(-1), from: at(0.25), to: at(0.75) };
}
