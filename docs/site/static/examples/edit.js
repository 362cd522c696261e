/** Lets the code of an example be changed, and runs what it then is. Modules made of text have no folder: their imports are whole. */
const moduleOf = (code) => URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
const here = (path) => new URL(path, import.meta.url).href;

for (const sources of document.querySelectorAll('.sources')) {
  const id = sources.dataset.of;
  const blocks = [...sources.querySelectorAll('pre')];
  const button = sources.querySelector('p button');
  ['The app', 'The agent'].forEach((name, i) => {
    Object.assign(blocks[i], { contentEditable: 'plaintext-only', spellcheck: false });
    blocks[i].setAttribute('role', 'textbox');
    blocks[i].setAttribute('aria-multiline', 'true');
    blocks[i].setAttribute('aria-label', `${name}'s code`);
    blocks[i].addEventListener('input', () => (button.hidden = false));
  });
  button.addEventListener('click', () => {
    const [app, agent] = blocks.map((block) => block.innerText);
    // A frame finds `abp-bridge` by its import map; a worker has none.
    const changedApp = moduleOf(app.replace('../abp/abp-bridge.js', here('../abp/abp-bridge.js')));
    const section = document.getElementById(id);
    const fresh = section.cloneNode(true);
    for (const part of fresh.querySelectorAll(':scope > .controls button')) part.disabled = true;
    fresh.querySelector('output').textContent = '';
    const frame = fresh.querySelector('iframe');
    if (frame) frame.dataset.app = changedApp;
    section.replaceWith(fresh); // the old frame, and its session, end
    fresh.scrollIntoView({ block: 'center' });
    const changedAgent = agent
      .replace("'./example.js'", `'${here('./example.js')}'`)
      .replace(/new URL\('\.\/[\w-]+-app\.js', import\.meta\.url\)/, `'${changedApp}'`);
    import(moduleOf(changedAgent)).catch(
      (error) => (fresh.querySelector('output').textContent = error),
    );
  });
}
