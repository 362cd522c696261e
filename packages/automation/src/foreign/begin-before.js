/** The session with an app of others' making, before that of an agent. */
import * as abp from '../../../../js/driver/abp-boundary.js';
import { toErrorObject } from '../../../../js/common/errors.js';
import { getOwn } from '../../../../js/common/values.js';

/**
 * The session of a connection begins after the app's own.
 * @param {import('../../../../js/app/connection.js').Connection} connection
 * @param {(hello: unknown) => Promise<void>} begin begins the app's, unless it has begun; rejects with the app's error
 */
export function beginBefore(connection, begin) {
  const { first } = connection;
  const receive = connection.receive.bind(connection);
  /** The id of the `initialize` that waits: it is repeated until it is answered. @type {unknown} */
  let asked;
  connection.receive = (data, ports, via = first) => {
    if (via !== first || getOwn(data, 'type') !== abp.TYPE_INITIALIZE)
      return receive(data, ports, via);
    const id = getOwn(data, 'id');
    if (id === asked) return;
    asked = id;
    const answered = begin(getOwn(data, 'payload')).then(() => connection.refresh());
    const refuse = (/** @type {unknown} */ error) => {
      const payload = { success: false, error: toErrorObject(error) };
      via.post({ type: abp.TYPE_INITIALIZE_RESULT, id, timestamp: Date.now(), payload });
    };
    void answered.then(() => receive(data, ports, via), refuse).then(() => (asked = undefined));
  };
}
