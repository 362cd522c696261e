/**
 * Replaces the person who would see the browser: dismisses the dialogs of windows that a page
 * opens, closes these windows, and takes downloads, which become part of a call's result, or
 * rejects them.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { log } from './errors.js';
import { typeOfName } from './files.js';
import { lineOf } from './texts.js';
import { deferred } from './waiting.js';

/** @typedef {import('puppeteer-core').CDPSession} CDPSession */

/** Windows that may be open beside the app's own. */
const MAX_WINDOWS = 4;

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {CDPSession} own session with the browser
 */
export function attendWindows(browser, own) {
  own.connection()?.on('sessionattached', (session) => {
    session.on('Page.javascriptDialogOpening', ({ type, message }) => {
      log(`the page's ${type} was dismissed: ${lineOf(message)}`);
      session.send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {});
    });
    // Sent before the driver lets the window's scripts run: a dialog that is open already cannot be
    // dismissed any more, and it stops the page that has opened the window, too. Targets other than
    // pages reject it.
    session.send('Page.enable').catch(() => {});
  });
  /** The oldest first. @type {Set<import('puppeteer-core').Target>} */
  const windows = new Set();
  browser.on('targetdestroyed', (target) => void windows.delete(target));
  browser.on('targetcreated', (target) => {
    if (target.type() !== 'page' || !target.opener()) return;
    windows.add(target);
    if (windows.size <= MAX_WINDOWS) return;
    const [oldest] = windows;
    windows.delete(oldest);
    log(`the page has more than ${MAX_WINDOWS} windows open: one was closed`);
    oldest.page().then(
      (page) => page?.close(),
      () => {},
    );
  });
}

/** Simultaneous downloads. */
const MAX_DOWNLOADS = 16;
/** Bytes of one. */
const MAX_BYTES = 64 << 20;

/**
 * @typedef {object} Download
 * @property {Promise<{ content: Uint8Array, mimeType: string, filename: string } | undefined>} file
 * undefined if it did not complete; never rejects
 * @property {() => void} cancel
 */

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {CDPSession} session with it
 * @param {string} folder of the files
 * @param {(download: Download) => boolean} claim whether a call takes it
 */
export async function attendDownloads(browser, session, folder, claim) {
  /** @type {Map<string, { name: string, settle: (isWhole: boolean) => void }>} */
  const pending = new Map();
  const cancel = (/** @type {string} */ guid) =>
    void session.send('Browser.cancelDownload', { guid }).catch(() => {});
  session.on('Browser.downloadWillBegin', ({ guid, suggestedFilename: name }) => {
    const { promise, resolve } = /** @type {ReturnType<typeof deferred<boolean>>} */ (deferred());
    const path = join(folder, guid);
    const file = promise.then(async (isWhole) => {
      const content = isWhole ? await readFile(path).catch(() => undefined) : undefined;
      await rm(path, { force: true }).catch(() => {});
      return content && { content, mimeType: typeOfName(name), filename: name };
    });
    if (pending.size < MAX_DOWNLOADS && claim({ file, cancel: () => cancel(guid) })) {
      pending.set(guid, { name, settle: resolve });
      log(`a download goes into the call's result: ${lineOf(name)}`);
      return;
    }
    log(`a download that belongs to no call was cancelled: ${lineOf(name)}`);
    cancel(guid);
  });
  session.on('Browser.downloadProgress', ({ guid, state, receivedBytes }) => {
    const download = pending.get(guid);
    const isTooLarge = receivedBytes > MAX_BYTES;
    if (state === 'inProgress' && download && isTooLarge) cancel(guid);
    if (state === 'inProgress' || !download) return;
    pending.delete(guid);
    const isWhole = state === 'completed' && !isTooLarge;
    if (!isWhole)
      log(`a download failed, or had more than ${MAX_BYTES} bytes: ${lineOf(download.name)}`);
    download.settle(isWhole);
  });
  browser.once('disconnected', () => pending.forEach(({ settle }) => settle(false)));
  await session.send('Browser.setDownloadBehavior', {
    behavior: 'allowAndName',
    downloadPath: folder,
    eventsEnabled: true,
  });
}
