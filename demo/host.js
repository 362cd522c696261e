// The agent: a page that calls what apps in cross-origin iframes can do.
import { connect } from '../js/index.js';
import '../js/inspector/index.js';
import { sampleMarkdown } from './sample.js';

/**
 * An element of this page, which is there.
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {any} of whatever kind it is
 */
const $ = (selector, within = document) => within.querySelector(selector);

/** Where the server of the demo serves the two apps. @type {{ app: string, plain: string }} */
const origins = await (await fetch('/apps.json')).json();

/**
 * @typedef {object} Operation
 * @property {'app' | 'plain'} at the app that has it
 * @property {string} name
 * @property {() => object} params
 * @property {(box: Element, data: any) => void} [show] shows its data
 * @property {boolean} [streams] whether it streams text
 */

/** The operations that have a button. @type {Operation[]} */
const OPERATIONS = [
  {
    at: 'app',
    name: 'export.pdf',
    params: () => ({ markdown: sampleMarkdown(150), filename: 'report.pdf' }),
    show: showPdf,
  },
  { at: 'app', name: 'image.blur', params: () => ({ size: 2000, radius: 20 }), show: showImage },
  {
    at: 'app',
    name: 'text.summarise',
    params: () => ({ text: sampleMarkdown(60).replace(/[#*`-]/g, ''), sentences: 3 }),
    show: (box, data) => box.append(data.summary),
  },
  { at: 'app', name: 'story.tell', params: () => ({ words: 400 }), streams: true },
  {
    at: 'app',
    name: 'primes.count',
    params: () => ({ below: 2e9 }),
    show: (box, data) => box.append(`${data.primes.toLocaleString()} primes`),
  },
  {
    at: 'app',
    name: 'report.publish',
    params: () => ({ title: 'Quarterly report' }),
    show: (box, data) => box.append(data.published ? 'Published' : 'Not published'),
  },
  { at: 'plain', name: 'slow.count', params: () => ({ to: 300 }) },
];

// --- What people see and hear ---------------------------------------------------------------------

/** @param {string} text */
function log(text) {
  const line = document.createElement('li');
  line.textContent = `${new Date().toLocaleTimeString()}  ${text}`;
  $('#log').prepend(line);
}

/** Texts that have not been spoken yet. @type {string[]} */
let unspoken = [];
/** Screen readers hear of calls at most once a second. @param {string} text */
function announce(text) {
  unspoken.push(text);
  if (unspoken.length > 1) return;
  setTimeout(() => {
    $('#announcer').textContent = unspoken.join('. ');
    unspoken = [];
  }, 1000);
}

/** @typedef {{ content: ArrayBuffer, mimeType: string, filename: string, size: number, pages: number }} File */

/** @param {File} data @param {string} text */
function link(data, text) {
  const url = URL.createObjectURL(new Blob([data.content], { type: data.mimeType }));
  const a = Object.assign(document.createElement('a'), { href: url, textContent: text });
  a.download = data.filename;
  return { a, url };
}

/** @param {Element} box @param {File} data */
function showPdf(box, data) {
  const size = (data.size / 1024).toFixed(0);
  box.append(link(data, `${data.filename}: ${data.pages} pages, ${size} KB`).a);
}

/** @param {Element} box @param {File} data */
function showImage(box, data) {
  const { a, url } = link(data, data.filename);
  box.append(Object.assign(document.createElement('img'), { src: url, alt: 'Blurred hills' }), a);
}

/** @param {number} ms */
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

// --- The apps ---------------------------------------------------------------------------------------

/** @typedef {import('../js/index.js').Client} Client */
/** @type {Record<string, Client>} */
const clients = {};

/**
 * Connects to an app, and again whenever it has gone.
 * @param {'app' | 'plain'} which
 * @param {string} session the selector of the line that tells about it
 */
async function connectTo(which, session) {
  const iframe = $(`#${which}`);
  const origin = origins[which];
  const tell = (/** @type {string} */ text) => {
    $(session).textContent = text;
    log(`${which}: ${text}`);
  };
  const tellConnected = () => tell(`Connected to ${clients[which].app?.name} at ${origin}`);
  iframe.src = origin;
  try {
    clients[which] = await connect(iframe, {
      origin,
      agent: { name: 'demo-agent', version: '1.0' },
      onElicitation: ask,
      onDisconnect: (error) => tell(error.message),
      reconnect: true,
      onReconnect: (error) =>
        error ? tell(/** @type {Error} */ (error).message) : tellConnected(),
    });
    tellConnected();
    await $('abp-inspector').attach(clients[which]);
    for (const operation of OPERATIONS) if (operation.at === which) await offer(operation);
  } catch (error) {
    const { code, message } = /** @type {import('../js/index.js').AbpError} */ (error);
    tell(`${code}: ${message}`);
  }
}

/** The question before: people answer one at a time. @type {Promise<unknown>} */
let asked = Promise.resolve();
/**
 * Answers a question of an app.
 * @param {{ method: string, params: any }} request
 * @param {{ signal: AbortSignal }} context
 */
function ask({ params }, { signal }) {
  return (asked = asked.then(() => signal.aborted || askUser(params, signal)));
}

/**
 * The dialog is closed when the call that asks has ended.
 * @param {any} params
 * @param {AbortSignal} signal
 */
function askUser(params, signal) {
  const dialog = $('#question');
  $('#question-text').textContent = params.message;
  dialog.returnValue = 'no';
  dialog.showModal();
  const close = () => dialog.close();
  signal.addEventListener('abort', close);
  return new Promise((resolve) => {
    dialog.onclose = () => {
      signal.removeEventListener('abort', close);
      resolve({ confirmed: dialog.returnValue === 'yes' });
    };
  });
}

/** Shows an operation with its button. @param {Operation} operation */
async function offer(operation) {
  const { at, name } = operation;
  const id = name.replace('.', '-');
  const box = $('#operation').content.cloneNode(true).firstElementChild;
  box.id = id;
  $('h3', box).textContent = name;
  const run = $('.run', box);
  run.textContent = `Run ${name}`;
  run.onclick = () => call(operation);
  // In the order of the list, whichever app answers first.
  const after = OPERATIONS.slice(0, OPERATIONS.indexOf(operation)).findLast((other) =>
    $(`#${other.name.replace('.', '-')}`),
  );
  const before = after
    ? $(`#${after.name.replace('.', '-')}`).nextSibling
    : $('#operations').firstChild;
  $('#operations').insertBefore(box, before);
  $('.about', box).textContent = (await clients[at].describeCapability(name))?.description;
}

// --- Calls --------------------------------------------------------------------------------------------

/** The calls that have not ended. @type {Set<AbortController>} */
const running = new Set();
let count = 0;

/** Calls an operation, and shows what becomes of it. @param {Operation} operation */
async function call({ at, name, params, show, streams }) {
  const box = $('#call').content.cloneNode(true).firstElementChild;
  const [cancel, bar, status] = ['.cancel', 'progress', '.status'].map((part) => $(part, box));
  const title = `${name} ${++count}`;
  const timeout = Number($('#limit').value);
  const controller = new AbortController();
  const start = performance.now();
  let said = '';
  $('h3', box).textContent = title;
  cancel.textContent = `Cancel ${title}`;
  cancel.onclick = () => controller.abort('the user pressed Cancel');
  const tick = () => {
    const age = performance.now() - start;
    const left = timeout ? `, ${seconds(Math.max(0, timeout - age))} left` : '';
    status.textContent = `${seconds(age)}${left}${said && `, ${said}`}`;
  };
  tick();
  const timer = setInterval(tick, 500);
  $('#none').hidden = true;
  $('#calls').prepend(box);
  running.add(controller);
  announce(`${title} started`);

  /** @type {import('../js/agent/client.js').CallOptions} */
  const options = {
    signal: controller.signal,
    timeout,
    onProgress({ percentage = 0, stage = '', status = '' }) {
      bar.value = percentage;
      said = `${percentage.toFixed(0)} % ${stage} ${status}`;
    },
  };
  const response = await (streams
    ? read(clients[at].stream(name, params(), options), $('.result', box))
    : clients[at].call(name, params(), options));

  clearInterval(timer);
  running.delete(controller);
  const { success, data, error } = response;
  const how = error ? `${error.code}: ${error.message}` : 'completed';
  box.dataset.state = error ? error.code.toLowerCase() : 'completed';
  status.textContent = `${how} (${seconds(performance.now() - start)})`;
  if (success || !bar.hasAttribute('value')) bar.value = success ? 100 : 0;
  // The button stays, and with it the focus.
  cancel.textContent = `Remove ${title}`;
  cancel.onclick = () => {
    const next = box.nextElementSibling ?? box.previousElementSibling;
    box.remove();
    $('#none').hidden = Boolean(next);
    (next ? $('.cancel', next) : $('#cancel-all')).focus();
  };
  log(`${title}: ${how}`);
  announce(`${title} ${how}`);
  if (success) show?.($('.result', box), data);
}

/**
 * Shows a stream of text while it arrives.
 * @param {ReturnType<Client['stream']>} stream
 * @param {Element} box
 */
async function read(stream, box) {
  try {
    for await (const chunk of stream) box.append(/** @type {string} */ (chunk));
  } catch {
    // The response says why, too.
  }
  return stream.response;
}

$('#cancel-all').onclick = () => {
  for (const controller of running) controller.abort('the user pressed Cancel all');
};
$('#reload').onclick = () => ($('#app').src = origins.app);
$('#break').onclick = () => {
  $('#app').src = `${origins.app}/nothing-here`;
  // An agent that waits for this app would wait in vain: a user would load it again.
  setTimeout(() => ($('#app').src = origins.app), 3000);
};
$('#freeze').onclick = () => call({ at: 'app', name: 'app.freeze', params: () => ({ ms: 8000 }) });

void connectTo('app', '#session');
void connectTo('plain', '#plain-session');
