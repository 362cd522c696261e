/** A long document to work on, the same every time. */
const SUBJECTS = [
  'The agent',
  'A frame',
  'The host page',
  'A signal',
  'Every session',
  'The callee',
  'A port',
  'The call table',
];
const VERBS = [
  'answers',
  'cancels',
  'remembers',
  'acknowledges',
  'forgets',
  'transfers',
  'settles',
  'observes',
];
const OBJECTS = [
  'one call at a time',
  'whatever was promised',
  'the outcome exactly once',
  'a result that came late',
  'its neighbours in the queue',
  'the end of the conversation',
  'a deadline that has passed',
  'the reason that was given',
];

/** @param {number} chapters about three pages each */
export function sampleMarkdown(chapters) {
  let seed = 42;
  const pick = (/** @type {string[]} */ list) =>
    list[(seed = (seed * 1103515245 + 12345) & 0x7fffffff) % list.length];
  const sentence = () =>
    `${pick(SUBJECTS)} ${pick(VERBS)} ${pick(OBJECTS)}, and ${pick(SUBJECTS).toLowerCase()} ${pick(VERBS)} ${pick(OBJECTS)}.`;
  const paragraph = () => Array.from({ length: 9 }, sentence).join(' ');
  const chapter = (/** @type {unknown} */ _, /** @type {number} */ i) =>
    [
      `# Chapter ${i + 1}: ${pick(SUBJECTS)} ${pick(VERBS)}`,
      ...Array.from({ length: 3 }, (__, j) =>
        [
          `## ${i + 1}.${j + 1} ${pick(OBJECTS)}`,
          paragraph(),
          paragraph(),
          `- ${sentence()}\n- ${sentence()}`,
          paragraph(),
          paragraph(),
        ].join('\n\n'),
      ),
      '```\nconst controller = new AbortController();\nawait client.call("export.pdf", params, controller);\n```',
    ].join('\n\n');
  return Array.from({ length: chapters }, chapter).join('\n\n');
}
