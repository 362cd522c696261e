// What a message has to be, in each version, and what is read of it however it is spelled.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VERSIONS, ask, plainState, servingUntilEnd } from './support/a2a.js';

const served = servingUntilEnd();

/** Parts that no version takes, and some that only this one does not. */
const wrongParts = (version) => [
  undefined,
  'x',
  {},
  [],
  [null],
  ['x'],
  [{}],
  [{ kind: 'invented', text: 'x' }],
  [{ text: 5 }],
  [{ url: {} }],
  [{ raw: 'not base64!' }],
  [{ text: 'x', metadata: 'y' }],
  [{ text: 'x', url: 'https://x.example/' }],
  [{ text: 'fine' }, { invented: true }],
  ...(version === '0.3'
    ? [
        [{ kind: 'text' }],
        [{ kind: 'file' }],
        [{ kind: 'file', file: {} }],
        [{ kind: 'data', data: 1 }],
      ]
    : []),
];

for (const [version, names] of Object.entries(VERSIONS))
  describe(`in the words of ${version}`, () => {
    const fine = () => names.message('go');
    /** Sends what is wrong, both ways, and tells the errors. */
    const refused = async (params) => {
      const executed = [];
      const { url, agent } = await served((ctx) => executed.push(ctx));
      const errors = [];
      for (const method of [names.send, names.stream])
        errors.push((await ask(url, method, params, names.headers)).error);
      assert.deepEqual(executed, [], JSON.stringify(params));
      assert.equal(agent.counters.live + agent.counters.finished, 0);
      return errors;
    };

    test('a message without a role, or of one that nobody has, is refused', async () => {
      for (const role of [undefined, null, '', 'robot', 'ROLE_UNSPECIFIED', 0, 3, {}, ['user']])
        for (const error of await refused({ message: { ...fine(), role } }))
          assert.deepEqual([error.code, /role/.test(error.message)], [-32602, true]);
    });

    test('a message without parts, or with one that is none, is refused, and the field is named', async () => {
      for (const parts of wrongParts(version))
        for (const { code, message, data } of await refused({ message: { ...fine(), parts } })) {
          assert.deepEqual([code, /parts/.test(message)], [-32602, true], JSON.stringify(parts));
          // 1.0 tells it for machines, too.
          const [info, bad] = data ?? [];
          assert.equal(info?.reason, version === '1.0' ? 'INVALID_PARAMS' : undefined);
          if (version === '1.0') assert.match(bad.fieldViolations[0].field, /^message\.parts/);
        }
    });

    test('fields of another type are refused, not left out', async () => {
      for (const wrong of [
        { taskId: 5 },
        { contextId: {} },
        { metadata: [] },
        { extensions: 'x' },
        { referenceTaskIds: [1] },
      ])
        for (const { code } of await refused({ message: { ...fine(), ...wrong } }))
          assert.equal(code, -32602, JSON.stringify(wrong));
      for (const configuration of [5, [], { acceptedOutputModes: 'text' }, { blocking: 'yes' }])
        for (const { code } of await refused({ message: fine(), configuration }))
          assert.equal(code, -32602, JSON.stringify(configuration));
    });

    test('a historyLength that is no number of messages is refused wherever it stands', async () => {
      const { url } = await served(() => {});
      const { result } = await ask(url, names.send, { message: fine() }, names.headers);
      const { id } = result.task ?? result;
      for (const historyLength of [-1, '2', 1.5, {}, [], true]) {
        const got = await ask(url, names.get, { id, historyLength }, names.headers);
        assert.deepEqual(
          [got.error?.code, /historyLength/.test(got.error?.message)],
          [-32602, true],
        );
        for (const { code } of await refused({ message: fine(), configuration: { historyLength } }))
          assert.equal(code, -32602);
        if (names.list && version === '1.0') {
          const listed = await ask(url, names.list, { historyLength }, names.headers);
          assert.equal(listed.error.code, -32602);
        }
      }
      const none = await ask(url, names.get, { id, historyLength: 0 }, names.headers);
      assert.equal(none.result.history?.length ?? 0, 0);
      const all = await ask(url, names.get, { id, historyLength: null }, names.headers);
      assert.equal(all.result.history.length, 1);
    });

    test('every kind of part is taken, and comes back', async () => {
      const parts = {
        '1.0': [{ text: 'a' }, { url: 'https://x.example/' }, { raw: 'YQ==' }, { data: null }],
        0.3: [
          { kind: 'text', text: 'a' },
          { kind: 'file', file: { uri: 'https://x.example/' } },
          { kind: 'file', file: { bytes: 'YQ==' } },
          { kind: 'data', data: { a: 1 } },
        ],
        gem: [{ text: 'a' }, { url: 'https://x.example/' }, { raw: 'YQ==' }, { data: { a: 1 } }],
      }[version];
      const { url } = await served(({ message, emitArtifact }) =>
        emitArtifact({ artifactId: 'all', parts: message.parts }),
      );
      const params = { message: { ...fine(), parts } };
      const { result } = await ask(url, names.send, params, names.headers);
      assert.deepEqual((result.task ?? result).artifacts[0].parts, parts);
    });
  });

test('1.0: the names of a2a.proto are read as those of JSON are', async () => {
  const names = VERSIONS['1.0'];
  let seen;
  const { url } = await served((ctx) => {
    seen = ctx;
    if (ctx.task.history.length === 1) ctx.emitStatus('input-required', 'More?');
  });
  const message = {
    message_id: 'm1',
    context_id: 'c',
    role: 'ROLE_USER',
    parts: [{ text: 'x', media_type: 'text/markdown' }],
    reference_task_ids: ['other'],
  };
  const send = (params) => ask(url, names.send, params, names.headers);
  const { task } = (await send({ message, configuration: { accepted_output_modes: ['a/b'] } }))
    .result;
  assert.deepEqual(seen.message, {
    messageId: 'm1',
    role: 'user',
    parts: [{ text: 'x', mediaType: 'text/markdown' }],
    contextId: 'c',
    taskId: task.id,
    referenceTaskIds: ['other'],
  });
  assert.deepEqual(seen.request.acceptedOutputModes, ['a/b']);
  const answer = { ...message, message_id: 'm2', task_id: task.id };
  const params = { message: answer, configuration: { history_length: 1 } };
  const again = (await send(params)).result.task;
  assert.deepEqual([again.id, plainState(again.status.state)], [task.id, 'completed']);
  assert.deepEqual(
    again.history.map(({ messageId }) => messageId),
    ['m2'],
  );
  const listed = await ask(url, names.list, { page_size: 0 }, names.headers);
  assert.equal(listed.error.code, -32602);
});
