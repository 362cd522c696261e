/**
 * A thread that checks values by schemas of an app: a check that takes for ever is terminated, and
 * blocks no other work.
 */
import { parentPort } from 'node:worker_threads';
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker';

// It interprets the schema: a compiled one would be an app's text that is run.
const validators = new CfWorkerJsonSchemaValidator();

parentPort?.on('message', ({ schema, data }) => {
  let problem = '';
  try {
    const { valid, errorMessage } = validators.getValidator(schema)(data);
    if (!valid) problem = `The app's result does not match its outputSchema: ${errorMessage}`;
  } catch (error) {
    problem = `The app's outputSchema cannot be used: ${/** @type {Error} */ (error).message}`;
  }
  parentPort?.postMessage(problem.slice(0, 2000));
});
