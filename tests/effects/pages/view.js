// The same app as a view of MCP Apps. `settings` stands in its document.
import { createView, expose, toolsOf } from '../../../packages/mcp-apps/src/app.js';
import { handlersOf, withChecks } from '../work.js';
import { placeOf } from './place.js';

const { database, name, limits } = window.settings;
const app = { id: 'a.b', name: 'A', version: '1' };
const capabilities = withChecks(handlersOf(placeOf(database, name)));
window.exposed = expose({ app, capabilities }, { origins: [], limits });
await createView({ app, tools: toolsOf(window.exposed) });
