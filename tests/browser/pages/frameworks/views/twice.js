// A view of ext-apps that begins twice, as its hook for React did up to 1.6: nobody closes the
// first.
import { App } from '@modelcontextprotocol/ext-apps';

console.debug = () => {};
const note = (line) => parent.postMessage({ note: line }, '*');
const begin = async () => {
  const app = new App({ name: 'View', version: '1' }, { tools: {} });
  app.onlisttools = () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
  app.oncalltool = ({ arguments: args }) => ({ content: [], structuredContent: args });
  app.ontoolinput = (params) => note(`input ${JSON.stringify(params.arguments)}`);
  await app.connect();
  return app;
};
const [, second] = await Promise.all([begin(), begin()]);
const { structuredContent } = await second.callServerTool({ name: 'echo', arguments: { n: 1 } });
note(`begun ${structuredContent.n}`);
addEventListener('message', async ({ data }) => {
  if (data?.again) await begin().then(() => note('again'));
});
