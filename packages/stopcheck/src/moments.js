/** What others wait for, until it has happened often enough. */
export class Moments {
  /** @type {{ test: () => boolean, tell: () => void }[]} */
  #waiting = [];

  /**
   * @param {() => boolean} test
   * @returns {Promise<void>} resolves in the turn in which it is so
   */
  async until(test) {
    if (!test())
      await new Promise((resolve) => this.#waiting.push({ test, tell: () => resolve(0) }));
  }

  /** Something has happened. */
  changed() {
    for (const { test, tell } of this.#waiting) if (test()) tell();
  }
}
