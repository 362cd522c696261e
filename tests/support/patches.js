/**
 * What pages have made of the language: each changes the realm that it runs in. They use nothing
 * outside themselves, so that they can be run in a page. Those of `AFTER` break what a page needs
 * to load, and are only tried in pages that have loaded.
 */
export const PATCHES = {
  /**
   * Prototype.js 1.6: lists, texts and numbers write themselves, and everything has methods that a
   * loop over members finds.
   */
  'an old Prototype.js'() {
    const written = (value) =>
      typeof value === 'object' && value !== null
        ? Array.isArray(value)
          ? `[${value.map(written).join(', ')}]`
          : `{${Object.keys(value).map((key) => `"${key}": ${written(value[key])}`)}}`
        : typeof value === 'string'
          ? `"${value}"`
          : String(value);
    Object.assign(Array.prototype, {
      toJSON() {
        return written(this);
      },
      each(iterator) {
        for (let i = 0; i < this.length; i++) iterator(this[i], i);
      },
      find(iterator) {
        for (let i = 0; i < this.length; i++) if (iterator(this[i], i)) return this[i];
      },
      map(iterator) {
        const results = [];
        for (let i = 0; i < this.length; i++) results[i] = iterator(this[i], i);
        return results;
      },
      reduce(iterator, memo) {
        for (let i = 0; i < this.length; i++) memo = iterator(memo, this[i], i);
        return memo;
      },
    });
    for (const { prototype } of [String, Number, Boolean])
      prototype.toJSON = function () {
        return written(this.valueOf());
      };
    Array.from = (iterable) => [...iterable];
    Object.keys = (object) => {
      const keys = [];
      for (const key in object) keys.push(key);
      return keys;
    };
  },
  'a toJSON of all objects'() {
    Object.prototype.toJSON = () => 'other';
  },
  'a toJSON of all lists that throws'() {
    Array.prototype.toJSON = () => {
      throw new Error('no');
    };
  },
  'members of all objects that a loop finds'() {
    Object.prototype.each = () => {};
    Object.prototype.size = 5;
  },
  'JSON.parse that makes dates'() {
    const { parse } = JSON;
    JSON.parse = (text, revive = (_key, value) => value) =>
      parse(text, (key, value) =>
        revive(key, /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value) : value),
      );
  },
  'JSON.stringify that indents'() {
    const { stringify } = JSON;
    JSON.stringify = (value, replacer) => stringify(value, replacer, 2);
  },
  'a Map of its own'() {
    globalThis.Map = class extends Map {
      constructor(entries) {
        super();
        for (const [key, value] of entries ?? []) this.set(key, value);
      }
    };
  },
  'then of promises'() {
    const { then } = Promise.prototype;
    Promise.prototype.then = function (done, failed) {
      // A microtask later than the language has it.
      const later = then.call(this, (value) => value);
      return then.call(later, done, failed);
    };
  },
  'methods of lists'() {
    for (const name of ['push', 'map', 'slice', 'splice', 'filter', Symbol.iterator]) {
      const method = Array.prototype[name];
      Array.prototype[name] = function (...given) {
        return Reflect.apply(method, this, given);
      };
    }
  },
};

export const AFTER = {
  'JSON that is replaced'() {
    JSON.stringify = () => '"no"';
    JSON.parse = () => {
      throw new Error('no');
    };
  },
};
