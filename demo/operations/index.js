/** What the demo's app can do. */
import * as pdf from './export-pdf.js';
import * as blur from './image-blur.js';
import * as story from './story-tell.js';
import * as summarise from './text-summarise.js';

export const capabilities = {
  'export.pdf': { description: 'Makes a PDF of a Markdown document', ...pdf },
  'image.blur': { description: 'Blurs a picture and encodes it as PNG', ...blur },
  'story.tell': { description: 'Streams a text, word by word', ...story },
  'text.summarise': { description: 'Picks the sentences that say most of a text', ...summarise },
};
