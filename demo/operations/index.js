/** The operations of the demo's app. */
import * as pdf from './export-pdf.js';
import * as blur from './image-blur.js';
import * as story from './story-tell.js';
import * as summarise from './text-summarise.js';

export const capabilities = {
  'export.pdf': {
    description: 'Sets a lighthouse’s log of a year as a book of nearly 300 pages',
    ...pdf,
  },
  'image.blur': { description: 'Blurs a picture of four million pixels, row by row', ...blur },
  'story.tell': {
    description: 'Writes word by word; what has come stays when you stop it',
    ...story,
  },
  'text.summarise': {
    description: 'Finds the three sentences that say most of a long text',
    ...summarise,
  },
};
