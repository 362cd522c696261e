/**
 * What each transport has to do, whatever carries its messages: js/transports/transport.js says it
 * in words. Each rule is given both ends, connected. It runs in Node
 * (tests/node/transports.test.js) and in pages (tests/browser/transports.test.js), so it uses
 * nothing that only one of them has.
 */

/** As messages of JSON-RPC: some transports carry nothing else. */
const messageOf = (id, more) => ({ jsonrpc: '2.0', method: 'm', params: { id, ...more } });
const NUMBERS = [...Array(100).keys()];

function assertEqual(actual, expected) {
  const [is, should] = [actual, expected].map((value) => JSON.stringify(value));
  if (is !== should) throw new Error(`It is ${is}, and should be ${should}`);
}

/** What is under way in this thread has had its chance. */
export async function turns(count = 20) {
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(port1.close());
      port2.postMessage(0);
    });
  }
}

/** What a transport tells, in order: of each message its id. `reached` waits for so many. */
export function listen(transport) {
  const log = [];
  let wake = () => {};
  const say = (...entry) => {
    log.push(entry);
    wake();
  };
  transport.onMessage = (message) => say('message', message?.params?.id ?? message);
  transport.onClose = (cause) => say('closed', cause);
  transport.onUnreadable = (error) => say('unreadable', error.code);
  const reached = async (count) => {
    while (log.length < count) await new Promise((resolve) => (wake = resolve));
    return log;
  };
  return { log, reached };
}

/** What is reported while this acts, as a page reports it. */
async function reportsOf(act) {
  const reported = [];
  const note = (event) => {
    event.preventDefault();
    reported.push(event.error.message);
  };
  const { process, reportError } = globalThis;
  if (process) globalThis.reportError = (error) => reported.push(error.message);
  else addEventListener('error', note);
  try {
    await act();
  } finally {
    if (process) globalThis.reportError = reportError;
    else removeEventListener('error', note);
  }
  return reported;
}

/** @typedef {ReturnType<typeof import('../../js/transports/port.js').portTransport>} Transport */

/** @type {Record<string, (near: Transport, far: Transport) => Promise<void>>} */
export const CONTRACT = {
  async 'what comes before somebody listens is kept, in order'(near, far) {
    for (const id of NUMBERS) near.post(messageOf(id));
    await turns();
    const { reached } = listen(far);
    assertEqual(
      await reached(100),
      NUMBERS.map((id) => ['message', id]),
    );
    near.post(messageOf('after'));
    assertEqual((await reached(101))[100], ['message', 'after']);
  },

  async 'messages go both ways, each once and in order'(near, far) {
    const heard = [near, far].map(listen);
    for (const from of [near, far]) for (const id of NUMBERS) from.post(messageOf(id));
    for (const { reached } of heard) {
      assertEqual(
        await reached(100),
        NUMBERS.map((id) => ['message', id]),
      );
    }
  },

  async 'a message arrives as it was when it was posted'(near, far) {
    const { reached } = listen(far);
    const message = messageOf(0);
    for (const id of NUMBERS) {
      message.params.id = id;
      near.post(message);
    }
    message.params.id = 'changed';
    assertEqual(
      await reached(100),
      NUMBERS.map((id) => ['message', id]),
    );
  },

  async 'who posts what cannot be sent is told why, and nothing of it is sent'(near, far) {
    const { reached } = listen(far);
    const back = listen(near);
    const unreadable = {
      get a() {
        throw new Error('of its own');
      },
    };
    let why;
    near.post(messageOf(1));
    try {
      near.post({ ...messageOf(2, { unreadable }), id: 'q' });
    } catch (error) {
      why = error.message;
    }
    near.post(messageOf(3));
    assertEqual(await reached(2), [
      ['message', 1],
      ['message', 3],
    ]);
    // What gathers messages of JSON-RPC knows it later: it answers the request in place of the
    // other side.
    why ??= (await back.reached(1))[0][1].error.message;
    if (!why.endsWith('of its own')) throw new Error(why);
  },

  async 'a listener that throws is reported, and what follows is delivered'(near, far) {
    const { log, reached } = listen(far);
    const { onMessage } = far;
    far.onMessage = (message) => {
      onMessage(message);
      throw new Error(`its own: ${message.params.id}`);
    };
    const reported = await reportsOf(async () => {
      near.post(messageOf(1));
      near.post(messageOf(2));
      await reached(2);
      await turns();
    });
    assertEqual(reported, ['its own: 1', 'its own: 2']);
    assertEqual(log.length, 2);
  },

  async 'a listener that takes the place of another hears what follows'(near, far) {
    const { log, reached } = listen(far);
    near.post(messageOf(1));
    await reached(1);
    const heard = new Promise((resolve) => (far.onMessage = resolve));
    near.post(messageOf(2));
    assertEqual((await heard).params.id, 2);
    assertEqual(log.length, 1);
  },

  async 'after close nothing is delivered, nothing is sent, and it is not told that it closed'(
    near,
    far,
  ) {
    const [back, { reached, log }] = [near, far].map(listen);
    near.post(messageOf('last'));
    assertEqual((await reached(1))[0], ['message', 'last']);
    far.post(messageOf('never heard'));
    near.close();
    near.post(messageOf('never sent'));
    near.close();
    await turns();
    assertEqual(back.log, []);
    assertEqual(
      log.filter(([kind]) => kind === 'message'),
      [['message', 'last']],
    );
  },

  async 'who closes it while what waited is delivered is delivered no more'(near, far) {
    for (const id of [1, 2, 3]) near.post(messageOf(id));
    await turns();
    const heard = [];
    await new Promise((resolve) => {
      far.onMessage = ({ params }) => {
        heard.push(params.id);
        far.close();
        resolve();
      };
    });
    await turns();
    assertEqual(heard, [1]);
  },

  async 'the end of the other side is told once, after all that it said, also to who listens later'(
    near,
    far,
  ) {
    near.post(messageOf(1));
    near.post(messageOf(2));
    // A microtask gathers what goes together.
    await turns(1);
    near.close();
    await turns();
    const { reached, log } = listen(far);
    await reached(3);
    await turns();
    assertEqual(
      log.map(([kind, id]) => (kind === 'message' ? id : kind)),
      [1, 2, 'closed'],
    );
  },
};
