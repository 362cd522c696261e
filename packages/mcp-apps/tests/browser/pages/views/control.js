// What views do for the tests: notes, and commands that a test gives by way of the host's page.
export const note = (line) => parent.postMessage({ note: line }, '*');

/** @param {Record<string, (...args: any[]) => any>} commands */
export function control(commands) {
  addEventListener('message', async ({ data }) => {
    if (!Object.hasOwn(commands, data?.command)) return;
    let said;
    try {
      said = { value: await commands[data.command](...data.args) };
    } catch ({ name, message, code, data: more }) {
      said = { error: { name, message, code, data: more } };
    }
    parent.postMessage({ answer: data.id, ...said }, '*');
  });
}

/** Whether the policy of views holds here: nothing is fetched, compiled or framed. */
export async function policy() {
  const tried = async (act) => {
    try {
      await act();
      return 'allowed';
    } catch {
      return 'refused';
    }
  };
  const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
  return {
    fetch: await tried(() => fetch(`${self.origin}/tests/browser/pages/blank.html`)),
    outer: await tried(() => parent.fetch(`${self.origin}/tests/browser/pages/blank.html`)),
    wasm: await tried(() => WebAssembly.instantiate(wasm)),
  };
}

/** Handlers of the views' tools. */
export const hang = (signal) => {
  note('view started');
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => {
      note(`view aborted: ${signal.reason.message ?? signal.reason}`);
      reject(signal.reason);
    }),
  );
};

/** Calls of the host's tools by name. */
const calls = {};
export const calling = (call) => ({
  call(key, name, args) {
    const controller = new AbortController();
    const progress = [];
    const outcome = call(name, args, controller.signal, (info) => progress.push(info)).then(
      ({ structuredContent, content, isError }) => ({
        value: structuredContent ?? content,
        isError,
        progress,
      }),
      ({ name, message, code, data }) => ({ error: { name, message, code, data }, progress }),
    );
    calls[key] = { controller, outcome };
  },
  abort: (key, reason) => calls[key].controller.abort(reason),
  outcome: (key) => calls[key].outcome,
});
