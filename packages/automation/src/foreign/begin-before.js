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
  /** The id of the `initialize` that waits. @type {unknown} */
  let asked;
  connection.receive = (data, ports, via = first) => {
    if (via !== first || getOwn(data, 'type') !== abp.TYPE_INITIALIZE)
      return receive(data, ports, via);
    const id = getOwn(data, 'id');
    // It is repeated until it is answered.
    if (id === asked) return;
    asked = id;
    void begin(getOwn(data, 'payload'))
      .then(() => connection.refresh())
      .then(
        () => receive(data, ports, via),
        (error) => {
          const payload = { success: false, error: toErrorObject(error) };
          via.post({ type: abp.TYPE_INITIALIZE_RESULT, id, timestamp: Date.now(), payload });
        },
      )
      .then(() => (asked = undefined));
  };
}
