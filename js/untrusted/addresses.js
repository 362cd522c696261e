/**
 * Decides which addresses are on the public internet. docs/decisions.md says why no library does
 * this.
 */

/**
 * The IPv4 blocks that are not public (IANA's registry of special-purpose addresses, and
 * multicast).
 */
const RESERVED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
].map((block) => {
  const [first, bits] = block.split('/');
  return { first: number(first), size: 2 ** (32 - Number(bits)) };
});

/** @param {string} ipv4 */
function number(ipv4) {
  return ipv4.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** @param {number} ipv4 */
const isPublic4 = (ipv4) =>
  !RESERVED.some(({ first, size }) => ipv4 >= first && ipv4 < first + size);

/** @param {string} ipv6 as `URL` writes it */
function isPublic6(ipv6) {
  const [before, after = []] = ipv6.split('::').map((part) => (part ? part.split(':') : []));
  const zeros = Array(8 - before.length - after.length).fill('0');
  const all = [...before, ...zeros, ...after];
  const [a, b, , , , , g, h] = all.map((group) => parseInt(group, 16));
  // An IPv4-mapped address (`::ffff:…`) or a translated one (`64:ff9b::…`) counts as its IPv4
  // address.
  if (/^(0:0:0:0:0:ffff|64:ff9b:0:0:0:0):/.test(all.join(':'))) return isPublic4(g * 65536 + h);
  // Global unicast is 2000::/3, with exceptions: 2001::/23 (Teredo among it) and 2002::/16 tunnel
  // to other addresses, 2001:db8::/32 and 3fff::/20 are for documentation.
  const isGlobal = a >= 0x2000 && a < 0x4000 && a !== 0x2002;
  const isExcepted = (a === 0x2001 && (b < 0x200 || b === 0xdb8)) || (a === 0x3fff && b < 0x1000);
  return isGlobal && !isExcepted;
}

/**
 * True if a host is on the public internet, judged by its address or name. A name that passes may
 * still resolve to a private address. An address that cannot be read, such as a link-local
 * `fe80::1%eth0`, is not public.
 * @param {string} host a `hostname` of a URL, or an address as the system's resolver writes it
 */
export function isPublic(host) {
  const url = `http://${/^[^[].*:/.test(host) ? `[${host}]` : host}`;
  if (!URL.canParse(url)) return false;
  // `URL` normalises every spelling: decimal, octal, hexadecimal, shortened, or in full-width
  // digits.
  const { hostname } = new URL(url);
  if (hostname.startsWith('[')) return isPublic6(hostname.slice(1, -1));
  if (/^[\d.]+$/.test(hostname)) return isPublic4(number(hostname));
  const name = hostname.replace(/\.+$/, '');
  return name.includes('.') && !/\.(localhost|local|internal|home\.arpa)$/.test(name);
}

/**
 * True if a host is this machine, judged by its address or name.
 * @param {string} host a `hostname` of a URL, or an address of a socket
 */
export const isLoopback = (host) =>
  /^(?:\[?::1\]?|(?:::ffff:)?127(?:\.\d+){3}|(?:.*\.)?localhost)$/i.test(host);

/** Part of the error for an address that is not public. */
export const HOW_TO_ALLOW = 'to read it anyway, set allowPrivate: true';
