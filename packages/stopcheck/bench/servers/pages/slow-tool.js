/** The WebMCP tool that the pages of the table have. */
void document.modelContext.registerTool({
  name: 'slow',
  description: 'fetches url, steps times',
  inputSchema: {
    type: 'object',
    properties: { url: { type: 'string' }, steps: { type: 'integer' } },
  },
  async execute({ url, steps }, { signal } = {}) {
    for (let done = 0; done < steps; done++) {
      signal?.throwIfAborted();
      await (await fetch(url, { signal })).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return { content: [{ type: 'text', text: 'done' }] };
  },
});
