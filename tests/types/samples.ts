// What the samples of the documents take for granted: what an earlier sample imports, and what each
// reader has.
import type * as main from 'abp-bridge';
import type * as workers from 'abp-bridge/pool';
import type * as mcpApps from '@abp-bridge/mcp-apps';
import type * as rpc from '@abp-bridge/rpc';
import type * as websocket from 'abp-bridge/transports';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

declare global {
  // Of this package.
  const connect: typeof main.connect;
  const expose: typeof main.expose;
  const pool: typeof workers.pool;
  const serve: typeof workers.serve;
  const webSocketTransport: typeof websocket.webSocketTransport;
  const AbpError: typeof main.AbpError;
  const client: main.Client;
  const server: rpc.Peer;
  const peer: rpc.Peer;
  const transport: main.Transport;

  // Of the reader's page or program.
  const mcpClient: import('@modelcontextprotocol/client').Client;
  const mcpServer: import('@modelcontextprotocol/server').Server;
  const agentCard: import('@a2a-js/sdk').AgentCard;
  const agentExecutor: import('@a2a-js/sdk/server').AgentExecutor;
  const iframe: HTMLIFrameElement;
  const radio: { send(text: string): void; end(): void; onText: (text: string) => void };
  const page: import('puppeteer-core').Page;
  const socket: WebSocket;
  const chrome: {
    runtime: { connect(options: object): import('abp-bridge/transports').ExtensionPort };
  };
  // Of Cloudflare Workers.
  const WebSocketPair: new () => Record<0 | 1, WebSocket & { accept(): void }>;
  interface ResponseInit {
    webSocket?: WebSocket;
  }
  const app: { id: string; name: string; version: string };
  const agent: { name: string; version: string };
  const { createView }: typeof mcpApps;
  const setInput: (input: object) => void;
  const writer: ReturnType<typeof import('abp-bridge/svelte').connection<any>>;
  const title: string;
  const src: string;
  const origins: string[];
  const serverInfo: { name: string; version: string };
  const clientInfo: { name: string; version: string };
  const capabilities: Record<string, main.Handler>;
  const askPerson: (question: string) => void;
  const signal: AbortSignal;
  const agentWindow: Window;
  const agentOrigin: string;
  const initializeResult: object;
  const onProgress: (info: { progress: number }) => void;
  const stopButton: HTMLButtonElement;
  const bar: HTMLProgressElement;
  const memory: WebAssembly.Memory;
  const metrics: { record(name?: string, outcome?: string, duration?: number): void };
  const args: object;
  const draft: object;
  const text: string;
  const model: {
    tokens: number;
    summarize(text: string, options: { signal: AbortSignal }): AsyncIterable<string>;
  };
  function spawn(command: string): ChildProcessByStdio<Writable, Readable, null>;
  function store(row: unknown): Promise<void>;
  interface Document {
    modelContext: { registerTool(tool: object): Promise<void> };
  }
  function writeFileSync(path: string, text: string): void;
  function download(name: string, text: string): void;
  function exportPdf(params: {
    title: string;
  }): Promise<{ content: ArrayBuffer; mimeType: string }>;
  function layOut(params: unknown, page: number): void;
  function write(): Promise<ArrayBuffer>;
  function blurRow(params: unknown, row: number): void;
  function blurImage(params: unknown, ...context: Function[]): Promise<unknown>;
  function work(params: unknown, signal: AbortSignal): Promise<unknown>;
  function search(params: unknown, options: { signal: AbortSignal }): AsyncIterable<unknown[]>;
  function rows(): AsyncIterable<object>;
  function insert(table: string, row: object): Promise<void>;
  function upload(content: BlobPart, options: { signal: AbortSignal }): Promise<string>;
  function say(text: string): void;
  function show(content: unknown): void;
  function showBusy(): void;
  function showReady(): void;
  function showBroken(error: unknown): void;
  function showPages(pages: number): void;
  function showButtons(capabilities: { name: string }[]): void;
  function offer(name: string, description?: string): void;
  function retryLater(act: () => Promise<void>): void;
  function askUser(message: string, signal?: AbortSignal): Promise<object>;
  function deleteFiles(params: object): Promise<void>;
  function confirmAndOpen(url: string): void;
}

declare module 'node:http' {
  interface IncomingMessage {
    user?: string;
  }
}
