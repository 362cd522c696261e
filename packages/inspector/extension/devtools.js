// The page of the extension that the browser opens with its developer tools: adds the panel.
/** @type {any} */ (globalThis).chrome.devtools.panels.create('abp-bridge', '', 'panel.html');
