/** Windows that a page opens in a browser that nobody sees: nobody else dismisses their dialogs, and closes them. */
import { lineOf } from './texts.js';

/** Windows that may be open beside the app's own. */
const MAX_WINDOWS = 4;

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {import('puppeteer-core').Connection} connection
 * @param {(line: string) => void} log
 */
export function attendWindows(browser, connection, log) {
  connection.on('sessionattached', (session) => {
    session.on('Page.javascriptDialogOpening', ({ type, message }) => {
      log(`the page's ${type} was dismissed: ${lineOf(message)}`);
      session.send('Page.handleJavaScriptDialog', { accept: false }).catch(() => {});
    });
    // Said before the driver lets the window's scripts run: a dialog that is open already is nobody's to dismiss, and it
    // stops the page that has opened the window, too. What is no page refuses it.
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
