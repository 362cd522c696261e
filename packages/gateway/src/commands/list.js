/** `list`: lists the capabilities of an app. */
import { App } from '../app.js';
import { EXIT } from '../errors.js';
import { signalled } from '../signals.js';
import { cleanText, jsonText, lineOf } from '../texts.js';

/** Characters of a description on a terminal. */
const MAX_DESCRIPTION = 500;

/**
 * The lines for a capability on a terminal.
 * @param {import('../app.js').Capability} capability
 */
function linesOf({ name, description, available, requirements, deprecated, inputSchema }) {
  const unmet = (Array.isArray(requirements) ? requirements : []).filter((r) => r?.met === false);
  const isAvailable = available !== false && !unmet.length;
  const about = cleanText(description, MAX_DESCRIPTION);
  return [
    `${lineOf(name)}${isAvailable ? '' : '  (not available)'}${deprecated === true ? '  (deprecated)' : ''}`,
    ...(about ? about.split('\n').map((line) => `    ${line}`) : []),
    ...unmet.map(
      (each) =>
        `    needs: ${[lineOf(each.description), lineOf(each.resolution)].filter(Boolean).join(': ')}`,
    ),
    ...(inputSchema ? [`    takes: ${lineOf(JSON.stringify(inputSchema), 2000)}`] : []),
  ];
}

/** @type {import('../commands.js').Execute} */
export async function execute([address], values, context) {
  const app = new App(address, values, context);
  const ended = signalled(EXIT.CANCELLED);
  try {
    const said = await Promise.race([app.describe(), ended]);
    if (typeof said === 'string') return EXIT.CANCELLED;
    const { app: about, capabilities } = said;
    const title = `${lineOf(about?.name)} ${lineOf(about?.version)}`.trim();
    const text = values.json
      ? jsonText({ app: about, capabilities }, 2)
      : [title, '', ...capabilities.flatMap(linesOf)].join('\n');
    process.stdout.write(`${text}\n`);
  } finally {
    await app.close();
  }
}
