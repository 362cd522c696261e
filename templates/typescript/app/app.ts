// The app: offers capabilities to the agents of the origins named below.
import { expose } from 'abp-bridge';

/** Stands for real work: keeps the page busy for a moment. */
function layOutPage() {
  for (const end = performance.now() + 20; performance.now() < end;);
}

const app = expose(
  {
    app: { id: 'example.writer', name: 'Writer', version: '1.0' },
    capabilities: {
      'report.write': {
        description: 'Writes a report',
        inputSchema: {
          type: 'object',
          properties: { pages: { type: 'integer', minimum: 1 } },
          required: ['pages'],
        },
        async handler({ pages }, { breathe, progress }) {
          for (let page = 0; page < pages; page++) {
            await breathe(); // lets a cancel in, and throws once the call is cancelled
            layOutPage();
            progress({ progress: page + 1, total: pages });
          }
          return { text: `A report of ${pages} pages` };
        },
      },
    },
  },
  { origins: ['http://localhost:5173'] }, // who may call: exact origins
);

/** An agent's knowledge of the app: names, params and results. */
export type App = typeof app;
