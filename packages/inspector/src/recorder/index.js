/** Recordings of what goes into an endpoint's core: see docs/tracing.md#recordings. */
export { Recorder, createRecorder } from './recorder.js';
