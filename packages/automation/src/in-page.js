/**
 * What is injected into a page that is driven. The build makes one text of it and of what it
 * imports: dist/in-page.js.
 */
import { pageTools } from '@abp-bridge/webmcp/page-tools';
import { pageAgent } from './page-agent.js';

/** How long a page that has tools may take to show a `window.abp`, which loses nothing, in ms. */
const PATIENCE = 500;

/**
 * Makes what connects the page.
 * @param {boolean} webmcp whether WebMCP's tools are taken where there is no `window.abp`
 */
export const agent = (webmcp) =>
  pageAgent(globalThis, webmcp ? pageTools({ patience: PATIENCE }) : undefined);
