import * as rawPort from './raw-port.js';

/** A window in the form of a port. */
function windowPort(target, origin) {
  const port = {
    postMessage: (message, transfer) =>
      target.postMessage(message, { targetOrigin: origin, transfer }),
    onmessage: undefined,
    close: () => removeEventListener('message', receive),
  };
  const receive = (event) => {
    if (event.origin === origin && event.source === target && !event.data?.setUp)
      port.onmessage?.(event);
  };
  addEventListener('message', receive);
  return port;
}
export const host = ({ iframe, origin }) =>
  rawPort.host({ port: windowPort(iframe.contentWindow, origin) });
export const app = ({ origin }, handlers) =>
  rawPort.app({ port: windowPort(parent, origin) }, handlers);
