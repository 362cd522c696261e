import { AbpError } from 'abp-bridge/driver';

/**
 * A request that the agent has certainly not taken: it did not arrive, or the agent is too busy for
 * it now.
 */
export class Unsent extends AbpError {}
