/** Requests in a browser. It follows redirects by itself, and shows only the final URL and no IP addresses. */

/** @type {import('./discover.js').Request} */
export async function request(url, { accept, signal }) {
  const response = await fetch(url, {
    signal,
    headers: { accept },
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  return {
    url: new URL(response.url),
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: chunks(response.body),
  };
}

/**
 * The chunks of a stream: not every browser can iterate over a stream.
 * @param {ReadableStream<Uint8Array> | null} stream
 */
async function* chunks(stream) {
  const reader = stream?.getReader();
  try {
    for (let part = await reader?.read(); part?.value; part = await reader?.read())
      yield part.value;
  } finally {
    reader?.cancel().catch(() => {});
  }
}
