/**
 * Earlier calls of a client. Outcomes that the client did not receive are added to its next result,
 * and the result of a repeated call mentions the first one. The core (`@abp-bridge/a2a/tasks`)
 * knows these calls and the outcomes still to be sent; this file writes the texts. docs/gateway.md
 * has the promises to clients.
 */
import { createHash } from 'node:crypto';
import { InvalidRequest } from './errors.js';
import { OUTCOME, sentenceOf } from './outcomes.js';
import { cleanText, jsonText } from './texts.js';

/**
 * Members of `_meta` of `tools/call`: the client, if sessions do not identify it or end; and the
 * name of the work.
 */
const CLIENT = 'abp-bridge/client';
const KEY = 'abp-bridge/idempotencyKey';
/** Requests that a response which breaks off is not a cancel. */
const CONTINUES = 'abp-bridge/continueOnDisconnect';
/** A member of `_meta` of the result. */
const EARLIER = 'abp-bridge/earlier';
const REPEATS = 'abp-bridge/repeats';

/** Earlier calls that one result names; it counts the others. */
const MAX_TOLD = 16;
/**
 * Characters of a call's arguments that are shown, and of a name of a client or its work.
 */
const MAX_SHOWN = 200;
const MAX_NAME = 256;

/**
 * @typedef {import('./runs.js').Run} Run
 * @typedef {import('./results.js').ToolResult} ToolResult
 * @typedef {ReturnType<typeof identify>} Identity
 */

/**
 * @param {Record<string, unknown> | undefined} meta
 * @param {string} member
 */
function nameIn(meta, member) {
  const name = meta?.[member];
  if (name === undefined) return undefined;
  const isName = typeof name === 'string' && name.isWellFormed() && !name.includes('\0');
  if (isName && name && name.length <= MAX_NAME) return name;
  throw new InvalidRequest(
    `_meta[${JSON.stringify(member)}] must be a well-formed string of 1 to ${MAX_NAME} characters, without NUL`,
    { member },
  );
}

/**
 * JSON that is equal for equal values, whatever the order of their members.
 * @param {unknown} value
 */
const canonical = (value) =>
  JSON.stringify(value, (_name, each) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );

/** @param {unknown} value */
const digest = (value) => createHash('sha256').update(canonical(value)).digest('base64url');

/**
 * Identifies a call and its client. Only hashes are stored for the comparisons.
 * @param {Record<string, unknown> | undefined} meta of the request
 * @param {string | undefined} owner its session, if any
 * @param {string} tool
 * @param {unknown} args
 * @throws {InvalidRequest} when a name is not valid
 */
export function identify(meta, owner, tool, args) {
  const client = nameIn(meta, CLIENT);
  const key = nameIn(meta, KEY);
  // A client's own name must not match a session.
  const reader = client === undefined ? owner : `client ${digest(client)}`;
  const { [CONTINUES]: continues = false } = meta ?? {};
  if (typeof continues !== 'boolean' || (continues && reader === undefined))
    throw new InvalidRequest(
      `_meta["${CONTINUES}"] must be a boolean, and true only with _meta["${CLIENT}"]`,
      { member: CONTINUES },
    );
  const isKnown = reader !== undefined || key !== undefined;
  return {
    /** The client to notify; undefined if clients cannot be told apart. */
    reader,
    /**
     * The key that the app gets. Clients without a session share their keys with all who have the
     * token.
     */
    key: key && digest([reader ?? '', key]),
    /** The client's own key, and the hash of the arguments that it belongs to. */
    named: key,
    args: key && digest([args ?? {}]),
    /** Equal for repeats of a call by the same client. */
    work: isKnown ? digest([tool, key === undefined ? { args } : { key }]) : undefined,
    shown: cleanText(jsonText(args), MAX_SHOWN),
    continues,
  };
}

/** @param {Date} date */
const timeOf = (date) => `${date.toISOString().slice(11, 16)} UTC`;

/**
 * The description of an earlier call.
 * @param {Run} run
 * @param {string} outcome in the core's words
 * @param {boolean} canAsk whether its result is available by its handle
 */
function described(run, outcome, canAsk) {
  const { result, reason, leftAt = run.createdAt, requestId, tool, id } = run;
  // A result that was most likely read keeps no content.
  const isKept = result !== undefined && !result.isError && result.content.length > 0;
  const goesOn = !result && !reason;
  const handle = canAsk && (isKept || goesOn) ? id : undefined;
  if (handle) run.isNamed = true;
  const report = run.became?.report ?? /** @type {any} */ (result?._meta?.[OUTCOME])?.report;
  const how = reason
    ? `asked to stop at ${timeOf(leftAt)} (${reason})`
    : `whose answer was lost at ${timeOf(leftAt)}`;
  const links = isKept ? result.content.filter(({ type }) => type === 'resource_link') : [];
  const kept = [
    goesOn ? 'It goes on.' : 'It had finished.',
    links.length && `Its file is there: ${links.map(({ name }) => name).join(', ')}.`,
    handle && isKept && `Its result is kept: call_wait gives it for the handle ${id}.`,
    handle && goesOn && `call_wait waits for its result, by the handle ${id}.`,
  ];
  // The error of a call that was stopped has no further information.
  const { code, message } = /** @type {any} */ (result?._meta?.['abp-bridge/error']) ?? {};
  const failure =
    code && code !== 'CANCELLED' ? `: ${code}: ${cleanText(message, MAX_SHOWN)}` : '.';
  const sentence =
    isKept || goesOn
      ? kept.filter(Boolean).join(' ')
      : sentenceOf({ outcome, report, progress: run.progress }) || `It failed${failure}`;
  return {
    text: `${tool} ${run.identity.shown}, ${how}. ${sentence}`,
    links,
    said: {
      tool,
      requestId,
      at: leftAt.toISOString(),
      ...(reason && { reason }),
      outcome,
      ...(report !== undefined && { report }),
      ...(handle && { handle }),
    },
  };
}

/**
 * A result with the outcomes of earlier calls that its client did not receive, each once.
 * @param {ToolResult} result
 * @param {import('./runs.js').Runs} runs
 * @param {object} to
 * @param {Identity['reader']} to.reader
 * @param {Run} to.run that the result belongs to
 * @param {(run: Run) => boolean} to.canAsk whether it can request the result of a call by its
 *   handle
 * @returns {{ result: ToolResult, told: Run[] }} `told`: the calls included
 */
export function withEarlier(result, runs, { reader, run, canAsk }) {
  const { repeats } = run;
  run.repeats = undefined;
  const news = runs
    .of(reader)
    .map((each) => ({ each, outcome: each === run ? undefined : each.task.news() }))
    .filter(({ outcome }) => outcome !== undefined);
  if (!news.length && !repeats) return { result, told: [] };
  const told = news.map(({ each }) => each);
  const calls = news
    .slice(0, MAX_TOLD)
    .map(({ each, outcome }) => described(each, String(outcome), canAsk(each)));
  const more = news.length - calls.length;
  const lines = [
    ...(calls.length ? ['Of earlier calls, not of this one:'] : []),
    ...calls.map(({ text }) => `- ${text}`),
    ...(more ? [`- and ${more} more calls, whose answers you did not get.`] : []),
    ...(repeats ? [repeats.text] : []),
  ];
  return {
    told,
    result: {
      ...result,
      // The data are first: that is where clients look.
      content: [
        ...result.content,
        { type: 'text', text: lines.join('\n') },
        ...calls.flatMap(({ links }) => links),
      ],
      _meta: {
        ...result._meta,
        ...(calls.length && { [EARLIER]: { calls: calls.map(({ said }) => said), more } }),
        ...(repeats && { [REPEATS]: repeats.said }),
      },
    },
  };
}

/** Sentences on the first call of a repeated one. @type {Record<string, string>} */
const BEFORE = {
  running: 'was still running when this one began',
  finished: 'had run to its end, and its result did not reach you',
  unknown: 'may have done its work: that is not known',
};

/**
 * The note on the first call, in the result of a repeated one.
 * @param {Run} before
 * @param {string} outcome
 */
export const repeatOf = ({ createdAt, requestId }, outcome) => ({
  text: `The same call, with the same arguments, was made at ${timeOf(createdAt)}, and ${BEFORE[outcome]}. This one ran all the same. Calls with the same _meta["${KEY}"] run once.`,
  said: { outcome, requestId, at: createdAt.toISOString() },
});
