// An app whose keys are in IndexedDB. The test is told of each step (`reached`), and may end the
// page there.
import { expose } from '/parts/main/index.js';
import { indexedDBKeys } from '/parts/keys/index.js';
import { CONTRACT } from '/tests/contracts/key-store.js';

const { origins, options, forgets } = JSON.parse(decodeURIComponent(location.search.slice(1)));
const store = indexedDBKeys(options);
const keys = {
  open: () => store.open(),
  async begin(key, digest) {
    await window.reached('before it begins');
    const found = await store.begin(key, digest);
    await window.reached('once it is written that it begins');
    return found;
  },
  async end(key, ended) {
    await window.reached('once its handler has returned');
    await store.end(key, ended);
    await window.reached('once it is written what became of it');
  },
  close: () => store.close(),
};
expose(
  {
    app: { id: 'keys.app', name: 'Keys', version: '1' },
    capabilities: {
      async pay({ order }) {
        await window.reached('before its effect');
        await window.effect(order);
        await window.reached('after its effect');
        return { paid: order };
      },
    },
  },
  // Without a store it forgets with its page.
  { origins, ...(!forgets && { keys }) },
);

/** The contract, in this page. */
window.contract = async (what) => {
  const stores = [];
  const placeOf = (name) => ({
    store(given) {
      stores.push(indexedDBKeys({ ...given, name: `${what} ${name}` }));
      return stores.at(-1);
    },
  });
  try {
    await CONTRACT[what](placeOf('one'), placeOf('two'));
  } finally {
    for (const each of stores) await each.close();
  }
};
