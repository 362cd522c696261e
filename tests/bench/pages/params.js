/** A record such as an agent sends: a new one each time. */
export const params = () => ({
  title: 'a document',
  pages: [1, 2, 3],
  options: { size: 'A4', color: true },
});
