// The app in each page, for the extension's panel.
import { expose } from 'abp-bridge';
import { servePorts } from 'abp-bridge/transports';

const app = expose(
  {
    app: { id: 'example.page', name: 'Page', version: '1.0' },
    capabilities: {
      'page.words': () => ({ words: document.body.innerText.split(/\s+/).filter(Boolean).length }),
    },
  },
  { origins: [] }, // no other page
);
servePorts(app);
