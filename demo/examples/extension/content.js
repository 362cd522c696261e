// The app in each page: what the extension's panel asks of the page that the user looks at.
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
