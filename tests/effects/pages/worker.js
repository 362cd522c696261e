// An app in a worker of a page, or the tasks of a pool there.
import { expose } from '/parts/main/index.js';
import { serve } from '/parts/workers/pool.js';
import { APP } from '/tests/effects/calls.js';
import { handlersOf, withChecks } from '/tests/effects/work.js';
import { placeOf, settingsHere } from './place.js';

const { database, name, limits, isPool } = settingsHere();
const place = placeOf(database, name);
const die = () => {
  close();
  return new Promise(() => {});
};
if (isPool) serve(handlersOf({ ...place, die }));
else expose({ app: APP, capabilities: withChecks(handlersOf(place)) }, { limits });
