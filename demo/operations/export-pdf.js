/** export.pdf: Markdown to a PDF, with marked and pdf-lib. */
import { marked } from 'marked';
import { PDFDocument, StandardFonts, rgb } from 'pdf-lib';

const PAGE = { width: 595, height: 842, margin: 64 };
const STYLES = {
  heading: [0, 22, 17, 14, 12, 12, 12],
  text: 11,
  leading: 1.45,
};

export const inputSchema = {
  type: 'object',
  properties: {
    markdown: { type: 'string', minLength: 1 },
    filename: { type: 'string' },
  },
  required: ['markdown'],
};

/** Characters that the standard fonts lack are shown as a question mark. */
const printable = (/** @type {string} */ text) => text.replace(/[^\x20-\x7e\xa0-\xff]/g, '?');

/**
 * @param {string} text
 * @param {import('pdf-lib').PDFFont} font
 * @param {number} size
 * @param {number} width
 */
function wrap(text, font, size, width) {
  const lines = [];
  let line = '';
  for (const word of printable(text).split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (line && font.widthOfTextAtSize(longer, size) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}

/**
 * @typedef {object} Block
 * @property {string} text
 * @property {import('pdf-lib').PDFFont} font
 * @property {number} [size]
 * @property {number} [indent]
 * @property {number} [before] space above it
 * @property {boolean} [breaks] whether it begins a page
 * @property {boolean} [raw] whether its lines are kept unchanged
 */

/**
 * @typedef {object} Line
 * @property {string} text
 * @property {number} x
 * @property {number} y
 * @property {number} size
 * @property {number} width
 * @property {boolean} bold
 */

/**
 * Splits a document into pieces of some thousand characters, before headings and paragraphs: a
 * lexer does not pause within its input, and is very slow for long inputs in some engines.
 * @param {string} markdown
 */
function* pieces(markdown) {
  let piece = '';
  let fence = '';
  for (const block of markdown.split(/\n{2,}/)) {
    piece += `${block}\n\n`;
    // A blank line in a block of code does not end it.
    for (const [, mark] of block.matchAll(/^ {0,3}(```|~~~)/gm))
      fence = fence ? (mark === fence ? '' : fence) : mark;
    if (fence || piece.length < 4000) continue;
    yield piece;
    piece = '';
  }
  if (piece) yield piece;
}

/**
 * Markdown's blocks as lines of text, with their layout.
 * @param {string} markdown
 * @param {Record<'plain' | 'bold' | 'mono', import('pdf-lib').PDFFont>} fonts
 * @returns {Generator<Block>}
 */
function* blocks(markdown, fonts) {
  for (const token of marked.lexer(markdown)) {
    if (token.type === 'heading') {
      const size = STYLES.heading[token.depth];
      yield { text: token.text, font: fonts.bold, size, before: size, breaks: token.depth === 1 };
    } else if (token.type === 'list') {
      for (const item of token.items) {
        yield { text: `\u2022 ${item.text}`.replace('\u2022', '-'), font: fonts.plain, indent: 16 };
      }
    } else if (token.type === 'code') {
      for (const line of token.text.split('\n'))
        yield { text: line, font: fonts.mono, size: 9, raw: true };
    } else if (token.type === 'paragraph') {
      yield { text: token.text.replace(/[*_`]/g, ''), font: fonts.plain, before: 8 };
    }
  }
}

/**
 * @param {{ markdown: string, filename?: string }} params
 * @param {import('abp-bridge').CallContext} context
 */
export async function handler(
  { markdown, filename = 'document.pdf' },
  { signal, progress, breathe },
) {
  const pdf = await PDFDocument.create();
  const fonts = {
    plain: await pdf.embedFont(StandardFonts.TimesRoman),
    bold: await pdf.embedFont(StandardFonts.HelveticaBold),
    mono: await pdf.embedFont(StandardFonts.Courier),
  };
  const list = [];
  for (const piece of pieces(markdown)) {
    await breathe();
    list.push(...blocks(piece, fonts));
  }
  const width = PAGE.width - 2 * PAGE.margin;
  const newPage = () => {
    const page = pdf.addPage([PAGE.width, PAGE.height]);
    page.drawText(`${pdf.getPageCount()}`, {
      x: PAGE.width / 2 - 8,
      y: PAGE.margin / 2,
      size: 9,
      font: fonts.plain,
      color: rgb(0.4, 0.4, 0.4),
    });
    return page;
  };
  const top = PAGE.height - PAGE.margin;
  let page = newPage();
  let y = top;
  /** The lines of the first page, to show without a reader of PDF. @type {Line[]} */
  const preview = [];
  const turn = () => {
    page = newPage();
    y = top;
  };
  let reported = 0;
  for (const [i, block] of list.entries()) {
    const { text, font, size = STYLES.text, indent = 0, before = 2, breaks, raw } = block;
    if (breaks && i > 0) turn();
    y -= before;
    for (const line of raw ? [printable(text)] : wrap(text, font, size, width - indent)) {
      if (y - size * STYLES.leading < PAGE.margin) turn();
      y -= size * STYLES.leading;
      page.drawText(line, { x: PAGE.margin + indent, y, size, font });
      if (pdf.getPageCount() === 1) {
        preview.push({
          text: line,
          x: PAGE.margin + indent,
          y: PAGE.height - y,
          size,
          width: font.widthOfTextAtSize(line, size),
          bold: font === fonts.bold,
        });
      }
    }
    await breathe();
    const done = Math.floor(((i + 1) / list.length) * 90);
    if (done > reported) {
      reported = done;
      progress({
        progress: done,
        total: 100,
        stage: 'layout',
        status: `page ${pdf.getPageCount()}`,
      });
    }
  }
  progress({ progress: 92, total: 100, stage: 'writing' });
  // pdf-lib yields to the event loop after this many objects, but by a timer, so there are many.
  const bytes = await pdf.save({ objectsPerTick: 500 });
  signal.throwIfAborted();
  progress({ progress: 100, total: 100, stage: 'done' });
  return {
    content: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
    mimeType: 'application/pdf',
    size: bytes.byteLength,
    filename,
    pages: pdf.getPageCount(),
    preview: { width: PAGE.width, height: PAGE.height, lines: preview },
  };
}
