/** Whether two types are the same, and not just assignable to each other. */
export type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if its type argument is `true`. */
export declare function is<_T extends true>(): void;
