// The app's page. What it is is said in its address.
import { mcpTransport } from '../../../src/adapters/mcp.js';
import { hostChannel } from '../../../src/index.js';
import { SDKS, handlers } from '../../support/sdks.js';
import { note } from './common.js';
import { VIEWS } from './mcp-apps.js';

const options = JSON.parse(decodeURIComponent(location.search.slice(1)));
const { sdk, role = 'server', view, origins, upgrade, host = 'parent' } = options;
const channel = () => hostChannel({ origins, upgrade, host: window[host] });
window.end = sdk
  ? await SDKS[sdk].open(role, channel(), handlers(note))
  : await VIEWS[view]({ channel, mcpTransport });
