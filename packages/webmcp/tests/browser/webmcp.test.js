// WebMCP both ways, in a Chromium that has it: our app's tools as others call them, and the tools
// of pages that have never heard of us as our agent calls them. The last part is a browser without
// WebMCP.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { connectPage } from '@abp-bridge/automation';
import {
  LONG,
  launch as launchByPlaywright,
  patient,
  serve,
} from '../../../../tests/support/browser.js';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const launch = async (...args) =>
  patient(
    await puppeteer.launch({
      executablePath,
      timeout: LONG,
      protocolTimeout: 2 * LONG,
      args: [...ARGS, '--disable-sync', '--site-per-process', ...args],
    }),
  );
const agent = { name: 'test', version: '1' };
/** What a capability of ours has, and no tool. */
const NOT_HERE = { cancelOutcome: false, progress: false, elicitation: false };

let server, hostOrigin, appOrigin, otherOrigin;
before(async () => {
  server = await serve();
  hostOrigin = `http://127.0.0.1:${server.port}`;
  appOrigin = `http://localhost:${server.port}`;
  otherOrigin = `http://other.localhost:${server.port}`;
});
after(() => server.close());
const address = (page, options = {}, origin = appOrigin) =>
  `${origin}/packages/webmcp/tests/browser/pages/${page}.html?${encodeURIComponent(JSON.stringify(options))}`;

/** What handlers and tools have noted, and a way to wait for it. */
class Notes {
  lines = [];
  #waiting = new Set();
  add = (line) => {
    this.lines.push(line);
    for (const look of this.#waiting) look();
  };
  /** Waits until a line has come so often. */
  seen(line, times = 1) {
    return new Promise((resolve) => {
      const look = () => {
        if (this.lines.filter((each) => each === line).length < times) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** Runs the tests in pages of a browser of their own. */
function inBrowser(title, args, define) {
  describe(title, () => {
    const t = { clients: [] };
    before(async () => (t.browser = await launch(...args)));
    after(() => t.browser.close());
    afterEach(async () => {
      for (const client of t.clients.splice(0)) client.close();
      for (const page of (await t.browser.pages()).slice(1)) await page.close();
    });
    /** Opens a page whose handlers and tools note what they do. */
    t.open = async (url) => {
      const page = await t.browser.newPage();
      page.notes = new Notes();
      await page.exposeFunction('record', page.notes.add);
      await page.goto(url, { waitUntil: 'load' });
      return page;
    };
    t.host = async (url, allow, hosted = hostOrigin) => {
      const page = await t.open(address('host', {}, hosted));
      await page.waitForFunction(() => window.isReady);
      await page.evaluate((url, allow) => window.embed(url, allow), url, allow);
      return page;
    };
    /** A client of the page in the host's frame, or of the host's own document. */
    t.agentIn = async (page, name = 'a', way = 'tools', options = { origin: appOrigin }) => {
      const refused = await page.evaluate((...args) => window.open(...args), name, way, options);
      assert.equal(refused, undefined);
    };
    t.connect = async (target, options = {}) => {
      const client = await connectPage(target, {
        agent,
        webmcp: true,
        timeout: LONG,
        limits: { grace: LONG },
        ...options,
      });
      t.clients.push(client);
      return client;
    };
    define(t);
  });
}

const begin = (page, ...args) => page.evaluate((...args) => window.begin(...args), ...args);
const abort = (page, id, reason) =>
  page.evaluate((id, reason) => window.calls[id].controller.abort(reason), id, reason);
const outcome = (page, id) => page.evaluate((id) => window.calls[id].result, id);
const call = async (page, name, capability, params, options) =>
  page.evaluate((n, ...args) => window.clients[n].call(...args), name, capability, params, options);
/** The tools of a page, once one of the given name is there. */
const toolsOf = async (page, name = 'echo') => {
  await page.waitForFunction(
    async (name) => (await document.modelContext.getTools()).some((tool) => tool.name === name),
    { polling: 20 },
    name,
  );
  return page.evaluate(async () =>
    (await document.modelContext.getTools()).map(({ window: _, ...tool }) => tool),
  );
};
const until = (page, condition, ...args) =>
  page.waitForFunction(condition, { polling: 20 }, ...args);
/** Calls a tool of the page's own document as any script of it does. */
const execute = (page, name, input, polyfilled = false) =>
  page.evaluate(
    async (name, input, polyfilled) => {
      const tool = (await document.modelContext.getTools()).find((each) => each.name === name);
      const given = polyfilled ? JSON.stringify(input) : input;
      return JSON.parse(await document.modelContext.executeTool(tool, given));
    },
    name,
    input,
    polyfilled,
  );
const lastCall = async (page, polyfilled) =>
  (await execute(page, 'abp.calls', {}, polyfilled)).data.calls[0];

inBrowser('Chromium with WebMCP', ['--enable-features=WebMCP,WebMCPTesting'], (t) => {
  describe('our app, as tools', () => {
    test('each available capability is a tool with its schema and hints', async () => {
      const page = await t.open(address('app'));
      const warned = [];
      const tools = await toolsOf(page);
      assert.deepEqual(
        tools.map(({ name }) => name),
        [
          'abp.calls',
          'ask',
          'break',
          'bytes',
          'deaf',
          'echo',
          'fail',
          'hang',
          'named',
          'steps',
        ].concat('value'),
      );
      const echo = tools.find(({ name }) => name === 'echo');
      assert.equal(echo.title, 'Echo');
      assert.match(echo.description, /^Says the same\.\n.*\{"type":"object"\}/);
      assert.deepEqual(echo.inputSchema.required, ['text']);
      assert.equal(echo.annotations.readOnlyHint, true);
      assert.deepEqual(warned, []);
      // Nobody has called, so the app has no agent.
      assert.deepEqual(await page.evaluate(() => window.sessions), []);
      assert.equal((await execute(page, 'echo', { text: 'a' })).success, true);
      assert.deepEqual(await page.evaluate(() => window.sessions), ['WebMCP']);
    });

    test('a capability is a tool while it is available', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const has = (name) =>
        until(
          page,
          async (name) => (await document.modelContext.getTools()).some((t) => t.name === name),
          name,
        );
      const lacks = (name) =>
        until(
          page,
          async (name) => !(await document.modelContext.getTools()).some((t) => t.name === name),
          name,
        );
      await page.evaluate(() => Object.assign(window, { unlocked: true, key: true }));
      await has('locked');
      await has('needs.key');
      const tools = await toolsOf(page);
      assert.equal(
        tools.find(({ name }) => name === 'needs.key').description,
        'needs.key\nDeprecated: use locked\nAlternatives: locked.',
      );
      assert.equal((await execute(page, 'locked', {})).data, 'open');
      await page.evaluate(() => (window.unlocked = false));
      await lacks('locked');
      await page.evaluate(() => window.exposed.set('later', () => 'came later'));
      await has('later');
      assert.equal((await execute(page, 'later', {})).data, 'came later');
      await page.evaluate(() =>
        window.exposed.set('later', { description: 'another', handler: () => 'is another' }),
      );
      await until(page, async () =>
        (await document.modelContext.getTools()).some((t) => t.description === 'another'),
      );
      assert.equal((await execute(page, 'later', {})).data, 'is another');
      await page.evaluate(() => window.exposed.delete('later'));
      await lacks('later');
    });

    test('the schema is enforced, and failures keep code, message and details', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const wrong = await execute(page, 'echo', { text: 1 });
      assert.equal(wrong.success, false);
      assert.equal(wrong.error.code, 'INVALID_PARAMS');
      assert.match(wrong.error.message, /params\/text/);
      const failed = await execute(page, 'fail', {});
      const { code, message, retryable, details } = failed.error;
      assert.deepEqual(
        { code, message, retryable, details },
        { code: 'BUSY', message: 'try later', retryable: true, details: { queue: '3' } },
      );
      const broken = await execute(page, 'break', {});
      assert.equal(broken.error.code, 'OPERATION_FAILED');
      assert.equal(broken.error.message, 'a defect');
      const asked = await execute(page, 'ask', {});
      assert.equal(asked.error.code, 'NOT_SUPPORTED');
    });

    test('results are plain: bytes are base64 with their type, and nothing kills the page', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const bytes = { content: 'AH//', mimeType: 'image/x', encoding: 'base64', size: 3 };
      assert.deepEqual((await execute(page, 'bytes', {})).data, bytes);
      const value = (name) => execute(page, 'value', { name });
      assert.equal((await value('text')).data, 'a "quoted" text');
      assert.deepEqual((await value('map')).data, [['a', ['1']]]);
      assert.deepEqual((await value('date')).data, { at: '1970-01-01T00:00:00.000Z' });
      assert.deepEqual((await value('blob')).data, {
        content: 'YWJj',
        mimeType: 'text/plain',
        encoding: 'base64',
        size: 3,
      });
      assert.equal((await value('views')).data.inside[0].content, 'AQI=');
      const { data, ...nothing } = await value('nothing');
      assert.equal(data, undefined);
      assert.equal(nothing.success, true);
      for (const name of ['symbol', 'cycle']) {
        const refused = await value(name);
        assert.equal(refused.error?.code ?? 'none', 'OPERATION_FAILED', name);
      }
      assert.equal((await execute(page, 'echo', { text: 'alive' })).data.text, 'alive');
    });

    test('an agent asks what became of its calls', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const { metadata } = await execute(page, 'echo', { text: 'a' });
      await execute(page, 'fail', {});
      await page.evaluate(() => {
        window.running = (async () => {
          const tools = await document.modelContext.getTools();
          const steps = tools.find(({ name }) => name === 'steps');
          return JSON.parse(await document.modelContext.executeTool(steps, {}));
        })();
      });
      await until(page, () => window.releases.length === 1);
      const until1 = async (state) => {
        for (;;) {
          const found = await lastCall(page);
          if (found.state === state && (state !== 'running' || found.progress)) return found;
        }
      };
      const running = await until1('running');
      assert.equal(running.capability, 'steps');
      const { progress, total, percentage, stage } = running.progress;
      assert.deepEqual(
        { progress, total, percentage, stage },
        { progress: 1, total: 4, percentage: 25, stage: 'one' },
      );
      await page.evaluate(() => (window.releases[0](), window.running));
      const { calls } = (await execute(page, 'abp.calls', {})).data;
      assert.deepEqual(
        calls.map(({ capability, state }) => [capability, state]),
        [
          ['steps', 'completed'],
          ['fail', 'failed'],
          ['echo', 'completed'],
        ],
      );
      assert.equal(calls[1].error.code, 'BUSY');
      const one = await execute(page, 'abp.calls', { callId: metadata.callId });
      assert.deepEqual(
        one.data.calls.map(({ capability }) => capability),
        ['echo'],
      );
    });

    test('a script of another origin calls and cancels: the handler is told, and the app knows the truth', async () => {
      const app = address('app', { origins: [hostOrigin] });
      const page = await t.host(app);
      const frame = page.frames()[1];
      await toolsOf(frame);
      const listed = await page.evaluate(
        async (origin) =>
          (await document.modelContext.getTools({ fromOrigins: [origin] })).map(({ name }) => name),
        appOrigin,
      );
      assert.ok(listed.includes('hang') && !listed.includes('abp.calls'));
      const said = page.evaluate(async (origin) => {
        const controller = (window.controller = new AbortController());
        const { signal } = controller;
        return window.execute('hang', {}, { signal }, origin).catch((error) => String(error));
      }, appOrigin);
      await page.notes.seen('hang started');
      await page.evaluate(() => window.controller.abort('not any more'));
      assert.equal(await said, 'not any more');
      await page.notes.seen('hang stopped: The agent cancelled the call (WebMCP)');
      for (;;) {
        const { capability, state } = await lastCall(frame);
        assert.equal(capability, 'hang');
        if (state === 'cancelled') break;
        assert.equal(state, 'cancelling');
      }
    });

    test('an origin that is not named sees nothing', async () => {
      const strange = await t.host(address('app', { origins: [hostOrigin] }), 'tools', otherOrigin);
      await toolsOf(strange.frames()[1]);
      const list = (page) =>
        page.evaluate(
          async (origin) =>
            (await document.modelContext.getTools({ fromOrigins: [origin] })).map(
              ({ name }) => name,
            ),
          appOrigin,
        );
      assert.deepEqual(await list(strange), []);
      const two = address('app', { exposedTo: [hostOrigin, otherOrigin, 'http://plain.example'] });
      const page = await t.host(two);
      await toolsOf(page.frames()[1], 'abp.calls');
      const seen = await list(page);
      assert.ok(seen.includes('echo'));
      assert.ok(!seen.includes('abp.calls'));
    });

    test('Puppeteer calls, and a cancel by CDP reaches the handler', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const tool = (name) => page.webmcp.tools().find((each) => each.name === name);
      const { status, output } = await tool('echo').execute({ text: 'by Puppeteer' });
      assert.equal(status, 'Completed');
      assert.deepEqual(output.data, { text: 'by Puppeteer' });
      const session = await page.createCDPSession();
      await session.send('WebMCP.enable');
      const { frameTree } = await session.send('Page.getFrameTree');
      const { invocationId } = await session.send('WebMCP.invokeTool', {
        frameId: frameTree.frame.id,
        toolName: 'hang',
        input: {},
      });
      await page.notes.seen('hang started');
      const responded = new Promise((resolve) => session.once('WebMCP.toolResponded', resolve));
      await session.send('WebMCP.cancelInvocation', { invocationId });
      assert.equal((await responded).status, 'Canceled');
      await page.notes.seen('hang stopped: The agent cancelled the call (WebMCP)');
      let last;
      while ((last = await lastCall(page)).state === 'cancelling');
      assert.equal(last.state, 'cancelled');
    });

    for (const wrapped of ['before', 'after'])
      test(`where a library wraps the browser’s object ${wrapped} it is taken, a cancel reaches the handler all the same`, async () => {
        const page = await t.open(address('app', { wrapped }));
        // The page loads before its script has ended.
        await until(page, () => window.exposed && Object.hasOwn(document, 'modelContext'));
        await until(page, async () => {
          const { get } = Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext');
          window.own = get.call(document);
          return (window.tools = await window.own.getTools()).some(({ name }) => name === 'hang');
        });
        const call = page.evaluate(async () => {
          const hang = window.tools.find(({ name }) => name === 'hang');
          const { signal } = (window.controller = new AbortController());
          return window.own.executeTool(hang, {}, { signal }).catch((reason) => reason);
        });
        await page.notes.seen('hang started');
        await page.evaluate(() => window.controller.abort('enough'));
        assert.equal(await call, 'enough');
        await page.notes.seen('hang stopped: The agent cancelled the call (WebMCP)');
      });

    test('a name that another script has is taken when it is free', async () => {
      const page = await t.open(address('app', { taken: 'echo' }));
      await toolsOf(page, 'hang');
      const described = async () =>
        (await toolsOf(page)).find(({ name }) => name === 'echo').description;
      assert.equal(await described(), 'another');
      await page.evaluate(() => window.taken.abort());
      await until(page, async () =>
        (await document.modelContext.getTools()).some(
          ({ name, description }) => name === 'echo' && description.startsWith('Says'),
        ),
      );
      assert.deepEqual((await execute(page, 'echo', { text: 'a' })).data, { text: 'a' });
    });

    test('limits are those of the app: a call waits for its turn, and is cancelled there', async () => {
      const page = await t.open(address('app', { limits: { maxConcurrent: 1, maxCalls: 2 } }));
      await toolsOf(page);
      const run = (id, who) =>
        page.evaluate(
          async (id, who) => {
            const tools = await document.modelContext.getTools();
            const named = tools.find(({ name }) => name === 'named');
            const controller = new AbortController();
            const { signal } = controller;
            const result = document.modelContext.executeTool(named, { who }, { signal });
            (window.calls ??= {})[id] = { controller, result: result.catch(() => 'dropped') };
          },
          id,
          who,
        );
      const states = async () =>
        (await execute(page, 'abp.calls', {})).data.calls.map(({ state }) => state).sort();
      await run(1, 'first');
      await page.notes.seen('first started');
      await run(2, 'second');
      while ((await states()).length < 2);
      const refused = await execute(page, 'echo', { text: 'too many' });
      assert.equal(refused.error.code, 'RATE_LIMITED');
      await page.evaluate(() => window.calls[2].controller.abort());
      while (!(await states()).includes('cancelled'));
      await page.evaluate(() => window.calls[1].controller.abort());
      await page.notes.seen('first stopped: The agent cancelled the call (WebMCP)');
      while ((await states()).filter((state) => state === 'cancelled').length < 2);
      assert.equal((await execute(page, 'echo', { text: 'room' })).success, true);
      assert.ok(!page.notes.lines.includes('second started'));
    });

    test('an agent of ABP and one of WebMCP cancel only their own calls of one capability', async () => {
      const page = await t.host(address('app', { origins: [hostOrigin] }));
      await toolsOf(page.frames()[1]);
      await t.agentIn(page, 'abp', 'abp');
      await t.agentIn(page, 'tools', 'tools');
      for (const [first, second] of [
        ['abp', 'tools'],
        ['tools', 'abp'],
      ]) {
        await begin(page, first, 'one', 'named', { who: `${first}-1` });
        await begin(page, second, 'two', 'named', { who: `${second}-2` });
        await page.notes.seen(`${first}-1 started`);
        await page.notes.seen(`${second}-2 started`);
        await abort(page, 'one', 'mine only');
        const one = await outcome(page, 'one');
        assert.equal(one.cancelled, true);
        assert.equal(one.error.message, 'mine only');
        assert.equal(one.metadata.outcome, first === 'tools' ? 'unknown' : 'stopped');
        const word = first === 'abp' ? 'mine only' : 'The agent cancelled the call (WebMCP)';
        await page.notes.seen(`${first}-1 stopped: ${word}`);
        assert.ok(!page.notes.lines.some((line) => line.startsWith(`${second}-2 stopped`)));
        await abort(page, 'two', 'now I, too');
        assert.equal((await outcome(page, 'two')).cancelled, true);
        const other = second === 'abp' ? 'now I, too' : 'The agent cancelled the call (WebMCP)';
        await page.notes.seen(`${second}-2 stopped: ${other}`);
      }
      // In the frame, each of them is an agent of its own.
      const sessions = await page.frames()[1].evaluate(() => window.sessions);
      assert.deepEqual(sessions, ['host', 'WebMCP']);
    });

    test('an app that is closed has no tools, and what runs is cancelled', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      await page.evaluate(async () => {
        const hang = (await document.modelContext.getTools()).find(({ name }) => name === 'hang');
        window.result = document.modelContext.executeTool(hang, {}).then(JSON.parse);
      });
      await page.notes.seen('hang started');
      await page.evaluate(() => window.exposed.close());
      const result = await page.evaluate(() => window.result);
      assert.equal(result.success, false);
      assert.ok(page.notes.lines.some((line) => line.startsWith('hang stopped')));
      assert.deepEqual(
        await page.evaluate(async () => (await document.modelContext.getTools()).length),
        0,
      );
    });

    test('an app that was made without this library has tools, too', async () => {
      const page = await t.open(address('app', { kind: 'plain' }));
      await toolsOf(page);
      const { success, data } = await execute(page, 'echo', { a: 1 });
      assert.equal(success, true);
      assert.deepEqual(data, { a: 1 });
    });

    test('a frame that may have no tools is an app like any other', async () => {
      const page = await t.host(address('app', { origins: [hostOrigin] }), '');
      await t.agentIn(page, 'abp', 'abp');
      assert.deepEqual((await call(page, 'abp', 'echo', { text: 'a' })).data, { text: 'a' });
    });
  });

  /** The same tools by each way there. */
  const WAYS = {
    'a frame of another origin': async () => {
      const page = await t.host(address('foreign', { exposedTo: [hostOrigin] }));
      await t.agentIn(page);
      return { page, there: page.frames()[1], name: 'a' };
    },
    'this document': async () => {
      const page = await t.host(address('foreign', { exposedTo: [hostOrigin] }));
      // The scripts of a page are agents of its own tools.
      await page.evaluate(async (url) => {
        await import(url);
        await window.ready;
      }, `${hostOrigin}/packages/webmcp/tests/browser/pages/foreign.js`);
      const refused = await page.evaluate(() => window.open('a', 'tools', {}, document));
      assert.equal(refused, undefined);
      return { page, there: page.mainFrame(), name: 'a' };
    },
    'a page that is driven': async () => {
      const page = await t.open(address('foreign'));
      const client = await t.connect(page, {
        onCapabilitiesChanged: (changes) => page.notes.add(`a changed: ${JSON.stringify(changes)}`),
      });
      const calls = {};
      const driven = {
        notes: page.notes,
        evaluate: undefined,
        begin(id, capability, params, options) {
          const controller = new AbortController();
          const { signal } = controller;
          const result = client.call(capability, params, { ...options, signal });
          calls[id] = { controller, result };
        },
        abort: (id, reason) => calls[id].controller.abort(reason),
        outcome: (id) => calls[id].result,
        list: () => client.listCapabilities(),
        app: async () => client.app,
      };
      return { driven, page, there: page.mainFrame() };
    },
  };
  /** One form for a client in a page and one in Node. */
  async function way(kind) {
    const { page, there, name, driven } = await WAYS[kind]();
    if (driven) return { ...driven, there, page };
    return {
      page,
      there,
      notes: page.notes,
      begin: (id, ...args) => begin(page, name, id, ...args),
      abort: (id, reason) => abort(page, id, reason),
      outcome: (id) => outcome(page, id),
      list: () => page.evaluate((n) => window.clients[n].listCapabilities(), name),
      app: () => page.evaluate((n) => window.clients[n].app, name),
    };
  }

  for (const kind of Object.keys(WAYS)) {
    describe(`our agent, and the tools of ${kind}`, () => {
      test('lists and calls them', async () => {
        const client = await way(kind);
        const list = await client.list();
        const add = list.find(({ name }) => name === 'add');
        assert.equal(add.title, 'Addition');
        assert.equal(add.description, 'does add');
        assert.equal(add.inputSchema.properties.a.type, 'number');
        assert.equal(add.annotations.readOnlyHint, true);
        assert.equal(add.available, true);
        // A cancel arrives; what becomes of it is not known.
        assert.deepEqual(add.features, { ...NOT_HERE, cancellation: true });
        assert.ok(!list.some(({ name }) => name === 'hidden'));
        assert.equal((await client.app()).webmcp, true);
        const say = async (name, params = {}) => {
          await client.begin(name, name, params);
          return client.outcome(name);
        };
        assert.deepEqual((await say('add', { a: 1, b: 2 })).data, { sum: 3 });
        assert.equal((await say('text')).data, 'a "quoted" text');
        assert.deepEqual((await say('list')).data, [1, 2]);
        const nothing = await say('nothing');
        assert.deepEqual([nothing.success, nothing.data], [true, undefined]);
        assert.deepEqual((await say('mcp')).data, { content: [{ type: 'text', text: 'said' }] });
        const failed = await say('mcp.error');
        assert.deepEqual(
          [failed.error.code, failed.error.message],
          ['OPERATION_FAILED', 'disk full'],
        );
        const refused = (await say('refusal')).error;
        assert.deepEqual([refused.code, refused.retryable], ['BUSY', true]);
        assert.equal((await say('throws')).error.code, 'OPERATION_FAILED');
        assert.equal((await say('unheard.of')).error.code, 'UNKNOWN_CAPABILITY');
      });

      test('a cancel reaches the tool, and claims no outcome', async () => {
        const client = await way(kind);
        await client.begin('1', 'slow', {});
        await client.notes.seen('slow started');
        await client.abort('1', 'not any more');
        const { success, cancelled, error, metadata } = await client.outcome('1');
        assert.deepEqual([success, cancelled], [false, true]);
        assert.equal(error.code, 'CANCELLED');
        assert.equal(error.message, 'not any more');
        assert.equal(metadata.outcome, 'unknown');
        await client.notes.seen('slow was told');
        await client.notes.seen('slow stopped');
      });

      test('tools come and go', async () => {
        const client = await way(kind);
        const hasFresh = async () => (await client.list()).some(({ name }) => name === 'fresh');
        await client.there.evaluate(() => window.add('fresh'));
        await client.notes.seen('a changed: {"added":["fresh"],"removed":[],"changed":[]}');
        assert.equal(await hasFresh(), true);
        await client.there.evaluate(() => window.controllers.fresh.abort());
        await client.notes.seen('a changed: {"added":[],"removed":["fresh"],"changed":[]}');
        assert.equal(await hasFresh(), false);
      });
    });
  }

  describe('our agent, however it reaches the tools', () => {
    const kind = 'a page that is driven';
    test('parameters that are no object are refused, and cost the next call nothing', async () => {
      const client = await way(kind);
      const say = async (params) => {
        await client.begin('1', 'same', params);
        return client.outcome('1');
      };
      for (const params of ['text', 5, true]) {
        assert.equal((await say(params)).error.code, 'INVALID_PARAMS');
        assert.deepEqual((await say({ params })).data, { params });
      }
      assert.deepEqual((await say(null)).data, {});
      assert.deepEqual((await say([1])).data, [1]);
    });

    test('a timeout is a cancel that a clock asked for', async () => {
      const client = await way(kind);
      await client.begin('1', 'slow', {}, { timeout: 1000 });
      const { success, error, metadata } = await client.outcome('1');
      assert.equal(success, false);
      assert.equal(error.code, 'TIMEOUT');
      assert.equal(metadata.outcome, 'unknown');
    });

    test('one call is cancelled, and another goes on', async () => {
      const client = await way(kind);
      await client.begin('1', 'slow', {});
      await client.begin('2', 'slow', {});
      await client.notes.seen('slow started', 2);
      await client.abort('1');
      assert.equal((await client.outcome('1')).cancelled, true);
      await client.notes.seen('slow stopped');
      assert.equal(client.notes.lines.filter((line) => line === 'slow stopped').length, 1);
      await client.abort('2');
      assert.equal((await client.outcome('2')).cancelled, true);
    });
  });

  describe('our agent, and pages that end', () => {
    const ENDS = {
      removed: () => window.frame.remove(),
      reloaded: () => (window.frame.src = `${window.frame.src}`),
      navigated: () => (window.frame.src = '/tests/browser/pages/blank.html'),
    };
    const cases = Object.entries(ENDS).flatMap(([how, act]) =>
      [false, true].map((inTree) => [how, act, inTree]),
    );
    for (const [how, act, inTree] of cases) {
      test(`the frame is ${how} in the middle of a call${inTree ? ', in a shadow tree' : ''}`, async () => {
        const url = address('foreign', { exposedTo: [hostOrigin] });
        const page = await t.host(url);
        if (inTree) await page.evaluate((url) => window.embed(url, 'tools', true), url);
        await t.agentIn(page);
        await begin(page, 'a', '1', 'slow', {});
        await page.notes.seen('slow started');
        await page.evaluate(act);
        const { success, error, metadata } = await outcome(page, '1');
        assert.equal(success, false);
        assert.deepEqual(
          [error.code, error.retryable, metadata.outcome],
          ['DISCONNECTED', false, 'unknown'],
        );
        await page.notes.seen('a lost: DISCONNECTED');
        if (how !== 'reloaded') return;
        await page.evaluate(() => window.clients.a.reconnect());
        assert.deepEqual((await call(page, 'a', 'add', { a: 2, b: 2 })).data, { sum: 4 });
      });
    }

    test('the frame comes back: an agent that reconnects by itself has its tools again', async () => {
      const page = await t.host(address('foreign', { exposedTo: [hostOrigin] }));
      await t.agentIn(page, 'a', 'tools', { origin: appOrigin, reconnect: true });
      await page.evaluate(() => {
        const { frame } = window;
        frame.remove();
        setTimeout(() => document.body.append(frame), 300);
      });
      await page.notes.seen('a lost: DISCONNECTED');
      await until(page, () => window.clients.a.connected);
      assert.deepEqual((await call(page, 'a', 'add', { a: 2, b: 2 })).data, { sum: 4 });
    });

    test('a page that is driven goes elsewhere in the middle of a call', async () => {
      const page = await t.open(address('foreign'));
      const client = await t.connect(page);
      const lost = new Promise((resolve) => (client.onDisconnect = resolve));
      const { success, error, metadata } = await client.call('leave');
      assert.equal(success, false);
      assert.deepEqual(
        [error.code, error.retryable, metadata.outcome],
        ['DISCONNECTED', false, 'unknown'],
      );
      await lost;
      await client.reconnect();
      assert.deepEqual((await client.call('add', { a: 1, b: 1 })).data, { sum: 2 });
    });

    test('a tool that kills its page has failed, and so have those beside it', async () => {
      const page = await t.open(address('foreign'));
      const client = await t.connect(page);
      const beside = client.call('slow');
      await page.notes.seen('slow started');
      // Chromium 156 dies of it; one that does not says what became of the call.
      const { success } = await client.call('symbol');
      client.close();
      assert.equal((await beside).success, false);
      assert.equal(typeof success, 'boolean');
    });
  });

  test('a form that declares a tool is called like any other', async () => {
    const page = await t.open(address('foreign'));
    await page.evaluate(() => {
      const form = document.createElement('form');
      form.innerHTML =
        '<input name="to" required toolparamdescription="who gets it"><button>go</button>';
      form.setAttribute('toolname', 'send');
      form.setAttribute('tooldescription', 'Sends it');
      form.setAttribute('toolautosubmit', '');
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        const { agentInvoked } = event;
        event.respondWith(Promise.resolve({ sent: new FormData(form).get('to'), agentInvoked }));
      });
      document.body.append(form);
    });
    const client = await t.connect(page);
    const { description, inputSchema } = await client.describeCapability('send');
    assert.equal(description, 'Sends it');
    assert.deepEqual(inputSchema.required, ['to']);
    assert.equal(inputSchema.properties.to.description, 'who gets it');
    const { data } = await client.call('send', { to: 'Ada' });
    assert.deepEqual(data, { sent: 'Ada', agentInvoked: true });
  });

  test('tools that are not ours: the browser drops what became of a call, and their wrapper tells', async () => {
    const page = await t.open(address('settled'));
    await toolsOf(page);
    assert.deepEqual(await execute(page, 'echo', { a: 1 }), { a: 1 });
    const start = (name) =>
      page.evaluate(async (name) => {
        const tool = (await document.modelContext.getTools()).find((each) => each.name === name);
        const { signal } = (window.controller = new AbortController());
        document.modelContext.executeTool(tool, {}, { signal }).catch(() => {});
      }, name);
    const callsOf = async () => (await execute(page, 'abp.calls', {})).data.calls;
    await start('steps');
    await page.notes.seen('steps at 12');
    assert.equal((await callsOf())[0].state, 'running');
    await page.evaluate(() => window.controller.abort());
    let last;
    while ((last = (await callsOf())[0]).state === 'cancelling')
      assert.equal(last.outcome, 'running');
    assert.deepEqual([last.state, last.outcome], ['cancelled', 'stopped']);
    assert.deepEqual(last.report, { applied: 12, remaining: 28 });
    // One that goes on is said to, until it ends.
    await start('deaf');
    await page.notes.seen('deaf started');
    await page.evaluate(() => window.controller.abort());
    await page.notes.seen('deaf was told');
    const [{ callId, outcome }] = await callsOf();
    assert.equal(outcome, 'running');
    await page.evaluate(() => window.releases[0]());
    await page.notes.seen('deaf ended');
    const ask = async () => (await execute(page, 'abp.calls', { callId })).data.calls[0];
    while ((last = await ask()).state === 'cancelling');
    assert.equal(last.outcome, 'finished');
  });

  test('Playwright: the tools of a page are called, and a cancel reaches them', async () => {
    const browser = await launchByPlaywright({
      args: ['--enable-features=WebMCP,WebMCPTesting'],
    });
    try {
      const page = await browser.newPage();
      const notes = new Notes();
      await page.exposeFunction('record', notes.add);
      await page.goto(address('foreign'));
      const client = await t.connect(page);
      assert.deepEqual((await client.call('add', { a: 1, b: 2 })).data, { sum: 3 });
      const controller = new AbortController();
      const slow = client.call('slow', {}, { signal: controller.signal });
      await notes.seen('slow started');
      controller.abort('not any more');
      const { cancelled, error, metadata } = await slow;
      assert.deepEqual([cancelled, error.message], [true, 'not any more']);
      assert.equal(metadata.outcome, 'unknown');
      await notes.seen('slow stopped');
      client.close();
      // Playwright’s own way to the tools of our app.
      await page.goto(address('app'));
      // It learns of them later than the page.
      const isKnown = async () => (await page.webmcp.tools()).some(({ name }) => name === 'hang');
      while (!(await isKnown())) await page.evaluate(() => {});
      const said = await page.webmcp.callTool('echo', { text: 'by Playwright' });
      assert.deepEqual(said.data, { text: 'by Playwright' });
      const refused = await page.webmcp.callTool('echo', {});
      assert.equal(refused.error.code, 'INVALID_PARAMS');
      const gone = await page.webmcp.callTool('hang', {}, { timeout: 500 }).catch(String);
      assert.match(gone, /Timeout/);
      await notes.seen('hang started');
    } finally {
      await browser.close();
    }
  });

  describe('who is taken', () => {
    test('a page that has a window.abp and tools is taken by its window.abp', async () => {
      const page = await t.open(address('app'));
      await toolsOf(page);
      const client = await t.connect(page);
      assert.equal(client.app.id, 'app');
      assert.ok((await client.listCapabilities()).some(({ name }) => name === 'not a name'));
      const late = await t.open(address('foreign', { abp: true }));
      assert.equal((await t.connect(late)).app.id, 'late');
    });

    test('tools are not taken unless they are asked for, and a page without any is waited for', async () => {
      const page = await t.open(address('foreign'));
      const refused = connectPage(page, { agent, timeout: 300 });
      await assert.rejects(refused, { code: 'TIMEOUT', message: /^No window\.abp appeared/ });
      const blank = await t.open(`${appOrigin}/tests/browser/pages/blank.html`);
      await assert.rejects(t.connect(blank, { timeout: 300 }), {
        code: 'TIMEOUT',
        message: /^Neither a window\.abp nor WebMCP tools appeared/,
      });
    });

    test('a frame that exposes nothing to this page, or may not, is refused', async () => {
      const page = await t.host(address('foreign'));
      const refused = (options, target) =>
        page.evaluate((options) => window.open('no', 'tools', options), options, target);
      assert.match(await refused({ origin: appOrigin, timeout: 300 }), /^TIMEOUT/);
      assert.match(
        await refused({ origin: 'https://elsewhere.example', timeout: 300 }),
        /^TIMEOUT/,
      );
      assert.match(await refused({ origin: '*' }), /^INVALID_PARAMS/);
      assert.match(await refused({}), /^INVALID_PARAMS/);
      const inner = await t.host(address('host'), '');
      const frame = inner.frames()[1];
      await frame.waitForFunction(() => window.isReady);
      assert.match(
        await frame.evaluate(() => window.open('no', 'tools', {}, document)),
        /^PERMISSION_DENIED/,
      );
    });
  });

  describe('a hostile page', () => {
    /** What a page may put in the place of its `modelContext`. */
    const LIES = {
      'throws at every turn': () => {
        const fail = () => {
          throw { toString: () => null };
        };
        return { getTools: fail, executeTool: fail, addEventListener: fail };
      },
      'lists nonsense': () => ({ getTools: async () => [null, 1, { name: { a: 1 } }, {}] }),
      'answers never': () => ({ getTools: () => new Promise(() => {}) }),
    };
    for (const [what, lie] of Object.entries(LIES)) {
      test(`that ${what} costs its own client the connection, and no more`, async () => {
        const page = await t.open(`${appOrigin}/tests/browser/pages/blank.html`);
        await page.evaluate(`Object.defineProperty(Document.prototype, 'modelContext', { get: () => context });
          const context = (${lie})(); 0`);
        const good = await t.open(address('foreign'));
        const client = await t.connect(good);
        await assert.rejects(t.connect(page, { timeout: 300 }), { code: 'TIMEOUT' });
        assert.deepEqual((await client.call('add', { a: 1, b: 1 })).data, { sum: 2 });
      });
    }

    test('that answers calls with nonsense is answered for in the form of the protocol', async () => {
      const page = await t.open(`${appOrigin}/tests/browser/pages/blank.html`);
      const answers = {
        deep: '['.repeat(200_000),
        proto: '{"__proto__":{"polluted":true},"success":true}',
        number: 5,
        fake: '{"success":"yes"}',
        half: '{"success":false}',
        error: '{"success":false,"error":{"code":7}}',
      };
      await page.evaluate((answers) => {
        const context = {
          getTools: async () => Object.keys(answers).map((name) => ({ name, inputSchema: '{' })),
          executeTool: async ({ name }) => answers[name],
        };
        Object.defineProperty(Document.prototype, 'modelContext', { get: () => context });
      }, answers);
      const client = await t.connect(page);
      for (const name of Object.keys(answers)) {
        const said = await client.call(name);
        assert.equal(typeof said.success, 'boolean', name);
        if (!said.success) assert.equal(typeof said.error.code, 'string', name);
      }
      assert.equal({}.polluted, undefined);
      const [{ features }] = await client.listCapabilities();
      assert.equal(features.cancellation, false);
    });
  });
});

inBrowser('Chromium without WebMCP', [], (t) => {
  const loaded = (page) =>
    page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));

  test('nothing happens, and nothing is loaded', async () => {
    const page = await t.open(address('app'));
    await page.evaluate(() => window.exposed.ready);
    const before = (await loaded(page)).filter((url) => /\/(connect-)?tools-/.test(url));
    assert.deepEqual(before, []);
    const host = await t.host(address('app'));
    const refused = await host.evaluate(() => window.open('no', 'tools', {}, document));
    assert.match(refused, /^NOT_SUPPORTED/);
  });

  test('a polyfill serves: our app has tools, and says what became of calls', async () => {
    const page = await t.open(address('app', { polyfill: true, origins: [hostOrigin] }));
    await toolsOf(page);
    assert.ok((await loaded(page)).some((url) => /\/tools-/.test(url)));
    const said = await execute(page, 'echo', { text: 'a' }, true);
    assert.deepEqual(said.data, { text: 'a' });
    assert.equal((await execute(page, 'echo', {}, true)).error.code, 'INVALID_PARAMS');
    assert.equal((await lastCall(page, true)).state, 'failed');
  });

  test('a polyfill that takes text is found out, by calls at once, and again once it has gone', async () => {
    const page = await t.open(address('foreign', { polyfill: true }));
    const client = await t.connect(page);
    const all = [1, 2, 3].map((n) => client.call('same', { n }));
    assert.deepEqual(
      (await Promise.all(all)).map(({ data }) => data),
      [1, 2, 3].map((n) => ({ n })),
    );
    await page.evaluate(() => {
      const { modelContext } = document;
      const { executeTool } = modelContext;
      modelContext.executeTool = async (tool, input, options) => {
        if (typeof input !== 'object') throw new TypeError('value is not an object');
        return executeTool.call(modelContext, tool, JSON.stringify(input), options);
      };
    });
    assert.deepEqual((await client.call('same', { n: 4 })).data, { n: 4 });
  });

  test("a polyfill's tools are called; a cancel ends the call, not the tool, as they say", async () => {
    const page = await t.open(address('foreign', { polyfill: true }));
    const client = await t.connect(page);
    const list = await client.listCapabilities();
    const add = list.find(({ name }) => name === 'add');
    assert.deepEqual(add.features, { ...NOT_HERE, cancellation: false });
    assert.deepEqual((await client.call('add', { a: 1, b: 2 })).data, { sum: 3 });
    assert.equal((await client.call('text')).data, 'a "quoted" text');
    assert.match((await client.call('throws')).error.message, /nobody hears this/);
    const controller = new AbortController();
    const slow = client.call('slow', {}, { signal: controller.signal });
    await page.notes.seen('slow started');
    controller.abort('enough');
    const { cancelled, metadata } = await slow;
    assert.equal(cancelled, true);
    assert.equal(metadata.outcome, 'unknown');
    assert.ok(!page.notes.lines.includes('slow was told'));
  });
});
