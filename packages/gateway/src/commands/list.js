/** `list`: what an app can do. */
import { appOf } from '../app.js';
import { cleanText, jsonText, lineOf } from '../texts.js';

/** Characters of a description that a terminal shows. */
const MAX_DESCRIPTION = 500;

/** Whether a capability can be called now, and why not. @param {import('../app.js').Capability} capability */
function availability({ available, requirements }) {
  const unmet = (Array.isArray(requirements) ? requirements : []).filter((r) => r?.met === false);
  const why = unmet.map(({ description, resolution }) =>
    [lineOf(description), lineOf(resolution)].filter(Boolean).join(': '),
  );
  return { available: available !== false && !unmet.length, why };
}

/** @param {[string]} positionals @param {import('../commands.js').Values} values @param {{ version: string }} context */
export async function execute([address], values, context) {
  const app = appOf(address, values, context);
  try {
    const client = await app.open();
    const capabilities = await client.listCapabilities();
    if (values.json) {
      const shown = { app: client.app, capabilities };
      process.stdout.write(`${jsonText(shown, 2)}\n`);
      return;
    }
    const { name, version } = client.app ?? {};
    const lines = [`${lineOf(name)} ${lineOf(version)}`.trim(), ''];
    for (const capability of capabilities) {
      const { available, why } = availability(capability);
      lines.push(
        `${lineOf(capability.name)}${available ? '' : '  (not available)'}${capability.deprecated === true ? '  (deprecated)' : ''}`,
      );
      const description = cleanText(capability.description, MAX_DESCRIPTION);
      if (description) lines.push(...description.split('\n').map((line) => `    ${line}`));
      for (const reason of why) lines.push(`    needs: ${reason}`);
      if (capability.inputSchema) {
        lines.push(`    takes: ${lineOf(JSON.stringify(capability.inputSchema), 2000)}`);
      }
    }
    process.stdout.write(`${lines.join('\n')}\n`);
  } finally {
    await app.close();
  }
}
