/** Heads of pages, honest and not, for reading by a parser; the same ones every time. */

/** @param {number} seed */
function randomFrom(seed) {
  // mulberry32
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const LINKS = [
  '<link rel="abp-manifest" href="/0.json">',
  "<link href='/1.json' rel='abp-manifest'>",
  '<link rel=abp-manifest href=/2.json>',
  '<LINK REL="ABP-Manifest" HREF="/3.json" />',
  '<link rel="alternate abp-manifest" type="application/json" href="/4.json"/>',
  '<link\n\trel = "abp-manifest"\r\n\fhref\n=\n"/5.json"\n>',
  '<link rel="abp-manifest" href="/6.json?a=1&amp;b=2&#38;c=&#x33;&copy=1&copyd&ampe=2&amp">',
  '<link rel="&#97;bp-manifest" href="&sol;7&period;json">',
  '<link rel="abp-manifest" rel="other" href="/8.json" href="/not.json">',
  '<link rel=abp-manifest/href=/9.json>',
  '<link rel="abp-manifest"href="/10.json"title=">">',
  '<link title="><" rel="abp-manifest" href="/11.json">',
  '<link/rel="abp-manifest"/href="/12.json">',
  '<link =x rel="abp-manifest" "=" href="/13.json" \'>',
  '<link rel="abp-manifest" href=" /14.json&#10;&#128;&#0;&#xD800;&#x110000; ">',
  '<link rel="\u00a0abp-manifest" href="/nbsp.json">',
  '<link rel="abp-manifests" href="/not.json">',
  '<link rel="abp-manifest" data-href="/not.json">',
  '<link rel="abp-manifest" href>',
  '<link rel="abp-manifest" href="">',
  '<link rel="other" rel="abp-manifest" href="/not.json">',
  '<lin\u212a rel="abp-manifest" href="/kelvin.json">',
  '<link-rel="abp-manifest" href="/not.json">',
  '<link rel="abp-manifest" href="/unquoted>',
  '<link rel="abp-manifest" href=>',
  '<linK\0 rel="abp-manifest" href="/nul.json">',
  '<link rel="abp-manifest" href="/nul\0.json">',
];

const OTHERS = [
  '<meta charset="utf-8">',
  '<meta name="a" content="</head>">',
  '\n  ',
  ' ',
  '\t\r\n\f',
  '<!doctype html>',
  '<html lang="en">',
  '<head>',
  '<HEAD class=">">',
  '<base href="/b/">',
  '<base target="_top">',
  '<basefont>',
  '<bgsound src="">',
  '</link>',
  '</p>',
  '</div x=">">',
  '<!---->',
  '<!-->',
  '<!--->',
  '<!-- -- -->',
  '<!--',
  '-->',
  '--!>',
  '<!-- a --!>',
  '<!--!>',
  '<!-',
  '<!x>',
  '<!>',
  '<?xml version="1.0"?>',
  '<?>',
  '</>',
  '</ a>',
  '<![CDATA[',
  ']]>',
  '<title>',
  '</title>',
  '<title>a</titlex></title >',
  '<style>',
  '</style>',
  '</STYLE x="">',
  '<script>',
  '</script>',
  '<script type="x">',
  '</script\n>',
  '</script/',
  '<script',
  '<\\/script>',
  '<noscript>',
  '</noscript>',
  '<noframes>',
  '</noframes>',
  '<template>',
  '</template>',
  '<template><template>',
  '</template></template>',
  '<template shadowrootmode="open">',
  '<style><!--</style>',
  '<script><!--</script>',
  '<script><!--<script></script>',
  '<script><!-->',
  '<script>"</head>"</script>',
  '<title><!--</title>',
  '<style></head></style>',
  '<style><</style>',
  '</head>',
  '</body>',
  '</html>',
  '</br>',
  '<body>',
  '<p>',
  'text',
  '<',
  '</',
  '<<',
  '< link',
];

/** What only counts inside a template. */
const IN_TEMPLATE =
  '<table> <tr> <td> </table> <caption> <div> <p> text <a/href=">"> <button> <input> <li> <form> < ' +
  '<textarea> </textarea> <xmp> </xmp> <iframe> </iframe> <noembed> </noembed> <html> <head> </head> <body> </body>';

const WORDS = 'abp-manifest link rel href script style title template';
const SOUP = [...'<<<>>>/!--="\' \n&;?#', ...WORDS.split(' ')];

/**
 * @param {number} count
 * @param {number} seed
 */
export function* heads(count, seed) {
  const random = randomFrom(seed);
  /** @param {readonly string[]} list */
  const one = (list) => list[Math.floor(random() * list.length)];
  const many = (most, ...lists) =>
    Array.from({ length: Math.floor(random() * most) }, () => one(one(lists))).join('');
  for (let i = 0; i < count; i++) {
    const kind = random();
    const start = random() < 0.5 ? '<!doctype html><html><head>' : '';
    const end = '<link rel="abp-manifest" href="/last.json"></head><body>';
    if (kind < 0.5) yield start + many(6, LINKS, OTHERS, OTHERS) + end;
    else if (kind < 0.7)
      yield `${start}<template>${many(8, IN_TEMPLATE.split(' '), LINKS, OTHERS)}</template>${end}`;
    else if (kind < 0.85) yield `${start}<script>${many(8, OTHERS, SOUP)}</script>${end}`;
    else yield `${start}<link ${many(30, SOUP)}>${many(20, SOUP)}${end}`;
  }
}
