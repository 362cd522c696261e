/** The promises of an agent with a store, whatever its backend is. */
import { testCancels } from './store/cancels.js';
import { testHandovers } from './store/handovers.js';
import { testQuestions } from './store/questions.js';
import { testRecords } from './store/records.js';
import { testRepeats } from './store/repeats.js';
import { testStreams } from './store/streams.js';
import { testVersions } from './store/versions.js';

/**
 * Tests over a backend.
 * @typedef {(name: string,
 *   openBackend: () => Promise<import('../../src/index.js').Backend>) => void} StoreTests
 *   `openBackend` opens an empty one
 */

/** @type {StoreTests} */
export function testStore(name, openBackend) {
  for (const testPart of [
    testRecords,
    testCancels,
    testStreams,
    testQuestions,
    testRepeats,
    testHandovers,
    testVersions,
  ])
    testPart(name, openBackend);
}
