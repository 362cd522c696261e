// The package on the server.
import { smoke } from '../../smoke.js';

export const dynamic = 'force-dynamic';
export const GET = async () => new Response(await smoke());
