/** The codes that the protocol names. */
export type ProtocolCode =
  | 'NOT_INITIALIZED'
  | 'ALREADY_INITIALIZED'
  | 'SESSION_EXPIRED'
  | 'SESSION_INVALID'
  | 'UNKNOWN_CAPABILITY'
  | 'CAPABILITY_UNAVAILABLE'
  | 'REQUIREMENT_NOT_MET'
  | 'PRECONDITION_FAILED'
  | 'INVALID_PARAMS'
  | 'MISSING_PARAM'
  | 'INVALID_TYPE'
  | 'PERMISSION_DENIED'
  | 'PERMISSION_REQUIRED'
  | 'OPERATION_FAILED'
  | 'TIMEOUT'
  | 'CANCELLED'
  | 'RATE_LIMITED'
  | 'NOT_IMPLEMENTED'
  | 'NOT_SUPPORTED'
  | 'BROWSER_ERROR'
  | 'INTERNAL_ERROR'
  | 'TRANSPORT_ERROR'
  | 'DISCONNECTED';

/**
 * Any text is a legal code; an editor completes the protocol's, and the app's own where they are
 * known.
 */
export type ErrorCode<Own extends string = never> = ProtocolCode | Own | (string & {});
