/** What streams need, to read them and to send them. It is loaded with a connection's first one. */
export { sizeOf } from '../common/value-size.js';
export { CallStream, InputStream } from './call-stream.js';
export { inputOf, withInput } from './input.js';
export { stream } from './outflow.js';
