// The page of the tests in Vue: a connection, and a component with a call that can be taken away.
import { createApp, h, ref, watchEffect } from 'vue';
import { useCall, useConnection } from '/packages/frameworks/src/vue.js';

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
  props: ['src', 'origin', 'name'],
  setup(props) {
    const iframe = ref(null);
    const calls = ref(true);
    const { client, status, error } = useConnection(iframe, {
      origin: props.origin,
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

window.mount = (props) => {
  const app = createApp(Writer, props);
  app.mount('#root');
  window.unmount = () => app.unmount();
};
