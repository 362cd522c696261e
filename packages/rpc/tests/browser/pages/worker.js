// A worker that serves what the tests' pages serve.
import { portChannel } from '../../../src/index.js';
import { SDKS, handlers } from '../../support/sdks.js';

let aborted = 0;
const serve = handlers((line) => (aborted += Number(line === 'aborted')));
void SDKS['ACP SDK'].open('server', portChannel(self), (name, ...rest) =>
  name === 'aborted' ? aborted : serve(name, ...rest),
);
