/**
 * A core that fails in the midst of an input, as one does whose code or memory is broken; and how
 * much memory it has.
 */
import { Instance } from '../../js/driver/instance.js';

/** The instances in which cores were made, the latest last. @type {Instance<any>[]} */
const instances = [];
const { configure } = Instance.prototype;
Instance.prototype.configure = function (...given) {
  if (instances.at(-1) !== this) instances.push(this);
  return configure.apply(this, given);
};

/**
 * The instance in which the latest core was made that has an export of that name.
 * @param {string} name
 */
export const instanceWith = (name) =>
  /** @type {Instance<any>} */ (instances.findLast(({ x }) => name in x));

/**
 * Has a core fail at the next call of an export. What the console is told of it is not shown.
 * @param {string} name of the export
 * @param {string} [own] one that cores of its module have alone
 * @returns {{ instance: Instance<any>, said: Promise<string> }} `said` resolves with what the
 *   console was told
 */
export function trap(name, own = name) {
  const instance = instanceWith(own);
  const whole = instance.x[name];
  const { error } = console;
  const said = new Promise((resolve) => {
    console.error = (...words) => {
      console.error = error;
      resolve(words.join(' '));
    };
  });
  instance.x[name] = () => {
    instance.x[name] = whole;
    // As WebAssembly's RuntimeError, where the core is JavaScript.
    throw new RangeError('unreachable');
  };
  return { instance, said };
}
