// The app that the conformance suite of MCP asks for, in the words of this protocol.
import { AbpError, expose } from '/parts/main/index.js';

const bytes = (mimeType, ...content) => ({ content: new Uint8Array(content).buffer, mimeType });
const png = () => bytes('image/png', 137, 80, 78, 71);
const object = (properties, more) => ({ type: 'object', properties, ...more });
const ask = (elicit, prompt, schema) =>
  elicit({ method: 'elicitation/input', params: { prompt, schema } });
const text = { type: 'string' };
const once = (_params, { elicit }) => ask(elicit, 'Who are you?', object({ name: text }));

const capabilities = {
  test_simple_text: () => 'This is a simple text response for testing.',
  test_image_content: png,
  test_audio_content: () => bytes('audio/wav', 82, 73, 70, 70),
  test_embedded_resource: () => bytes('text/plain', 104, 105),
  test_multiple_content_types: () => ({ image: png(), file: bytes('application/json', 49) }),
  test_error_handling: () => {
    throw new AbpError('OPERATION_FAILED', 'This tool intentionally returns an error');
  },
  async test_tool_with_progress(_params, { progress }) {
    // The last hundred per cent is the result.
    for (const done of [0, 50, 99]) {
      progress({ progress: done, total: 100 });
      await new Promise((resolve) => setTimeout(resolve, 60)); // work, during which each is told
    }
  },
  test_elicitation: ({ message }, { elicit }) =>
    ask(elicit, message, object({ username: text, email: text })),
  test_elicitation_sep1034_defaults: (_params, { elicit }) =>
    ask(
      elicit,
      'Who are you?',
      object({
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      }),
    ),
  json_schema_2020_12_tool: () => 'called',
  test_input_required_result_elicitation: once,
  test_input_required_result_request_state: once,
  test_input_required_result_tampered_state: once,
  test_input_required_result_multi_round: async (_params, { elicit }) => {
    await ask(elicit, 'Who are you?', object({ name: text }));
    return ask(elicit, 'Which colour?', object({ color: text }));
  },
};
const schemas = {
  test_elicitation: object({ message: text }, { required: ['message'] }),
  json_schema_2020_12_tool: object(
    { name: text, address: { $ref: '#/$defs/address' } },
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { address: object({ street: text, city: text }, { $anchor: 'addressDef' }) },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  ),
};
expose(
  {
    app: { id: 'test.conformance', name: 'Conformance', version: '1.0' },
    capabilities: Object.fromEntries(
      Object.entries(capabilities).map(([name, handler]) => [
        name,
        { description: `For the scenario of ${name}`, inputSchema: schemas[name], handler },
      ]),
    ),
  },
  { origins: [] },
);
