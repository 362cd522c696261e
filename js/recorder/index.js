/** Recordings of what goes into an endpoint's core: see docs/recording.md. */
export { Recorder, createRecorder } from './recorder.js';
