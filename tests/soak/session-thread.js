// An app in a worker thread.
import { expose } from '../../parts/main/index.js';
import { HANDLERS } from './session-app.js';

expose({ app: { id: 'a.b', name: 'A', version: '1' }, capabilities: HANDLERS });
