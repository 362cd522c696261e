/** The code for streams, to read and to send them. Loaded with a connection's first stream. */
export { sizeOf } from '../common/value-size.js';
export { CallStream, InputStream } from './call-stream.js';
export { inputOf, withInput } from './input.js';
export { stream } from './outflow.js';
