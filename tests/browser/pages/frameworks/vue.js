// The page of the tests in Vue: a connection, and a component with a call that can be taken away.
import { KeepAlive, createApp, h, ref, watchEffect } from 'vue';
import { useCall, useConnection } from '/parts/frameworks/vue.js';

const Calls = {
  props: ['client', 'name'],
  setup(props) {
    const { call, cancel, pending, progress, response } = useCall(
      () => props.client,
      () => props.name,
    );
    return () => {
      const state = {
        pending: pending.value,
        progress: progress.value,
        response: response.value,
      };
      return h('div', [
        h('button', { id: 'call', onClick: () => void call({ n: 1 }) }),
        h('button', { id: 'cancel', onClick: () => cancel('the button') }),
        h('output', { id: 'call-state' }, JSON.stringify(state)),
      ]);
    };
  },
};

const Writer = {
  props: ['src', 'origin', 'name', 'options'],
  setup(props) {
    const iframe = ref(null);
    const calls = ref(true);
    const { client, status, error } = useConnection(iframe, {
      origin: props.origin,
      ...props.options,
      agent: { name: 'vue', version: '1' },
      onNotification: (event) => (window.events ??= []).push(event),
    });
    // Deep reactivity must not reach into a client.
    const kept = ref({});
    watchEffect(() => (kept.value = { client: client.value }));
    watchEffect(() => (window.client = kept.value.client));
    window.toggle = () => (calls.value = !calls.value);
    return () =>
      h('div', [
        h('iframe', { src: props.src, ref: iframe }),
        h('output', { id: 'status' }, status.value),
        h('output', { id: 'error' }, error.value?.code ?? ''),
        calls.value ? h(Calls, { client: client.value, name: props.name }) : undefined,
      ]);
  },
};

/** Keeps the component while something else is shown. */
const Panel = {
  setup(_props, { attrs }) {
    const shown = ref(true);
    window.show = (is) => (shown.value = is);
    return () => h(KeepAlive, () => h(shown.value ? Writer : 'p', shown.value ? attrs : undefined));
  },
};

window.mount = (props) => {
  const app = createApp(Panel, props);
  app.mount('#root');
  window.unmount = () => app.unmount();
};
