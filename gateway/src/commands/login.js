/** `login`: a visible window on the app's own profile, for a person to log in. */
import { appUrl } from '../app.js';
import { usageError } from '../errors.js';
import { log, pageOptions } from '../options.js';
import { PageWay } from '../page-way.js';

/**
 * @param {[string]} positionals
 * @param {any} values
 */
export async function execute([address], values) {
  const url = appUrl(address);
  if (!/^http/.test(url.protocol)) throw usageError('Only a page can be logged into: https://…');
  const way = new PageWay(url, pageOptions(values, true));
  const leave = () => void way.close();
  process.once('SIGINT', leave);
  process.once('SIGTERM', leave);
  log('log in, then close the window: the profile keeps it');
  try {
    await way.show();
  } finally {
    await way.close();
  }
}
