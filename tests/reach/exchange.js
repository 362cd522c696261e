/**
 * A call and a cancel.
 * @param {import('abp-bridge').Client} client
 */
export async function exchange(client) {
  const controller = new AbortController();
  const hanging = client.call('hang', {}, { signal: controller.signal });
  const { data } = await client.call('double', { n: 21 });
  controller.abort('enough');
  const { cancelled, error } = await hanging;
  return [data, cancelled, error?.message].join();
}
