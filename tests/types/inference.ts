// What `expose` infers and a client knows: this file must compile, and each marked line must not.
import { connect, expose, type AbpError, type Client, type Failure } from 'abp-bridge';
import { connectPage } from '@abp-bridge/automation';
import { useCall, useConnection } from 'abp-bridge/react';
import { calls, connection } from 'abp-bridge/svelte';
import { useCall as useVueCall, useConnection as useVueConnection } from 'abp-bridge/vue';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { is, type Equal } from './equal.js';

const agent = { name: 'x', version: '1' };
const details = { id: 'a.b', name: 'A', version: '1' };

const app = expose({
  app: details,
  capabilities: {
    annotated: async (params: { x: number }, { callId }) => ({ y: callId }),
    unannotated: (params) => params,
    'needs.nothing': () => 1,
    optional: (params?: { x?: number }) => params?.x,
    'gives.nothing': () => {},
    async *rows(params: { from: number }) {
      yield { row: params.from };
      return 'all of them';
    },
    async *tokens() {
      yield 'token';
    },
    readable: () => new ReadableStream<Uint8Array>(),
    'checked.rows': {
      outputSchema: z.object({ n: z.number() }),
      async *handler() {
        yield 'row';
        return { n: 1 };
      },
    },
    'in.object': { handler: (params: { a: 'b' }, { callId }) => callId, description: 'x' },
    json: {
      inputSchema: {
        type: 'object',
        properties: { title: { type: 'string' }, pages: { type: 'integer' } },
        required: ['title'],
      },
      handler: (params, { signal }) => {
        is<Equal<typeof params, { title: string; pages?: number }>>();
        return { title: params.title, stopped: signal.aborted };
      },
    },
    'json.results': {
      outputSchema: {
        type: 'object',
        properties: { kind: { enum: ['a', 'b'] }, n: { type: 'number' } },
        required: ['kind'],
        additionalProperties: false,
      },
      handler: async () => ({ kind: 'a', n: 1 }),
    },
    zod: {
      inputSchema: z.object({ n: z.number(), unit: z.string().default('px'), on: z.coerce.date() }),
      outputSchema: z.object({ area: z.number().transform(String) }),
      handler: ({ n, unit, on }) => {
        is<Equal<[typeof n, typeof unit, typeof on], [number, string, Date]>>();
        return { area: n };
      },
    },
    valibot: {
      inputSchema: toStandardJsonSchema(v.object({ n: v.number(), unit: v.optional(v.string()) })),
      handler: ({ n, unit }) => [n, unit] as const,
    },
    arktype: {
      inputSchema: type({ n: 'number', 'unit?': 'string' }),
      handler: ({ n, unit }, { progress }) => {
        progress({ progress: n });
        return unit;
      },
    },
    responds: async (params: { ok: boolean }) => {
      if (params.ok) return { success: true as const, data: 5 };
      const error = { code: 'NO_PAPER' as const, message: 'empty', retryable: true };
      return { success: false as const, error };
    },
    prints: ({ page }: { page: number }) => {
      const empty = { code: 'NO_PAPER', message: 'empty', retryable: true } as const;
      return page > 9 ? ({ success: false, error: empty } as const) : { sheets: page };
    },
    nests: (_params: { a: 1 }, { call }) => call('json', { title: 'x' }),
    'not.a.response': () => ({ success: true, rows: 3 }),
  },
});

/** The app's own codes that an editor completes. */
type ResponseCodes<R> = R extends Failure<infer Code> ? Code : never;

export async function typed(iframe: HTMLIFrameElement, signal: AbortSignal) {
  const client = await connect<typeof app>(iframe, { origin: 'https://a.example', agent });

  const response = await client.call('annotated', { x: 1 }, { signal });
  if (response.success) {
    is<Equal<typeof response.data, { y: string }>>();
    is<Equal<typeof response.error, undefined>>();
  } else {
    const { code, message } = response.error;
    if (response.cancelled || code === 'RATE_LIMITED') console.log(message);
    // @ts-expect-error what failed has no data
    response.data.y;
  }
  // @ts-expect-error what may have failed may have no data
  response.data.y;
  const annotated = await client.invoke('annotated', { x: 1 });
  is<Equal<typeof annotated, { y: string }>>();
  const nothing = await client.invoke('needs.nothing');
  is<Equal<typeof nothing, number>>();
  const optional = await client.invoke('optional');
  is<Equal<typeof optional, number | undefined>>();
  const gives = await client.invoke('gives.nothing', {}, { timeout: 5 });
  is<Equal<typeof gives, undefined>>();
  const object = await client.invoke('in.object', { a: 'b' });
  is<Equal<typeof object, string>>();
  const json = await client.invoke('json', { title: 'x' });
  is<Equal<typeof json, { title: string; stopped: boolean }>>();
  const results = await client.invoke('json.results');
  is<Equal<typeof results, { kind: 'a' | 'b'; n?: number }>>();
  const zod = await client.invoke('zod', { n: 1, on: '2026-01-01' });
  is<Equal<typeof zod, { area: string }>>();
  const valibot = await client.invoke('valibot', { n: 1 });
  is<Equal<typeof valibot, readonly [number, string | undefined]>>();
  const arktype = await client.invoke('arktype', { n: 1, unit: 'px' });
  is<Equal<typeof arktype, string | undefined>>();
  const any = await client.invoke('unannotated', 7);
  is<Equal<typeof any, any>>();
  const nested = await client.invoke('nests', { a: 1 });
  is<Equal<typeof nested, any>>();
  const own = await client.invoke('not.a.response');
  is<Equal<typeof own, { success: boolean; rows: number }>>();
  const responds = await client.call('responds', { ok: true });
  if (responds.success) is<Equal<typeof responds.data, number>>();
  // An editor completes the app's own code beside those of the protocol.
  else is<'NO_PAPER' extends typeof responds.error.code ? true : false>();
  const prints = await client.call('prints', { page: 1 });
  if (prints.success) is<Equal<typeof prints.data.sheets, number>>();
  else is<Equal<ResponseCodes<typeof prints>, 'NO_PAPER'>>();

  // @ts-expect-error there is no such capability
  void client.call('anotated', { x: 1 });
  // @ts-expect-error params are needed
  void client.call('annotated');
  // @ts-expect-error a param is missing
  void client.call('annotated', {});
  // @ts-expect-error a param has another type
  void client.call('annotated', { x: '1' });
  // @ts-expect-error there is no such param
  void client.call('annotated', { x: 1, z: 1 });
  // @ts-expect-error a param is missing that a JSON Schema requires
  void client.call('json', { pages: 1 });
  // @ts-expect-error there is no such param in the JSON Schema
  void client.call('json', { title: 'x', page: 1 });
  // @ts-expect-error a param is missing that zod requires
  void client.call('zod', { unit: 'px' });
  // @ts-expect-error a param is missing that valibot requires
  void client.invoke('valibot', {});
  // @ts-expect-error a param has another type than arktype's
  void client.invoke('arktype', { n: '1' });
  // @ts-expect-error the data is what the handler returns
  (await client.invoke('annotated', { x: 1 })).z;

  const untyped: Client = client;
  return untyped;
}

/** An app of another repository, described by hand. */
type Described = {
  'export.pdf': (params: { title: string }) => { content: ArrayBuffer; mimeType: string };
  'list.fonts': () => Promise<string[]>;
};
export async function byHand(port: MessagePort) {
  const client = await connect<Described>(port, { agent });
  const pdf = await client.invoke('export.pdf', { title: 'x' });
  is<Equal<typeof pdf, { content: ArrayBuffer; mimeType: string }>>();
  const fonts = await client.invoke('list.fonts');
  is<Equal<typeof fonts, string[]>>();
  // @ts-expect-error a param is missing
  void client.call('export.pdf', {});
}

export async function untyped(port: MessagePort) {
  const client = await connect(port, { agent });
  const response = await client.call('anything', 7, { timeout: 5 });
  if (response.success) is<Equal<typeof response.data, any>>();
  else is<Equal<typeof response.error.message, string>>();
}

export async function inPage(page: { evaluateHandle(script: string): Promise<unknown> }) {
  const client = await connectPage<typeof app>(page, { agent });
  const json = await client.invoke('json', { title: 'x' });
  is<Equal<typeof json, { title: string; stopped: boolean }>>();
  // @ts-expect-error a param is missing
  void client.call('json', {});
}

expose({
  app: details,
  capabilities: {
    // @ts-expect-error a capability has a handler
    x: { handlr: () => 1 },
  },
});
expose({
  app: details,
  capabilities: {
    // @ts-expect-error a capability has no such member: a misspelt one would do nothing
    x: { handler: () => 1, descripton: 'one' },
    y: { handler: () => 1, description: 'one', annotations: { title: 'One' }, available: true },
    // What is not known is not refused.
    z: JSON.parse('{}'),
  },
});
const inputSchema = { type: 'object', properties: { n: { type: 'number' } } } as const;
expose({
  app: details,
  capabilities: {
    // @ts-expect-error nor beside a schema
    x: { inputSchema, handler: ({ n }) => n, availabel: true },
  },
});
expose({
  app: details,
  capabilities: {
    // @ts-expect-error the context has no such member
    x: (_params, { abort }) => abort,
  },
});
expose({
  app: details,
  capabilities: {
    x: {
      inputSchema: { type: 'object', properties: { title: { type: 'string' } } },
      // @ts-expect-error the schema has no such member
      handler: (params) => params.titel,
    },
  },
});
// @ts-expect-error the app needs a name
expose({ app: { id: 'a.b', version: '1' }, capabilities: {} });
expose(
  {
    app: details,
    capabilities: {
      // Where it is marked differs between versions of TypeScript, so all of it is on one line.
      // @ts-expect-error the handler returns what its schema does not take
      x: { handler: () => ({ area: 'large' }), outputSchema: z.object({ area: z.number() }) },
    },
  },
  {},
);

/** Capabilities that are written elsewhere, and those that nothing is known of. */
const elsewhere = { 'text.echo': (params: { text: string }) => params.text };
const listed = expose({ app: details, capabilities: elsewhere });
const unlisted = expose({ app: details, capabilities: {} as Record<string, () => number> });
export async function other(port: MessagePort) {
  const first = await connect<typeof listed>(port, { agent });
  const text = await first.invoke('text.echo', { text: 'x' });
  is<Equal<typeof text, string>>();
  const second = await connect<typeof unlisted>(port, { agent });
  const count = await second.invoke('anything');
  is<Equal<typeof count, number>>();
}

// --- Streams -------------------------------------------------------------------------------------

export async function streams() {
  const client = await connect<typeof app>(new MessageChannel().port1, { agent });
  const rows = client.stream('rows', { from: 1 });
  for await (const chunk of rows) is<Equal<typeof chunk, { row: number }>>();
  const response = await rows.response;
  if (response.success) is<Equal<typeof response.data, string>>();
  is<Equal<Awaited<ReturnType<typeof collected>>, string[]>>();
  for await (const chunk of client.stream('readable')) is<Equal<typeof chunk.byteLength, number>>();
  const checked = await client.invoke('checked.rows');
  is<Equal<typeof checked, { n: number }>>();
  for await (const chunk of client.stream('checked.rows')) is<Equal<typeof chunk, string>>();
  // @ts-expect-error: a param is missing
  client.stream('rows');
  // @ts-expect-error: there is no such capability
  client.stream('columns');
  const untyped = await connect(new MessageChannel().port1, { agent });
  for await (const chunk of untyped.stream('anything')) chunk.member;
  async function collected() {
    return client.invoke('tokens');
  }
}

app.set('area', {
  inputSchema: z.object({ width: z.number() }),
  handler: ({ width }, { callId }) => {
    is<Equal<[typeof width, typeof callId], [number, string]>>();
    return width ** 2;
  },
});
app.set('json', {
  inputSchema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
  // @ts-expect-error the schema has no such member
  handler: (params) => params.titel,
});
app.set('plain', (params, { signal }) => [params, signal.aborted]);
// @ts-expect-error a capability has a handler
app.set('none', { description: 'x' });
export async function catalogue(port: MessagePort) {
  const client = await connect<typeof app>(port, { agent });
  for (const { name, description } of await client.listCapabilities()) {
    is<Equal<[typeof name, typeof description], [string, string | undefined]>>();
  }
  const info = await client.describeCapability('any');
  // @ts-expect-error there may be none
  info.name;
}

// --- Hooks know the app --------------------------------------------------------------------------

export function hooks(iframe: HTMLIFrameElement) {
  const options = { origin: 'https://app.example', agent };
  const { client, error } = useConnection<typeof app>(iframe, options);
  is<Equal<typeof error, AbpError | undefined>>();
  const { call, response } = useCall(client, 'annotated');
  void call({ x: 1 }).then((result) => is<Equal<typeof result, typeof response & {}>>());
  if (response?.success) is<Equal<typeof response.data, { y: string }>>();
  // @ts-expect-error there is no such capability
  useCall(client, 'anotated');
  // @ts-expect-error its params are others
  void call({ x: '1' });

  const inVue = useVueConnection<typeof app>(iframe, options);
  const vueCall = useVueCall(inVue.client, 'annotated');
  is<Equal<typeof vueCall.response.value, typeof response>>();
  // @ts-expect-error its params are others
  void vueCall.call({});

  const writer = connection<typeof app>(options);
  const called = calls(writer, 'annotated');
  called.subscribe((state) => is<Equal<typeof state.response, typeof response>>());
  // @ts-expect-error there is no such capability
  calls(writer, 'anotated');
}
