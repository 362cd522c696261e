/** The way to an app in a page: a browser of the gateway's own, or one that runs already. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectPage } from 'abp-bridge/automation';
import { UserError } from './errors.js';
import { attendDownloads, attendWindows } from './unattended.js';
import { findBrowser } from './find-browser.js';
import { claimProfile, profileInUse, profileOf } from './profile.js';
import { makeTemporaryFolder, removeFolder } from './temporary-folder.js';
import { restoreSessionCookies, saveSessionCookies } from './session-cookies.js';
import { lineOf } from './texts.js';

/** How long a page may take to answer at all when a cancel has come to nothing, in ms. */
const MAX_SILENCE = 5000;
/** How often the cookies are saved while a person logs in, in ms. */
const COOKIE_INTERVAL = 500;
/** How long a page may take to load, and its app to answer, in ms. */
export const DEFAULT_TIMEOUT = 30_000;

/**
 * @typedef {object} PageOptions
 * @property {string[]} [origins] origins beside the address's own in which the app may live
 * @property {string} [browser] path of the browser
 * @property {boolean} [headed] shows the window
 * @property {string} [profile] folder of the profile, in place of the app's own
 * @property {boolean} [temporary] takes a profile that is thrown away
 * @property {string} [cdp] address of a browser that runs: `http://127.0.0.1:9222`, or a `ws:` address
 * @property {string[]} [browserArgs]
 * @property {number} [timeout] ms for the page to load, and again for its app to answer (30000)
 * @property {(line: string) => void} [log]
 */

/** @param {string} text */
function originOf(text) {
  try {
    const { origin } = new URL(text);
    return origin === 'null' ? undefined : origin;
  } catch {
    return undefined;
  }
}

export class PageWay {
  #url;
  #origins;
  #options;
  #log;
  /** @type {Promise<import('puppeteer-core').Browser> | undefined} */
  #launch;
  /** @type {import('puppeteer-core').Browser | undefined} */
  #browser;
  /** @type {import('puppeteer-core').Page | undefined} */
  #page;
  #claim;
  /** With the browser that this has started. @type {import('puppeteer-core').CDPSession | undefined} */
  #session;
  /** What goes with the browser. @type {string | undefined} */
  #folder;
  #closed = false;

  /**
   * @param {URL} url
   * @param {PageOptions} [options]
   * @param {(download: import('./unattended.js').Download) => boolean} [claim] is shown what the page downloads; says
   *   whether anybody wants it
   */
  constructor(url, options = {}, claim = () => false) {
    this.#url = url;
    this.#options = options;
    this.#claim = claim;
    this.#log = options.log ?? (() => {});
    this.#origins = new Set([url.origin]);
    for (const text of options.origins ?? []) {
      const origin = originOf(text);
      if (!origin)
        throw new UserError(`--origin ${text} is not an origin: give https://app.example`, 2);
      this.#origins.add(origin);
    }
  }

  /**
   * Begins a session with the app, in the page as it is or in a new one.
   * @param {Omit<Parameters<typeof connectPage>[1], 'timeout'>} options
   * @returns {Promise<import('abp-bridge/automation').Client>}
   * @throws {UserError} when there is no browser, no page, or another page than was named
   */
  async connect(options) {
    const { timeout = DEFAULT_TIMEOUT } = this.#options;
    for (let isFirst = true; ; isFirst = false) {
      const page = await this.#openPage();
      // A session ends with its document, so where the page is afterwards is where the session is.
      const [client, error] = await connectPage(page, { ...options, timeout, webmcp: true }).then(
        (connected) => [connected, undefined],
        (reason) => [undefined, reason],
      );
      const problem = this.#problemWith(page);
      if (client && !problem) return client;
      client?.close();
      // It was on its way elsewhere, or was about to be gone: a page of its own is where it was sent.
      const gone = page.isClosed() || page !== this.#page;
      if (!isFirst || !(problem || gone)) throw problem ?? error;
    }
  }

  /**
   * Whether the page still does anything. One that does not is closed, and the next call opens another.
   * @returns {Promise<boolean>}
   */
  async responds() {
    const page = this.#page;
    if (!page || page.isClosed()) return true;
    const asked = page.evaluate('1').then(
      () => true,
      // It is on its way elsewhere, or closed: its session says so.
      () => true,
    );
    const silent = sleep(MAX_SILENCE, false, { ref: false });
    if (await Promise.race([asked, silent])) return true;
    if (this.#page === page) this.#page = undefined;
    this.#log('the page does not answer and is closed');
    void page.close().catch(() => {});
    return false;
  }

  /** The folder of the profile that it takes, if that stays. */
  get profile() {
    const { cdp, temporary, profile } = this.#options;
    return cdp || temporary ? undefined : (profile ?? profileOf(this.#url.origin));
  }

  /** Whether the browser is this gateway's, and nobody sees it. */
  get #isUnattended() {
    return !this.#options.cdp && !this.#options.headed;
  }

  /** Resolves when what the page has begun to download is known. */
  async settle() {
    if (this.#isUnattended) await this.#page?.evaluate('1').catch(() => {});
  }

  /**
   * Shows the page to a person, wherever it goes, until its window is closed.
   * @returns {Promise<void>}
   */
  async show() {
    const browser = await this.#openBrowser(true);
    const closed = new Promise((resolve) => browser.once('disconnected', resolve));
    const [page = await browser.newPage()] = await browser.pages();
    // A page that cannot be opened says so itself.
    await page.goto(this.#url.href, { waitUntil: 'domcontentloaded' }).catch(() => {});
    // Once the last window is closed it is too late.
    const saving = setInterval(() => void this.#saveCookies(), COOKIE_INTERVAL);
    await closed;
    clearInterval(saving);
  }

  /**
   * Opens the page without looking for an app.
   * @returns {Promise<import('puppeteer-core').Page>}
   */
  async #openPage() {
    const browser = await this.#openBrowser();
    let page = this.#page;
    if (page && (page.isClosed() || this.#problemWith(page))) {
      await page.close().catch(() => {});
      page = undefined;
    }
    if (page) return page;
    page = await browser.newPage();
    this.#page = page;
    const opened = page;
    // A page that has crashed answers nothing any more.
    opened.on('error', () => {
      if (this.#page === opened) this.#page = undefined;
      opened.close().catch(() => {});
    });
    // Else another tab in front of it stops its animations.
    await opened.emulateFocusedPage(true);
    if (this.#options.cdp && !this.#options.headed)
      opened.on('dialog', (dialog) => this.#dismiss(dialog));
    const { timeout = DEFAULT_TIMEOUT } = this.#options;
    let status;
    try {
      const response = await opened.goto(this.#url.href, {
        waitUntil: 'domcontentloaded',
        timeout,
      });
      status = response?.status();
    } catch (error) {
      this.#page = undefined;
      await opened.close().catch(() => {});
      const { message } = /** @type {Error} */ (error);
      throw new UserError(`${this.#url.href} cannot be opened: ${lineOf(message)}`);
    }
    const problem = await this.#refusalOf(opened, status);
    if (!problem) return opened;
    this.#page = undefined;
    await opened.close().catch(() => {});
    throw problem;
  }

  /**
   * Whether the page is where it was sent, by the browser's word.
   * @param {import('puppeteer-core').Page} page
   * @returns {UserError | undefined}
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
   * Whether the server gave something else than the app: an error, another origin, or a form for a password elsewhere.
   * @param {import('puppeteer-core').Page} page
   * @param {number | undefined} status
   * @returns {Promise<UserError | undefined>}
   */
  async #refusalOf(page, status) {
    const { href, pathname } = this.#url;
    const login = `run: abp-bridge-gateway login ${href}`;
    if (status && status >= 400) {
      const hint = status === 401 || status === 403 ? `. If it asks for a login, ${login}` : '';
      return new UserError(`${href} answered with status ${status}${hint}`);
    }
    const problem = this.#problemWith(page);
    const where = new URL(page.url()).pathname;
    if (problem || where === pathname) return problem;
    const form = await page.$('input[type=password]').catch(() => null);
    return form
      ? new UserError(`${href} leads to a login at ${lineOf(where)}: ${login}`)
      : undefined;
  }

  /** @param {import('puppeteer-core').Dialog} dialog */
  #dismiss(dialog) {
    this.#log(`the page's ${dialog.type()} was dismissed: ${lineOf(dialog.message())}`);
    dialog.dismiss().catch(() => {});
  }

  /** @param {boolean} [isForPerson] whether nobody else will use it */
  async #openBrowser(isForPerson) {
    if (this.#browser?.connected) return this.#browser;
    this.#page = undefined;
    this.#launch ??= this.#startBrowser(isForPerson).finally(() => (this.#launch = undefined));
    const browser = await this.#launch;
    if (this.#closed) {
      await this.#end(browser);
      throw new UserError('The gateway is closing');
    }
    this.#browser = browser;
    return browser;
  }

  /**
   * @param {boolean} [isForPerson]
   * @returns {Promise<import('puppeteer-core').Browser>}
   */
  async #startBrowser(isForPerson) {
    const { default: puppeteer } = await import('puppeteer-core');
    const { cdp, headed, browserArgs = [] } = this.#options;
    if (cdp) {
      const where = /^wss?:/.test(cdp) ? { browserWSEndpoint: cdp } : { browserURL: cdp };
      return puppeteer.connect({ ...where, defaultViewport: null }).catch((error) => {
        throw new UserError(
          `No browser answers at ${cdp}: ${lineOf(error.message)}. Start one with --remote-debugging-port=9222`,
        );
      });
    }
    const executablePath = findBrowser(this.#options.browser);
    await this.#removeFolder();
    const folder = await makeTemporaryFolder();
    this.#folder = folder;
    const userDataDir = this.profile ?? join(folder, 'profile');
    await claimProfile(userDataDir);
    try {
      const browser = await puppeteer.launch({
        executablePath,
        userDataDir,
        headless: !headed,
        // Nobody else can attach, and the browser ends with this process, however that ends.
        pipe: true,
        // A person who logs in is told of no test, and may save a password.
        ...(isForPerson && { ignoreDefaultArgs: ['--enable-automation'] }),
        handleSIGINT: false,
        handleSIGTERM: false,
        handleSIGHUP: false,
        ...(headed && { defaultViewport: null }),
        args: [...browserFlags(Boolean(headed)), ...browserArgs],
      });
      const session = await browser.target().createCDPSession();
      this.#session = session;
      if (this.profile) await restoreSessionCookies(session, this.profile);
      if (this.#isUnattended) await this.#attend(browser, session, folder);
      return browser;
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (/already running|ProcessSingleton|existing browser/i.test(message)) {
        throw profileInUse(userDataDir);
      }
      throw new UserError(
        `${executablePath} does not start: ${lineOf(message)}. Try: abp-bridge-gateway doctor`,
      );
    }
  }

  /**
   * Does what a person who sees the browser would do.
   * @param {import('puppeteer-core').Browser} browser
   * @param {import('puppeteer-core').CDPSession} session with it
   * @param {string} folder
   */
  async #attend(browser, session, folder) {
    const connection = session.connection();
    if (connection) attendWindows(browser, connection, this.#log);
    const downloads = join(folder, 'downloads');
    await attendDownloads(session, { folder: downloads, claim: this.#claim, log: this.#log });
  }

  /** @param {import('puppeteer-core').Browser} browser */
  async #end(browser) {
    if (this.#options.cdp) {
      await this.#page?.close().catch(() => {});
      await browser.disconnect();
      return;
    }
    await this.#saveCookies();
    await browser.close();
    await this.#removeFolder();
  }

  /** A browser that has ended tells nothing any more. */
  async #saveCookies() {
    if (this.#session && this.profile) {
      await saveSessionCookies(this.#session, this.profile).catch(() => {});
    }
  }

  /** Another start removes what cannot be removed now. */
  async #removeFolder() {
    if (this.#folder) await removeFolder(this.#folder).catch(() => {});
    this.#folder = undefined;
  }

  /** Ends what this began, and nothing else. */
  async close() {
    this.#closed = true;
    await this.release();
  }

  /** The same, until there is need again. */
  async release() {
    const browser = this.#browser ?? (await this.#launch?.catch(() => undefined));
    this.#browser = undefined;
    if (browser) await this.#end(browser).catch(() => {});
  }

  /** Ends the browser without asking it. */
  kill() {
    this.#closed = true;
    if (!this.#options.cdp) this.#browser?.process()?.kill('SIGKILL');
  }
}

/** @param {boolean} headed */
function browserFlags(headed) {
  const flags = ['--no-first-run', '--disable-sync', '--disable-background-networking'];
  flags.push('--disable-component-update');
  // A page without `window.abp` may have tools.
  flags.push('--enable-features=WebMCP');
  if (!headed) flags.push('--disable-gpu');
  // Chromium refuses to start as root with its sandbox.
  if (process.getuid?.() === 0) flags.push('--no-sandbox');
  return flags;
}
