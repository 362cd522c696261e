/** A thread that checks values by schemas of an app: what takes for ever there is ended, and holds up nobody. */
import { parentPort } from 'node:worker_threads';
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker';

// It interprets the schema: one that is compiled would be an app's text that is run.
const validators = new CfWorkerJsonSchemaValidator();

parentPort?.on('message', ({ schema, data }) => {
  try {
    const { valid, errorMessage } = validators.getValidator(schema)(data);
    parentPort?.postMessage(valid ? {} : { misfit: `${errorMessage}`.slice(0, 1000) });
  } catch (error) {
    const why = `${/** @type {Error} */ (error).message}`.slice(0, 1000);
    parentPort?.postMessage({ unreadable: why });
  }
});
