/** Serves the folder in which it runs, at the port that is its argument. */
import { readFile } from 'node:fs';
import { createServer } from 'node:http';

createServer(({ url }, response) => {
  readFile(`.${String(url).split('?')[0]}`, (error, content) => {
    const type = url.endsWith('.js') ? 'text/javascript' : 'text/html';
    response.writeHead(error ? 404 : 200, { 'Content-Type': type }).end(content);
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
