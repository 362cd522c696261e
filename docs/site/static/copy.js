// A button in each block of code that copies it. Without a clipboard (a page that is not served securely) there is none.
for (const block of navigator.clipboard ? document.querySelectorAll('main pre') : []) {
  const button = document.createElement('button');
  button.className = 'copy plain';
  button.textContent = 'Copy';
  button.setAttribute('aria-live', 'polite');
  const copy = async () => {
    await navigator.clipboard.writeText(block.innerText.trimEnd());
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  };
  button.addEventListener('click', () => void copy());
  const frame = document.createElement('div');
  frame.className = 'code';
  block.replaceWith(frame);
  frame.append(block, button);
}
