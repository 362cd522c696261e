// The headers in src/ are where defaults are decided. What JavaScript says of them is checked here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as abp from '../../js/driver/abp-boundary.js';
import * as rpc from '../../packages/rpc/src/rpc-boundary.js';
import * as tasks from '../../packages/a2a/src/tasks-boundary.js';

const SAME = { maxConcurrent: 'maxCalls', firstNumber: '1' };
const CALLS = {
  maxCalls: abp.DEFAULT_MAX_CALLS,
  remembered: abp.DEFAULT_REMEMBERED,
  rememberFor: abp.DEFAULT_REMEMBER_MS,
  maxIdLength: abp.DEFAULT_MAX_ID,
};
const DOCUMENTED = [
  [
    'js/driver/abp-core.js',
    {
      ...SAME,
      ...CALLS,
      grace: `app ${abp.DEFAULT_APP_GRACE_MS}, agent ${abp.DEFAULT_AGENT_GRACE_MS}`,
      maxControlLength: abp.DEFAULT_MAX_TEXT,
      heartbeat: abp.DEFAULT_HEARTBEAT_MS,
      probe: abp.DEFAULT_PROBE_MS,
      streamChunks: abp.DEFAULT_STREAM_CHUNKS,
      streamBytes: abp.DEFAULT_STREAM_BYTES,
    },
  ],
  ['packages/rpc/src/rpc-core.js', { ...SAME, ...CALLS, grace: rpc.PEER_DEFAULT_GRACE_MS }],
  [
    'packages/a2a/src/tasks-core.js',
    {
      maxTasks: tasks.TASKS_DEFAULT_MAX_TASKS,
      maxArtifacts: tasks.TASKS_DEFAULT_MAX_ARTIFACTS,
      remembered: tasks.TASKS_DEFAULT_REMEMBERED,
      rememberFor: tasks.TASKS_DEFAULT_REMEMBER_MS,
    },
  ],
];

for (const [file, defaults] of DOCUMENTED)
  test(`${file} documents every limit with the default that the core has`, () => {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const limits = /@typedef \{object\} \w*Limits [^]*?\*\//.exec(source)?.[0] ?? '';
    const documented = limits.split('@property').slice(1);
    const found = documented.map((text) => {
      const name = /\[(\w+)\]/.exec(text)?.[1] ?? '';
      return [name, text.includes(`(${defaults[name]})`)];
    });
    assert.deepEqual(
      Object.fromEntries(found),
      Object.fromEntries(Object.keys(defaults).map((name) => [name, true])),
    );
  });
