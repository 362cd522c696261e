import { expose } from 'abp-bridge';

const PAGES = 100;
const paper = document.querySelector('main');
for (let i = 0; i < PAGES; i++) paper.append(document.createElement('i'));

expose(
  {
    app: { id: 'example.report', name: 'Report', version: '1.0' },
    capabilities: {
      'report.write': async (params, { signal, progress, report }) => {
        for (const page of paper.children) page.className = '';
        for (let page = 0; page < PAGES; page++) {
          await new Promise((resolve) => setTimeout(resolve, 200)); // the work: twenty seconds in all
          signal.throwIfAborted();
          paper.children[page].className = 'written';
          report({ written: page + 1, of: PAGES }); // what there is, if it is stopped now
          progress({ progress: page + 1, total: PAGES });
        }
        return { written: PAGES };
      },
    },
  },
  { origins: [location.origin] },
);
