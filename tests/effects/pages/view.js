// The same app as a view of MCP Apps. `settings` stands in its document.
import { createView, expose, toolsOf } from '../../../packages/mcp-apps/src/app.js';
import { handlersOf } from '../work.js';
import { placeOf } from './place.js';

const { database, name, limits } = window.settings;
const app = { id: 'a.b', name: 'A', version: '1' };
const capabilities = handlersOf(placeOf(database, name));
const exposed = expose({ app, capabilities }, { origins: [], limits });
await createView({ app, tools: toolsOf(exposed) });
