import { entries } from './entries.js';
import { smoke } from './smoke.js';

const all = await Promise.all([smoke(), entries()]).catch(String);
globalThis.outcome = String(all);
