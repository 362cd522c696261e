/**
 * A plugin of oxlint that checks comments, which Prettier does not change. They end by column 100,
 * and each tag of JSDoc begins a line, except a `@type` behind a description. .oxlintrc.json lists
 * the files.
 */

const WIDTH = 100;
const TAGS =
  'callback|extends|implements|import|override|param|property|returns|template|throws|typedef';
/** A tag that does not begin its line. */
const FOLDED = new RegExp(`[^\\s*/].*\\s@(${TAGS})\\b`);

/**
 * The error in a line of a comment.
 * @param {string} line up to the end of the comment
 * @param {string} comment the comment's part of it
 * @returns {string | undefined}
 */
function mistakeIn(line, comment) {
  // A URL cannot be broken.
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
