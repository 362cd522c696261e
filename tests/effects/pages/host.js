// A host that calls an app in its iframe, on another site, or in its workers, and tells of each
// call what it was told.
import { LIMITS } from '/js/common/signals.js';
import { connect, expose } from '/parts/main/index.js';
import { createHost } from '/packages/mcp-apps/src/index.js';
import { pool } from '/parts/workers/pool.js';
import {
  AGENT,
  APP,
  callsBy,
  fateOf,
  makeCall,
  onElicitationBy,
  outcomeTold,
} from '/tests/effects/calls.js';
import { shapesWithout, turns, withChecks } from '/tests/effects/work.js';
import { addressWith, placeOf } from './place.js';

/** What a slow machine needs, in ms. */
const LONG = 3_600_000;

let client, place, iframe, exposed;
const workerWith = (given) =>
  new Worker(addressWith('/tests/effects/pages/worker.js', given), { type: 'module' });

const OPENERS = {
  iframe(options, { src, inShadow }) {
    iframe = document.createElement('iframe');
    const parent = document.createElement('div');
    document.body.append(parent);
    (inShadow ? parent.attachShadow({ mode: 'open' }) : parent).append(iframe);
    iframe.src = src;
    return connect(iframe, { ...options, origin: new URL(src).origin });
  },
  async view(options, { sandbox, html, given }) {
    iframe = document.createElement('iframe');
    document.body.append(iframe);
    const csp = { connectDomains: [given.database] };
    const resource = { mimeType: 'text/html;profile=mcp-app', text: html, _meta: { ui: { csp } } };
    const host = await createHost(iframe, { host: AGENT, sandbox, resource, timeout: LONG });
    return connect(() => host.transport(), options);
  },
  worker: (options, { given }) => connect(() => workerWith(given), options),
  pool(options, { given, lacks }) {
    const workers = pool(() => workerWith({ ...given, isPool: true }), { size: 4 });
    const tasks = shapesWithout(lacks).map((name) => {
      const run = workers.run(name);
      const passOn = (params, context) => {
        place.write({ key: params.key, at: 'passes' });
        // Nothing is terminated: nobody could tell when that has happened.
        const signal = AbortSignal.any([context.signal]);
        globalThis[LIMITS].set(signal, { grace: 2 * LONG });
        return run(params, { signal, token: context.token, progress: context.progress });
      };
      return [name, passOn];
    });
    const { port1: port, port2 } = new MessageChannel();
    const capabilities = withChecks(Object.fromEntries(tasks));
    exposed = expose({ app: APP, capabilities }, { port, limits: given.limits });
    return connect(port2, options);
  },
};

window.begin = async (way, settings) => {
  place = placeOf(settings.given.database);
  const options = {
    agent: AGENT,
    limits: { grace: LONG },
    timeout: LONG,
    onElicitation: onElicitationBy(place),
    ...(settings.returns && { reconnect: { delay: 1, maxDelay: 10 } }),
  };
  client = await OPENERS[way](options, settings);
};
const call = callsBy(
  () => client,
  () => place.pace(),
);
window.make = (plan) =>
  makeCall(async (...given) => outcomeTold(await call(...given)), place, plan);
window.ask = async (callId, settled) => fateOf(await client.outcome(callId, { settled }));
window.again = async (...given) => outcomeTold(await client.call(...given));
window.back = () => client.reconnect();

const CUTS = {
  'the frame is reloaded': () => (iframe.src = `${iframe.src}`),
  'the frame is removed': () => iframe.remove(),
  'what has the frame is removed': () => (iframe.getRootNode().host ?? iframe.parentNode).remove(),
  'the frame is moved': () => document.body.append(iframe),
  'the frame goes elsewhere, and back': () => {
    iframe.addEventListener('load', () => history.back(), { once: true });
    iframe.src = 'about:blank';
  },
  'the host is reloaded': () => location.reload(),
  'the agent closes': () => client.close(),
  'the app closes': () => exposed.close(),
};
window.cut = (how, count) => turns(count, place.pace).then(() => void CUTS[how]());
window.end = () => {
  client?.close();
  exposed?.close();
  iframe?.remove();
};
window.isReady = true;
