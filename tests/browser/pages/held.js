/**
 * Counts from now on what the page holds on to: listeners of windows, frames and signals, timers,
 * open ports.
 */
export function watchHeld() {
  const held = (window.held = { listeners: 0, timers: 0, ports: 0 });
  const listeners = new WeakMap();
  const keyed = (target, type) => {
    const byType = listeners.get(target) ?? listeners.set(target, {}).get(target);
    return (byType[type] ??= new Set());
  };
  const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    const target = this ?? window;
    const set = keyed(target, type);
    // A port's own end with it.
    if (!(target instanceof MessagePort) && !set.has(listener)) {
      set.add(listener);
      held.listeners++;
      const gone = () => set.delete(listener) && held.listeners--;
      if (options?.signal) add.call(options.signal, 'abort', gone);
    }
    return add.call(target, type, listener, options);
  };
  EventTarget.prototype.removeEventListener = function (type, listener, options) {
    const target = this ?? window;
    if (keyed(target, type).delete(listener)) held.listeners--;
    return remove.call(target, type, listener, options);
  };
  const timers = new Set();
  const { setTimeout: set, clearTimeout: clear } = window;
  window.setTimeout = (action, ms) => {
    // WebKit's driver has one of its own, for as long as a script may take.
    if (ms > 100_000) return set(action, ms);
    const id = set(() => {
      timers.delete(id);
      held.timers = timers.size;
      action();
    }, ms);
    held.timers = timers.add(id).size;
    return id;
  };
  window.clearTimeout = (id) => {
    timers.delete(id);
    held.timers = timers.size;
    clear(id);
  };
  const ports = new Set();
  const { start, close } = MessagePort.prototype;
  MessagePort.prototype.start = function () {
    held.ports = ports.add(this).size;
    return start.call(this);
  };
  MessagePort.prototype.close = function () {
    ports.delete(this);
    held.ports = ports.size;
    return close.call(this);
  };
}
