/** How the WebMCP tools of a page are reached: what is injected into it, and how its answers are read. */
import { modelContext } from '../common/model-context.js';
import { bytesToText } from '../wire/binary.js';
import { plainJson } from '../wire/plain-json.js';
import { pageTools } from './page-tools.js';
import { responseOf } from './tool-results.js';

/** How long a page that has tools may take to show a `window.abp`, which loses nothing, in ms. */
const PATIENCE = 500;

/** @type {import('./page.js').ToolsWay} */
export const TOOLS = {
  functions: [bytesToText, plainJson, modelContext, pageTools],
  options: { patience: PATIENCE },
  read: responseOf,
};
