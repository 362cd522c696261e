/**
 * A model without thought, for agents that need one. It speaks OpenAI's chat completions and
 * responses, and Gemini's API, each as much as the rows need. If the last text of the user has
 * "run `THING`", it answers with a call of a tool: of a shell, or for an address of a tool that
 * fetches. When the tool has answered, it answers "Done.". Its argument is its port.
 */
import { createServer } from 'node:http';

const SHELLS = ['run_shell_command', 'bash', 'shell', 'shell_command', 'exec_command'];
const FETCHERS = ['webfetch', 'web_fetch'];

/** Arguments of a tool, by its schema. */
function argsOf({ parameters: { properties = {}, required = [] } = {} }, thing) {
  const known = { command: thing, cmd: thing, url: thing, yield_time_ms: 20_000, timeout: 60_000 };
  const names = Object.keys(properties).filter((name) => name in known || required.includes(name));
  const value = (name) => {
    const { type } = properties[name];
    if (type === 'boolean') return false;
    if (type === 'array') return ['bash', '-c', thing];
    return known[name] ?? 'slow';
  };
  return Object.fromEntries(names.map((name) => [name, value(name)]));
}

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join('\n');

let calls = 0;

/** The reply to a conversation: a call of a tool, or a text. */
function replyTo(messages, tools) {
  const last = messages.at(-1);
  const text = messages.findLast(({ role }) => role === 'user')?.text ?? '';
  const thing = [...text.matchAll(/run `([^`]+)`/g)].at(-1)?.[1];
  const names = /^http/.test(thing) ? FETCHERS : SHELLS;
  const tool = tools.find(({ name }) => names.includes(name));
  if (!thing || !tool || last.role === 'tool') return { text: 'Done.' };
  return { name: tool.name, args: argsOf(tool, thing), id: `call_${++calls}` };
}

/** @type {[RegExp, (body: any, url: string) => { events: object[], whole?: object }][]} */
const APIS = [
  [
    /generateContent/i,
    ({ contents, tools = [] }, url) => {
      const isAnswer = (parts) => parts.some(({ functionResponse }) => functionResponse);
      const messages = contents.map(({ role, parts }) => ({
        role: isAnswer(parts) ? 'tool' : role,
        text: textOf(parts),
      }));
      const declared = tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations);
      const known = declared.map(({ name, parametersJsonSchema, parameters }) => ({
        name,
        parameters: parametersJsonSchema ?? parameters,
      }));
      const { text, name, args } = replyTo(messages, known);
      // Without a stream, it is asked for JSON.
      const isStream = /stream/i.test(url);
      const part = name ? { functionCall: { name, args } } : { text: isStream ? text : '{}' };
      const content = { role: 'model', parts: [part] };
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
      const whole = { candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata };
      return isStream ? { events: [whole] } : { events: [], whole };
    },
  ],
  [
    /\/responses$/,
    ({ input, tools = [] }) => {
      const messages = input.map(({ type, role, content }) => ({
        role: type === 'function_call_output' ? 'tool' : role,
        text: textOf(content),
      }));
      const { text, name, args, id } = replyTo(messages, tools);
      const content = [{ type: 'output_text', text }];
      const item = name
        ? { type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) }
        : { type: 'message', role: 'assistant', id: 'message', content };
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
      return {
        events: [
          { type: 'response.created', response: { id: 'response' } },
          { type: 'response.output_item.done', item },
          { type: 'response.completed', response: { id: 'response', usage } },
        ],
      };
    },
  ],
  [
    /\/chat\/completions$/,
    ({ messages, tools = [], stream }) => {
      const known = messages.map(({ role, content }) => ({ role, text: textOf(content) }));
      const reply = replyTo(
        known,
        tools.map((tool) => tool.function),
      );
      const { text, name, args, id } = reply;
      const called = { name, arguments: JSON.stringify(args) };
      const tool_calls = name ? [{ index: 0, id, type: 'function', function: called }] : undefined;
      const message = { role: 'assistant', content: name ? null : text, tool_calls };
      const finish_reason = name ? 'tool_calls' : 'stop';
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const base = { id: 'completion', created: 1, model: 'fake' };
      if (!stream) {
        const choices = [{ index: 0, message, finish_reason }];
        return { events: [], whole: { ...base, object: 'chat.completion', choices, usage } };
      }
      const chunk = (delta, reason) => ({
        ...base,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta, finish_reason: reason }],
        ...(reason && { usage }),
      });
      return { events: [chunk(message, null), chunk({}, finish_reason)] };
    },
  ],
];

createServer(async (request, response) => {
  let body = '';
  for await (const data of request) body += data;
  const { pathname } = new URL(String(request.url), 'http://localhost');
  const api = APIS.find(([path]) => path.test(pathname))?.[1];
  if (!api) {
    response.writeHead(404).end();
    return;
  }
  const { events, whole } = api(JSON.parse(body), String(request.url));
  response.setHeader('Content-Type', whole ? 'application/json' : 'text/event-stream');
  for (const event of events) {
    if (event.type) response.write(`event: ${event.type}\n`);
    response.write(`data: ${JSON.stringify(event)}\n\n`);
  }
  const isChat = pathname.endsWith('completions');
  response.end(whole ? JSON.stringify(whole) : isChat ? 'data: [DONE]\n\n' : '');
}).listen(Number(process.argv[2]), '127.0.0.1');
