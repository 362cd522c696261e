/**
 * The results as SVG. The comparison has a panel a measure, a dot a library on a logarithmic scale,
 * best first.
 */

const RATIO = '× raw port, across origins';
/** What is shown, and its unit. */
const SHOWN = {
  'one at a time': RATIO,
  '1,000 in flight': RATIO,
  'abort to signal': RATIO,
  'connect, later visit': RATIO,
  'bytes a pending call': 'bytes, both sides',
  'KB to download': 'KB gzipped, both sides',
};
const [WIDTH, LINE, TOP, LABEL, VALUE, ACROSS, GAP] = [288, 15, 40, 92, 38, 3, 16];

// Transparent behind, and colours for either theme.
const STYLE = `
text { font: 11px system-ui, sans-serif; fill: #57606a }
.title { font-weight: 600; fill: #1f2328 }
.axis { stroke: #d0d7de }
.half { stroke: #8c959f; stroke-width: 2; opacity: .45 }
circle { fill: #8c959f }
.ours { fill: #0969da; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .title { fill: #f0f6fc } .axis { stroke: #3d444d } .ours { fill: #4493f8 }
}`;

const isNumber = (value) => typeof value === 'number';
const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

function panel(names, column, [title, unit], ours, x0, y0) {
  const shown = names
    .filter((name) => column[name])
    .sort((a, b) => column[a].median - column[b].median);
  const ratios = unit === RATIO;
  const values = shown.map((name) => column[name].median).concat(ratios ? 1 : []);
  const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log);
  const width = WIDTH - LABEL - VALUE - GAP * 2;
  const x = (value) => {
    const part = (Math.log(value) - low) / (high - low || 1);
    return (x0 + LABEL + width * Math.min(1.05, Math.max(-0.05, part))).toFixed(1);
  };
  const bottom = y0 + TOP + shown.length * LINE;
  const lines = shown.map((name, i) => {
    const { median, from, to } = column[name];
    const y = y0 + TOP + i * LINE + 8;
    const mark = name === ours ? ' class="ours"' : '';
    return [
      `<text x="${x0 + LABEL - 10}" y="${y + 4}" text-anchor="end"${mark}>${name}</text>`,
      from === undefined ? '' : `<path class="half" d="M${x(from)} ${y}H${x(to)}"/>`,
      `<circle cx="${x(median)}" cy="${y}" r="4"${mark}/>`,
      `<text x="${x0 + WIDTH - GAP}" y="${y + 4}" text-anchor="end"${mark}>${short(median)}</text>`,
    ].join('');
  });
  return [
    `<text class="title" x="${x0 + 4}" y="${y0 + 14}">${title}</text>`,
    `<text x="${x0 + 4}" y="${y0 + 29}">${unit}</text>`,
    ratios ? `<path class="axis" d="M${x(1)} ${y0 + TOP}V${bottom}"/>` : '',
    ...lines,
  ].join('\n');
}

/**
 * @param {string} title
 * @param {number} width
 * @param {number} height
 * @param {string[]} panels
 */
const picture = (
  title,
  width,
  height,
  panels,
) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>${title}</title>
<style>${STYLE}</style>
${panels.join('\n')}
</svg>
`;

/**
 * @param {string[]} names
 * @param {Record<string, Record<string, { median: number, from?: number, to?: number }>>} table by
 *   column
 * @param {string} ours
 */
export function chart(names, table, ours) {
  const height = TOP + names.length * LINE + GAP;
  const panels = Object.entries(SHOWN).map((shown, i) => {
    const [x0, y0] = [(i % ACROSS) * WIDTH, Math.floor(i / ACROSS) * height];
    return panel(names, table[shown[0]], shown, ours, x0, y0);
  });
  return picture(
    'What calls cost with each library: logarithmic, less is better, the line is the raw port',
    WIDTH * ACROSS,
    height * Math.ceil(panels.length / ACROSS),
    panels,
  );
}

/**
 * A panel a row, a point a count: counts are logarithmic, and what was measured begins at 0, so
 * that what is flat looks flat.
 * @param {Record<string, { counts: number[], rows: Record<string, number[]> }>} growth by what
 *   there are more and more of
 */
export function growthChart(growth) {
  const [TALL, LOW, HIGH] = [150, 60, 118];
  const columns = Math.max(...Object.values(growth).map(({ rows }) => Object.keys(rows).length));
  const panels = Object.entries(growth).flatMap(([what, { counts, rows }], line) =>
    Object.entries(rows).map(([title, values], column) => {
      const [x0, y0] = [column * WIDTH, line * TALL];
      const step = (WIDTH - 70) / Math.max(1, counts.length - 1);
      const most = Math.max(...values.filter(isNumber));
      const x = (i) => (x0 + 30 + i * step).toFixed(1);
      const y = (value) => (y0 + HIGH - (Math.max(0, value) / most) * (HIGH - LOW)).toFixed(1);
      const known = [...values.keys()].filter((i) => isNumber(values[i]));
      const points = known.map((i) => [
        `<circle class="ours" cx="${x(i)}" cy="${y(values[i])}" r="4"/>`,
        `<text x="${x(i)}" y="${y(values[i]) - 8}" text-anchor="middle">${short(values[i])}</text>`,
        `<text x="${x(i)}" y="${y0 + HIGH + 15}" text-anchor="middle">${counts[i].toLocaleString('en')}</text>`,
      ]);
      return [
        `<text class="title" x="${x0 + 4}" y="${y0 + 14}">${title}</text>`,
        `<text x="${x0 + 4}" y="${y0 + 29}">by ${what}</text>`,
        `<path class="axis" d="M${x(0)} ${y0 + HIGH}H${x(counts.length - 1)}"/>`,
        `<path class="half" fill="none" d="M${known.map((i) => `${x(i)} ${y(values[i])}`).join('L')}"/>`,
        ...points.flat(),
      ].join('\n');
    }),
  );
  const height = TALL * Object.keys(growth).length;
  return picture(
    'What calls cost and keep as more and more are pending',
    WIDTH * columns,
    height,
    panels,
  );
}
