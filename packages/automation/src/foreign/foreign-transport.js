/** An app of others' making as the other side of a transport, for one agent's `connect`. */
import { ForeignCapabilities } from './foreign-capabilities.js';
import { RelayTransport } from './relay-transport.js';

export class ForeignTransport extends RelayTransport {
  isOne = true;

  /**
   * @param {import('./foreign-app.js').ForeignApp} app
   * @param {import('../../../../js/driver/abp-core.js').Limits} [limits]
   * @param {() => void} [onEnd] called when the app's session has ended, too
   */
  constructor(app, limits, onEnd) {
    const nobody = { notify() {}, notifyProgress() {}, elicit() {} };
    const capabilities = new ForeignCapabilities(app, nobody);
    super(capabilities, () => void capabilities.end('The agent disconnected').then(onEnd), limits);
    capabilities.audience = this;
  }
}
