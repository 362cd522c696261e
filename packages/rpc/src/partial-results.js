/**
 * Results that a handler makes part by part: LSP's partial results, joined for callers that did not
 * request parts.
 */
import { Collection, Iteration, abortError, breathe, getOwn, isRecord } from 'abp-bridge/driver';

export { Iteration };

/**
 * Sends all parts of a call's result, or joins them. Returns the result.
 * @param {import('./peer.js').Peer} peer
 * @param {import('./received-call.js').ReceivedCall} call
 * @param {Iteration} iteration of the handler's return value
 */
export async function resultOfParts(peer, call, iteration) {
  const wanted = peer.dialect.progress?.wanted(call.params, 'onPartialResult');
  const collection = wanted === undefined ? new Collection() : undefined;
  const { returned, value } = await iteration.run(async (part) => {
    if (collection) return collection.add(part);
    peer.progress(call, 'onPartialResult', part);
    await peer.room();
    // Lets a cancel in.
    await breathe();
  });
  if (!returned) throw abortError(call.reason);
  // A value returned in spite of a cancel is its result, as with any handler; without a value, the
  // parts are dropped.
  const isLate = call.aborted && value === undefined;
  return collection && !isLate ? joinParts(collection.chunks, value) : value;
}

/**
 * Joins parts to a result, as LSP appends them: lists one after the other, objects member by
 * member. If they cannot be joined, the result is the handler's return value or, if there is none,
 * the list of the parts.
 * @param {unknown[]} parts
 * @param {unknown} last the handler's return value
 */
function joinParts(parts, last) {
  if (!parts.length) return last;
  const whole = Array.isArray(parts[0]) ? [] : {};
  const all = [...parts, ...((last ?? null) === null ? [] : [last])];
  return all.every((part) => append(whole, part)) ? whole : (last ?? parts);
}

/**
 * Appends a part, with the lists and objects in it. Returns false if that is impossible.
 * @param {any} whole
 * @param {unknown} part
 */
function append(whole, part) {
  if (Array.isArray(part)) {
    // Completions may be an object with items, and then lists of more of them.
    const list = Array.isArray(whole) ? whole : getOwn(whole, 'items');
    if (!Array.isArray(list)) return false;
    for (const item of part) list.push(item);
    return true;
  }
  if (Array.isArray(whole) || !isRecord(part)) return false;
  for (const [key, value] of Object.entries(part)) {
    const known = getOwn(whole, key);
    if (Array.isArray(known) && Array.isArray(value)) append(known, value);
    else if (isRecord(known) && isRecord(value)) define(known, value);
    else
      define(whole, {
        [key]: Array.isArray(value) ? [...value] : isRecord(value) ? { ...value } : value,
      });
  }
  return true;
}

/**
 * Sets members, whatever their names.
 * @param {object} object
 * @param {object} members
 */
const define = (object, members) =>
  Object.defineProperties(object, Object.getOwnPropertyDescriptors({ ...members }));
