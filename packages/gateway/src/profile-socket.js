/**
 * Who has a profile, where several gateways want it: the first listens on a local socket, and the others use the app in
 * its browser.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { Channel } from './channel.js';
import { UserError } from './errors.js';
import { makePrivate } from './profile.js';

/** What they say to each other. Another version listens elsewhere, and is not understood. */
const VERSION = 2;
/** Bytes of a socket's path; what systems take is 104 and more, and one that is dead gets a longer name for a moment. */
const MAX_PATH = 88;
/** Sockets that go away while they are dialled. */
const MAX_TRIES = 10;

/**
 * @param {string} profile folder of it
 * @param {NodeJS.Platform} [platform]
 * @returns {string} the same for whoever wants the profile
 */
export function socketPathOf(profile, platform = process.platform) {
  const folder = resolve(profile);
  const mark = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  if (platform === 'win32') return `\\\\.\\pipe\\abp-bridge-gateway-${VERSION}-${mark}`;
  const path = join(folder, `gateway-${VERSION}`);
  if (Buffer.byteLength(path) <= MAX_PATH) return path;
  // Wherever this user's programs have their temporary folders, all of them know this one.
  return join(`/tmp/abp-bridge-${process.getuid?.()}`, `${VERSION}-${mark}`);
}

/** @param {string} path @returns {Promise<import('node:net').Socket | undefined>} undefined if nobody listens */
async function dial(path) {
  const socket = connect(path);
  return once(socket, 'connect').then(
    () => socket,
    (error) => {
      if (error.code === 'ENOENT') return undefined;
      if (error.code !== 'ECONNREFUSED') throw error;
      return bury(path);
    },
  );
}

/**
 * Removes a socket whose process was killed. Another process may have replaced it by now: then that one is dialled.
 * @param {string} path
 */
async function bury(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return undefined; // Somebody else has.
  }
  const socket = connect(aside);
  try {
    await once(socket, 'connect');
    renameSync(aside, path);
    return socket;
  } catch {
    rmSync(aside, { force: true });
    return undefined;
  }
}

/**
 * @param {string} path
 * @param {(channel: Channel) => void} accept
 * @returns {Promise<import('node:net').Server | undefined>} undefined if somebody else was faster
 */
async function listen(path, accept) {
  const server = createServer((socket) => accept(new Channel(socket)));
  // This user's alone, from the first moment.
  const mask = process.umask(0o177);
  try {
    server.listen(path);
  } finally {
    process.umask(mask);
  }
  return once(server, 'listening').then(
    () => server,
    (error) => {
      if (error.code === 'EADDRINUSE') return undefined;
      throw error;
    },
  );
}

/** The folder of a socket must be this user's: else another could listen there. @param {string} path */
function makeFolder(path) {
  makePrivate(path);
  const { uid, mode } = lstatSync(path);
  const isOwn = uid === process.getuid?.() && (mode & 0o022) === 0;
  if (!isOwn) throw new UserError(`${path} belongs to another user, or others can write to it`);
}

/**
 * Takes a profile, or finds who has it.
 * @param {string} profile folder of it
 * @param {(channel: Channel) => void} accept is given those who want it, too
 * @returns {Promise<{ server: import('node:net').Server, channel?: undefined } | { server?: undefined, channel: Channel }>}
 *   `server`: it is ours until that is closed; `channel`: to the gateway that has it
 */
export async function takeProfile(profile, accept) {
  const path = socketPathOf(profile);
  makePrivate(profile);
  if (process.platform !== 'win32') makeFolder(join(path, '..'));
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const socket = await dial(path);
    if (socket) return { channel: new Channel(socket) };
    const server = await listen(path, accept);
    if (server) return { server };
  }
  throw new UserError(`Several gateways are competing for the profile ${profile}: try again`);
}
