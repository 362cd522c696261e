/**
 * Plays the agent's side of a recording: line by line, each answer in its recorded place among all
 * others, and each request awaited where it stands. So what a client is shown has the recorded
 * order and no clock.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

/** @param {string} name */
export const recording = (name) =>
  readFileSync(new URL(`../vectors/a2a-${name}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** What makes two requests the same: the ids of messages and requests differ each time. */
function sameRequest(recorded, method, path, text) {
  if (recorded.method !== method) return false;
  if (method === 'GET') return recorded.path === path;
  const [a, b] = [JSON.parse(recorded.raw), JSON.parse(text)];
  const key = ({ method, params }) =>
    JSON.stringify([method, params?.id, params?.message?.parts?.[0]?.text]);
  return key(a) === key(b);
}

/**
 * @param {any[]} lines of a recording
 * @param {{ bytes?: number }} [options] how many bytes of a stream are sent at a time
 */
export async function replay(lines, { bytes = Infinity } = {}) {
  /** Requests that came and have no place yet. */
  const arrived = [];
  let wake = () => {};
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { method, url: path } = request;
    requests.push(text ? JSON.parse(text) : path);
    if (!lines.some((line) => line.ev === 'request' && sameRequest(line, method, path, text))) {
      response.writeHead(404).end();
      return;
    }
    arrived.push({ method, path, text, response });
    wake();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/`;

  const next = async (line) => {
    for (;;) {
      const at = arrived.findIndex(({ method, path, text }) =>
        sameRequest(line, method, path, text),
      );
      if (at >= 0) return arrived.splice(at, 1)[0].response;
      await new Promise((resolve) => (wake = resolve));
    }
  };
  const play = async () => {
    const connections = new Map();
    for (const line of lines) {
      if (line.ev === 'request') connections.set(line.conn, await next(line));
      const response = connections.get(line.conn);
      if (line.ev === 'client-disconnect' && !response.destroyed) await once(response, 'close');
      if (line.dir !== 's2c') continue;
      if (line.ev === 'response-head') {
        const { connection, 'content-type': type } = line.headers;
        response.writeHead(line.status, { connection, 'content-type': type });
      } else if (line.ev === 'sse') {
        const raw = Buffer.from(line.raw);
        for (let at = 0; at < raw.length; at += bytes) {
          response.write(raw.subarray(at, Math.min(raw.length, at + bytes)));
        }
      } else if (line.ev === 'body') {
        // The card says where requests go: to this server, now.
        response.end(line.raw.replaceAll(/http:\/\/127\.0\.0\.1(:\d+)?\/?/g, url));
      } else response.end();
    }
  };
  /** Whoever asks once more than was recorded is answered as the last time. */
  const repeat = async () => {
    for (;;) {
      for (const { method, path, text, response } of arrived.splice(0)) {
        const { conn } = lines.findLast(
          (line) => line.ev === 'request' && sameRequest(line, method, path, text),
        );
        const answer = lines.filter((line) => line.conn === conn && line.dir === 's2c');
        response.writeHead(200, { 'content-type': answer[0].headers['content-type'] });
        response.end(answer.map(({ raw = '' }) => raw).join(''));
      }
      await new Promise((resolve) => (wake = resolve));
    }
  };
  const played = play();
  void played.then(repeat);
  return {
    url,
    /** Every request, as it came. */
    requests,
    /** Resolves when the recording has been played to its end. */
    played,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
