// The host page of a visit: one library alone, as a page would load it.
import { params } from './params.js';

/** The files that a document has loaded so far. */
const loaded = () => performance.getEntriesByType('resource').map(({ name }) => name);
const now = () => performance.timeOrigin + performance.now();

/**
 * Opens the app's frame and makes one call. Leaves in `window.visited` what that took, in ms, and
 * what was loaded for it, and says so in the console.
 */
export async function visit(host) {
  const appUrl = decodeURIComponent(location.search.slice(1));
  const origin = new URL(appUrl).origin;
  const iframe = document.createElement('iframe');
  iframe.allow = 'cross-origin-isolated';
  iframe.src = `${appUrl}?${encodeURIComponent(location.origin)}`;
  const ready = new Promise((resolve) =>
    addEventListener('message', function ours({ data, source, ports }) {
      if (!data?.setUp || source !== iframe.contentWindow) return;
      removeEventListener('message', ours);
      resolve(ports);
    }),
  );
  document.body.append(iframe);
  const [port, side] = await ready;
  const start = now();
  const peer = await host({ port, iframe, origin });
  await peer.echo(params());
  const end = now();
  const theirs = new Promise((resolve) => (side.onmessage = ({ data }) => resolve(data)));
  side.postMessage('loaded');
  const files = [...loaded(), ...(await theirs)];
  window.visited = { connect: end - start, page: end - performance.timeOrigin, files };
  console.info(`visited ${JSON.stringify(window.visited)}`);
}
