// The root of the page: apart from the component, so that editing that does not reload the page.
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Host } from './host.jsx';

createRoot(document.querySelector('#root')).render(
  <StrictMode>
    <Host />
  </StrictMode>,
);
