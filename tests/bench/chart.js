/** The comparison as an SVG: a panel a measure, a dot a library on a logarithmic scale, best first. */

const SHOWN = ['oneAtATime', 'inFlight', 'signal', 'connect', 'heap', 'bytes'];
const UNITS = { heap: 'bytes, both sides', bytes: 'KB gzipped, both sides' };
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

const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

function panel(names, column, { key, title }, ours, x0, y0) {
  const shown = names
    .filter((name) => column[name])
    .sort((a, b) => column[a].median - column[b].median);
  const ratios = !UNITS[key];
  const unit = UNITS[key] ?? '× raw port, across origins';
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
 * @param {string[]} names
 * @param {Record<string, Record<string, { median: number, from?: number, to?: number }>>} table by column
 * @param {{ key: string, title: string }[]} columns
 * @param {string} ours
 */
export function chart(names, table, columns, ours) {
  const height = TOP + names.length * LINE + GAP;
  const panels = SHOWN.map((key, i) => {
    const column = columns.find((c) => c.key === key);
    const [x0, y0] = [(i % ACROSS) * WIDTH, Math.floor(i / ACROSS) * height];
    return panel(names, table[key], column, ours, x0, y0);
  });
  const box = `0 0 ${WIDTH * ACROSS} ${height * Math.ceil(SHOWN.length / ACROSS)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" role="img">
<title>What calls cost with each library: logarithmic, less is better, the line is the raw port</title>
<style>${STYLE}</style>
${panels.join('\n')}
</svg>
`;
}
