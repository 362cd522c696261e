/**
 * Who has a profile, where several gateways want it: the first listens on a local socket, and the
 * others use the app in its browser.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { headerTransport } from '@abp-bridge/rpc';
import { UserError } from './errors.js';
import { makePrivate } from './profile.js';

/** @typedef {import('@abp-bridge/rpc').ChannelTransport} Transport */

/** What they say to each other. Another version listens elsewhere, and is not understood. */
const VERSION = 3;
/**
 * Bytes of a socket's path; what systems take is 104 and more, and one that is dead gets a longer
 * name for a moment.
 */
const MAX_PATH = 88;
/** Sockets that go away while they are dialled. */
const MAX_TRIES = 10;
/** Bytes of a message. */
const MAX_MESSAGE = 256 << 20;

/**
 * Messages over a socket.
 * @param {import('node:net').Socket} socket
 */
const channelOf = (socket) =>
  headerTransport(
    { readable: socket, writable: socket },
    { maxMessage: MAX_MESSAGE, maxBacklog: 2 * MAX_MESSAGE },
  );

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

/**
 * @param {string} path
 * @returns {Promise<import('node:net').Socket | undefined>} undefined if nobody listens
 */
async function dial(path) {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === 'ECONNREFUSED') return bury(path);
    if (code !== 'ENOENT') throw error;
  }
}

/**
 * Removes a socket whose process was killed, unless another has replaced it by now: that one is
 * dialled.
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
  }
}

/**
 * @param {string} path
 * @param {(channel: Transport) => void} accept
 * @returns undefined if somebody else was faster
 */
async function listen(path, accept) {
  const server = createServer((socket) => accept(channelOf(socket)));
  // This user's alone, from the first moment.
  const mask = process.umask(0o177);
  try {
    server.listen(path);
  } finally {
    process.umask(mask);
  }
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EADDRINUSE') throw error;
  }
}

/**
 * Takes a profile, or finds who has it.
 * @param {string} profile folder of it
 * @param {(channel: Transport) => void} accept is given those who want it, too
 * @returns {Promise<{ server: import('node:net').Server, channel?: undefined }
 *   | { server?: undefined, channel: Transport }>} `server`: it is ours until that is closed;
 *   `channel`: to the gateway that has it
 */
export async function takeProfile(profile, accept) {
  const path = socketPathOf(profile);
  makePrivate(profile);
  if (process.platform !== 'win32') {
    const folder = dirname(path);
    makePrivate(folder);
    const { uid, mode } = lstatSync(folder);
    // Else another user could listen there.
    if (uid !== process.getuid?.() || mode & 0o022)
      throw new UserError(`${folder} belongs to another user, or others can write to it`);
  }
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const socket = await dial(path);
    if (socket) return { channel: channelOf(socket) };
    const server = await listen(path, accept);
    if (server) return { server };
  }
  throw new UserError(`Several gateways are competing for the profile ${profile}: try again`);
}
