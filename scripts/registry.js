// A registry of packages for the rehearsal of a release: what is published here is kept in memory, all else is passed on to
// the registry that npm is set to. Arguments: the port, and that registry's address.
import { createServer } from 'node:http';

const [port, upstream] = process.argv.slice(2);
const home = `http://127.0.0.1:${port}`;
/** @type {Map<string, any>} what npm published, by name */
const packages = new Map();
/** @type {Map<string, Buffer>} */
const tarballs = new Map();

/** @param {any} published what `npm publish` sends */
function keep({ name, _attachments, versions, 'dist-tags': tags }) {
  const known = packages.get(name) ?? { name, versions: {}, 'dist-tags': {} };
  for (const [file, { data }] of Object.entries(_attachments)) {
    tarballs.set(`/-/${file}`, Buffer.from(data, 'base64'));
    for (const version of Object.values(versions)) version.dist.tarball = `${home}/-/${file}`;
  }
  Object.assign(known.versions, versions);
  Object.assign(known['dist-tags'], tags);
  packages.set(name, known);
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function answer(request, response) {
  const path = request.url ?? '/';
  if (request.method === 'PUT') {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    keep(JSON.parse(text));
    return response.writeHead(201).end('{}');
  }
  if (path === '/-/ping') return response.end('{}');
  const known = packages.get(path.slice(1));
  if (known) return response.end(JSON.stringify(known));
  const tarball = tarballs.get(path);
  if (tarball) return response.end(tarball);
  const { accept = '*/*' } = request.headers;
  const passed = await fetch(upstream.replace(/\/$/, '') + path, { headers: { accept } });
  response.writeHead(passed.status, { 'content-type': passed.headers.get('content-type') ?? '' });
  return response.end(Buffer.from(await passed.arrayBuffer()));
}
createServer((request, response) => void answer(request, response)).listen(
  Number(port),
  '127.0.0.1',
);
