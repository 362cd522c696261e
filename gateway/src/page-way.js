/** The way to an app in a page: a browser of the gateway's own, or one that runs already. */
import { connectPage } from 'abp-bridge/automation';
import { UserError } from './errors.js';
import { findBrowser } from './find-browser.js';
import { claimProfile, profileInUse, profileOf } from './profile.js';
import { lineOf } from './texts.js';

/** How long a page may take to load, and its app to answer, in ms. */
const DEFAULT_TIMEOUT = 30_000;

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
  #closed = false;

  /**
   * @param {URL} url
   * @param {PageOptions} [options]
   */
  constructor(url, options = {}) {
    this.#url = url;
    this.#options = options;
    this.#log = options.log ?? (() => {});
    this.#origins = new Set([url.origin]);
    for (const text of options.origins ?? []) {
      const origin = originOf(text);
      if (!origin) throw new UserError(`--origin ${text} is no origin: say https://app.example`, 2);
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
   * Shows the page to a person, wherever it goes, until its window is closed.
   * @returns {Promise<void>}
   */
  async show() {
    const browser = await this.#openBrowser();
    const closed = new Promise((resolve) => browser.once('disconnected', resolve));
    const [page = await browser.newPage()] = await browser.pages();
    // A page that cannot be opened says so itself.
    await page.goto(this.#url.href, { waitUntil: 'domcontentloaded' }).catch(() => {});
    await closed;
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
    if (!this.#options.headed) opened.on('dialog', (dialog) => this.#dismiss(dialog));
    const { timeout = DEFAULT_TIMEOUT } = this.#options;
    try {
      await opened.goto(this.#url.href, { waitUntil: 'domcontentloaded', timeout });
    } catch (error) {
      this.#page = undefined;
      await opened.close().catch(() => {});
      const { message } = /** @type {Error} */ (error);
      throw new UserError(`${this.#url.href} cannot be opened: ${lineOf(message)}`);
    }
    const problem = this.#problemWith(opened);
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
      `The page went to ${where}, which was not named. If it asks for a login, run: abp-bridge-gateway login ${this.#url.href}. If the app lives there, add --origin ${where}`,
    );
  }

  /** @param {import('puppeteer-core').Dialog} dialog */
  #dismiss(dialog) {
    this.#log(`the page's ${dialog.type()} was dismissed: ${lineOf(dialog.message())}`);
    dialog.dismiss().catch(() => {});
  }

  async #openBrowser() {
    if (this.#browser?.connected) return this.#browser;
    this.#page = undefined;
    this.#launch ??= this.#startBrowser().finally(() => (this.#launch = undefined));
    const browser = await this.#launch;
    if (this.#closed) {
      await this.#end(browser);
      throw new UserError('The gateway is closing');
    }
    this.#browser = browser;
    return browser;
  }

  /** @returns {Promise<import('puppeteer-core').Browser>} */
  async #startBrowser() {
    const { default: puppeteer } = await import('puppeteer-core');
    const { cdp, headed, temporary, browserArgs = [] } = this.#options;
    if (cdp) {
      const where = /^wss?:/.test(cdp) ? { browserWSEndpoint: cdp } : { browserURL: cdp };
      return puppeteer.connect({ ...where, defaultViewport: null }).catch((error) => {
        throw new UserError(
          `No browser answers at ${cdp}: ${lineOf(error.message)}. Start one with --remote-debugging-port=9222`,
        );
      });
    }
    const executablePath = findBrowser(this.#options.browser);
    const userDataDir = temporary
      ? undefined
      : (this.#options.profile ?? profileOf(this.#url.origin));
    if (userDataDir) await claimProfile(userDataDir);
    try {
      return await puppeteer.launch({
        executablePath,
        userDataDir,
        headless: !headed,
        // Nobody else can attach, and the browser ends with this process, however that ends.
        pipe: true,
        handleSIGINT: false,
        handleSIGTERM: false,
        handleSIGHUP: false,
        ...(headed && { defaultViewport: null }),
        args: [...browserFlags(Boolean(headed)), ...browserArgs],
      });
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (userDataDir && /already running|ProcessSingleton|existing browser/i.test(message)) {
        throw profileInUse(userDataDir);
      }
      throw new UserError(
        `${executablePath} does not start: ${lineOf(message)}. Try: abp-bridge-gateway doctor`,
      );
    }
  }

  /** @param {import('puppeteer-core').Browser} browser */
  async #end(browser) {
    if (this.#options.cdp) {
      await this.#page?.close().catch(() => {});
      await browser.disconnect();
    } else await browser.close();
  }

  /** Ends what this began, and nothing else. */
  async close() {
    this.#closed = true;
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
