/**
 * The code that is injected into a driven page. The build makes one text of it and its imports:
 * dist/in-page.js.
 */
import { pageTools } from '@abp-bridge/webmcp/page-tools';
import { pageAgent } from './page-agent.js';

/** Ms that a page with tools has to show a `window.abp`, which supports more. */
const PATIENCE = 500;

/**
 * Makes the object in the page.
 * @param {boolean} webmcp whether WebMCP's tools are used if there is no `window.abp`
 */
export const agent = (webmcp) =>
  pageAgent(globalThis, webmcp ? pageTools({ patience: PATIENCE }) : undefined);
