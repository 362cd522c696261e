/* global PagefindUI */
const search = new PagefindUI({ element: '#search', showImages: false, showSubResults: true });
const asked = new URLSearchParams(location.search).get('q');
if (asked) search.triggerSearch(asked);
document.querySelector('#search input').setAttribute('aria-label', 'Search');
