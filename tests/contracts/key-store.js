/**
 * What every store of keys has to do. It runs in Node and in pages, so it brings its own way to say
 * what is wrong.
 *
 * @typedef {object} Place where stores keep their keys
 * @property {(options?: object) => import('../../parts/keys/store.js').KeyStore} store another one
 *   there
 */
/**
 * @param {unknown} actual
 * @param {unknown} expected
 */
function same(actual, expected) {
  const [one, other] = [actual, expected].map((value) => JSON.stringify(value));
  if (one !== other) throw new Error(`${one} and not ${other}`);
}
const DONE = { outcome: 'finished', cancelled: false, value: { paid: 17 } };
/** Lets the clock on the wall go on. */
async function later(ms) {
  for (const until = Date.now() + ms; Date.now() <= until;)
    await new Promise((resolve) => setTimeout(resolve, 1));
}

/** @type {Record<string, (place: Place, other: Place) => Promise<void>>} */
export const CONTRACT = {
  async 'has an id that lasts, and that no other place has'(place, other) {
    const [one, two, elsewhere] = [place.store(), place.store({ rememberFor: 7 }), other.store()];
    const { id, rememberFor } = await one.open();
    same(rememberFor, 604_800_000);
    same(await one.open(), { id, rememberFor });
    same(await two.open(), { id, rememberFor: 7 });
    if ((await elsewhere.open()).id === id) throw new Error('it has the same id');
    await one.close();
    same((await one.open()).id, id);
  },

  async 'lets a call begin once, and tells all what became of it'(place) {
    const [one, two] = [place.store(), place.store()];
    same(await one.begin('k'), { state: 'begun' });
    same(await one.begin('k'), { state: 'running' });
    same(await two.begin('k'), { state: 'running' });
    await one.end('k', DONE);
    for (const store of [one, two, place.store()])
      same(await store.begin('k'), { state: 'ended', ended: DONE });
    same(await two.begin('K'), { state: 'begun' });
  },

  async 'keeps values as they are'(place) {
    const store = place.store();
    await store.begin('k');
    const value = { at: new Date(5), bytes: new Uint8Array([1, 2]), of: new Map([['a', 1n]]) };
    await store.end('k', { outcome: 'finished', cancelled: false, value });
    const { ended } = await place.store().begin('k');
    const { at, bytes, of } = ended.value;
    same([at.getTime(), ...bytes, typeof of.get('a')], [5, 1, 2, 'bigint']);
  },

  async 'keeps that a call has run where its value cannot be kept'(place) {
    const store = place.store();
    await store.begin('k');
    await store.end('k', { outcome: 'finished', cancelled: false, value: () => {} });
    const ended = { outcome: 'finished', cancelled: false };
    same(await place.store().begin('k'), { state: 'ended', ended });
  },

  async 'lets a call begin again that may, and says what was reported'(place) {
    const [one, two] = [place.store(), place.store()];
    await one.begin('k');
    await one.end('k', {
      outcome: 'stopped',
      cancelled: true,
      report: { applied: 3 },
      again: true,
    });
    same(await two.begin('k'), { state: 'begun', report: { applied: 3 } });
    same(await one.begin('k'), { state: 'running' });
    await two.end('k', DONE);
    same(await one.begin('k'), { state: 'ended', ended: DONE });
  },

  async 'knows that a call runs that begins as soon as another has ended'(place) {
    const store = place.store();
    await store.begin('k');
    const ends = store.end('k', { outcome: 'unstarted', cancelled: false, again: true });
    let found;
    do found = await store.begin('k');
    while (found.state !== 'begun');
    await ends;
    same(await store.begin('k'), { state: 'running' });
  },

  async 'says of a call that it is lost where that which began it is gone'(place) {
    const [one, two] = [place.store(), place.store()];
    await one.begin('k');
    await one.close();
    for (let i = 0; i < 2; i++) same(await two.begin('k'), { state: 'lost' });
    same(await one.begin('k'), { state: 'lost' });
    await two.end('k', DONE);
    same(await two.begin('k'), { state: 'lost' });
    // What one that was closed says after all comes too late.
    await one.begin('other');
    await one.close();
    same(await two.begin('other'), { state: 'lost' });
    await one.end('other', DONE);
    same(await two.begin('other'), { state: 'lost' });
  },

  async 'is not told what became of a call by one that has not begun it'(place) {
    const [one, two] = [place.store(), place.store()];
    await one.begin('k');
    await two.end('k', DONE);
    await two.end('other', DONE);
    same(await two.begin('k'), { state: 'running' });
    same(await two.begin('other'), { state: 'begun' });
  },

  async 'answers one of all that ask at once'(place) {
    const stores = [place.store(), place.store(), place.store()];
    const asked = stores.flatMap((store) => Array.from({ length: 5 }, () => store.begin('k')));
    const states = (await Promise.all(asked)).map(({ state }) => state);
    same(states.filter((state) => state === 'begun').length, 1);
    same(states.filter((state) => state === 'running').length, states.length - 1);
  },

  async 'keeps a key for the params of its call, whatever became of that, and tells those with others'(
    place,
  ) {
    const [one, two] = [place.store(), place.store()];
    const reused = { state: 'reused' };
    const ann = { ...DONE, digest: 'ann' };
    same(await one.begin('k', 'ann'), { state: 'begun' });
    for (const store of [one, two]) same(await store.begin('k', 'bob'), reused);
    same(await two.begin('k', 'ann'), { state: 'running' });
    await one.end('k', { ...ann, outcome: 'stopped', again: true });
    for (const store of [one, two]) same(await store.begin('k', 'bob'), reused);
    same(await two.begin('k', 'ann'), { state: 'begun' });
    await two.end('k', ann);
    for (const store of [one, two, place.store()]) same(await store.begin('k', 'bob'), reused);
    same(await one.begin('k', 'ann'), { state: 'ended', ended: ann });
    // Nobody knows what became of it.
    await one.begin('lost', 'ann');
    await one.close();
    same(await two.begin('lost', 'bob'), reused);
    same(await two.begin('lost', 'ann'), { state: 'lost' });
  },

  async 'lets go of a key that a call has left'(place) {
    const store = place.store({ rememberFor: 1 });
    await store.begin('k', 'ann');
    await store.end('k', { outcome: 'unstarted', cancelled: false, again: true });
    same(await store.begin('k', 'bob'), { state: 'begun' });
    same(await place.store().begin('k', 'ann'), { state: 'reused' });
    await store.end('k', { ...DONE, digest: 'bob' });
    await later(2);
    same(await store.begin('k', 'ann'), { state: 'begun' });
  },

  async 'lets one of two begin that have other params and ask at once'(place) {
    const stores = [place.store(), place.store(), place.store()];
    const asked = stores.flatMap((store) => ['ann', 'bob'].map((who) => store.begin('k', who)));
    const states = (await Promise.all(asked)).map(({ state }) => state);
    const count = (word) => states.filter((state) => state === word).length;
    same([count('begun'), count('running'), count('reused')], [1, 2, 3]);
  },

  async 'forgets a call after its time, but not one of which nothing is known'(place) {
    const [one, two] = [place.store({ rememberFor: 1 }), place.store({ rememberFor: 1 })];
    await one.begin('ended');
    await one.begin('lost');
    await one.end('ended', DONE);
    await one.close();
    await later(2);
    same(await two.begin('ended'), { state: 'begun' });
    same(await two.begin('lost'), { state: 'lost' });
  },

  async 'keeps no more than it may, and forgets what is old for what is new'(place) {
    const store = place.store({ capacity: 2, rememberFor: 1 });
    await store.begin('a');
    await store.begin('b');
    const refused = await store.begin('c').catch(({ code, retryable }) => [code, retryable]);
    same(refused, ['RATE_LIMITED', true]);
    same(await store.begin('a'), { state: 'running' });
    await store.end('a', DONE);
    await later(2);
    same(await store.begin('c'), { state: 'begun' });
  },
};
