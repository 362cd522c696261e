/** Marks records, by which the core's actions tell what an input was about, without knowing their classes. */
export const RECORD = Symbol('record');

/** A call that was received. */
export const RECEIVED = 1;
/** A cancel of a call that this side may not have made. */
export const CANCELS = 2;
/** A chunk of a stream. */
export const CHUNK = 3;
