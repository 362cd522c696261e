// What the app of these tests can do, wherever it runs.
export const app = {
  app: { id: 'reach.app', name: 'Reach', version: '1' },
  capabilities: {
    double: ({ n }) => n * 2,
    hang: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  },
};
