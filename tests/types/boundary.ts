// The boundary between the cores and JavaScript cannot be misused by mistake: each marked line must
// not compile.
import * as abp from '../../js/driver/abp-boundary.js';
import * as rpc from '../../packages/rpc/src/rpc-boundary.js';
import * as tasks from '../../packages/a2a/src/tasks-boundary.js';

declare const x: abp.Exports;
declare const pointer: Parameters<typeof x.next>[0];
declare const peer: rpc.Exports;
declare const table: tasks.Exports;
declare const handle: abp.Handle;
declare const number: abp.CallNumber;

x.finish(pointer, handle, abp.COMPLETED, abp.FATE_NONE);
x.call_received(pointer, 0, number, 0, abp.WANTS_PROGRESS, 0, 0, abp.NO_ERROR, 0);
x.cancel(pointer, 0, 0);

// @ts-expect-error an error code is no outcome, although its number is one
x.finish(pointer, handle, abp.CANCELLED_ERROR, abp.FATE_NONE);
// @ts-expect-error nor is a plain number
x.finish(pointer, handle, 1, abp.FATE_NONE);
// @ts-expect-error how a call ended is not what became of its work
x.finish(pointer, handle, abp.COMPLETED, abp.CANCELLED);
// @ts-expect-error the number of a call is not its handle
x.cancel(pointer, number, 0);
// @ts-expect-error nor the other way round
x.progress_received(pointer, 0, handle);
// @ts-expect-error an outcome is no error code
x.call_received(pointer, 0, number, 0, 0, 0, 0, abp.TIMED_OUT, 0);
// @ts-expect-error a status is not the state of a session
void (x.state(pointer) === abp.E_STATE);
// @ts-expect-error an input returns an action, not an outcome
void (x.advance(pointer, 0) === abp.COMPLETED);
// @ts-expect-error a task is no call
x.cancel(pointer, table.due_task(), 0);
// @ts-expect-error a counter of the tasks is not one of the calls
x.count(pointer, tasks.TASKS_LIVE);
// @ts-expect-error how a handler of JSON-RPC ended is not how a call of ABP did
x.finish(pointer, handle, rpc.RETURNED);
// @ts-expect-error a peer is no endpoint
peer.lost(pointer);

const make = (config: abp.Config) => config;
make({ role: abp.AGENT, maxCalls: 1 });
// @ts-expect-error a misspelt field would be written somewhere else
make({ role: abp.AGENT, maxCals: 1 });
// @ts-expect-error a role is not any number
make({ role: 1 });
