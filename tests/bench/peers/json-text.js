/**
 * The bound of many calls at once: one raw message each way for all of them. Each entry becomes
 * text when it is given, as what must not change while it waits, and is parsed at the other side.
 * There are no calls: no ids, no promise for each.
 */
const post = (port, entries) =>
  port.postMessage(entries.map((entry) => JSON.stringify(entry)).join());
const read = ({ data }) => JSON.parse(`[${data}]`);

export async function host({ port }) {
  return {
    burst: (entries) =>
      new Promise((resolve) => {
        port.onmessage = (event) => resolve(read(event));
        post(port, entries);
      }),
    close: () => port.close(),
  };
}

export function app({ port }, { echo }) {
  port.onmessage = (event) =>
    post(
      port,
      read(event).map((entry) => echo(entry)),
    );
}
