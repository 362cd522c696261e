// npm start: serves the page of the agent and the app that it embeds, each from an origin of its own.
import { createServer } from 'vite';

for (const [folder, port] of [
  ['app', 5174],
  ['host', 5173],
]) {
  const server = await createServer({
    root: folder,
    cacheDir: `../node_modules/.vite/${folder}`, // of its own, or they would overwrite each other's
    server: { port, strictPort: true },
  });
  await server.listen().catch((error) => {
    console.error(
      /in use/.test(error.message)
        ? `Port ${port} is in use: end the program that uses it, or change the port in start.js, app/app.js and host/host.jsx`
        : error,
    );
    process.exit(1);
  });
  console.log(`The ${folder} is at http://localhost:${port}/`);
}
