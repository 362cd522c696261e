/** Folders that go with the gateway: for results, for what a browser downloads, for profiles that are thrown away. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Begins their names; the process that has one follows. */
const PREFIX = 'abp-bridge-gateway-';

/** @returns {Promise<string>} the path of a new folder. Those of gateways that were killed are cleared first */
export async function makeTemporaryFolder() {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    // What is another user's stays.
    if (pid && !isRunning(pid)) await removeFolder(join(tmpdir(), name)).catch(() => {});
  }
  return mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/** Removes a folder, though a browser that is on its way out may still write there. @param {string} path */
export const removeFolder = (path) => rm(path, { recursive: true, force: true, maxRetries: 5 });

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH';
  }
}
