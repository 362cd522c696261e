// The agent: a page that gives work to apps in cross-origin iframes, and can stop it.
import { connect } from 'abp-bridge';
import '@abp-bridge/inspector';
import { sampleMarkdown } from './sample.js';

/**
 * An existing element of this page.
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {any} of any kind
 */
const $ = (selector, within = document) => within.querySelector(selector);

/** The origins of the two apps. @type {{ app: string, plain: string }} */
const origins = await (await fetch('/apps.json')).json();

/**
 * @typedef {object} Operation
 * @property {'app' | 'plain'} at the app that has it
 * @property {string} name the capability
 * @property {string} title for people
 * @property {string} [into] the selector of the list that shows it
 * @property {() => object} params
 * @property {(data: any) => Element} [picture] shows the result
 * @property {(data: any) => Element} [words] describes the result
 * @property {boolean} [streams] whether it streams text
 */

/** The operations that have a button. @type {Operation[]} */
const OPERATIONS = [
  {
    at: 'app',
    name: 'export.pdf',
    title: 'Export a PDF',
    params: () => ({ markdown: sampleMarkdown(104), filename: 'lighthouse-log.pdf' }),
    picture: pageOf,
    words: (data) => links(data, `the PDF of ${data.pages} pages`),
  },
  {
    at: 'app',
    name: 'image.blur',
    title: 'Blur a picture',
    params: () => ({ size: 2000, radius: 40 }),
    picture: pairOf,
    words: (data) => links(data, 'the picture'),
  },
  {
    at: 'app',
    name: 'route.plan',
    title: 'Plan a delivery round',
    params: () => ({ stops: 80, seconds: 20 }),
    picture: mapOf,
    words: ({ stops, km }) => paragraph(`${stops.length} stops in ${km} km`),
  },
  {
    at: 'app',
    name: 'story.tell',
    title: 'Tell a story',
    params: () => ({}),
    streams: true,
  },
  {
    at: 'app',
    name: 'report.publish',
    title: 'Publish a report',
    params: () => ({ title: 'A year at Skerry Point' }),
    words: ({ published }) =>
      paragraph(published ? 'You agreed: published.' : 'You declined: not published.'),
  },
  {
    at: 'app',
    name: 'app.freeze',
    title: 'Freeze it for 8 s',
    into: '#freeze',
    params: () => ({ ms: 8000 }),
  },
  {
    at: 'plain',
    name: 'timer.run',
    title: 'Set a timer',
    into: '#timer',
    params: () => ({ seconds: 30 }),
    words: () => paragraph('Ding!'),
  },
];

// --- Display and speech --------------------------------------------------------------------------

/** @param {string} text */
function log(text) {
  const line = document.createElement('li');
  line.textContent = `${new Date().toLocaleTimeString()}  ${text}`;
  $('#log').prepend(line);
}

/** Texts that have not been spoken yet. @type {string[]} */
let unspoken = [];
/**
 * Lets screen readers announce calls at most once a second.
 * @param {string} text
 */
function announce(text) {
  unspoken.push(text);
  if (unspoken.length > 1) return;
  setTimeout(() => {
    $('#announcer').textContent = unspoken.join('. ');
    unspoken = [];
  }, 1000);
}

/** @param {string} text */
const paragraph = (text) => Object.assign(document.createElement('p'), { textContent: text });

/**
 * @param {BlobPart} content
 * @param {string} type
 */
const urlOf = (content, type) => URL.createObjectURL(new Blob([content], { type }));

/**
 * A result that can be opened, and saved.
 * @param {{ content: ArrayBuffer, mimeType: string, filename: string, size: number }} data
 * @param {string} what
 */
function links({ content, mimeType, filename, size }, what) {
  const href = urlOf(content, mimeType);
  const open = Object.assign(document.createElement('a'), { href, textContent: `Open ${what}` });
  open.target = '_blank';
  const save = Object.assign(document.createElement('a'), { href, textContent: 'Save it' });
  save.download = filename;
  const line = paragraph('');
  line.append(open, ` (${(size / 1024).toFixed(0)} KB) · `, save);
  return line;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function svg(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, `${value}`);
  return element;
}

/**
 * The first page of a PDF.
 * @param {any} data
 */
function pageOf({ preview: { width, height, lines } }) {
  const page = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'page', role: 'img' });
  page.setAttribute('aria-label', 'The first page of the PDF');
  for (const { text, x, y, size, width: textLength, bold } of lines) {
    if (!text) continue;
    const line = svg('text', { x, y, 'font-size': size, textLength, class: bold ? 'bold' : '' });
    line.setAttribute('lengthAdjust', 'spacingAndGlyphs');
    line.textContent = text;
    page.append(line);
  }
  return page;
}

/**
 * A picture before and after.
 * @param {any} data
 */
function pairOf({ before, content, mimeType }) {
  const pair = Object.assign(document.createElement('div'), { className: 'pair' });
  for (const [alt, bytes] of [
    ['Hills in the evening', before],
    ['Blurred hills', content],
  ]) {
    const src = urlOf(bytes, mimeType);
    pair.append(Object.assign(document.createElement('img'), { src, alt }));
  }
  return pair;
}

/** @param {{ stops: [number, number][], order: number[] }} data */
function mapOf({ stops, order }) {
  const map = svg('svg', { viewBox: '-3 -3 106 66', class: 'map', role: 'img' });
  map.setAttribute('aria-label', `A round of ${stops.length} stops on a map`);
  map.append(svg('polygon', { points: order.map((stop) => stops[stop].join()).join(' ') }));
  for (const [cx, cy] of stops) map.append(svg('circle', { cx, cy, r: 0.9 }));
  return map;
}

/** @param {number} ms */
const seconds = (ms) => (ms < 950 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

// --- The apps ------------------------------------------------------------------------------------

/** @typedef {import('abp-bridge').Client} Client */
/** @type {Record<string, Client>} */
const clients = {};
/**
 * The ids of calls whose app has answered: the agent stopped waiting for the others.
 * @type {Set<string>}
 */
const answered = new Set();

/**
 * Connects to an app, and again whenever it has gone.
 * @param {'app' | 'plain'} which
 * @param {string} session the selector of the line that shows its state
 */
async function connectTo(which, session) {
  const iframe = $(`#${which}`);
  const origin = origins[which];
  const tell = (/** @type {string} */ text, state = 'gone') => {
    $(session).textContent = text;
    $(`[data-app="${which}"]`).dataset.state = state;
  };
  const connected = () => {
    tell('Connected', 'connected');
    log(`Connected to ${clients[which].app?.name} at ${origin}`);
    // An app that goes away meanwhile is offered once it is back.
    offer(which).catch(() => {});
  };
  iframe.src = origin;
  try {
    clients[which] = await connect(iframe, {
      origin,
      agent: { name: 'demo-agent', version: '1.0' },
      onElicitation: ask,
      onDisconnect: () => {
        tell('Gone. Connecting again …');
        log(`${clients[which].app?.name} has gone`);
      },
      reconnect: { maxDelay: 500 },
      onReconnect: (error) => (error ? tell(/** @type {Error} */ (error).message) : connected()),
    });
    connected();
    await clients[which].observe(({ type, direction, message }) => {
      if (type !== 'message' || direction !== 'in') return;
      const { type: kind, id, payload } = /** @type {any} */ (message);
      // If both sides use this library, the result of a cancelled call is the answer to its cancel,
      // too.
      if (kind === 'capabilities/call-result') answered.add(id);
      if (kind === 'capabilities/cancel-result') answered.add(payload?.callId);
    });
    await $('abp-inspector').attach(clients[which]);
  } catch (error) {
    const { code, message } = /** @type {import('abp-bridge').AbpError} */ (error);
    tell(`${code}: ${message}`);
  }
}

/**
 * Shows a question of the app, beside which every call can be stopped. It closes when it is
 * answered, or its call has ended.
 * @param {{ method: string, params: any }} request
 * @param {{ signal: AbortSignal }} context
 */
function ask({ params }, { signal }) {
  const dialog = $('#question').content.cloneNode(true).firstElementChild;
  $('.message', dialog).textContent = params.message;
  $('#questions').append(dialog);
  // A key that was meant for something else must not answer: no button has the focus yet.
  dialog.show();
  dialog.focus();
  announce(`The app asks: ${params.message}`);
  signal.addEventListener('abort', () => dialog.close());
  dialog.onkeydown = (/** @type {KeyboardEvent} */ { key }) => {
    if (key === 'Escape') dialog.close();
  };
  return new Promise((resolve) => {
    dialog.onclose = () => {
      dialog.remove();
      resolve({ confirmed: dialog.returnValue === 'yes' });
    };
  });
}

/**
 * The box of an operation, with its button.
 * @param {Operation} operation
 */
function boxFor(operation) {
  const box = $('#operation').content.cloneNode(true).firstElementChild;
  $('.title', box).textContent = operation.title;
  $('.picture', box).hidden = !operation.picture;
  setButton(box, 'Run', operation, () => call(operation, box));
  $('.run', box).disabled = true;
  $(operation.into ?? '#operations').append(box);
  return box;
}
const boxes = OPERATIONS.map(boxFor);

/**
 * Lets people run the app's operations, and shows an example of each result.
 * @param {'app' | 'plain'} at
 */
async function offer(at) {
  for (const [i, operation] of OPERATIONS.entries()) {
    if (operation.at !== at) continue;
    const described = await clients[at].describeCapability(operation.name);
    $('.about', boxes[i]).textContent = described?.description;
    $('.run, .stop', boxes[i]).disabled = false;
  }
  const { data: examples = {} } = at === 'app' ? await clients.app.call('examples.make') : {};
  for (const [i, { name, picture }] of OPERATIONS.entries()) {
    const figure = $('.picture', boxes[i]);
    if (!examples[name] || !picture || figure.hasChildNodes()) continue;
    const caption = document.createElement('figcaption');
    caption.textContent = 'Example';
    figure.append(picture(examples[name]), caption);
  }
}

/**
 * One button runs and stops, so the focus can stay where it is.
 * @param {Element} box
 * @param {'Run' | 'Stop'} verb
 * @param {Operation} operation
 * @param {() => void} act
 */
function setButton(box, verb, { title }, act) {
  const button = $('.run, .stop', box);
  button.className = verb.toLowerCase();
  const rest = Object.assign(document.createElement('span'), {
    className: 'hidden',
    textContent: title,
  });
  button.replaceChildren(verb, rest);
  button.onclick = act;
}

// --- Calls ---------------------------------------------------------------------------------------

/** The calls that have not ended. @type {Set<(reason: string) => void>} */
const running = new Set();
let count = 0;

/** Outcomes of cancelled work, in words. @type {Record<string, string>} */
const BECAME = {
  unstarted: 'It had not begun.',
  finished: 'But too late: the work was done.',
  running: 'But its work still runs.',
  failed: 'But its work had failed before.',
};
/** Outcomes that the app reports later. @type {Record<string, string>} */
const SINCE = {
  stopped: 'The app has answered since: its work was stopped.',
  finished: 'The app has answered since: the work was done.',
  failed: 'The app has answered since: its work failed.',
};

/**
 * The outcome of a call, in words.
 * @param {import('../parts/main/types/index.js').Response} response
 * @param {{ took: number, stopped: number | undefined, reached: number, answered: boolean }} about
 *   `took`: ms of the call; `stopped`: ms from the user's stop to its end; `reached`: how much of
 *   the work was reported, in per cent; `answered`: whether the app has answered
 * @returns {[state: string, words: string]}
 */
function outcomeOf({ success, error, metadata }, { took, stopped, reached, answered }) {
  if (success) {
    const late = 'Too late: the app had finished before your stop came. Here is its result.';
    return ['completed', stopped === undefined ? `Done in ${seconds(took)}.` : late];
  }
  const code = error.code.toLowerCase();
  const outcome = metadata?.outcome ?? 'unknown';
  const ended = stopped === undefined ? '' : ` ${seconds(stopped)} after you pressed`;
  const unknown = answered
    ? 'So says the app. Without abp-bridge it cannot say whether its work has ended.'
    : 'But the app has not answered for 5 s: nobody knows whether its work goes on.';
  const at = reached ? `, at ${reached.toFixed(0)} %` : '';
  const confirmed = `The app confirmed it, and its work ended${ended}${at}.`;
  const became = outcome === 'stopped' ? confirmed : (BECAME[outcome] ?? unknown);
  if (code === 'cancelled') return [code, `Stopped. ${became}`];
  if (code === 'timeout')
    return [code, `Out of time after ${seconds(took)}, and stopped. ${became}`];
  if (code === 'disconnected') {
    return [code, 'The app went away during the call. Nobody knows whether the work was done.'];
  }
  return [code, `Failed: ${error.message}`];
}

/**
 * Calls an operation, and shows the result.
 * @param {Operation} operation
 * @param {any} box
 */
async function call(operation, box) {
  const { at, name, title, params, picture, words: say, streams } = operation;
  const [bar, status, result] = ['progress', '.status', '.result'].map((part) => $(part, box));
  const timeout = Number($('#limit').value);
  const controller = new AbortController();
  const callId = `demo-${++count}`;
  const start = performance.now();
  /** @type {number | undefined} */
  let stopAt;
  let said = '';
  const stop = (/** @type {string} */ reason) => {
    stopAt = performance.now();
    said = 'stopping';
    tick();
    controller.abort(reason);
  };
  const tick = () => {
    const age = performance.now() - start;
    const left = timeout ? `, ${seconds(Math.max(0, timeout - age))} left` : '';
    status.textContent = `${seconds(age)}${left}${said && ` · ${said}`}`;
  };
  setButton(box, 'Stop', operation, () => stop('the user pressed Stop'));
  box.dataset.state = 'running';
  const own = (box.dataset.call = `${count}`);
  bar.hidden = status.hidden = false;
  bar.removeAttribute('value');
  result.replaceChildren();
  tick();
  const timer = setInterval(tick, 200);
  running.add(stop);
  announce(`${title} started`);

  /** @type {import('abp-bridge').CallOptions} */
  const options = {
    callId,
    signal: controller.signal,
    timeout,
    onProgress({ percentage = 0, stage = '', status = '' }) {
      bar.value = percentage;
      if (!stopAt) said = [`${percentage.toFixed(0)} %`, stage, status].filter(Boolean).join(' · ');
    },
  };
  const response = await (streams
    ? read(clients[at].stream(name, params(), options), result)
    : clients[at].call(name, params(), options));

  clearInterval(timer);
  running.delete(stop);
  const now = performance.now();
  const [state, words] = outcomeOf(response, {
    took: now - start,
    stopped: stopAt && now - stopAt,
    reached: bar.position > 0 ? 100 * bar.position : 0,
    answered: answered.delete(callId),
  });
  box.dataset.state = state;
  status.textContent = words;
  // It stands where the work stopped.
  bar.hidden = response.success || bar.position <= 0;
  setButton(box, 'Run', operation, () => call(operation, box));
  log(`${title}: ${response.error ? `${response.error.code}. ` : ''}${words}`);
  announce(`${title}: ${words}`);
  if (response.success) {
    if (picture) $('.picture', box).replaceChildren(picture(response.data));
    if (say) result.append(say(response.data));
    return;
  }
  // An unknown outcome may become known later.
  const since = SINCE[(await response.settled)?.outcome ?? ''];
  if (!since) return;
  log(`${title}: ${since}`);
  announce(`${title}: ${since}`);
  if (box.dataset.call === own) status.textContent = `${words} ${since}`;
}

/**
 * Shows a stream of text while it arrives.
 * @param {ReturnType<Client['stream']>} stream
 * @param {Element} box
 */
async function read(stream, box) {
  const text = Object.assign(document.createElement('p'), { className: 'story' });
  box.append(text);
  try {
    for await (const chunk of stream) {
      text.append(/** @type {string} */ (chunk));
      text.scrollTop = text.scrollHeight;
    }
  } catch {
    // The response has the reason, too.
  }
  return stream.response;
}

$('#stop-all').onclick = () => {
  for (const stop of running) stop('the user pressed Stop all');
};
$('#reload').onclick = () => ($('#app').src = origins.app);
$('#away').onclick = () => {
  const button = $('#away');
  const isAway = button.textContent !== 'Navigate it away';
  $('#app').src = isAway ? origins.app : `${origins.app}/nothing-here`;
  button.textContent = isAway ? 'Navigate it away' : 'Bring it back';
};
void connectTo('app', '#session');
void connectTo('plain', '#plain-session');
