/**
 * The agent's entry. The core begins to load with the page, so that no connection waits for it.
 * `Client` and `connect` are bindings of this file: bundlers that split code would follow `export …
 * from` into the client for pages that only expose an app, because the code for foreign apps loads
 * it on demand.
 */
import { Client as AnyClient, connect as connectTo } from '../../js/agent/client.js';
import { ready } from '../../js/driver/abp-core.js';
import { fillForAgents } from './parts.js';

fillForAgents();
void ready();

/**
 * @template [App=any] the type of the app; see {@link connect}
 * @typedef {AnyClient<App>} Client An agent's connection to an app.
 */
/** An agent's connection to an app. */
export const Client = AnyClient;
/** Connects to an app; js/agent/client.js describes how. */
export const connect = connectTo;
