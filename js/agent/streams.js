/** What an agent's streams need, to read them and to send them. It is loaded with the first of them. */
export { sizeOf } from '../common/value-size.js';
export { Outflow } from '../session/outflow.js';
export { CallStream } from './call-stream.js';
export { Input } from './input.js';
