/** The words of the dialects, and messages in them. */

export const DIALECTS = /** @type {const} */ (['acp', 'lsp', 'mcp']);

export const ANSWERING = /** @type {const} */ (['acp', 'lsp']);

export const CANCEL = {
  acp: ['$/cancel_request', 'requestId'],
  lsp: ['$/cancelRequest', 'id'],
  mcp: ['notifications/cancelled', 'requestId'],
};

export const request = (id, method = 'slow', params = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

export const cancelOf = (dialect, id, more) => {
  const [method, key] = CANCEL[dialect];
  return { jsonrpc: '2.0', method, params: { [key]: id, ...more } };
};

/** Lets the event loop go round. */
export const aTurn = () => new Promise((resolve) => setImmediate(resolve));

export const closeBoth = ({ a, b }) => {
  a.close();
  b.close();
};
