import { AbpError } from 'abp-bridge/driver';

/**
 * The error of a request that the agent has certainly not accepted: it did not arrive, or the agent
 * is too busy for it now.
 */
export class Unsent extends AbpError {}
