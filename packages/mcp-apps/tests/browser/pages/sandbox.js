// The page between host and view. Its address says who its hosts are.
import { serveSandbox } from '../../../src/sandbox.js';

serveSandbox({ hosts: JSON.parse(decodeURIComponent(location.hash.slice(1))) });
