// A client that somebody else ends: it calls what hangs. Arguments: the program's.
import { connectClient } from './clients.js';

const mcp = await connectClient('1.x', { args: process.argv.slice(2) });
await mcp.call('work_hang');
