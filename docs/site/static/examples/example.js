/**
 * The buttons and texts of an example, so that its own file shows the bridge and little else.
 * @param {string} id of its section
 */
export function example(id) {
  const section = document.getElementById(id);
  const [run, stop] = section.querySelectorAll('.controls button');
  const output = section.querySelector('output');
  const question = section.querySelector('.question');
  let controller;
  stop.addEventListener('click', () => controller.abort('you pressed Stop'));
  return {
    iframe: section.querySelector('iframe'),
    bar: section.querySelector('progress'),
    run: () => run.click(), // begins by itself
    say: (text) => (output.textContent = text),
    add: (text) => output.append(text),

    /** Runs the example, with the signal of the Stop button. */
    onRun(act) {
      const start = async () => {
        controller = new AbortController();
        output.textContent = '';
        const wasFocused = run === document.activeElement; // not if it begins by itself
        [run.disabled, stop.disabled] = [true, false];
        if (wasFocused) stop.focus();
        try {
          await act(controller.signal);
        } finally {
          const focused = section.contains(document.activeElement);
          [run.disabled, stop.disabled] = [false, true];
          if (focused) run.focus(); // a button that is disabled would lose it
        }
      };
      run.addEventListener('click', () => void start());
      run.disabled = false;
    },

    /** Asks, until `signal` or the Stop button says that nobody waits for the answer any more. */
    ask(message, signal) {
      const [yes, no] = question.querySelectorAll('button');
      question.querySelector('p').textContent = message;
      question.hidden = false;
      yes.focus();
      const over = AbortSignal.any([signal, controller.signal]);
      return new Promise((resolve) => {
        yes.onclick = () => resolve(true);
        no.onclick = () => resolve(false);
        over.addEventListener('abort', () => resolve(false));
      }).finally(() => (question.hidden = true));
    },
  };
}
