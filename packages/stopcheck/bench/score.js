/**
 * Scores implementations of several protocols with stopcheck, and writes the table of
 * docs/stopcheck/scores.md. Arguments: names of rows, or of packages, that are made anew; by
 * default all. With `--kept`, rows are written from the reports of earlier runs.
 *
 * CHROMIUM names the browser.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pressesOf } from '../src/presses.js';
import { writeTable } from './score-table.js';
import { SCORED } from './scored.js';

/** @typedef {import('./scored.js').Scored} Scored */

const pathOf = (/** @type {string} */ relative) =>
  fileURLToPath(new URL(relative, import.meta.url)).replace(/\/$/, '');
const REPOSITORY = pathOf('../../../');
const SCORES = join(REPOSITORY, 'build/scored');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** By which the processes of a row are found. */
const MARK = 'STOPCHECK_SCORE';
/** Ms in which a server must listen. */
const STARTING = 60_000;
/** Ms in which a row must be made. */
const LONGEST = 600_000;

/** A file's or folder's name. */
const slug = (/** @type {string} */ name) =>
  name
    .replaceAll(/[^\w.]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .toLowerCase();

/** @param {Scored} row */
const packageOf = (row) => row.package ?? row.name;

/** @param {Scored} row */
const folderOf = (row) => join(SCORES, slug(packageOf(row) || row.name));

/**
 * Installs what a row needs, unless it is there.
 * @param {Scored} row
 */
function install(row) {
  const folder = folderOf(row);
  const name = packageOf(row);
  const dependencies = { ...(name && { [name]: row.version }), ...row.packages };
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies });
  const done = join(folder, 'node_modules/.installed.json');
  const isDone = existsSync(done) && readFileSync(done, 'utf8') === manifest;
  mkdirSync(join(folder, 'home'), { recursive: true });
  if (!isDone && Object.keys(dependencies).length) {
    rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
    rmSync(join(folder, 'package-lock.json'), { force: true });
    writeFileSync(join(folder, 'package.json'), manifest);
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: folder,
      env: {
        ...process.env,
        HOME: join(folder, 'home'),
        npm_config_cache: process.env.npm_config_cache ?? join(SCORES, '.npm'),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    writeFileSync(done, manifest);
  }
  if (row.server) cpSync(pathOf(`servers/${row.server}`), join(folder, row.server));
  for (const [path, from] of Object.entries(row.copies ?? {}))
    cpSync(join(REPOSITORY, from), join(folder, path));
}

/** @returns {Promise<number>} */
function freePort() {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** @param {number} port */
const listens = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/**
 * Starts a server, and waits for its port.
 * @param {string[]} command
 * @param {number} port
 * @param {import('node:child_process').SpawnOptions} options
 */
async function serve([command, ...args], port, options) {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  child.stderr?.on('data', (data) => (text = `${text}${data}`.slice(-300)));
  let gone;
  child.once('error', (error) => (gone = error.message));
  child.once('exit', () => (gone ??= text));
  for (const last = performance.now() + STARTING; performance.now() < last; await sleep(100)) {
    if (await listens(port)) return;
    if (gone !== undefined) throw new Error(`The server ended: ${gone}`);
  }
  throw new Error(`The server does not listen: ${text}`);
}

/**
 * Runs stopcheck.
 * @param {string[]} args
 * @param {string} path of the file that gets its report
 * @param {import('node:child_process').SpawnOptions} options
 * @returns {Promise<void>}
 */
function stopcheck(args, path, options) {
  const file = openSync(path, 'w');
  const child = spawn(process.execPath, [pathOf('../src/main.js'), ...args], {
    ...options,
    stdio: ['ignore', file, 'pipe'],
    timeout: LONGEST,
  });
  closeSync(file);
  let text = '';
  child.stderr?.on('data', (data) => (text += data));
  return new Promise((resolve, reject) => {
    // Programs that it has left behind may hold its stderr: that never closes then.
    child.once('exit', (code, signal) => {
      if (code === 0 || code === 1) resolve();
      else setImmediate(() => reject(new Error(signal ? 'It took too long' : text.trim())));
    });
  });
}

/**
 * Ends all processes that were started with a mark (Linux).
 * @param {string} mark
 */
function endAll(mark) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      if (environment.includes(`${MARK}=${mark}`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended, or is not ours.
    }
  }
}

/**
 * Makes the report of a row.
 * @param {Scored} row
 */
async function score(row) {
  install(row);
  const folder = folderOf(row);
  rmSync(reportPath(row), { force: true });
  const mark = randomUUID();
  const [port, model] = [await freePort(), await freePort()];
  const known = {
    port,
    model,
    chromium: CHROMIUM,
    bench: pathOf('.'),
    repository: REPOSITORY,
  };
  const fill = (/** @type {string} */ text) =>
    text.replaceAll(/\{(port|model|chromium|bench|repository)\}/g, (_, name) =>
      String(known[/** @type {'port'} */ (name)]),
    );
  const environment = Object.entries(row.env ?? {}).map(([name, text]) => [name, fill(text)]);
  const options = {
    cwd: folder,
    env: {
      ...process.env,
      HOME: join(folder, 'home'),
      [MARK]: mark,
      ...Object.fromEntries(environment),
    },
  };
  try {
    if (JSON.stringify(row).includes('{model}'))
      await serve(['node', pathOf('fake-model.mjs'), String(model)], model, options);
    for (const [path, text] of Object.entries(row.files ?? {})) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), fill(text));
    }
    if (row.serve) await serve(row.serve.map(fill), port, options);
    const [, ...all] = pressesOf([]);
    const presses = all.filter(({ name }) => !row.without?.[name]);
    const isPage = row.protocol === 'abp' || row.protocol === 'webmcp';
    const html = join(folder, `${slug(row.name)}.html`);
    await stopcheck(
      [
        row.protocol,
        ...['--json', '--html', html, '--within', '500'],
        ...(row.without ? ['--press', presses.map(({ name }) => name).join()] : []),
        ...(row.tool ? ['--tool', row.tool, '--args', fill(JSON.stringify(row.args))] : []),
        ...(row.text ? ['--text', fill(row.text)] : []),
        ...(isPage ? ['--browser', CHROMIUM] : []),
        // Chromium has no sandbox for this user.
        ...(isPage && process.getuid?.() === 0 ? ['--browser-arg=--no-sandbox'] : []),
        ...(row.options ?? []),
        ...(row.address ? [fill(row.address)] : ['--', ...(row.command ?? []).map(fill)]),
      ],
      reportPath(row),
      options,
    );
  } catch (error) {
    rmSync(reportPath(row), { force: true });
    throw error;
  } finally {
    endAll(mark);
  }
}

/** @param {Scored} row */
const reportPath = (row) => join(folderOf(row), `${slug(row.name)}.json`);

const isKept = process.argv.includes('--kept');
const names = process.argv.slice(2).filter((name) => name !== '--kept');
const unknown = names.find((name) => !SCORED.some((row) => [row.name, row.package].includes(name)));
if (unknown) throw new Error(`${unknown} is not in scored.js`);
const rows = SCORED.filter(
  (row) =>
    (!names.length || names.includes(row.name) || names.includes(String(row.package))) &&
    (!isKept || existsSync(reportPath(row))),
);
for (const row of rows) {
  const began = performance.now();
  let result;
  try {
    if (!isKept) await score(row);
    result = { report: JSON.parse(readFileSync(reportPath(row), 'utf8')) };
  } catch (error) {
    const { message, stderr } = /** @type {any} */ (error);
    result = { error: String(stderr ?? message) };
  }
  await writeTable(row, result, { chromium: CHROMIUM });
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(`${row.name}: ${result.error ?? 'scored'} (${seconds} s)`);
}
