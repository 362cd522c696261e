// An app that the gateway's package finds in a page.
import { expose } from 'abp-bridge';

expose(
  {
    app: { id: 'packed', name: 'Packed app', version: '1' },
    capabilities: { 'number.add': ({ a, b }) => a + b },
  },
  { origins: [] },
);
