// Express has no types of its own; what the recipes use of it.
declare module 'express' {
  import type { RequestListener } from 'node:http';

  export default function express(): RequestListener & {
    get(
      path: string,
      answer: (request: object, response: { send(text: string): void }) => void,
    ): void;
  };
}
