/** Work in steps, whose effects are requests to a URL. */
export async function work({ url, steps = 10, step = 50 }, signal, onStep) {
  for (let done = 1; done <= steps; done++) {
    signal.throwIfAborted();
    await (await fetch(url)).text();
    await onStep?.(done, steps);
    await new Promise((resolve) => setTimeout(resolve, step));
  }
}
