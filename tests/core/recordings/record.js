// Renews session.jsonl, after the core has come to answer differently for a good reason: node
// tests/core/recordings/record.js
import { writeFileSync } from 'node:fs';
import { recordSession } from '../../support/recorded.js';

const { text } = await recordSession();
writeFileSync(new URL('session.jsonl', import.meta.url), text);
