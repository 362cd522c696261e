/**
 * The schemas of MCP's revisions, which the official SDK has for its own use: by them it takes what a peer sends.
 * `faultsIn(log)` checks each message of a connection.
 */
import { readdirSync } from 'node:fs';
import { JSONRPCMessageSchema } from '@modelcontextprotocol/core';

const dist = new URL('./', import.meta.resolve('@modelcontextprotocol/server'));
const file = readdirSync(dist).find((name) => /^src-.*\.mjs$/.test(name));
const internals = Object.values(await import(new URL(file, dist).href));
/** @type {(version: string | undefined) => any} */
const schemasOf = internals.find((value) => value?.name === 'codecForVersion');

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const INPUTS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

/** What is wrong by a schema's verdict, if anything is. */
const faultOf = ({ ok, reason, message }) => (ok ? [] : [message ?? reason]);

function faultsOfResult(schemas, method, result) {
  const { kind, error } = schemas.decodeResult(method, result);
  if (kind === 'invalid') return [error.message];
  if (kind === 'complete') {
    // The SDK reads the type of a result first, and the rest without it.
    return faultOf(schemas.validateResult(method, { ...result, resultType: undefined }));
  }
  return Object.values(result.inputRequests ?? {}).flatMap((input) =>
    faultOf(schemas.validateInputRequest(input.method, input)),
  );
}

function faultsOfRequest(schemas, version, message) {
  const { method, params } = message;
  const envelope = schemas.validateEnvelopeMeta(params?._meta ?? {});
  const answers = Object.values(params?.inputResponses ?? {}).flatMap((answer) => {
    const verdicts = INPUTS.map((input) => schemas.validateInputResponse(input, answer));
    return verdicts.some(({ ok }) => ok) ? [] : faultOf(verdicts[0]);
  });
  const known = schemas.validateRequest(method, message);
  return [
    ...faultOf(known),
    ...answers,
    ...envelope.map(({ key, problem }) => `${key}: ${problem}`),
  ].map((fault) => `${version}: ${fault}`);
}

/**
 * What is wrong with the messages of a connection, by the schema of the version of each: that which a request names, that
 * of the request that an answer is for, and `version` for notifications.
 * @param {{ dir: string, msg: any }[]} log in the order in which they were sent
 * @param {string} version
 * @returns {string[]}
 */
export function faultsIn(log, version) {
  const pending = new Map();
  return log.flatMap(({ dir, msg }) => {
    const parsed = JSONRPCMessageSchema.safeParse(msg);
    const envelope = parsed.success ? [] : [String(parsed.error)];
    const { id, method, params, result } = msg;
    const own = `${dir} ${typeof id} ${id}`;
    const other = `${dir === 'a2b' ? 'b2a' : 'a2b'} ${typeof id} ${id}`;
    let faults = [];
    if (method !== undefined && id !== undefined) {
      const era = params?._meta?.[VERSION];
      pending.set(own, { method, era });
      faults = faultsOfRequest(schemasOf(era), era, msg);
    } else if (method !== undefined) {
      faults = faultOf(schemasOf(version).validateNotification(method, msg));
    } else if (result !== undefined) {
      const asked = pending.get(other);
      faults = faultsOfResult(schemasOf(asked.era), asked.method, result);
    }
    return [...envelope, ...faults].map((fault) => `${JSON.stringify(msg)}: ${fault}`);
  });
}
