// Before the page is drawn: the colours that were chosen, if any were.
const root = document.documentElement;
root.dataset.theme = localStorage.getItem('theme') ?? '';
addEventListener('DOMContentLoaded', () => {
  const select = document.getElementById('theme');
  select.value = root.dataset.theme;
  select.addEventListener('change', () => {
    root.dataset.theme = select.value;
    localStorage.setItem('theme', select.value);
  });
  // On a wide screen the menu is always open.
  const menu = document.querySelector('nav details');
  const wide = matchMedia('(width > 60rem)');
  const follow = () => (menu.open = wide.matches);
  wide.addEventListener('change', follow);
  follow();
});
