/**
 * Hooks for React: a connection and a call, which end with their component. StrictMode may mount a
 * component twice.
 */
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Call, ConnectionStore, UNMOUNTED } from './stores.js';

/** @import { Client, ConnectOptions, Opener } from '../../js/agent/client.js' */
/** @import { CallArguments, NameOf } from '../../js/types/app.js' */
/**
 * @template [App=any]
 * @typedef {import('./stores.js').ConnectionState<App>} ConnectionState The state of a connection,
 *   for a component.
 */
/**
 * @template [App=any]
 * @template {NameOf<App>} [Name=NameOf<App>]
 * @typedef {import('./stores.js').CallState<App, Name>} CallState The state of a call, for a
 *   component.
 */
/**
 * @template App
 * @template {NameOf<App>} Name
 * @typedef {import('./stores.js').Calling<App, Name>} Calling Functions that make and cancel a call
 *   of one capability.
 */
/** @typedef {import('./stores.js').Target} Target */

/**
 * Connects to an app while the component is mounted, and reconnects automatically.
 * @example
 * const [iframe, setIframe] = useState(null);
 * const { client, status } = useConnection(iframe, { origin, agent });
 * <iframe ref={setIframe} src={src} />;
 * @template [App=any] the type of the app; see `connect`
 * @param {Target | { current: Target }} target the iframe, or another target of `connect`; a ref is
 *   read when the component has been mounted. If a function is passed, the first one is used
 * @param {ConnectOptions} options the callbacks may change; a new `origin` makes a new connection
 * @returns {ConnectionState<App>}
 */
export function useConnection(target, options) {
  const [connection] = useState(() => new ConnectionStore(options));
  useEffect(() => {
    connection.options = options;
  });
  const opens = typeof target === 'function' && 'a function';
  useEffect(() => {
    const element = target && 'current' in target ? target.current : target;
    return connection.open(/** @type {Target} */ (element));
    // A function is a new one in each rendering.
  }, [connection, opens || target, options.origin]);
  return useSyncExternalStore(connection.subscribe, connection.get, connection.get);
}

/**
 * Calls a capability. The call is cancelled when the component is unmounted, and by the next call.
 * @example
 * const { call, cancel, pending, progress, response } = useCall(client, 'export.pdf');
 * @template App the type of the app
 * @template {NameOf<App>} Name
 * @param {Client<App> | undefined} client the client of `useConnection`
 * @param {Name} name
 * @returns {CallState<App, Name> & Calling<App, Name>}
 */
export function useCall(client, name) {
  const [calls] = useState(() => new Call());
  useEffect(() => () => calls.cancel(UNMOUNTED), [calls]);
  const state = useSyncExternalStore(calls.subscribe, calls.get, calls.get);
  const call = useCallback(
    (/** @type {CallArguments<App, Name>} */ ...[params, options]) =>
      calls.start(client, name, params, options),
    [calls, client, name],
  );
  return /** @type {any} */ ({ ...state, call, cancel: calls.cancel });
}

/**
 * The parts of a view that `useView` uses: `View` of `@abp-bridge/mcp-apps` has them.
 * @typedef {object} AnyView
 * @property {any} context the host's context
 * @property {Promise<unknown>} closed
 * @property {() => void} applyStyles
 */

/**
 * A view of MCP Apps, as the state of `useView`.
 * @template {AnyView} [View=AnyView]
 * @typedef {object} ViewState
 * @property {View | undefined} view set once its host has answered
 * @property {View['context']} context the host's context: theme, locale, sizes and so on
 * @property {unknown} error the reason why there is no view, if known
 */

/** @type {ViewState<any>} */
const NO_VIEW = { view: undefined, context: {}, error: undefined };
const TOLD = /** @type {const} */ ([
  'onToolInput',
  'onToolInputPartial',
  'onToolResult',
  'onToolCancelled',
  'onTeardown',
  'onNotification',
]);

/**
 * Is a view of an MCP Apps host while the component is mounted.
 * @example
 * const { view, context } = useView(createView, { app, onToolInput: setInput });
 * @template {AnyView} View
 * @template Options
 * @param {(options: Options) => Promise<View>} createView `createView` of `@abp-bridge/mcp-apps`,
 *   or of one of its single files
 * @param {NoInfer<Options>} options the options of `createView`: the callbacks may change; for
 *   other options the first values are used
 * @returns {ViewState<View>}
 */
export function useView(createView, options) {
  const [state, setState] = useState(/** @type {ViewState<View>} */ (NO_VIEW));
  const latest = useRef(/** @type {any} */ (options));
  useEffect(() => {
    latest.current = options;
  });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const { signal: given } = latest.current;
    const set = (/** @type {Partial<ViewState<View>>} */ changes) =>
      signal.aborted || setState((before) => ({ ...before, ...changes }));
    const callbacks = TOLD.map((name) => [
      name,
      (/** @type {any[]} */ ...told) => latest.current[name]?.(...told),
    ]);
    createView({
      ...latest.current,
      ...Object.fromEntries(callbacks),
      onContextChange(/** @type {unknown} */ changes, /** @type {View['context']} */ context) {
        set({ context });
        latest.current.onContextChange?.(changes, context);
      },
      signal: given ? AbortSignal.any([given, signal]) : signal,
    }).then(
      (view) => {
        set({ view, context: view.context, error: undefined });
        void view.closed.then((error) => set({ ...NO_VIEW, error }));
      },
      (error) => set({ ...NO_VIEW, error }),
    );
    return () => {
      controller.abort();
      setState(NO_VIEW);
    };
  }, [createView]);
  return state;
}

/**
 * Applies the host's theme, variables and fonts to the document, now and after each change.
 * @param {ViewState} state the result of `useView`
 */
export function useHostStyles({ view, context }) {
  useEffect(() => view?.applyStyles(), [view, context]);
}

const subscribeToTheme = (/** @type {() => void} */ changed) => {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
};
const themeOf = () => (document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light');

/**
 * The document's theme, as set by `useHostStyles` or `applyStyles`.
 * @returns {'light' | 'dark'}
 */
export const useDocumentTheme = () =>
  useSyncExternalStore(subscribeToTheme, themeOf, () => 'light');
