// The page of the tests in Svelte: a connection, and a component with a call that can be taken
// away.
import { mount, unmount } from 'svelte';
import Writer from './Writer.svelte';

window.mount = (props) => {
  const component = mount(Writer, { target: document.querySelector('#root'), props });
  window.unmount = () => unmount(component);
};
