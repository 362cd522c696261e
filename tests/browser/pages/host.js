// The host page of the browser tests: does nothing until a test asks.
import { connect, expose } from '/parts/main/index.js';
import { ready } from '/js/driver/abp-core.js';
import { webSocketTransport } from '/parts/transports/index.js';
import { plainAgent, windowChannel } from '/tests/plain/plain.js';
import { AgentDriver, AppDriver } from '/tests/support/drivers.js';
import { Log, play } from '/tests/support/transcript.js';
import { watchHeld } from './held.js';

/** Ms that a busy machine may need to load an app. A test that is about less says so. */
const LONG = 300_000;
/** What the core is made of. */
window.core = ready();

/** Messages that arrived, by origin: shows that an attack was really fired. */
window.heard = {};
addEventListener('message', ({ origin }) => {
  window.heard[origin] = (window.heard[origin] ?? 0) + 1;
});

/** Replaces whatever iframe there is. */
window.embed = (src, attributes = {}) => {
  window.iframe?.remove();
  const iframe = Object.assign(document.createElement('iframe'), attributes);
  iframe.src = src;
  window.iframe = iframe;
  document.body.append(iframe);
  return iframe;
};

window.connectTo = (iframe, options) =>
  connect(iframe, {
    agent: { name: 'test', version: '1' },
    timeout: LONG,
    onDisconnect: (error) => (window.lost ??= []).push(error.code),
    ...options,
  });

window.open_ = async (options) => {
  const { src, origin, kind = 'ours', upgrade, limits, attributes, loaded } = options;
  const { reconnect, timeout = LONG } = options;
  const iframe = window.embed(src, attributes);
  if (loaded) await new Promise((resolve) => (iframe.onload = resolve));
  const log = (window.log = new Log());
  const driver = new AgentDriver((line) => log.add(line));
  if (kind === 'ours') {
    driver.client = await connect(iframe, {
      origin,
      upgrade,
      limits,
      timeout,
      reconnect,
      agent: { name: 'test', version: '1' },
      onElicitation: ({ params }) => params,
      onDisconnect: (error) => (window.lost ??= []).push(error.code),
    });
  } else {
    await new Promise((resolve) => iframe.addEventListener('load', resolve, { once: true }));
    driver.client = await plainAgent(windowChannel(iframe.contentWindow, origin), driver);
  }
  window.driver = driver;
  window.client = driver.client;
  return driver.client.features;
};
/** Opens the app and plays a section of a transcript with it. */
window.play = async (section, options) => {
  const features = await window.open_({ ...options, limits: section.limits.agent });
  const { driver, client, log } = window;
  const { port1: control, port2 } = new MessageChannel();
  const ready = new Promise((resolve) => {
    control.onmessage = ({ data }) => (data === 'ready' ? resolve() : log.add(data));
  });
  window.iframe.contentWindow.postMessage('control', options.origin, [port2]);
  await ready;
  const outcome = await play(section, {
    log,
    do: (side, ...words) => {
      if (side === 'app') control.postMessage(words);
      else void driver.do(...words);
    },
    settle: () => client.call('barrier'),
  });
  return { ...outcome, features };
};

/** Plays a section with a side in Node, over a WebSocket (tests/support/remote.js). */
window.playSocket = async (section, { url, serial, side }) => {
  const address = (more) => `${url}?${encodeURIComponent(JSON.stringify({ serial, ...more }))}`;
  const log = new Log();
  const control = new WebSocket(address({ side, limits: section.limits[side] }));
  const heard = {};
  const said = Object.fromEntries(
    ['open', 'ready', 'settled'].map((word) => [word, new Promise((done) => (heard[word] = done))]),
  );
  control.onmessage = ({ data }) => (heard[data] ? heard[data]() : log.add(data));
  await said.open;
  const tell = (...words) => control.send(JSON.stringify(words));
  const add = (line) => log.add(line);
  const here = side === 'app' ? new AgentDriver(add) : new AppDriver(add);
  const transport = () => webSocketTransport(address());
  if (side === 'app') {
    here.client = await connect(transport, {
      agent: { name: 'test', version: '1' },
      limits: section.limits.agent,
    });
  } else {
    expose(
      { app: { id: 'test.app', name: 'Test', version: '1' }, capabilities: here.handlers },
      { origins: [], limits: section.limits.app },
    ).accept(transport());
    await said.ready;
  }
  const outcome = await play(section, {
    log,
    do: (who, ...words) => void (who === side ? tell(...words) : here.do(...words)),
    settle: () => (side === 'app' ? here.client.call('barrier') : (tell('settle'), said.settled)),
  });
  control.close();
  return { ...outcome, features: here.client?.features };
};
/**
 * Plays a section of a transcript with an app in a worker, which is told what to do past the
 * bridge.
 */
window.playWorker = async (section, { kind, control }) => {
  const log = new Log();
  const driver = new AgentDriver((line) => log.add(line));
  const channel = new BroadcastChannel(control);
  channel.onmessage = ({ data }) => data.log && log.add(data.log);
  const options = encodeURIComponent(JSON.stringify({ control, limits: section.limits.app }));
  const worker = new window[kind](`/tests/support/workers/app.js?${options}`, { type: 'module' });
  driver.client = await connect(worker, {
    agent: { name: 'test', version: '1' },
    limits: section.limits.agent,
  });
  const { features } = driver.client;
  const outcome = await play(section, {
    log,
    do: (side, ...words) => {
      if (side === 'app') channel.postMessage({ do: words });
      else void driver.do(...words);
    },
    settle: () => driver.client.call('barrier'),
  });
  driver.client.close();
  channel.close();
  worker.terminate?.();
  return { ...outcome, features };
};
window.connect = connect;
window.expose = expose;
window.webSocketTransport = webSocketTransport;
window.watchHeld = watchHeld;
window.isReady = true;
