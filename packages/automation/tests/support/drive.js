/**
 * Chromium driven by Puppeteer and by Playwright, pages with an app (tests/browser/pages/own.html),
 * and agents of them.
 */
import { after, afterEach, before } from 'node:test';
import puppeteer from 'puppeteer-core';
import { connectPage } from '../../src/index.js';
import { LONG, launch, patient, serve } from '../../../../tests/support/browser.js';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
];
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** The differences between the two libraries, in these tests as in the transport. */
export const LIBRARIES = {
  puppeteer: {
    launch: async (more) =>
      patient(
        await puppeteer.launch({
          executablePath,
          timeout: LONG,
          protocolTimeout: 2 * LONG,
          args: [...ARGS, '--site-per-process'],
          ...more,
        }),
      ),
    devtools: (page) => page.createCDPSession(),
    back: (page) => page.goBack({ waitUntil: 'domcontentloaded' }),
    goto: (page, url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
  },
  playwright: {
    launch: () => launch(),
    devtools: (page) => page.context().newCDPSession(page),
    // A document that was kept does not load again.
    back: (page) => page.goBack({ waitUntil: 'commit' }),
    goto: (page, url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
  },
};
const agent = { name: 'test', version: '1' };

/**
 * The data of an answer: our app returns it alone, the plain one returns the response.
 */
export const answerIn = ({ data }) => data.data ?? data;

/**
 * Starts a browser and a site for the tests around it.
 * @param {any} library of LIBRARIES
 */
export function drive(library) {
  /** @type {{ browser: any, page: any, port: number }} */
  const driven = { browser: undefined, page: undefined, port: 0 };
  const clients = [];
  let server;
  before(async () => {
    server = await serve();
    driven.port = server.port;
    driven.browser = await library.launch();
    driven.page = await driven.browser.newPage();
  });
  after(async () => {
    await driven.browser.close();
    server.close();
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });

  /** The address of a page with an app. */
  const address = (options = {}, host = 'localhost') =>
    `http://${host}:${driven.port}/tests/browser/pages/own.html?${encodeURIComponent(JSON.stringify(options))}`;
  const goto = (options, on = driven.page) => library.goto(on, address(options));
  async function connect(options = {}, target = driven.page) {
    const client = await connectPage(target, { agent, timeout: LONG, ...options });
    clients.push(client);
    return client;
  }
  /** A page with an app, and a client of it. */
  async function open(app, options) {
    await goto(app);
    return connect(options);
  }
  /** @param {(...args: any[]) => boolean} condition in the page */
  const until = (condition, on = driven.page) => on.waitForFunction(condition, { polling: 20 });
  return { driven, address, goto, connect, open, until };
}
