// The agent: a page that calls what an app in a cross-origin iframe can do.
import { connect } from '../js/index.js';
import { sampleMarkdown } from './sample.js';

/**
 * An element of this page, which is there.
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {any} of whatever kind it is
 */
const $ = (selector, within = document) => within.querySelector(selector);
const origin = new URLSearchParams(location.search).get('app');
if (!origin) {
  $('#session').textContent =
    'This page needs ?app=ORIGIN, where its app is served: open the address that npm run demo prints.';
  throw new Error('The address lacks ?app=ORIGIN');
}

/**
 * @typedef {object} Operation
 * @property {string} name
 * @property {() => object} params
 * @property {(box: Element, data: any) => void} show
 */

/** @type {Operation[]} */
const OPERATIONS = [
  {
    name: 'export.pdf',
    params: () => ({ markdown: sampleMarkdown(150), filename: 'report.pdf' }),
    show: showPdf,
  },
  { name: 'image.blur', params: () => ({ size: 900, radius: 10 }), show: showImage },
  {
    name: 'text.summarise',
    params: () => ({ text: sampleMarkdown(60).replace(/[#*`-]/g, ''), sentences: 3 }),
    show: (box, data) => box.append(data.summary),
  },
];

/** @param {string} text */
function log(text) {
  const line = document.createElement('li');
  line.textContent = `${new Date().toLocaleTimeString()}  ${text}`;
  $('#log').prepend(line);
}

/** @typedef {{ content: ArrayBuffer, mimeType: string, filename: string, size: number, pages: number }} File */

/** @param {File} data @param {string} text */
function link(data, text) {
  const url = URL.createObjectURL(new Blob([data.content], { type: data.mimeType }));
  const a = Object.assign(document.createElement('a'), {
    href: url,
    textContent: text,
    target: '_blank',
  });
  a.download = data.filename;
  return { a, url };
}

/** @param {Element} box @param {File} data */
function showPdf(box, data) {
  box.append(
    link(data, `${data.filename}: ${data.pages} pages, ${(data.size / 1024).toFixed(0)} KB`).a,
  );
}

/** @param {Element} box @param {File} data */
function showImage(box, data) {
  const { a, url } = link(data, data.filename);
  const img = Object.assign(document.createElement('img'), {
    src: url,
    alt: 'the blurred picture',
  });
  box.append(img, a);
}

/**
 * @param {import('../js/index.js').Client} client
 * @param {Operation} operation
 * @param {string} about
 */
function card(client, { name, params, show }, about) {
  const box = $('#card').content.cloneNode(true).firstElementChild;
  const [run, cancel] = [$('.run', box), $('.cancel', box)];
  box.id = name.replace('.', '-');
  $('h2', box).textContent = name;
  $('.about', box).textContent = about;
  let controller = new AbortController();
  cancel.onclick = () => controller.abort('the user pressed Cancel');
  run.disabled = false;
  run.onclick = async () => {
    controller = new AbortController();
    run.disabled = !(cancel.disabled = false);
    box.dataset.state = 'running';
    $('.result', box).replaceChildren();
    $('progress', box).value = 0;
    log(`${name} called`);
    const response = await client.call(name, params(), {
      signal: controller.signal,
      timeout: Number($('.timeout', box).value),
      onProgress({ percentage = 0, stage = '', status = '' }) {
        $('progress', box).value = percentage;
        $('.status', box).textContent = `${percentage.toFixed(0)} % ${stage} ${status}`;
      },
    });
    run.disabled = !(cancel.disabled = true);
    const { success, data, error, metadata } = response;
    const how = error ? `${error.code}: ${error.message}` : `completed in ${metadata?.duration} ms`;
    box.dataset.state = error ? error.code.toLowerCase() : 'completed';
    $('.status', box).textContent = how;
    log(`${name} ${how}`);
    if (success) show($('.result', box), data);
  };
  $('#calls').append(box);
}

$('#app').src = origin;
try {
  const client = await connect($('#app'), {
    origin,
    agent: { name: 'demo-agent', version: '1.0' },
    onDisconnect: (error) => ($('#session').textContent = error.message),
  });
  $('#session').textContent = `Connected to ${client.app?.name} at ${origin}`;
  for (const operation of OPERATIONS) {
    card(client, operation, (await client.describeCapability(operation.name)).description);
  }
} catch (error) {
  const { code, message } = /** @type {import('../js/index.js').AbpError} */ (error);
  $('#session').textContent = `${code}: ${message}`;
}
