/* global PagefindUI */
const search = new PagefindUI({
  element: '#search',
  showImages: false,
  showSubResults: true,
  ranking: { pageLength: 0.1, termSaturation: 0.6 }, // a name of the API counts, however long its page is
});
const asked = new URLSearchParams(location.search).get('q');
if (asked) search.triggerSearch(asked);
document.querySelector('#search input').setAttribute('aria-label', 'Search');
