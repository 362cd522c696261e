// The adapters fit what the SDKs' own types ask for: this file must compile, and the marked line
// must not.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { Client as C2 } from '@modelcontextprotocol/client';
import { Server as S2 } from '@modelcontextprotocol/server';
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { client, agent } from '@agentclientprotocol/sdk';
import { mcpTransport } from '../../src/adapters/mcp.js';
import { acpStream } from '../../src/adapters/acp.js';
import {
  lineTransport,
  windowChannel,
  hostChannel,
  portChannel,
  createPeer,
} from '../../src/index.js';
declare const iframe: HTMLIFrameElement;
declare const port: MessagePort;
const t = windowChannel(iframe, { origin: 'https://x.example' });
void new Client({ name: 'a', version: '1' }).connect(mcpTransport(t));
void new C2({ name: 'a', version: '1' }).connect(
  mcpTransport(hostChannel({ origins: ['https://h.example'] })),
);
void new S2({ name: 'a', version: '1' }).connect(mcpTransport(portChannel(port)));
void new AppBridge(null, { name: 'a', version: '1' }, {}).connect(mcpTransport(t));
client({ name: 'x' }).connect(acpStream(t));
agent({ name: 'x' }).connect(acpStream(t));
createPeer(t, { dialect: 'acp' });
declare const web: { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> };
lineTransport(web);
// @ts-expect-error origin is required
windowChannel(iframe, {});
