// A page whose scripts are agents: of apps in frames, and of WebMCP tools.
import { connect } from '/parts/main/index.js';
import { connectTools } from '/packages/webmcp/src/index.js';

const agent = { name: 'host', version: '1' };
Object.assign(window, { clients: {}, calls: {} });

window.embed = (url, allow = 'tools', inTree = false) =>
  new Promise((resolve) => {
    const iframe = document.createElement('iframe');
    Object.assign(iframe, { src: url, allow, onload: () => resolve() });
    const place = document.createElement('div');
    document.body.replaceChildren(place);
    (inTree ? place.attachShadow({ mode: 'closed' }) : place).append(iframe);
    window.frame = iframe;
  });

/** @param {'tools' | 'abp'} way */
window.open = async (name, way, options = {}, target = window.frame) => {
  const begin = way === 'abp' ? connect : connectTools;
  const client = await begin(target, {
    agent,
    // What a slow machine needs.
    timeout: 300_000,
    limits: { grace: 300_000 },
    ...options,
    onDisconnect: (error) => window.record(`${name} lost: ${error.code}`),
    onCapabilitiesChanged: (changes) =>
      window.record(`${name} changed: ${JSON.stringify(changes)}`),
  }).catch((error) => ({ refused: `${error.code}: ${error.message}` }));
  window.clients[name] = client;
  return client.refused;
};

/** Begins a call; `calls[id]` is its controller, and what became of it. */
window.begin = (name, id, capability, params, options = {}) => {
  const controller = new AbortController();
  const result = window.clients[name].call(capability, params, {
    ...options,
    signal: controller.signal,
  });
  window.calls[id] = { controller, result };
};

/** Calls a tool as any script does. */
window.execute = async (name, input, options, origin) => {
  const tools = await document.modelContext.getTools(origin ? { fromOrigins: [origin] } : {});
  const tool = tools.find((each) => each.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  return JSON.parse(await document.modelContext.executeTool(tool, input, options));
};
window.isReady = true;
