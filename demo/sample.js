/**
 * The demo's text: the log of a lighthouse for a year. Invented, and the same every time.
 */

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const WINDS = ['south-west', 'north', 'east', 'north-west', 'south', 'west by north'];
const FORCES = ['light', 'moderate', 'fresh', 'strong', 'a whole gale', 'hardly a breath'];
const SKIES = [
  'clear to the horizon',
  'low cloud',
  'rain by noon',
  'sleet at dawn',
  'broken cloud',
];
const GLASSES = ['rising slowly', 'falling fast', 'steady', 'lower than at any time this month'];
const KEEPERS = ['Mr Aird', 'Mrs Flett', 'young Rendall', 'the principal keeper', 'Miss Isbister'];
const SHIPS = ['Grace Harwar', 'Earl of Zetland', 'Penola', 'Solvang', 'Marie-Claire', 'Pole Star'];
const KINDS = ['barque', 'steamer', 'trawler', 'schooner', 'mail boat', 'collier'];
const PORTS = ['Bergen', 'Kirkwall', 'Aberdeen', 'Hull', 'Reykjavik', 'Gothenburg', 'Stromness'];
const CARGOES = ['timber', 'salt herring', 'slate', 'coal', 'wool', 'the winter post'];
const THINGS = [
  'the lantern panes',
  'the fog signal',
  'the east stair',
  'the oil pump',
  'the boat cradle',
  'the clockwork of the lens',
  'the garden wall',
];
const WORKS = ['cleaned', 'painted', 'took down and greased', 'mended', 'surveyed'];
const FINDINGS = [
  'found no fault',
  'found one bolt worn through',
  'will need rope from the mainland',
  'left it better than before',
  'has asked for a new valve',
];
const BIRDS = ['guillemots', 'a lone snowy owl', 'storm petrels', 'redwings', 'two sea eagles'];
const VISITORS = ['the relief boat', 'the surveyor', 'a party of schoolchildren', 'the priest'];

/**
 * Numbers from 0 to 1 that look random, by mulberry32.
 * @param {number} seed
 */
const randomFrom = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
};

/**
 * The log as Markdown.
 * @param {number} weeks about two pages each
 */
export function sampleMarkdown(weeks) {
  const random = randomFrom(1931);
  const upTo = (/** @type {number} */ n) => Math.floor(random() * n);
  /**
   * @template T
   * @param {T[]} list
   */
  const pick = (list) => list[upTo(list.length)];
  const time = () => `${1 + upTo(12)}:${String(upTo(60)).padStart(2, '0')}`;
  const upper = (/** @type {string} */ text) => text[0].toUpperCase() + text.slice(1);

  /** @type {(() => string)[]} */
  const ENTRIES = [
    () =>
      `The ${pick(KINDS)} ${pick(SHIPS)} of ${pick(PORTS)} passed at ${time()}, ${2 + upTo(9)} miles off, bound for ${pick(PORTS)} with ${pick(CARGOES)}.`,
    () => `${upper(pick(KEEPERS))} ${pick(WORKS)} ${pick(THINGS)} and ${pick(FINDINGS)}.`,
    () =>
      `${upper(pick(BIRDS))} at the lantern from ${time()}; ${upTo(40)} lay on the gallery in the morning.`,
    () =>
      `The sea broke over the landing until ${time()}, and nobody could reach the boat without a line.`,
    () =>
      `${upper(pick(VISITORS))} came on the ${pick(['morning', 'evening'])} tide, stayed ${2 + upTo(5)} hours and left us ${pick(CARGOES)}.`,
    () =>
      `Fog from ${time()} to ${time()}: the horn gave ${120 + upTo(4000)} blasts, and ${pick(KEEPERS)} has a headache.`,
    () =>
      `A letter from ${pick(PORTS)} asks for the readings of ${pick(MONTHS)}; ${pick(KEEPERS)} copied them out by lamplight.`,
    () =>
      `Counted the stores: ${40 + upTo(300)} gallons of oil, ${3 + upTo(20)} sacks of flour, coal for ${2 + upTo(9)} weeks.`,
    () =>
      `At ${time()} a flare was seen to the ${pick(WINDS)}; the lifeboat went out and found the ${pick(SHIPS)} with her engine stopped.`,
    () => `${upper(pick(KEEPERS))} saw the northern lights at ${time()} and woke everybody.`,
  ];
  const day = (/** @type {Date} */ date) => {
    const title = `${DAYS[date.getUTCDay()]}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    const weather = `Wind ${pick(WINDS)}, ${pick(FORCES)}; ${pick(SKIES)}. The glass is ${pick(GLASSES)}, at ${960 + upTo(80)} millibars.`;
    const lamp = `The lamp was lit at ${time()} and burned clear until ${time()}. It took ${9 + upTo(9)} litres of oil.`;
    const told = Array.from({ length: 3 + upTo(3) }, () => pick(ENTRIES)());
    return [`## ${title}`, weather, ...told, lamp].join('\n\n');
  };
  const week = (/** @type {unknown} */ _, /** @type {number} */ i) => {
    const days = Array.from({ length: 7 }, (__, j) =>
      day(new Date(Date.UTC(1931, 0, 4 + 7 * i + j))),
    );
    const passed = `- Ships seen: ${10 + upTo(60)}\n- Hours of fog: ${upTo(70)}\n- Oil: ${60 + upTo(60)} litres`;
    return [`# Skerry Point, week ${i + 1}`, passed, ...days].join('\n\n');
  };
  return Array.from({ length: weeks }, week).join('\n\n');
}

/**
 * The log without its marks.
 * @param {number} weeks
 */
export const sampleText = (weeks) => sampleMarkdown(weeks).replace(/^(#+|-) /gm, '');
