// The inspector's command line as a client, over stdio.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PROGRAM } from '../support/program.js';
import { startSite } from '../support/site.js';
import { runPackage } from './packages.js';

let site;
before(async () => (site = await startSite()));
after(() => site.close());

/**
 * What the inspector prints of a request to the gateway.
 * @param {string[]} request
 */
async function inspect(...request) {
  const gateway = [process.execPath, PROGRAM, 'mcp', site.url(), '--temporary'];
  const { code, stdout } = await runPackage('@modelcontextprotocol/inspector@2.12.0', [
    'mcp-inspector',
    '--cli',
    ...gateway,
    ...request,
  ]);
  return { code, printed: JSON.parse(stdout) };
}

test('the inspector lists the tools of an app', async () => {
  const { code, printed } = await inspect('--method', 'tools/list');
  assert.equal(code, 0);
  const tool = printed.tools.find(({ name }) => name === 'number_add');
  assert.deepEqual([tool.title, tool.inputSchema.required], ['number.add', ['a', 'b']]);
});

test('the inspector calls a tool, and gets its result', async () => {
  const request = ['--method', 'tools/call', '--tool-name', 'number_add'];
  const { code, printed } = await inspect(...request, '--tool-arg', 'a=40', '--tool-arg', 'b=2');
  assert.equal(code, 0);
  assert.deepEqual(printed.content, [{ type: 'text', text: '42' }]);
});
