/**
 * Decides which of several gateways has a profile: the first listens on a local socket, and the
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

/** The version of their protocol. Another version has another socket. */
const VERSION = 3;
/**
 * Bytes of a socket's path; systems allow 104 and more, and a dead socket gets a longer name for a
 * moment.
 */
const MAX_PATH = 88;
/** Sockets that may disappear while they are dialled. */
const MAX_TRIES = 10;
/** Bytes of a message. */
const MAX_MESSAGE = 256 << 20;

/**
 * A channel of messages over a socket.
 * @param {import('node:net').Socket} socket
 */
const channelOf = (socket) =>
  headerTransport(
    { readable: socket, writable: socket },
    { maxMessage: MAX_MESSAGE, maxBacklog: 2 * MAX_MESSAGE },
  );

/**
 * @param {string} profile of the profile
 * @param {NodeJS.Platform} [platform]
 * @returns {string} the same for every gateway of the profile
 */
export function socketPathOf(profile, platform = process.platform) {
  const folder = resolve(profile);
  const mark = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  if (platform === 'win32') return `\\\\.\\pipe\\abp-bridge-gateway-${VERSION}-${mark}`;
  const path = join(folder, `gateway-${VERSION}`);
  if (Buffer.byteLength(path) <= MAX_PATH) return path;
  // The folder for temporary files may differ between programs; this path does not.
  return join(`/tmp/abp-bridge-${process.getuid?.()}`, `${VERSION}-${mark}`);
}

/**
 * @param {string} path
 * @returns {Promise<import('node:net').Socket | undefined>} undefined if no process listens
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
 * Removes a socket whose process was killed. If another has replaced it by now, dials that one.
 * @param {string} path
 */
async function bury(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return undefined; // Another process has.
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
 * @returns undefined if another process was faster
 */
async function listen(path, accept) {
  const server = createServer((socket) => accept(channelOf(socket)));
  // For this user alone, from the first moment.
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
 * Takes a profile, or connects to the gateway that has it.
 * @param {string} profile of the profile
 * @param {(channel: Transport) => void} accept called for other gateways that want it
 * @returns {Promise<{ server: import('node:net').Server, channel?: undefined }
 *   | { server?: undefined, channel: Transport }>} `server`: the profile is ours until that is
 *   closed; `channel`: to the gateway that has it
 */
export async function takeProfile(profile, accept) {
  const path = socketPathOf(profile);
  makePrivate(profile);
  if (process.platform !== 'win32') {
    const folder = dirname(path);
    makePrivate(folder);
    const { uid, mode } = lstatSync(folder);
    // Otherwise another user could listen there.
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
