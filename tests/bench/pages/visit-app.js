// The app's page of a visit.
const origin = decodeURIComponent(location.search.slice(1));
const loaded = () => performance.getEntriesByType('resource').map(({ name }) => name);

/** Serves one library, and tells the host when it does. */
export function serve(app) {
  const [channel, side] = [new MessageChannel(), new MessageChannel()];
  side.port1.onmessage = () => side.port1.postMessage(loaded());
  const echo = (params) => params;
  const handlers = { echo, size: echo, wait: echo, pend: echo, rows: echo };
  app({ port: channel.port1, origin }, handlers);
  parent.postMessage({ setUp: true }, origin, [channel.port2, side.port2]);
}
