/** The connection to an app in a page: in a browser of the gateway's own, or in a running one. */
import { join } from 'node:path';
import { connectPage } from '@abp-bridge/automation';
import { UserError, log, usageError } from './errors.js';
import { findBrowser } from './find-browser.js';
import {
  claimProfile,
  profileInUse,
  profileOf,
  restoreSessionCookies,
  saveSessionCookies,
} from './profile.js';
import { makeTemporaryFolder, removeFolder } from './files.js';
import { lineOf } from './texts.js';
import { attendDownloads, attendWindows } from './unattended.js';
import { within } from './waiting.js';

/** Ms that a page may take to answer at all. */
const MAX_SILENCE = 5000;
/** Ms that the browser may take to start, or to open a tab. Then it is killed. */
const STARTING = 60_000;
/** Ms that it may take to close, or to close a tab. Then it is killed. */
const CLOSING = 10_000;
/** Ms between two savings of the cookies while a person logs in. */
const COOKIE_INTERVAL = 500;

/**
 * @typedef {import('puppeteer-core').Browser} Browser
 * @typedef {import('puppeteer-core').Page} Page
 */

/** @param {string} text */
function originOf(text) {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null';
  return origin === 'null' ? undefined : origin;
}

export class PageWay {
  #url;
  #values;
  #claim;
  /** Allowed origins of the app: the address's own, and those named by the user. */
  #origins;
  /** @type {Promise<Browser> | undefined} */
  #launch;
  /** @type {Browser | undefined} */
  #browser;
  /** @type {Page | undefined} */
  #page;
  /**
   * With the browser that this has started.
   * @type {import('puppeteer-core').CDPSession | undefined}
   */
  #session;
  /** Kills that browser and all its processes. */
  #killer = new AbortController();
  /** Deleted with the browser. @type {string | undefined} */
  #folder;
  #closed = false;

  /**
   * @param {URL} url
   * @param {import('./commands.js').Values} values of the options
   * @param {(download: import('./unattended.js').Download) => boolean} [claim] called with the
   *   page's downloads; returns whether a call takes it
   */
  constructor(url, values, claim = () => false) {
    this.#url = url;
    this.#values = values;
    this.#claim = claim;
    const others = (values.origin ?? []).map((text) => {
      const origin = originOf(text);
      if (origin) return origin;
      throw usageError(`--origin ${text} is not an origin: give https://app.example`);
    });
    this.#origins = new Set([url.origin, ...others]);
  }

  /** The folder of the app's profile, if it is kept. */
  get profile() {
    const { cdp, temporary, profile } = this.#values;
    return cdp || temporary ? undefined : (profile ?? profileOf(this.#url.origin));
  }

  /** True if the browser is this gateway's, and no person sees it. */
  get #isUnattended() {
    return !this.#values.cdp && !this.#values.headed;
  }

  /**
   * Begins a session with the app, in the page as it is or in a new one.
   * @param {NonNullable<Parameters<typeof connectPage>[1]>} options
   * @returns {Promise<import('@abp-bridge/automation').Client>}
   * @throws {UserError} if there is no browser, no page, or another page than was named
   */
  async connect(options) {
    for (let isFirst = true; ; isFirst = false) {
      const page = await this.#openPage(options.timeout);
      let failure;
      const client = await connectPage(page, { ...options, webmcp: true }).catch(
        (error) => void (failure = error),
      );
      // A session ends with its document, so the page's present address is that of the session.
      const problem = this.#problemWith(page);
      if (client && !problem) return client;
      client?.close();
      // The page was on its way elsewhere, or was about to close: a new page is at the right
      // address.
      const isLost = problem || page.isClosed() || page !== this.#page;
      if (isFirst && isLost) continue;
      // A page that hangs would hang the next time, too.
      if (failure) await this.responds();
      throw problem ?? failure;
    }
  }

  /**
   * True if the page still responds. A page that does not is closed, and the next call opens
   * another.
   */
  async responds() {
    const page = this.#page;
    if (!page || page.isClosed()) return true;
    // If it is on its way elsewhere, or closed, its session reports that.
    const asked = page.evaluate('1').then(Boolean, () => true);
    if (await within(MAX_SILENCE, asked).catch(() => false)) return true;
    log('the page does not answer and is closed');
    void this.#leave(page);
    return false;
  }

  /**
   * Resolves when the page's new downloads are known, and its cookies are saved.
   */
  async settle() {
    const asked = Promise.all([
      this.#isUnattended && this.#page?.evaluate('1'),
      this.#saveCookies(),
    ]);
    await within(MAX_SILENCE, asked).catch(() => {});
  }

  /**
   * Kills the browser if it does not answer.
   * @param {number} limit ms
   */
  async probe(limit) {
    if (this.#browser) await this.#inTime(this.#browser.version(), limit).catch(() => {});
  }

  /** Shows the page to a person, wherever it goes, until its window is closed. */
  async show() {
    const browser = await this.#openBrowser(true);
    const closed = new Promise((resolve) => browser.once('disconnected', resolve));
    const [page = await browser.newPage()] = await browser.pages();
    // A page that cannot be opened shows the reason itself.
    await page.goto(this.#url.href, { waitUntil: 'domcontentloaded' }).catch(() => {});
    // Once the last window is closed it is too late.
    const saving = setInterval(() => void this.#saveCookies(), COOKIE_INTERVAL);
    await closed;
    clearInterval(saving);
  }

  // --- The page ----------------------------------------------------------------------------------

  /**
   * Opens the page without looking for an app.
   * @param {number} [timeout]
   */
  async #openPage(timeout) {
    const before = this.#browser?.connected && this.#page;
    if (before && !before.isClosed() && !this.#problemWith(before)) return before;
    if (before) await this.#leave(before);
    const browser = await this.#openBrowser();
    const page = (this.#page = await this.#inTime(browser.newPage(), STARTING));
    // A page that has crashed does not answer any more.
    page.on('error', () => void this.#leave(page));
    // Otherwise another tab in front of it would stop its animations.
    await this.#inTime(page.emulateFocusedPage(true), STARTING);
    if (this.#values.cdp && !this.#values.headed)
      page.on('dialog', (dialog) => {
        log(`the page's ${dialog.type()} was dismissed: ${lineOf(dialog.message())}`);
        dialog.dismiss().catch(() => {});
      });
    try {
      await this.#visit(page, timeout);
    } catch (error) {
      await this.#leave(page);
      throw error;
    }
    return page;
  }

  /** @param {Page} page */
  async #leave(page) {
    if (this.#page === page) this.#page = undefined;
    await this.#inTime(page.close(), CLOSING).catch(() => {});
  }

  /**
   * The problem, if the page is not where it was sent, according to the browser.
   * @param {Page} page
   */
  #problemWith(page) {
    const origin = originOf(page.url());
    if (origin && this.#origins.has(origin)) return undefined;
    const where = origin ?? lineOf(page.url());
    return new UserError(
      `The page navigated to ${where}, which is not allowed. If it asks for a login, run: abp-bridge-gateway login ${this.#url.href}. If the app lives there, add --origin ${where}`,
    );
  }

  /**
   * @param {Page} page
   * @param {number} [timeout]
   * @throws {UserError} if the server sends something else than the app: an error, another origin,
   *   or a login form at another path
   */
  async #visit(page, timeout) {
    const { href, pathname } = this.#url;
    const login = `run: abp-bridge-gateway login ${href}`;
    const response = await page
      .goto(href, { waitUntil: 'domcontentloaded', timeout })
      .catch(({ message }) => {
        throw new UserError(`${href} cannot be opened: ${lineOf(message)}`);
      });
    const status = response?.status() ?? 0;
    if (status >= 400) {
      const hint = status === 401 || status === 403 ? `. If it asks for a login, ${login}` : '';
      throw new UserError(`${href} answered with status ${status}${hint}`);
    }
    const problem = this.#problemWith(page);
    if (problem) throw problem;
    const where = new URL(page.url()).pathname;
    const isLogin =
      where !== pathname &&
      (await within(MAX_SILENCE, page.$('input[type=password]')).catch(() => null));
    if (isLogin) throw new UserError(`${href} leads to a login at ${lineOf(where)}: ${login}`);
  }

  // --- The browser -------------------------------------------------------------------------------

  /** @param {boolean} [isForPerson] whether only a person uses it */
  async #openBrowser(isForPerson) {
    if (this.#browser?.connected) return this.#browser;
    this.#page = undefined;
    const { cdp } = this.#values;
    this.#launch ??= (cdp ? this.#attach(cdp) : this.#start(isForPerson)).finally(
      () => (this.#launch = undefined),
    );
    this.#browser = await this.#inTime(this.#launch, STARTING);
    if (!this.#closed) return this.#browser;
    await this.release();
    throw new UserError('The gateway is closing');
  }

  /** @param {string} cdp address of a running browser */
  async #attach(cdp) {
    const { default: puppeteer } = await import('puppeteer-core');
    const where = /^wss?:/.test(cdp) ? { browserWSEndpoint: cdp } : { browserURL: cdp };
    return puppeteer.connect({ ...where, defaultViewport: null }).catch(({ message }) => {
      throw new UserError(
        `No browser answers at ${cdp}: ${lineOf(message)}. Start one with --remote-debugging-port=9222`,
      );
    });
  }

  /**
   * @param {boolean} [isForPerson]
   * @returns {Promise<Browser>}
   */
  async #start(isForPerson) {
    const { headed = false, browser: named, 'browser-arg': args = [] } = this.#values;
    const { signal } = (this.#killer = new AbortController());
    const { default: puppeteer } = await import('puppeteer-core');
    const executablePath = findBrowser(named);
    await this.#removeFolder();
    const folder = (this.#folder = await makeTemporaryFolder());
    const userDataDir = this.profile ?? join(folder, 'profile');
    await claimProfile(userDataDir);
    try {
      const browser = await puppeteer.launch({
        executablePath,
        userDataDir,
        headless: !headed,
        // No other program can attach, and the browser ends with this process in every case.
        pipe: true,
        signal,
        // A person who logs in should see no notice of a test, and may save a password.
        ...(isForPerson && { ignoreDefaultArgs: ['--enable-automation'] }),
        handleSIGINT: false,
        handleSIGTERM: false,
        handleSIGHUP: false,
        ...(headed && { defaultViewport: null }),
        args: [...browserFlags(headed), ...args],
      });
      const session = (this.#session = await browser.target().createCDPSession());
      if (this.profile) await restoreSessionCookies(session, this.profile);
      if (this.#isUnattended) {
        attendWindows(browser, session);
        await attendDownloads(browser, session, join(folder, 'downloads'), this.#claim);
      }
      return browser;
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (signal.aborted) throw new UserError('The gateway is closing');
      this.#killer.abort();
      if (/already running|ProcessSingleton|existing browser/i.test(message))
        throw profileInUse(userDataDir);
      throw new UserError(
        `${executablePath} does not start: ${lineOf(message)}. Try: abp-bridge-gateway doctor`,
      );
    }
  }

  /**
   * A browser that has ended returns none any more.
   * @param {Browser} [browser]
   */
  async #saveCookies(browser = this.#browser) {
    const session = this.#session;
    const { cookies } = (await session?.send('Storage.getCookies').catch(() => {})) ?? {};
    // When its last window is closed, it forgets them, and ends.
    const isOpen = browser?.targets().some((target) => target.type() === 'page');
    if (!cookies || !isOpen || !this.profile) return;
    try {
      saveSessionCookies(cookies, this.profile);
    } catch (error) {
      log(`the login cannot be kept: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** The next start removes files that cannot be removed now. */
  async #removeFolder() {
    if (this.#folder) await removeFolder(this.#folder).catch(() => {});
    this.#folder = undefined;
  }

  /** Ends everything that this has started. */
  async close() {
    this.#closed = true;
    await this.release();
  }

  /** The same, until it is needed again. */
  async release() {
    const browser = this.#browser;
    this.#browser = undefined;
    // A browser that is still starting has nothing to lose.
    if (!browser?.connected) this.#killer.abort();
    else await this.#inTime(this.#end(browser), CLOSING).catch(() => {});
    if (this.#launch) await within(CLOSING, this.#launch).catch(() => {});
    await this.#removeFolder();
  }

  /** @param {Browser} browser */
  async #end(browser) {
    if (this.#values.cdp) {
      await this.#page?.close().catch(() => {});
      return browser.disconnect();
    }
    await this.#saveCookies(browser);
    await browser.close();
  }

  /**
   * Waits for the browser. If it does not answer, it is killed with all its processes, or
   * disconnected if it is not ours.
   * @template T
   * @param {Promise<T>} promise
   * @param {number} limit ms
   */
  async #inTime(promise, limit) {
    try {
      return await within(limit, promise);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      const what = `The browser has not answered for ${limit / 1000} s`;
      log(`${what}, and is ${this.#values.cdp ? 'left' : 'killed'}`);
      // Pending requests then fail, too.
      if (this.#values.cdp) await this.#browser?.disconnect();
      else this.#killer.abort();
      throw new UserError(what);
    }
  }
}

/** @param {boolean} headed */
const browserFlags = (headed) => [
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  // A page without `window.abp` may have tools.
  '--disable-component-update',
  '--enable-features=WebMCP',
  ...(headed ? [] : ['--disable-gpu']),
  // Chromium refuses to start as root with its sandbox.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];
