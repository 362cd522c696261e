// The page between host and view. Its address says who its hosts are.
import { serveSandbox } from '../../../../js/mcp-apps/sandbox.js';

serveSandbox({ hosts: JSON.parse(decodeURIComponent(location.hash.slice(1))) });
