/**
 * The look of the inspector. Colours follow the page's `color-scheme`; no information is in colour
 * alone.
 */
export const CSS = `
:host {
  color-scheme: light dark;
  --back: light-dark(#ffffff, #1b1d21);
  --raised: light-dark(#f3f4f6, #26292f);
  --line: light-dark(#d4d7dd, #3d424b);
  --text: light-dark(#1d2126, #e8eaed);
  --quiet: light-dark(#565d68, #a9b0bb);
  --blue: light-dark(#0b57d0, #8ab4f8);
  display: flex;
  flex-direction: column;
  min-block-size: 16rem;
  block-size: 28rem;
  border: 1px solid var(--line);
  border-radius: 6px;
  background: var(--back);
  color: var(--text);
  font: 13px/1.4 system-ui, sans-serif;
  overflow: hidden;
  container-type: inline-size;
}
:host([hidden]) { display: none }
* { box-sizing: border-box }
[hidden] { display: none !important }
.hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
button, input, select { font: inherit; color: inherit }
:focus-visible { outline: 2px solid var(--blue); outline-offset: -2px }
.bar {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
  align-items: center;
  padding: 6px 8px;
  background: var(--raised);
  border-block-end: 1px solid var(--line);
}
.bar button, .bar select, .bar input {
  min-block-size: 28px;
  padding: 2px 8px;
  border: 1px solid var(--line);
  border-radius: 4px;
  background: var(--back);
}
.bar button { cursor: pointer }
.bar button[aria-pressed='true'] { background: var(--blue); border-color: var(--blue); color: var(--back) }
.bar input[type='search'] { flex: 1 1 8rem; min-inline-size: 6rem }
.strip { display: flex; align-items: center; border-block-end: 1px solid var(--line) }
[role='tablist'] { display: flex; gap: 2px; padding: 0 8px; flex: 1 }
[role='tab'] {
  margin-block-end: -1px;
  padding: 6px 10px;
  border: 0;
  border-block-end: 2px solid transparent;
  background: none;
  color: var(--quiet);
  cursor: pointer;
}
[role='tab'][aria-selected='true'] { border-color: var(--blue); color: var(--text); font-weight: 600 }
[role='tabpanel'] { flex: 1; min-block-size: 0; overflow: auto; position: relative }
.empty { margin: 0; padding: 24px; color: var(--quiet); text-align: center }
.count { padding: 6px 10px; color: var(--quiet); margin-inline-start: auto }

.lanes, summary {
  display: grid;
  grid-template-columns: 6.5rem 3.5rem minmax(0, 1fr) 3.5rem;
  align-items: center;
  padding-inline: 8px;
}
.lanes {
  padding-block: 3px;
  position: sticky;
  inset-block-start: 0;
  z-index: 1;
  background: var(--back);
  border-block-end: 1px solid var(--line);
  color: var(--quiet);
}
.lanes span:nth-child(2), .lanes span:nth-child(4) { text-align: center; font-weight: 600; color: var(--text) }
ol { list-style: none; margin: 0; padding: 0 }
summary { list-style: none; cursor: pointer; min-block-size: 26px }
summary::-webkit-details-marker { display: none }
summary:hover, details[open] > summary { background: var(--raised) }
.time { color: var(--quiet); font-variant-numeric: tabular-nums; white-space: nowrap }
.life { block-size: 100%; inline-size: 1px; background: var(--line); justify-self: center; position: relative }
.end::after {
  content: '';
  position: absolute;
  inset-block-start: calc(50% - 3px);
  inset-inline-start: -3px;
  inline-size: 7px;
  block-size: 7px;
  border-radius: 50%;
  background: var(--kind);
}
.what { position: relative; margin-inline: -1.75rem; display: flex; align-items: center; justify-content: center; block-size: 100% }
.what::before {
  content: '';
  position: absolute;
  inset-inline: 0;
  inset-block-start: 50%;
  border-block-start: 1.5px solid var(--kind);
}
.what::after { content: ''; position: absolute; inset-block-start: calc(50% - 4px); border: 5px solid transparent }
.right .what::after { inset-inline-end: 3px; border-inline-start: 8px solid var(--kind); border-inline-end: 0 }
.left .what::after { inset-inline-start: 3px; border-inline-end: 8px solid var(--kind); border-inline-start: 0 }
.none .what::before { border-block-start-style: dashed; opacity: 0.5 }
.none .what::after { display: none }
.progress .what::before { border-block-start-style: dotted }
.title {
  position: relative;
  padding-inline: 8px;
  background: var(--back);
  color: var(--kind);
  max-inline-size: calc(100% - 3.5rem);
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
summary:hover .title, details[open] > summary .title { background: var(--raised) }
.id { color: var(--quiet); font-size: 12px }
pre {
  margin: 0;
  padding: 8px 12px;
  max-block-size: 18rem;
  overflow: auto;
  background: var(--raised);
  border-block-end: 1px solid var(--line);
  font: 12px/1.45 ui-monospace, monospace;
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}

table { border-collapse: collapse; inline-size: 100%; font-variant-numeric: tabular-nums }
th, td { padding: 4px 8px; text-align: start; border-block-end: 1px solid var(--line); vertical-align: top }
th { position: sticky; inset-block-start: 0; background: var(--back); color: var(--quiet); font-weight: 600; white-space: nowrap }
td button { border: 0; padding: 0; background: none; color: var(--blue); text-decoration: underline; cursor: pointer; text-align: start }
td { white-space: nowrap }
td:last-child { white-space: normal; min-inline-size: 9rem; overflow-wrap: anywhere }
.state, .end-of { color: var(--kind) }
.call, .running, .waiting { --kind: var(--blue) }
.result { --kind: light-dark(#0b6b3a, #6fd39b) }
.failed, .problem { --kind: light-dark(#b3261e, #ff9f97) }
.cancel, .stopping { --kind: light-dark(#8a5000, #f2b866) }
.session { --kind: light-dark(#6b3fb8, #c5a9f7) }
.progress, .other, .ended { --kind: var(--quiet) }

dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 8px; margin: 0; padding: 10px }
dl div { padding: 6px 10px; border: 1px solid var(--line); border-radius: 4px }
dt { color: var(--quiet) }
dd { margin: 0; font-size: 18px; font-variant-numeric: tabular-nums }
dd.meaning { font-size: 12px; color: var(--quiet) }
h2 { margin: 0; padding: 4px 10px; font-size: 13px }
.reasons { padding: 0 10px 10px }
.reasons li { padding-block: 2px; overflow-wrap: anywhere }

@container (max-width: 480px) {
  .lanes, summary { grid-template-columns: 4.6rem 2.4rem minmax(0, 1fr) 2.4rem; padding-inline: 4px }
  .what { margin-inline: -1.2rem }
  .title { max-inline-size: calc(100% - 2.2rem); white-space: normal; overflow-wrap: anywhere; text-align: center }
  .id { display: none }
  .wide { display: none }
}
@media (forced-colors: active) {
  .life, .end::after { background: CanvasText }
}
`;
