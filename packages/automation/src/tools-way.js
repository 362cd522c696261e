/** How the WebMCP tools of a page are reached: what is injected into it, and how its answers are read. */
import { modelContext } from './model-context.js';
import { bytesToText } from '../../binary/src/binary.js';
import { plainJson } from './plain-json.js';
import { pageTools } from './page-tools.js';
import { describeTool, toolList } from './tool-list.js';
import { toolRunner } from './tool-runner.js';
import { readAnswer } from './tool-results.js';

/** How long a page that has tools may take to show a `window.abp`, which loses nothing, in ms. */
const PATIENCE = 500;

/** @type {import('./page.js').ToolsWay} */
export const TOOLS = {
  functions: [
    ...[bytesToText, plainJson, modelContext],
    ...[describeTool, toolList, toolRunner, pageTools],
  ],
  options: { patience: PATIENCE },
  read: readAnswer,
};
