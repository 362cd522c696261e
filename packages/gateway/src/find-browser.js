/** Finds an installed browser: the driver downloads none. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { UserError } from './errors.js';

/** Programs on the path, in the order of the search. */
const PROGRAMS = [
  'google-chrome-stable',
  'google-chrome',
  'chromium',
  'chromium-browser',
  'microsoft-edge-stable',
  'microsoft-edge',
  'brave-browser-stable',
  'brave-browser',
  'brave',
];
const APPLICATIONS = ['Google Chrome', 'Chromium', 'Microsoft Edge', 'Brave Browser'];
const WINDOWS = [
  'Google\\Chrome\\Application\\chrome.exe',
  'Chromium\\Application\\chrome.exe',
  'Microsoft\\Edge\\Application\\msedge.exe',
  'BraveSoftware\\Brave-Browser\\Application\\brave.exe',
];

/**
 * Possible paths of browsers on this kind of system, the preferred ones first.
 * @param {NodeJS.Platform} platform
 * @param {NodeJS.ProcessEnv} env
 */
export function browserPaths(platform, env) {
  if (platform === 'darwin') {
    const roots = ['/Applications', join(env.HOME ?? '', 'Applications')];
    return APPLICATIONS.flatMap((name) =>
      roots.map((root) => `${root}/${name}.app/Contents/MacOS/${name}`),
    );
  }
  if (platform === 'win32') {
    const roots = [env.PROGRAMFILES, env['PROGRAMFILES(X86)'], env.LOCALAPPDATA].filter(Boolean);
    return WINDOWS.flatMap((name) => roots.map((root) => `${root}\\${name}`));
  }
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean);
  return PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name)));
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The command that installs a browser here. */
export const BROWSER_MEND =
  /** @type {Partial<Record<NodeJS.Platform, string>>} */ ({
    darwin: 'brew install --cask google-chrome',
    win32: 'winget install Google.Chrome',
  })[process.platform] ?? 'sudo apt install chromium';

/**
 * The path of a browser.
 * @param {string} [named] the user's choice
 * @throws {UserError} when there is none
 */
export function findBrowser(named) {
  const wanted = named ?? process.env.CHROME_PATH;
  if (wanted && !isProgram(wanted))
    throw new UserError(`There is no browser at ${wanted}. Name another with --browser PATH`);
  const found = wanted || browserPaths(process.platform, process.env).find(isProgram);
  if (found) return found;
  throw new UserError(
    `No Chrome, Chromium, Edge or Brave was found. Install one (${BROWSER_MEND}), name one with --browser PATH, or attach to a running one with --cdp`,
  );
}
