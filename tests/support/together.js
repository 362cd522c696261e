// Runs several files of tests in one process, each file as a suite with hooks of its own: to start
// Node and to load the core costs more than most of these files. The arguments are the files.
import { resolve } from 'node:path';
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import './pair.js'; // its hook closes what any test has opened

for (const file of process.argv.slice(2))
  describe(file, () => import(pathToFileURL(resolve(file)).href));
