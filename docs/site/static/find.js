// Finds while one types: a list of results under the field. Without this script, the form leads to a page that searches.
const form = document.querySelector('header form');
const field = form.elements.q;
const list = document.createElement('ul');
Object.assign(list, { id: 'found', hidden: true, role: 'listbox', ariaLabel: 'Results' });
const status = Object.assign(document.createElement('span'), {
  className: 'hidden',
  role: 'status',
});
form.append(list, status);
for (const [name, value] of Object.entries({
  role: 'combobox',
  'aria-autocomplete': 'list',
  'aria-controls': 'found',
  'aria-expanded': 'false',
  autocomplete: 'off',
}))
  field.setAttribute(name, value);
const keys = /Mac|iP(hone|ad)/.test(navigator.platform) ? '⌘K' : 'Ctrl+K';
if (matchMedia('(pointer: fine)').matches) field.placeholder = `Search (${keys})`;
field.setAttribute('aria-keyshortcuts', 'Meta+K Control+K /');

/** Pagefind, and its weights: a name of the API counts more than its mention in a guide, however long the page is. */
let loading;
const load = () =>
  (loading ??= import(new URL('./pagefind/pagefind.js', import.meta.url)).then(async (pagefind) => {
    await pagefind.options({
      ranking: { pageLength: 0.1, termSaturation: 0.6 },
      excerptLength: 14,
    });
    return pagefind;
  }));
const MOST = 8;
let turn = 0;
let chosen = -1;

/** The part of a page that has what was looked for by name: a heading, or a row of a table. */
function partOf(page) {
  const [best] = [...page.weighted_locations].sort((a, b) => b.weight - a.weight);
  const before = (page.anchors ?? []).filter(({ location }) => best && location <= best.location);
  const anchor = before.sort((a, b) => b.location - a.location)[0];
  return anchor
    ? { url: `${page.url.split('#')[0]}#${anchor.id}`, heading: anchor.text }
    : { url: page.url };
}

/** @param {number} at of the options; -1 is none */
function choose(at) {
  chosen = at;
  [...list.children].forEach((option, i) => option.setAttribute('aria-selected', i === at));
  const option = list.children[at];
  option?.scrollIntoView({ block: 'nearest' });
  if (option) field.setAttribute('aria-activedescendant', option.id);
  else field.removeAttribute('aria-activedescendant');
}

function open(isOpen) {
  list.hidden = !isOpen;
  field.setAttribute('aria-expanded', isOpen);
  choose(-1);
}

const pagesOf = (results) => Promise.all(results.slice(0, MOST).map((result) => result.data()));

/** The API first, where it has the name; then all that has the words. */
async function find() {
  const mine = ++turn;
  const words = field.value.trim();
  if (!words) return open(false);
  const pagefind = await load();
  const named = await pagefind.search(words, { filters: { kind: 'API' } });
  const isMain = ({ url }) => url.includes('api-abp-bridge.html');
  const api = await pagesOf(named.results)
    .then((pages) =>
      pages.filter(({ weighted_locations: at }) => at.some(({ weight }) => weight >= 10)),
    )
    .then((pages) => pages.sort((a, b) => isMain(b) - isMain(a)).slice(0, 3));
  const rest = await pagefind.search(words, api.length ? { filters: { kind: 'Guide' } } : {});
  const pages = [...api, ...(await pagesOf(rest.results))].slice(0, MOST);
  if (mine !== turn) return; // more has been typed
  list.replaceChildren(
    ...pages.map((page, i) => {
      const { url, heading } = partOf(page);
      const option = document.createElement('li');
      Object.assign(option, { id: `found-${i}`, role: 'option' });
      const link = Object.assign(document.createElement('a'), { href: url, tabIndex: -1 });
      const title = document.createElement('strong');
      title.textContent = [page.meta.title, heading]
        .filter((text, j, all) => text && all.indexOf(text) === j)
        .join(' › ');
      const kind = Object.assign(document.createElement('small'), {
        textContent: page.filters.kind?.[0] ?? '',
      });
      const excerpt = document.createElement('span');
      excerpt.innerHTML = page.excerpt; // Pagefind's: text of this site, with `mark`
      link.append(title, kind, excerpt);
      option.append(link);
      return option;
    }),
  );
  status.textContent = pages.length ? `${pages.length} results` : 'Nothing was found';
  open(pages.length > 0);
}

field.addEventListener('focus', () => void load());
field.addEventListener('input', () => void find());
field.addEventListener('keydown', (event) => {
  const count = list.children.length;
  if (event.key === 'Escape') {
    if (!list.hidden) event.preventDefault(); // which would empty the field
    open(false);
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    if (!count) return;
    event.preventDefault();
    if (list.hidden) open(true);
    // From the field down to the first, and up to the last; past an end is the field again.
    const step = event.key === 'ArrowDown' ? 1 : -1;
    choose(((chosen + 1 + step + count + 1) % (count + 1)) - 1);
  } else if (event.key === 'Enter' && !list.hidden && chosen >= 0) {
    event.preventDefault();
    list.children[chosen].querySelector('a').click();
    open(false);
  }
});
form.addEventListener(
  'focusout',
  ({ relatedTarget }) => form.contains(relatedTarget) || open(false),
);
list.addEventListener('mousedown', (event) => event.preventDefault()); // the field keeps the focus
addEventListener('keydown', (event) => {
  const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]');
  const isShortcut = event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey);
  if (!isShortcut && (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  field.focus();
  field.select();
});
