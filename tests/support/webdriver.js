/**
 * Firefox and WebKit, driven by WebDriver, in the words of Playwright as far as our tests use them:
 * a page has `goto`, `evaluate`, `waitForFunction` and `frames()`. No npm package drives both
 * without a network.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const soon = (ms = 20) => new Promise((resolve) => setTimeout(resolve, ms));

function freePort() {
  const server = createServer();
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    }),
  );
}

/** A process and all that it starts; `stop` ends just these. */
function start(command, args, env) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => (output = (output + data).slice(-5000)));
  }
  const gone = new Promise((resolve) => child.on('exit', resolve).on('error', resolve));
  const kill = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It has ended by itself.
    }
  };
  process.once('exit', () => kill('SIGKILL'));
  return {
    pid: child.pid,
    gone: gone.then((code) => Promise.reject(new Error(`${command} ended (${code}): ${output}`))),
    async stop() {
      kill('SIGTERM');
      await Promise.race([gone, soon(3000)]);
      kill('SIGKILL');
    },
  };
}

/** Tries until it works, or the process has ended. */
async function retry(action, { gone }) {
  const ended = gone.catch((error) => Promise.reject(error));
  ended.catch(() => {});
  for (;;) {
    try {
      return await Promise.race([action(), ended]);
    } catch (error) {
      if (/ended/.test(error.message)) throw error;
      await Promise.race([soon(50), ended]);
    }
  }
}

const failed = ({ error, message }) => Object.assign(new Error(message), { code: error });

/**
 * WebDriver over HTTP.
 * @returns a function that sends a command
 */
async function webkit() {
  const port = await freePort();
  const libraries = '/usr/lib/x86_64-linux-gnu';
  const binary = readdirSync(libraries)
    .filter((name) => name.startsWith('webkit2gtk-'))
    .map((name) => join(libraries, name, 'MiniBrowser'))
    .find(existsSync);
  const screen = ['-a', '-s', '-screen 0 1280x1024x24 -nolisten tcp'];
  const child = start('xvfb-run', [...screen, 'WebKitWebDriver', `--port=${port}`], {
    LIBGL_ALWAYS_SOFTWARE: '1',
    GDK_BACKEND: 'x11',
    JSC_useSharedArrayBuffer: '1',
    NO_AT_BRIDGE: '1',
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
  });
  let session = '';
  const send = async (path, body = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${session}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const { value } = await response.json();
    if (value?.error) throw failed(value);
    return value;
  };
  await retry(() => send('/status', null), child);
  const options = { binary, args: ['--automation'] };
  const { sessionId } = await send('/session', {
    capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } },
  });
  session = `/session/${sessionId}`;
  return {
    go: (url) => send('/url', { url }),
    back: () => send('/back'),
    execute: (script, args) => send('/execute/async', { script, args }),
    frame: (id) => send('/frame', { id }),
    timeouts: (values) => send('/timeouts', values),
    stop: () => child.stop(),
  };
}

const FIREFOX = {
  'app.update.disabledForTesting': true,
  'datareporting.policy.dataSubmissionEnabled': false,
  'toolkit.telemetry.reportingpolicy.firstRun': false,
  'browser.shell.checkDefaultBrowser': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'extensions.getAddons.cache.enabled': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'app.normandy.enabled': false,
};

/** The same commands as Marionette has them: JSON with its length in front, over TCP. */
async function firefox() {
  const port = await freePort();
  const profile = mkdtempSync(join(tmpdir(), 'firefox-'));
  const prefs = Object.entries({ ...FIREFOX, 'marionette.port': port });
  writeFileSync(
    join(profile, 'user.js'),
    prefs.map((pref) => `user_pref(${pref.map((part) => JSON.stringify(part))});\n`).join(''),
  );
  const child = start(
    'firefox-esr',
    ['--headless', '--no-remote', '--marionette', '--remote-allow-system-access'].concat(
      '--profile',
      profile,
    ),
    { HOME: profile, TMPDIR: profile, MOZ_HEADLESS: '1' },
  );
  const socket = await retry(
    () =>
      new Promise((resolve, reject) => {
        const attempt = connect(port, '127.0.0.1', () => resolve(attempt));
        attempt.once('error', reject);
      }),
    child,
  );
  const waiting = new Map();
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('Firefox has ended'));
  });
  let buffer = Buffer.alloc(0);
  const hello = new Promise((resolve) => waiting.set('hello', { resolve, reject() {} }));
  socket.on('data', (data) => {
    buffer = Buffer.concat([buffer, data]);
    for (;;) {
      const colon = buffer.indexOf(':');
      const end = colon + 1 + Number(buffer.subarray(0, Math.max(colon, 0)));
      if (colon < 0 || buffer.length < end) return;
      const message = JSON.parse(buffer.subarray(colon + 1, end).toString());
      buffer = buffer.subarray(end);
      const [, id, error, value] = Array.isArray(message) ? message : [0, 'hello'];
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(failed(error));
      else resolve(value);
    }
  });
  let next = 0;
  const send = (name, params) => {
    const text = Buffer.from(JSON.stringify([0, ++next, name, params]));
    socket.write(`${text.length}:`);
    socket.write(text);
    return new Promise((resolve, reject) => waiting.set(next, { resolve, reject }));
  };
  await hello;
  await send('WebDriver:NewSession', {});
  return {
    pid: child.pid,
    go: (url) => send('WebDriver:Navigate', { url }),
    back: () => send('WebDriver:Back', {}),
    execute: async (script, args) =>
      (await send('WebDriver:ExecuteAsyncScript', { script, args, sandbox: null })).value,
    frame: (id) => send('WebDriver:SwitchToFrame', { id }),
    timeouts: (values) => send('WebDriver:SetTimeouts', values),
    async stop() {
      socket.destroy();
      await child.stop();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** A page or a frame in it. */
class Realm {
  constructor(driver, index) {
    this.driver = driver;
    this.index = index;
  }

  /** Runs a function there and returns what it returns or what its promise brings. */
  async evaluate(fn, arg) {
    const script = `const done = arguments[1];
      new Promise((resolve) => resolve((${fn})(arguments[0]))).then(
        (value) => done(JSON.stringify({ value })),
        (error) => done(JSON.stringify({ error: String(error?.message ?? error) })));`;
    const { value, error } = await this.driver.locked(async (driver) => {
      if (this.index !== undefined) await driver.frame(this.index);
      try {
        // Null comes of a script that ran and took its document away before it could answer.
        return JSON.parse(await driver.execute(script, [arg ?? null])) ?? {};
      } finally {
        if (this.index !== undefined) await driver.frame(null);
      }
    });
    if (error !== undefined) throw new Error(error);
    return value;
  }

  /** Waits until a function returns something true. A frame may be between two documents. */
  async waitForFunction(fn, arg) {
    const limit = Date.now() + this.driver.patience;
    for (;;) {
      const found = await this.evaluate(fn, arg).catch(() => false);
      if (found) return found;
      if (Date.now() > limit) throw new Error(`never true: ${fn}`);
      await soon();
    }
  }
}

class Page extends Realm {
  goto(url) {
    return this.driver.locked((driver) => driver.go(url));
  }

  back() {
    return this.driver.locked((driver) => driver.back());
  }

  /** The page, and places for frames: whether there is one shows when it is used. */
  frames() {
    return [this, ...[0, 1, 2, 3].map((index) => new Realm(this.driver, index))];
  }

  /** There is one tab. */
  close() {
    return this.goto('about:blank');
  }
}

/** Of Linux: how long one is, in seconds. */
const TICK = 0.01;

/**
 * The processes that one has started, with the CPU time that each has used, in seconds. Linux has
 * them as files.
 */
function processesOf(leader) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        // After the command's name, which may contain anything: state, parent, group, session, …,
        // user's and system's time.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return {
          id: Number(name),
          session: Number(fields[3]),
          cpuTime: TICK * (+fields[11] + +fields[12]),
        };
      } catch {
        return { id: 0, session: 0, cpuTime: 0 }; // It has ended.
      }
    })
    .filter(({ id, session }) => session === leader && id !== leader);
}

/** Begins a driver. Another program may have taken the port that was free a moment ago. */
async function begun(driver, tries = 3) {
  try {
    return await driver();
  } catch (error) {
    if (tries === 1 || !/Unable to listen/.test(error.message)) throw error;
    return begun(driver, tries - 1);
  }
}

/**
 * @param {'firefox' | 'webkit'} engine
 * @param {number} patience ms for what a busy machine does
 */
export async function launch(engine, patience) {
  const driver = Object.assign(await begun({ firefox, webkit }[engine]), { patience });
  await driver.timeouts({ script: patience, pageLoad: patience });
  // A driver is in one frame at a time.
  let last = Promise.resolve();
  driver.locked = (action) => {
    const mine = last.then(() => action(driver));
    last = mine.catch(() => {});
    return mine;
  };
  const page = new Page(driver);
  return {
    newPage: async () => page,
    contexts: () => [page],
    close: () => driver.stop(),
    processes: () => processesOf(driver.pid),
  };
}
