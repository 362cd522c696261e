/** The error codes of the protocol. */
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
 * Any text is a legal code. An editor completes the protocol's codes, and the app's own if they are
 * known.
 */
export type ErrorCode<Own extends string = never> = ProtocolCode | Own | (string & {});
