/**
 * What each protocol says of a stop: facts that the judge needs, and the sentences on which its
 * findings rest.
 */

/**
 * @typedef {'untrue' | 'ended' | 'silent' | 'answered' | 'harmed' | 'session' | 'twice' | 'differs'
 *   | 'closed'} Kind of finding
 *
 * @typedef {object} Sentence
 * @property {string} says in the protocol's words; in ours where it is silent
 * @property {string} [where] it stands; absent if the words are ours
 *
 * @typedef {object} Rules
 * @property {'due' | 'unasked' | 'barred'} answer to a call that is stopped: it must come, need
 *   not, or must not
 * @property {'scored' | 'noted'} [closing] whether the work must end when the line is closed;
 *   absent if it may go on
 * @property {boolean} [isExact] whether that answer must be that it has stopped, and no failure
 * @property {Partial<Record<Kind, Sentence>>} sentences
 */

/** Where a protocol is silent. @type {Record<Kind, Sentence>} */
const OURS = {
  untrue: { says: 'What is said of the work is what it did.' },
  ended: { says: 'Who presses stop expects the work to end.' },
  silent: { says: 'Who presses stop is told what became of the call.' },
  answered: { says: 'A call that was stopped is answered only where that is awaited.' },
  harmed: { says: 'A stop ends the call that it names, and no other.' },
  session: { says: 'A stop ends a call, and not the session.' },
  twice: { says: 'The work of a call is done once.' },
  differs: { says: 'Answer, stream and store say the same of a task.' },
  closed: { says: 'The work of a client that is gone ends.' },
};

/** @type {Rules} */
const MCP = {
  answer: 'unasked',
  sentences: {
    ended: {
      says: 'Receivers of cancellation notifications SHOULD: Stop processing the cancelled request; Free associated resources',
      where: '2025-11-25/basic/utilities/cancellation, Behavior Requirements 4',
    },
    answered: {
      says: 'Receivers of cancellation notifications SHOULD: […] Not send a response for the cancelled request',
      where: '2025-11-25/basic/utilities/cancellation, Behavior Requirements 4',
    },
    session: {
      says: 'Both parties MUST handle these race conditions gracefully. […] Invalid cancellation notifications SHOULD be ignored: Unknown request IDs; Already completed requests',
      where: '2025-11-25/basic/utilities/cancellation, Timing Considerations, Error Handling',
    },
    harmed: {
      says: 'a `notifications/cancelled` notification containing: The ID of the request to cancel',
      where: '2025-11-25/basic/utilities/cancellation, Cancellation Flow',
    },
  },
};

/** @type {Rules} */
const MODERN = {
  answer: 'barred',
  sentences: {
    ended: {
      says: 'Servers receiving cancellation notifications SHOULD: Stop processing the cancelled request',
      where: '2026-07-28/basic/patterns/cancellation, Behavior Requirements',
    },
    answered: {
      says: 'Servers SHOULD stop work on a cancelled request as soon as practical and MUST NOT send any further messages for it.',
      where: '2026-07-28/basic/transports/stdio and streamable-http, Cancellation',
    },
    closed: {
      says: 'The server MUST treat a client disconnect as cancellation of that request.',
      where: '2026-07-28/basic/patterns/cancellation, Transport-Specific Cancellation',
    },
    session: MCP.sentences.session,
    harmed: MCP.sentences.harmed,
  },
};

/** Of programs, by revision: their line is their input. @type {Record<'old' | 'new', Sentence>} */
const STDIO = {
  old: {
    says: 'the client SHOULD initiate shutdown by: First, closing the input stream to the child process (the server); Waiting for the server to exit, or sending SIGTERM if the server does not exit within a reasonable time',
    where: '2025-11-25/basic/lifecycle, Shutdown, stdio',
  },
  new: {
    says: 'Servers SHOULD exit promptly when their standard input is closed or reads return end-of-file',
    where: '2026-07-28/basic/transports/stdio, Shutdown',
  },
};

/** @type {Rules} */
const A2A = {
  answer: 'due',
  sentences: {
    ended: {
      says: 'The server will attempt to cancel the task, but success is not guaranteed (e.g., the task might have already completed or failed, or cancellation might not be supported at its current stage).',
      where: 'A2A 1.0, 3.1.5 Cancel Task',
    },
    untrue: {
      says: 'The operation attempts to cancel the specified task and returns its updated state.',
      where: 'A2A 1.0, 3.1.5 Cancel Task',
    },
    silent: {
      says: 'The stream MUST close when the task reaches a terminal state',
      where: 'A2A 1.0, 3.1.2 Send Streaming Message',
    },
    twice: {
      says: 'Send Message operations MAY be idempotent. Agents may utilize the messageId to detect duplicate messages.',
      where: 'A2A 1.0, 3.3.1 Idempotency',
    },
  },
};

/** @type {Rules} */
const ACP = {
  answer: 'due',
  isExact: true,
  sentences: {
    ended: {
      says: 'it SHOULD stop all language model requests and all tool call invocations as soon as possible',
      where: 'ACP v1, Prompt Turn, Cancellation',
    },
    silent: {
      says: 'the Agent MUST respond to the original `session/prompt` request with the `cancelled` stop reason',
      where: 'ACP v1, Prompt Turn, Cancellation',
    },
    untrue: {
      says: 'After all ongoing operations have been successfully aborted and pending updates have been sent, the Agent MUST respond […] with the `cancelled` stop reason',
      where: 'ACP v1, Prompt Turn, Cancellation',
    },
  },
};

/** @type {Rules} */
const ABP = { answer: 'due', closing: 'scored', sentences: {} };

/** @type {Rules} */
const WEBMCP = { answer: 'unasked', sentences: {} };

/**
 * @param {string} protocol
 * @param {boolean} isModern whether it is the latest revision of MCP
 * @param {boolean} isProgram whether its line is that of a program
 * @returns {Rules & { sentences: Record<Kind, Sentence> }}
 */
export function rulesOf(protocol, isModern, isProgram) {
  const all = { mcp: isModern ? MODERN : MCP, a2a: A2A, acp: ACP, abp: ABP, webmcp: WEBMCP };
  const rules = all[/** @type {keyof typeof all} */ (protocol)];
  const sentences = { ...OURS, ...rules.sentences };
  if (protocol === 'mcp' && isProgram) sentences.closed = STDIO[isModern ? 'new' : 'old'];
  const closing = isModern ? 'scored' : (rules.closing ?? (isProgram ? 'noted' : undefined));
  return { ...rules, closing, sentences };
}
