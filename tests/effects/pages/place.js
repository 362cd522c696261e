/** Where handlers of a page run, and calls are made: their rows go to the database over HTTP. */

/**
 * @param {string} database its URL
 * @param {string} [name] of the session
 */
export function placeOf(database, name) {
  const post = (/** @type {object} */ row) =>
    fetch(database, { method: 'POST', body: JSON.stringify(row) });
  let released;
  return {
    /** When this returns, the row stands. */
    write(row) {
      const request = new XMLHttpRequest();
      request.open('POST', database, false);
      request.send(JSON.stringify(row));
    },
    writeElsewhere: post,
    // All share one request: browsers have but few at a time.
    released: () => (released ??= fetch(`${database}/released/${name}`)),
    pace: () => fetch(database),
  };
}

/** What the address of a page or of a worker says. */
export const settingsHere = () => JSON.parse(decodeURIComponent(location.search.slice(1)));

/**
 * @param {string} address
 * @param {object} settings
 */
export const addressWith = (address, settings) =>
  `${address}?${encodeURIComponent(JSON.stringify(settings))}`;
