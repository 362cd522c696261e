// Agents of one app: by ABP, by MCP Apps and, if the browser has it, by WebMCP. Each shows the
// outcome that it received; the app shows the actual one.
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge';
import { connect } from 'abp-bridge';
import { connectTools } from '@abp-bridge/webmcp';

/**
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {any}
 */
const $ = (selector, within = document) => within.querySelector(selector);

/** @type {{ app: string }} */
const { app: origin } = await (await fetch('/apps.json')).json();
const agent = { name: 'demo-agent', version: '1.0' };
const CAPABILITY = 'count.up';
/** Long enough for any call, in ms: the SDK's own limit is a minute. */
const HOUR = 3_600_000;
/** @param {string | undefined} outcome */
const outcomeText = (outcome = 'unknown') => `. Outcome: ${outcome}`;

/**
 * @typedef {object} Options
 * @property {AbortSignal} signal
 * @property {(info: { progress: number, total?: number }) => void} onProgress
 */
/**
 * @typedef {(params: object, options: Options) => Promise<{ success: boolean, told: string }>} Call
 */

/**
 * @param {import('abp-bridge').Client} client
 * @returns {Call}
 */
const callBy = (client) => async (params, options) => {
  const { success, data, error, metadata } = await client.call(CAPABILITY, params, options);
  if (success) return { success, told: `counted to ${data.counted}` };
  return { success, told: `${error.code}: ${error.message}${outcomeText(metadata?.outcome)}` };
};

/**
 * @type {{ id: string, name: string, about: string, begin: (iframe: HTMLIFrameElement)
 *   => Promise<Call> }[]}
 */
const AGENTS = [
  {
    id: 'abp',
    name: 'ABP',
    about: 'connect() of this library: progress, and a cancel whose outcome is known',
    begin: async (iframe) => callBy(await connect(iframe, { origin, agent })),
  },
  {
    id: 'mcp-apps',
    name: 'MCP Apps',
    about: 'AppBridge of the extension’s own SDK: progress, and a cancel that is not answered',
    begin: byAppBridge,
  },
  {
    id: 'webmcp',
    name: 'WebMCP',
    about: 'document.modelContext of the browser: no progress, and a cancel that is not answered',
    begin: async (iframe) => callBy(await connectTools(iframe, { origin, agent })),
  },
];

/**
 * A host of MCP Apps without this library. Hosts put a sandbox page around views that they do not
 * trust.
 * @param {HTMLIFrameElement} iframe
 * @returns {Promise<Call>}
 */
async function byAppBridge({ contentWindow }) {
  const bridge = new AppBridge(null, agent, {});
  const begun = new Promise((resolve) => bridge.addEventListener('initialized', resolve));
  const view = /** @type {Window} */ (contentWindow);
  await bridge.connect(new PostMessageTransport(view, view));
  await begun;
  const { tools } = await bridge.listTools({});
  const { name } = tools.find(({ title }) => title === CAPABILITY) ?? { name: CAPABILITY };
  return async (params, { signal, onProgress }) => {
    try {
      /** @type {any} */
      const { isError, content, structuredContent } = await bridge.callTool(
        { name, arguments: { ...params } },
        { signal, onprogress: onProgress, timeout: HOUR },
      );
      const told = isError ? content[0].text : `counted to ${structuredContent.counted}`;
      return { success: !isError, told };
    } catch (error) {
      const told = `${/** @type {Error} */ (error).message}${signal.aborted ? outcomeText(undefined) : ''}`;
      return { success: false, told };
    }
  };
}

/**
 * Shows an agent, with its button once it is connected to the app.
 * @param {typeof AGENTS[number]} agent
 */
async function show({ id, name, about, begin }) {
  const box = $('#agent').content.cloneNode(true).firstElementChild;
  const [button, status] = ['.run', '.status'].map((part) => $(part, box));
  box.id = id;
  $('h2', box).textContent = name;
  $('.about', box).textContent = about;
  $('#agents').append(box);
  /** @type {Call} */
  let call;
  try {
    call = await begin($('#app'));
  } catch (error) {
    const { code, message } = /** @type {import('abp-bridge').AbpError} */ (error);
    status.textContent = `${code}: ${message}`;
    return;
  }
  status.textContent = 'Connected';
  button.hidden = false;
  const rest = () => {
    button.className = 'run';
    button.textContent = `Call by ${name}`;
    button.onclick = run;
  };
  /** One call at a time: the button that began it cancels it. */
  const run = async () => {
    const controller = new AbortController();
    button.className = 'stop';
    button.textContent = `Cancel by ${name}`;
    button.onclick = () => controller.abort('the user pressed Cancel');
    box.classList.add('call');
    box.dataset.state = 'running';
    status.textContent = 'Called';
    const params = { to: $('#to').valueAsNumber || 1, agent: name };
    const { success, told } = await call(params, {
      signal: controller.signal,
      onProgress: ({ progress, total }) => (status.textContent = `${progress} of ${total}`),
    });
    box.dataset.state = success ? 'completed' : 'failed';
    status.textContent = `Told: ${told}`;
    $('#announcer').textContent = `${name} was told: ${told}`;
    rest();
  };
  rest();
}

const hasTools = 'modelContext' in document;
// Otherwise a frame of another origin has no tools.
if (hasTools) $('#app').allow = 'tools';
$('#app').src = origin;
for (const one of AGENTS) if (hasTools || one.id !== 'webmcp') void show(one);
if (!hasTools) {
  $('#agents').append($('#alone').content);
  $('#agents a').href = origin;
}
