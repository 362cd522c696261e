// In a page of a site, and in the extension's own: what a test asks the extension's app.
import { connect } from 'abp-bridge';
import { extensionTransport } from 'abp-bridge/transports';

window.open_ = (id) =>
  connect(() => extensionTransport(chrome.runtime.connect(id, { name: 'abp-bridge' })), {
    agent: { name: 'page', version: '1' },
  }).catch(({ code, message }) => ({ code, message }));
