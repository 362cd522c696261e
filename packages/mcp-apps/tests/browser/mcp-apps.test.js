// MCP Apps: views and hosts of this library with each other and with those of ext-apps, across
// origins and under the policy of views.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CORE, sites } from '../../../../tests/support/browser.js';
import { PAGES, sandboxFor, viewDocuments } from '../support/mcp-apps.js';

let site, page, sandbox, html;

before(async () => {
  site = await sites();
  html = await viewDocuments();
  sandbox = sandboxFor(site, site.hostOrigin);
  page = await site.browser.newPage();
  await page.goto(`${site.hostOrigin}${PAGES}/host.html`);
  await page.waitForFunction(() => window.isReady);
});
after(() => site.close());

const show = (host, view, more = {}) =>
  page.evaluate((o) => window.show(o), { host, sandbox, html: html[view] ?? view, ...more });
const view = (command, ...args) => page.evaluate(([c, a]) => window.view(c, ...a), [command, args]);
/** Does not wait for an answer, which is lost with the view's document. */
const tell = (command, ...args) =>
  page.evaluate(([c, a]) => void window.view(c, ...a), [command, args]);
const end = (action, ...args) => page.evaluate(([a, p]) => window.end[a](...p), [action, args]);
const call = (key, name, args = {}, more = {}) =>
  page.evaluate((a) => window.call(...a), [key, name, args, more]);
const outcome = (key) => page.evaluate((k) => window.calls[k].outcome, key);
const abort = (key, reason) =>
  page.evaluate(([k, why]) => window.calls[k].controller.abort(why), [key, reason]);
const log = () => page.evaluate(() => window.log);
const logged = (...lines) =>
  page.waitForFunction((wanted) => wanted.every((line) => window.log.includes(line)), lines);

for (const [host, who] of [
  ['ours', 'ours'],
  ['ours', 'theirs'],
  ['theirs', 'ours'],
]) {
  describe(`host: ${host}, view: ${who}`, () => {
    before(async () => {
      await show(host, who);
      await logged('begun');
    });

    test('they know each other', async () => {
      const { value } = await view('about');
      assert.deepEqual(value.host, { name: 'host', version: '1' });
      assert.equal(value.context.theme, 'dark');
      if (who === 'ours') assert.equal(value.core, 'js');
    });

    test('the policy of views holds', async () => {
      const { value } = await view('policy');
      assert.deepEqual(new Set(Object.values(value)), new Set(['refused']), JSON.stringify(value));
    });

    test('the view hears of the call that it is for', async () => {
      await end('input', { q: 1 });
      await end('result', { content: [], structuredContent: { r: 2 } });
      await end('cancelled', 'user action');
      await end('context', { theme: 'light' });
      await logged(
        'input {"arguments":{"q":1}}',
        'cancelled {"reason":"user action"}',
        'context {"theme":"light"}',
      );
      assert.equal((await view('about')).value.context.theme, 'light');
    });

    test('the view asks its host', async () => {
      assert.deepEqual((await view('read', 'ui://x')).value.contents, [
        { uri: 'ui://x', text: 'read' },
      ]);
      await view('message', 'hello');
      await view('open', 'https://example.com/');
      await view('know', { structuredContent: { n: 1 } });
      await view('write', 'a line');
      await view('leave');
      assert.equal((await view('mode', 'fullscreen')).value, 'fullscreen');
      await logged(
        'message [{"type":"text","text":"hello"}]',
        'open "https://example.com/"',
        'context {"structuredContent":{"n":1}}',
        'log {"level":"info","data":"a line"}',
        'wants to go',
        'mode fullscreen',
      );
    });

    test('the host follows the size', async () => {
      for (const height of [321, 123]) {
        await view('grow', height);
        await page.waitForFunction((h) => window.height === h, height);
      }
    });

    test('the view calls a tool of the server, and cancels one', async () => {
      await view('call', 'a', 'echo', { x: 'é😀' });
      assert.deepEqual((await view('outcome', 'a')).value.value, { x: 'é😀' });
      await view('call', 'b', 'hang', {});
      await logged('server started');
      await view('abort', 'b', 'user pressed stop');
      const { value } = await view('outcome', 'b');
      assert.ok(value.error, JSON.stringify(value));
      assert.deepEqual(value.progress, [{ progress: 1, total: 2, message: 'half' }]);
      await logged('server aborted: user pressed stop');
      if (who === 'ours') {
        const known = host === 'ours' ? 'stopped' : 'unknown';
        assert.deepEqual([value.error.name, value.error.data], ['AbortError', { outcome: known }]);
      }
    });

    test('the host calls a tool of the view, and cancels one', async () => {
      const echo = host === 'theirs' && who === 'ours' ? 'text_echo' : 'text.echo';
      await call('a', echo, { text: 'é😀' });
      assert.deepEqual((await outcome('a')).value.data, { text: 'é😀' });
      await call('b', 'hang');
      await logged('view started');
      await abort('b', 'user pressed stop');
      const { value, error } = await outcome('b');
      await logged('view aborted: user pressed stop');
      if (host === 'theirs') assert.ok(error);
      else {
        assert.deepEqual([value.success, value.cancelled], [false, true]);
        assert.deepEqual(
          [value.error.code, value.error.message],
          ['CANCELLED', 'user pressed stop'],
        );
        assert.equal(value.metadata.outcome, who === 'ours' ? 'stopped' : 'unknown');
      }
      const errors = (await log()).filter((line) => line.startsWith('error'));
      assert.deepEqual(errors, []);
    });

    test('the view is told before it is removed, and stops what runs', async () => {
      await page.evaluate(() => (window.log.length = 0));
      await call('c', 'hang');
      await logged('view started');
      await end('teardown');
      await logged('teardown');
      if (who === 'ours') {
        const why = host === 'ours' ? 'enough' : 'The host removed the view';
        await logged(`view aborted: ${why}`);
      }
      await end('close');
      await outcome('c');
    });
  });
}

describe('both are ours', () => {
  before(async () => {
    await show('ours', 'ours');
    await logged('begun');
  });

  test('capabilities keep their names, their descriptions and their checks', async () => {
    const shown = await page.evaluate(() => window.client.describeCapability('text.echo'));
    assert.equal(shown.description, 'Says it again');
    assert.deepEqual(shown.inputSchema.required, ['text']);
    await call('a', 'text.echo', { text: 1 });
    assert.equal((await outcome('a')).value.error.code, 'INVALID_PARAMS');
    await call('b', 'no.such');
    assert.equal((await outcome('b')).value.error.code, 'UNKNOWN_CAPABILITY');
    await call('c', 'fails');
    const { error } = (await outcome('c')).value;
    assert.deepEqual([error.code, error.message], ['OPERATION_FAILED', 'disk full']);
  });

  test('data of any kind and bytes arrive as they are', async () => {
    await call('a', 'steps');
    assert.equal((await outcome('a')).value.data, 'done');
    await call('b', 'nothing');
    assert.equal((await outcome('b')).value.data, undefined);
    const bytes = await page.evaluate(async () => {
      const { data } = await window.client.call('bytes');
      return [data.mimeType, `${data.content}`, ...new Uint8Array(data.content)];
    });
    assert.deepEqual(bytes, ['image/png', '[object ArrayBuffer]', 1, 2, 3]);
  });

  test('progress arrives', async () => {
    await call('a', 'steps');
    await outcome('a');
    const progress = await page.evaluate(() => window.calls.a.progress);
    // Of one turn, the first and the last.
    assert.deepEqual(
      [progress[0], progress.at(-1)].map(({ progress, total, status }) => [
        progress,
        total,
        status,
      ]),
      [1, 3].map((n) => [n, 3, `step ${n}`]),
    );
  });

  test('a list that changes is read again', async () => {
    await view('set', 'new.one');
    await logged('changed {"added":["new.one"],"removed":[],"changed":[]}');
    await call('a', 'new.one');
    assert.equal((await outcome('a')).value.data, 'new.one');
    await view('remove', 'new.one');
    await logged('changed {"added":[],"removed":["new.one"],"changed":[]}');
  });

  test('a call that ends well in spite of its cancel is told so, by either side', async () => {
    await view('call', 'a', 'late', {});
    await logged('late started');
    await view('abort', 'a', 'enough');
    assert.deepEqual((await view('outcome', 'a')).value.value, [{ type: 'text', text: '"late"' }]);
  });

  test('a cancel is answered when the handler has unwound, not before', async () => {
    await call('a', 'deaf');
    await logged('deaf started');
    await abort('a', 'enough');
    const settled = () =>
      page.evaluate(() => Promise.race([window.calls.a.outcome, Promise.resolve('pending')]));
    await call('b', 'text.echo', { text: 'meanwhile' });
    await outcome('b');
    assert.equal(await settled(), 'pending');
    await view('free');
    const { value } = await outcome('a');
    assert.deepEqual([value.cancelled, value.metadata.outcome], [true, 'finished']);
  });

  test('a timeout is a cancel that a clock asked for', async () => {
    await call('a', 'hang', {}, { timeout: 50 });
    const { value } = await outcome('a');
    assert.deepEqual([value.cancelled, value.error.code], [true, 'TIMEOUT']);
  });

  test('two agents call the same, and neither touches the other’s calls', async () => {
    const values = await page.evaluate(async () => {
      const other = await window.connectView();
      const controllers = [new AbortController(), new AbortController()];
      const [first, second] = [window.client, other].map((client, i) =>
        client.call('hang', {}, { signal: controllers[i].signal, callId: 'same' }),
      );
      controllers[0].abort('first');
      const one = await first;
      const pending = await Promise.race([second, Promise.resolve('pending')]);
      controllers[1].abort('second');
      const two = await second;
      other.close();
      return [one.error.message, pending, two.error.message];
    });
    assert.deepEqual(values, ['first', 'pending', 'second']);
  });

  test('state outlives the view', async () => {
    assert.equal((await view('load')).value, undefined);
    await view('save', { page: 3 });
    const state = await page.evaluate(() => window.host.state);
    await end('close');
    await show('ours', 'ours', { state });
    await logged('begun');
    assert.deepEqual((await view('load')).value, { page: 3 });
  });

  test('plain messages do the same', async () => {
    await end('close');
    await show('ours', 'ours', { upgrade: 'none' });
    await logged('begun');
    await call('a', 'text.echo', { text: 'é😀' });
    assert.deepEqual((await outcome('a')).value.data, { text: 'é😀' });
    await call('b', 'hang');
    await logged('view started');
    await abort('b', 'enough');
    assert.equal((await outcome('b')).value.metadata.outcome, 'stopped');
    await call('c', 'hang');
    await page.evaluate(() => void window.view('reload'));
    assert.equal((await outcome('c')).value.error.code, 'DISCONNECTED');
    await show('ours', 'ours');
    await logged('begun');
  });

  test('the view is closed in order: told, stopped, its iframe emptied', async () => {
    await view('call', 'a', 'hang', {});
    await call('b', 'hang');
    await logged('server started', 'view started');
    await end('close');
    // The view still reaches the server while it is told.
    const saved = (await log()).indexOf('server saved');
    const stopped = (await log()).findIndex((line) => line.startsWith('server aborted'));
    assert.ok(saved >= 0 && saved < stopped, `${await log()}`);
    const left = await page.evaluate(() => [
      window.iframe.isConnected,
      window.iframe.contentDocument?.URL,
    ]);
    assert.deepEqual(left, [true, 'about:blank']);
    const { value } = await outcome('b');
    assert.deepEqual([value.cancelled, value.error.message], [true, 'enough']);
    assert.equal((await log()).includes('closed'), false);
  });

  test('what the view stops as it is closed is told, also where nothing else takes time', async () => {
    await show('ours', 'ours');
    await logged('begun');
    await view('saveNothing');
    await call('b', 'hang');
    await logged('view started');
    await end('close');
    const { value } = await outcome('b');
    assert.deepEqual([value.cancelled, value.error.message], [true, 'enough']);
  });
});

describe('what a host says of itself', () => {
  const can = async (more) => {
    await show('ours', 'ours', more);
    await logged('begun');
    return (await view('about')).value.can;
  };

  test('changes of the server’s lists are announced where they are passed on', async () => {
    assert.deepEqual((await can({})).serverTools, {});
    const { serverTools, serverResources } = await can({ listChanged: true });
    assert.deepEqual([serverTools, serverResources], Array(2).fill({ listChanged: true }));
    for (const list of ['tools', 'resources']) {
      const method = `notifications/${list}/list_changed`;
      await page.evaluate((m) => window.host.notify(m), method);
      await logged(method);
    }
  });

  test('what the metadata ask for and do not get is said, to people and to the view', async () => {
    await page.evaluate(() => (window.warned.length = 0));
    const csp = { connectDomains: ['https://a.example', "'unsafe-eval'"], frameDomains: 'all' };
    const { sandbox: granted } = await can({
      ui: { csp, permissions: { camera: {}, bluetooth: {} } },
    });
    assert.deepEqual(granted, {
      csp: { connectDomains: ['https://a.example'], frameDomains: [] },
      permissions: { camera: {} },
    });
    // What warns is loaded with the first warning.
    await page.waitForFunction(() => window.warned.length > 0);
    const warned = await page.evaluate(() => window.warned.filter((l) => /metadata/.test(l)));
    assert.equal(warned.length, 1);
    for (const word of ["connectDomains 'unsafe-eval'", 'frameDomains', 'bluetooth']) {
      assert.ok(warned[0].includes(word), warned[0]);
    }
    await can({ ui: { csp: { connectDomains: ['https://a.example'] } } });
    assert.equal(await page.evaluate(() => window.warned.length), 1);
  });
});

describe('a view of others', () => {
  test('is not said to have stopped when its time was up', async () => {
    await show('ours', 'theirs');
    await logged('begun');
    await call('a', 'hang', {}, { timeout: 50 });
    const { value } = await outcome('a');
    assert.deepEqual([value.error.code, value.metadata?.outcome], ['TIMEOUT', 'unknown']);
    await call('b', 'text.echo', { text: 'a' });
    assert.deepEqual((await outcome('b')).value.data, { text: 'a' });
  });
});

describe('behind the host is a server of MCP', () => {
  test('its tools are called, report progress and are cancelled', async () => {
    await show('ours', 'ours', { byServer: true });
    await logged('begun');
    await view('call', 'a', 'echo', { x: 1 });
    assert.deepEqual((await view('outcome', 'a')).value.value, { x: 1 });
    await view('call', 'b', 'hang', {});
    await logged('server started');
    await view('abort', 'b', 'user pressed stop');
    const { error, progress } = (await view('outcome', 'b')).value;
    assert.deepEqual([error.name, error.data], ['AbortError', { outcome: 'unknown' }]);
    assert.deepEqual(progress, [{ progress: 1, total: 2, message: 'half' }]);
    await logged('server aborted: user pressed stop');
  });
});

const saying = (...messages) => encodeURIComponent(JSON.stringify(messages));

describe('the view’s document goes in the middle of a call', () => {
  const evil = () => `http://evil.localhost:${site.appPort}`;
  const WAYS = {
    removed: () => page.evaluate(() => window.iframe.remove()),
    'removed in a shadow tree': () => page.evaluate(() => window.iframe.remove()),
    'removed with all of its shadow tree': () => page.evaluate(() => window.takeAway()),
    reloaded: () => tell('reload'),
    // To a page that goes on speaking in the view's place.
    navigated: () =>
      tell('away', `${evil()}/tests/browser/pages/blank.html#${saying({ note: 'evil' })}`),
  };
  for (const who of ['ours', 'theirs']) {
    for (const [what, act] of Object.entries(WAYS)) {
      test(`${who}, ${what}: both directions end`, async () => {
        const within = what.includes('shadow') ? 'closed' : undefined;
        await show('ours', who, { ui: { csp: { frameDomains: [evil()] } }, within });
        await logged('begun');
        await view('call', 'a', 'hang', {});
        await call('b', 'hang');
        await logged('server started', 'view started');
        await act();
        const { value } = await outcome('b');
        assert.deepEqual([value.success, value.error.code], [false, 'DISCONNECTED']);
        await logged('closed', 'disconnected');
        await page.waitForFunction(() => window.log.some((l) => l.startsWith('server aborted')));
        assert.equal((await log()).includes('evil'), false);
      });
    }
  }

  test('a view that has its sandbox’s origin takes its own frame out: both directions end', async () => {
    const at = `http://alone.localhost:${site.appPort}`;
    await show('ours', 'ours', { sandbox: sandbox.replace(site.appOrigin, at), own: true });
    await logged('begun');
    await view('call', 'a', 'hang', {});
    await call('b', 'hang');
    await logged('server started', 'view started');
    await tell('takeOut');
    const { value } = await outcome('b');
    assert.deepEqual([value.success, value.error.code], [false, 'DISCONNECTED']);
    await logged('closed', 'disconnected');
    await page.waitForFunction(() => window.log.some((l) => l.startsWith('server aborted')));
  });

  test('a view whose policy does not allow it goes nowhere with what it knows', async () => {
    await show('ours', 'ours');
    await logged('begun');
    const url = `${evil()}/tests/browser/pages/blank.html`;
    const requests = site.count('/tests/browser/pages/blank.html');
    await view('away', url);
    // Engines show an error in its place, or stay where they are.
    await Promise.race([
      logged('closed'),
      page
        .evaluate(() => window.view('about'))
        .then(() => page.evaluate(() => window.view('about'))),
    ]);
    assert.equal(requests(), 0);
  });
});

describe('views of two servers behind one sandbox address', () => {
  /** A view that begins, then tries to reach those beside it, and says what came of it. */
  const THIEF = `<!doctype html><script>
    const say = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
    const tried = (act) => { try { act(); return 'done'; } catch { return 'refused'; } };
    const look = () => {
      const found = [self.origin, tried(() => parent.document.body)];
      for (let i = 0; i < parent.parent.length; i++) {
        const sandbox = parent.parent[i];
        if (sandbox === parent) continue;
        found.push(
          tried(() => sandbox.document.body.innerHTML),
          tried(() => sandbox[0].document.body.innerHTML),
          tried(() => sandbox[0].eval('1')),
        );
      }
      found.push(tried(() => { parent.location = 'URL' }));
      return found;
    };
    addEventListener('message', ({ data }) => {
      if (data.id === 1) {
        say({ method: 'ui/notifications/initialized', params: {} });
        setTimeout(() => parent.postMessage({ found: look() }, '*'));
      }
    });
    say({ id: 1, method: 'ui/initialize', params: {
      protocolVersion: '2026-01-26', appInfo: { name: 'thief', version: '1' }, appCapabilities: {} } });
  </script>`;
  const blank = () => `${site.hostOrigin}/tests/browser/pages/blank.html?stolen`;
  const beside = (options) =>
    page.evaluate(async (o) => {
      const found = new Promise((resolve) =>
        addEventListener('message', ({ data }) => data?.found && resolve(data.found)),
      );
      try {
        await window.beside(o);
      } catch (error) {
        return error.code;
      }
      return found;
    }, options);
  const thief = () => THIEF.replace('URL', blank());
  after(() => page.evaluate(() => window.besides?.forEach((iframe) => iframe.remove())));

  test('have an origin each, and neither reaches the other nor the sandbox', async () => {
    await show('ours', 'ours');
    await logged('begun');
    const requests = site.count('/tests/browser/pages/blank.html');
    const [origin, ...tried] = await beside({ server: 'b', sandbox, html: thief() });
    assert.equal(origin, 'null');
    assert.ok(tried.length >= 5);
    assert.deepEqual(new Set(tried), new Set(['refused']));
    assert.equal(requests(), 0);
    assert.equal((await view('about')).value.host.name, 'host');
  });

  test('may have the sandbox’s origin, which serves no other server then', async () => {
    const at = `http://one.localhost:${site.appPort}`;
    const own = sandbox.replace(site.appOrigin, at);
    const [origin, reached] = await beside({
      server: 'b',
      sandbox: own,
      origin: true,
      html: thief(),
    });
    assert.deepEqual([origin, reached], [at, 'done']);
    const code = (server, origin) => beside({ server, sandbox: own, origin, html: thief() });
    assert.equal(await code('c', true), 'INVALID_PARAMS');
    assert.equal(await code('c', false), 'INVALID_PARAMS');
    assert.equal((await code('b', true))[0], at);
    await page.evaluate(() => Promise.all(window.hosts.map((host) => host.close())));
    assert.equal((await code('c', false))[0], 'null');
    assert.equal(await code('b', true), 'INVALID_PARAMS');
  });
});

/** A view that says what a test gives it to say. */
const RAW = `<!doctype html><script>
  window.got = [];
  const say = (message) => parent.postMessage(message, '*');
  const cyclic = { type: 'object' };
  cyclic.properties = { cyclic };
  const named = (name, more) => ({ name, inputSchema: { type: 'object' }, ...more });
  const lists = {
    huge: Array.from({ length: 2e4 }, (_, i) => named('tool' + i)),
    sparse: Object.assign([], { length: 1e6 }),
    odd: [1, null, {}, named(5), named('x'.repeat(1e5)), named('__proto__'), named('constructor'),
      named('cyclic', { inputSchema: cyclic }), named('fine', { description: 7, annotations: 'x' })],
    none: 'none',
  };
  let list = lists.odd;
  addEventListener('message', ({ data }) => {
    const { command, args, id, method } = data;
    if (command === 'say') args.forEach(say);
    if (command === 'list') list = lists[args[0]];
    if (command === 'got') return say({ answer: id, value: got });
    if (command) return say({ answer: id });
    got.push(data);
    if (method === 'tools/list') say({ jsonrpc: '2.0', id, result: { tools: list } });
    if (method === 'tools/call') say({ jsonrpc: '2.0', id, result: data.params.arguments });
  });
  say({ note: 'begun' });
</script>`;
const request = (id, method, params = {}) => ({ jsonrpc: '2.0', id, method, params });
const notice = (method, params = {}) => ({ jsonrpc: '2.0', method, params });
const HELLO = request(1, 'ui/initialize', {
  protocolVersion: '2026-01-26',
  appInfo: { name: 'raw', version: '1' },
  appCapabilities: { tools: {} },
});
const BEGUN = notice('ui/notifications/initialized');

describe('a hostile view', () => {
  const answered = async (id) => {
    const said = async () => (await view('got')).value.find((message) => message.id === id);
    for (;;) {
      const found = await said();
      if (found) return found;
    }
  };
  const begin = async (...first) => {
    // It waits for the view, which waits for the test.
    await page.evaluate((o) => void (window.shown = window.show(o)), {
      host: 'ours',
      sandbox,
      html: RAW,
    });
    await logged('begun');
    for (const message of first) await view('say', message);
    await view('say', HELLO);
    await answered(1);
    await view('say', BEGUN);
    await page.evaluate(() => window.shown);
  };

  test('is asked nothing and served nothing before it has begun', async () => {
    await begin(
      request(7, 'tools/call', { name: 'echo', arguments: {} }),
      request(8, 'ui/open-link', { url: 'https://example.com' }),
      notice('ui/notifications/size-changed', { height: 5 }),
      notice('ui/notifications/request-teardown'),
      BEGUN,
    );
    for (const id of [7, 8]) assert.equal((await answered(id)).error.code, -32600);
    assert.deepEqual(await log(), ['begun']);
  });

  test('has what it asks for in the midst of the handshake wait, so much and no more', async () => {
    await page.evaluate((o) => void (window.shown = window.show(o)), {
      host: 'ours',
      sandbox,
      html: RAW,
    });
    await logged('begun');
    await view('say', HELLO);
    await answered(1);
    const ids = Array.from({ length: 65 }, (_, i) => 100 + i);
    const echo = (id) => request(id, 'tools/call', { name: 'echo', arguments: { id } });
    await view('say', ...ids.map(echo));
    assert.equal((await answered(164)).error.code, -32600);
    await view('say', BEGUN);
    for (const id of ids.slice(0, 64)) {
      assert.deepEqual((await answered(id)).result.structuredContent, { id });
    }
  });

  test('is shown only in ways that it has declared, and hears which holds', async () => {
    await page.evaluate((o) => void (window.shown = window.show(o)), {
      host: 'ours',
      sandbox,
      html: RAW,
    });
    await logged('begun');
    const appCapabilities = { availableDisplayModes: ['inline', 'fullscreen'] };
    await view('say', { ...HELLO, params: { ...HELLO.params, appCapabilities } });
    await answered(1);
    await view('say', BEGUN);
    await page.evaluate(() => window.shown);
    const mode = async (id, mode) => {
      await view('say', request(id, 'ui/request-display-mode', { mode }));
      return (await answered(id)).result.mode;
    };
    assert.equal(await mode(40, 'pip'), 'inline');
    assert.equal(await mode(41, 'fullscreen'), 'fullscreen');
    assert.equal(await mode(42, 'pip'), 'fullscreen');
    await page.evaluate(() =>
      window.host.setContext({ availableDisplayModes: ['fullscreen', 'pip'] }),
    );
    assert.equal(await mode(43, 'inline'), 'fullscreen');
    assert.deepEqual(
      (await log()).filter((line) => line.startsWith('mode')),
      ['mode fullscreen'],
    );
    const changed = (await view('got')).value.find(({ params }) => params?.displayMode);
    assert.deepEqual(changed.params, { displayMode: 'fullscreen' });
  });

  test('gets no more than the host gives', async () => {
    await begin();
    const refused = [
      request(11, 'ui/open-link', { url: 'javascript:alert(1)' }),
      request(12, 'ui/open-link', { url: { toString: 'x' } }),
      request(13, 'ui/request-display-mode', { mode: 'everything' }),
      request(14, 'ui/message', { content: 'refuse' }),
      request(15, 'sampling/createMessage', {}),
      request(16, 'tools/call'),
      request(17, 'constructor'),
      request(18, '__proto__'),
    ];
    for (const message of refused) {
      await view('say', message);
      assert.ok((await answered(message.id)).error, message.method);
    }
    await view('say', request(19, 'abp-bridge/state', { state: 'x'.repeat(2e6) }));
    assert.ok((await answered(19)).error);
    const noise = [
      notice('ui/notifications/size-changed', { width: 'x', height: -1 }),
      notice('ui/notifications/sandbox-proxy-ready'),
      notice('ui/notifications/sandbox-view-replaced'),
      notice('notifications/cancelled', { requestId: { a: 1 } }),
      notice('notifications/progress', { progressToken: {}, progress: 'x' }),
      { jsonrpc: '2.0', id: 99, result: {} },
      { jsonrpc: '2.0', id: 1, error: 5 },
      { jsonrpc: '2.0' },
      [[[[]]]],
      null,
    ];
    for (const message of noise) await view('say', message);
    await view('say', request(20, 'ui/open-link', { url: 'https://example.com/' }));
    assert.deepEqual((await answered(20)).result, {});
  });

  test('may list anything', async () => {
    await begin();
    const names = () =>
      page.evaluate(async () => (await window.client.listCapabilities()).map(({ name }) => name));
    assert.deepEqual(await names(), ['__proto__', 'constructor', 'fine']);
    await call('a', 'constructor', { content: 5, structuredContent: { a: 1 } });
    assert.deepEqual((await outcome('a')).value.data, { a: 1 });
    for (const [list, count] of Object.entries({ huge: 256, sparse: 0, none: 0 })) {
      await view('list', list);
      await view('say', notice('notifications/tools/list_changed'));
      await page.waitForFunction(
        async (n) => (await window.client.listCapabilities()).length === n,
        count,
      );
    }
  });

  test('that begins again is answered, and has another session', async () => {
    await begin();
    await view('say', request(30, 'tools/call', { name: 'hang', arguments: {} }));
    await logged('server started');
    await view('say', { ...HELLO, id: 2 });
    assert.equal((await answered(2)).result.protocolVersion, '2026-01-26');
    await logged('disconnected');
    await page.waitForFunction(() => window.log.some((l) => l.startsWith('server aborted')));
    // It says again who it is before it has begun: nothing is to be ended.
    await view('say', { ...HELLO, id: 3 });
    assert.ok((await answered(3)).result);
    await page.evaluate(() => window.host.setContext({ locale: 'eo' }));
    await view('say', BEGUN);
    await page.evaluate(async () => window.host.callTool('fine', { a: 1 }));
    const got = (await view('got')).value;
    const changed = got.find(({ method }) => method === 'ui/notifications/host-context-changed');
    assert.deepEqual(changed.params, { locale: 'eo' });
    const agents = await page.evaluate(async () => (await window.connectView()).call('fine', {}));
    assert.equal(agents.success, true);
    assert.equal((await log()).includes('closed'), false);
  });

  test('that never begins is given up', async () => {
    const error = await page.evaluate((o) => window.show(o).catch(({ code }) => code), {
      host: 'ours',
      sandbox,
      html: RAW,
      timeout: 300,
    });
    assert.equal(error, 'TIMEOUT');
    assert.equal(await page.evaluate(() => window.iframe.contentDocument?.URL), 'about:blank');
  });

  test('calls only the tools of the server that are for views', async () => {
    await show('ours', 'ours', { byList: true });
    await logged('begun');
    await view('call', 'a', 'both', { x: 1 });
    assert.deepEqual((await view('outcome', 'a')).value.value, { x: 1 });
    for (const name of ['model.only', 'no.such', '__proto__']) {
      await view('call', 'b', name, {});
      assert.equal((await view('outcome', 'b')).value.error.code, -32602, name);
    }
  });
});

describe('a hostile host', () => {
  test('harms no view', async () => {
    await show('raw', 'ours');
    await page.waitForFunction(() => window.got.some(({ method }) => method === 'ui/initialize'));
    const answer = (id, extra) =>
      page.waitForFunction(([wanted]) => window.got.find(({ id }) => id === wanted), [id, extra]);
    const post = (...messages) => page.evaluate((all) => window.post(...all), messages);
    await page.evaluate(() => {
      const { id } = window.got.find(({ method }) => method === 'ui/initialize');
      const result = { protocolVersion: 5, hostInfo: 'x', hostCapabilities: [], hostContext: 7 };
      window.post({ jsonrpc: '2.0', id, result });
    });
    await logged('begun');
    await page.evaluate(() => {
      const method = 'ui/notifications/host-context-changed';
      for (let i = 0; i < 1000; i++) {
        window.post({ jsonrpc: '2.0', method, params: { [`key${i}`]: i } });
      }
    });
    await post(
      notice('ui/notifications/host-context-changed', 5),
      notice('ui/notifications/tool-input', null),
      notice('ui/notifications/tool-result', [1]),
      notice('notifications/cancelled', { requestId: null }),
      { jsonrpc: '2.0', id: {}, method: 'tools/list' },
      { jsonrpc: '2.0', id: 'x'.repeat(1e5), method: 'tools/list' },
      { jsonrpc: '2.0', id: 4, result: {} },
      [1, 2],
      request('a', 'tools/call', { name: '__proto__' }),
      request('b', 'tools/call', { name: { a: 1 }, arguments: 5 }),
      request('c', 'tools/call', 5),
      request('d', 'tools/call', {
        name: 'steps',
        _meta: { progressToken: { a: 1 }, 'abp-bridge/outcome': { a: 1 } },
      }),
      request('e', 'abp-bridge/outcome', { id: '__proto__' }),
      request('f', 'tools/list', { cursor: 5 }),
      request('g', 'tools/call', { name: 'text_echo', arguments: { text: 'fine' } }),
    );
    await answer('g');
    const got = await page.evaluate(() => window.got);
    const result = (id) => got.find((message) => message.id === id).result;
    for (const id of ['a', 'b', 'c']) assert.equal(result(id).isError, true, id);
    assert.deepEqual(result('e'), { outcome: 'unknown' });
    assert.deepEqual(result('g').structuredContent, { text: 'fine' });
    assert.ok(result('f').tools.every(({ name }) => /^\w{1,64}$/.test(name)));
    assert.equal(Object.keys((await view('about')).value.context).length, 256);
    // Bytes are JSON where the host is anybody's.
    await post(request('h', 'tools/call', { name: 'bytes' }));
    await answer('h');
    const { content, structuredContent } = await page.evaluate(
      () => window.got.find(({ id }) => id === 'h').result,
    );
    assert.deepEqual(content[1], { type: 'image', data: 'AQID', mimeType: 'image/png' });
    assert.deepEqual(structuredContent, { mimeType: 'image/png', size: 3 });
  });

  test('is the only one that the view hears', async () => {
    await show('ours', 'ours');
    await logged('begun');
    // Not the sandbox, but the page around it, which has the view's window, too.
    await page.evaluate(() => {
      const inner = window.iframe.contentWindow.frames[0];
      for (let id = 1; id < 5; id++)
        inner.postMessage({ jsonrpc: '2.0', id, result: 'forged' }, '*');
      inner.postMessage(
        { jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'hang' } },
        '*',
      );
      inner.postMessage({ 'abp-bridge': 'hello', to: 'forged' }, '*');
    });
    await view('call', 'a', 'echo', { x: 1 });
    assert.deepEqual((await view('outcome', 'a')).value.value, { x: 1 });
    assert.equal((await log()).includes('view started'), false);
  });

  test('that is the view itself, or a window beside it, is not heard', async () => {
    await show('theirs', 'ours');
    await logged('begun');
    const forged = request('x', 'tools/call', { name: 'hang' });
    await view('echo', forged);
    await view('beside', forged);
    await view('call', 'a', 'echo', { x: 1 });
    assert.deepEqual((await view('outcome', 'a')).value.value, { x: 1 });
    assert.equal((await log()).includes('view started'), false);
  });

  test('says nothing to a view that is between it and the sandbox', async () => {
    await show('raw', RAW);
    await logged('begun');
    const method = 'ui/notifications/sandbox-secret';
    await page.evaluate(
      ([secret, known]) => window.post(secret, known),
      [notice(method), notice('known')],
    );
    await page.evaluate(() => window.view('got'));
    assert.deepEqual(
      (await view('got')).value.map((message) => message.method),
      ['known'],
    );
  });

  test('of another origin shows nothing in the sandbox', async () => {
    const origin = `http://evil.localhost:${site.appPort}`;
    const other = await site.browser.newPage();
    await other.goto(`${origin}${PAGES}/host.html`);
    await other.waitForFunction(() => window.isReady);
    const own = sandboxFor(site, origin);
    // The second sandbox serves this page. Both are of one origin, so the first has heard before
    // the second has.
    const frames = await other.evaluate(
      async ([foreign, own, html]) => {
        const [first, second] = await Promise.all(
          [foreign, own].map(async (src) => {
            const iframe = document.createElement('iframe');
            const loaded = new Promise((resolve) => (iframe.onload = resolve));
            iframe.src = src;
            document.body.append(iframe);
            await loaded;
            return iframe.contentWindow;
          }),
        );
        const begun = new Promise((resolve) =>
          addEventListener('message', ({ source, data }) => {
            if (source === second && data.note === 'begun') resolve();
          }),
        );
        const method = 'ui/notifications/sandbox-resource-ready';
        for (const sandbox of [first, second]) {
          sandbox.postMessage({ jsonrpc: '2.0', method, params: { html } }, '*');
        }
        await begun;
        return [first.length, second.length];
      },
      [sandbox, own, RAW],
    );
    assert.deepEqual(frames, [0, 1]);
    await page.goto(`${site.hostOrigin}${PAGES}/host.html`);
    await page.waitForFunction(() => window.isReady);
  });
});

describe('a host without a sandbox, whose page is of another origin', () => {
  test('has the view answer and ask', async () => {
    const src = `${site.appOrigin}${PAGES}/view.html`;
    await page.evaluate((o) => window.show(o), { host: 'theirs', src });
    await logged('begun');
    await call('a', 'text_echo', { text: 'é' });
    assert.deepEqual((await outcome('a')).value.data, { text: 'é' });
    await view('call', 'b', 'hang', {});
    await logged('server started');
    await view('abort', 'b', 'enough');
    await logged('server aborted: enough');
    assert.equal((await view('about')).value.core, CORE);
  });
});
