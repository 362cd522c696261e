/** `login`: opens a visible window on the app's own profile, for a person to log in. */
import { appUrl } from '../app.js';
import { log, usageError } from '../errors.js';
import { PageWay } from '../page-way.js';
import { takeProfile } from '../profile-socket.js';
import { signalled } from '../signals.js';
import { askToRelease, refuse } from '../shared-app.js';

/**
 * Takes the profile. A gateway that has it releases it, and takes it again when needed.
 * @param {string} profile
 */
async function claim(profile) {
  const why = `The login window of process ${process.pid} has this profile: log in there and close it`;
  for (;;) {
    const { server, channel } = await takeProfile(profile, (other) => refuse(other, why));
    if (server) return server;
    await askToRelease(channel);
  }
}

/** @type {import('../commands.js').Execute} */
export async function execute([address], values) {
  const url = appUrl(address);
  if (!/^http/.test(url.protocol))
    throw usageError('Only a page has a login: give an https:// address');
  const page = new PageWay(url, { ...values, headed: true });
  const server = await claim(/** @type {string} */ (page.profile));
  void signalled().then(() => page.close());
  log('log in, then close the window: the profile keeps the login');
  try {
    await page.show();
  } finally {
    await page.close();
    server.close();
  }
}
