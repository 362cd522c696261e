// Express has no types of its own; what the recipes use of it.
declare module 'express' {
  import type { RequestListener, Server } from 'node:http';

  // The official SDK of A2A names them.
  export interface Request {}
  export type RequestHandler = RequestListener;
  export type Router = RequestListener;
  type Middleware = (request: any, response: any, next: (error?: any) => void) => unknown;
  function express(): RequestListener & {
    use(path: string, ...handlers: (RequestListener | Middleware)[]): void;
    listen(port: number): Server;
    get(
      path: string,
      answer: (request: object, response: { send(text: string): void }) => void,
    ): void;
  };
  namespace express {
    function json(options?: { limit?: string }): RequestListener;
  }
  export default express;
}
