import { expose } from 'abp-bridge';

expose(
  {
    app: { id: 'example.files', name: 'Files', version: '1.0' },
    capabilities: {
      'files.delete': async ({ names }, { elicit }) => {
        const answer = await elicit({
          method: 'elicitation/confirm',
          params: { message: `Delete ${names.join(' and ')}?`, destructive: true },
        });
        const confirmed = answer.success && answer.data.confirmed;
        return { deleted: confirmed ? names.length : 0 };
      },
    },
  },
  { origins: [location.origin] },
);
