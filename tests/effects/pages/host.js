// A host that calls the app in its iframe, on another site, and tells of each call what it was told.
import { connect } from '/js/index.js';
import { createHost } from '/packages/mcp-apps/src/index.js';
import { makeCall, toldOf, turns } from '/tests/effects/calls.js';
import { placeOf } from './place.js';

/** What a slow machine needs, in ms. */
const LONG = 3_600_000;
const agent = { name: 'host', version: '1' };
const limits = { grace: LONG };

const OPENERS = {
  iframe(iframe, { src }) {
    iframe.src = src;
    const { origin } = new URL(src);
    return connect(iframe, { origin, agent, limits, timeout: LONG });
  },
  async view(iframe, { sandbox, html, database }) {
    const csp = { connectDomains: [database] };
    const resource = { mimeType: 'text/html;profile=mcp-app', text: html, _meta: { ui: { csp } } };
    const host = await createHost(iframe, { host: agent, sandbox, resource, timeout: LONG });
    return connect(() => host.transport(), { agent, limits, timeout: LONG });
  },
};

let client, place, iframe;
window.begin = async (way, settings) => {
  place = placeOf(settings.database);
  iframe = document.createElement('iframe');
  document.body.append(iframe);
  client = await OPENERS[way](iframe, settings);
};
const call = async (...given) => toldOf(await client.call(...given));
window.make = (plan) => makeCall(call, place, plan);

const CUTS = {
  'the frame is reloaded': () => (iframe.src = `${iframe.src}`),
  'the frame is removed': () => iframe.remove(),
  'the host is reloaded': () => location.reload(),
};
window.cut = (how, count) => turns(count, place.pace).then(CUTS[how]);
window.end = () => {
  client?.close();
  iframe?.remove();
};
window.isReady = true;
