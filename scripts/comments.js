/**
 * A plugin of oxlint that looks at comments, which Prettier leaves as they are. They end by column
 * 100, and each tag of JSDoc begins a line, but for a `@type` behind a description. .oxlintrc.json
 * says in which files.
 */

const WIDTH = 100;
const TAGS =
  'callback|extends|implements|import|override|param|property|returns|template|throws|typedef';
/** A tag that does not begin its line. */
const FOLDED = new RegExp(`[^\\s*/].*\\s@(${TAGS})\\b`);

/**
 * What is wrong with a line of a comment.
 * @param {string} line up to the end of the comment
 * @param {string} comment what of it is the comment's
 * @returns {string | undefined}
 */
function mistakeIn(line, comment) {
  // An address cannot be broken.
  if (line.length > WIDTH && !comment.includes('://')) return `Ends behind column ${WIDTH}.`;
  if (comment.includes('prettier-ignore')) return 'Keeps Prettier away.';
  return FOLDED.test(comment.replaceAll(/`[^`]*`/g, ''))
    ? 'Has a tag that begins no line.'
    : undefined;
}

const unfolded = {
  /** @param {any} context of oxlint */
  create({ sourceCode, report }) {
    const { lines } = sourceCode;
    /** @param {{ loc: Record<'start' | 'end', { line: number, column: number }> }} comment */
    const check = ({ loc: { start, end } }) => {
      for (let number = start.line; number <= end.line; number++) {
        const line = lines[number - 1].slice(0, number === end.line ? end.column : undefined);
        const message = mistakeIn(line, line.slice(number === start.line ? start.column : 0));
        if (message) report({ message, loc: { line: number, column: 0 } });
      }
    };
    return { Program: () => sourceCode.getAllComments().forEach(check) };
  },
};

export default { meta: { name: 'comments' }, rules: { unfolded } };
