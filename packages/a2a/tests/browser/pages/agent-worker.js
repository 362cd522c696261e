// A service worker that is an agent.
import { createTaskServer } from '../../../src/index.js';

const agent = createTaskServer({
  card: { name: 'Agent' },
  execute: (context) => context.emitArtifact({ artifactId: 'a', parts: [{ text: 'done' }] }),
});
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname.includes('/agent'))
    event.respondWith(agent.fetch(event.request));
});
