/**
 * The building blocks of packages that use this one: a core, its driver, transports, and helpers.
 * Only for packages of the same version: names may change in any version.
 *
 * A package with a table in C loads it by a `CoreModule`, makes a `Core` of it, and drives that by
 * a `Machine`, which takes the core's actions and performs them. A package that represents a
 * foreign app gives an endpoint a `RelayTransport`.
 */
// Errors, signals, and options.
export {
  AbpError,
  invokeReportingErrors,
  isErrorObject,
  loadOnce,
} from '../../js/common/errors.js';
export { reasonText, reportError, requireTexts, safely } from '../../js/common/errors.js';
export { saysCancelled, saysTimeout, toErrorObject } from '../../js/common/errors.js';
export { misfit, mistyped, requireForm, requireOf } from '../../js/common/check-options.js';
export { requireOptions, requireValues } from '../../js/common/check-options.js';
export { tell, warn } from '../../js/common/development.js';
export { keptReport } from '../../js/common/report.js';
export { LIMITS, abortError, followSignal, offAbort, onAbort } from '../../js/common/signals.js';

// Values, and waiting for them.
export { copyRecord, firstOf, getOwn, isObject, isRecord } from '../../js/common/values.js';
export { limitOf, milliseconds, textOf } from '../../js/common/values.js';
export { plainOf } from '../../js/common/copy.js';
export { secret } from '../../js/common/secret.js';
export { sizeOf } from '../../js/common/value-size.js';
export { isGenerator, isStream, markedTransfer, transfer } from '../../js/common/transfer.js';
export { MAX_MESSAGES_PER_TURN, breathe, inAnotherTurn } from '../../js/common/breathe.js';
export { Inflow } from '../../js/common/inflow.js';
export { Collection, Iteration } from '../../js/common/iteration.js';
export { iteratorOf } from '../../js/common/iterator-of.js';
export { latestOf } from '../../js/common/latest.js';
export { unless, whenAborted } from '../../js/common/waiting.js';

// Untrusted input, and bytes in text.
export { exactOrigin } from '../../js/common/origins.js';
export { HOW_TO_ALLOW, isLoopback, isPublic } from '../../js/untrusted/addresses.js';
export { requireBounded } from '../../js/untrusted/bounds.js';
export { requestChecked } from '../../js/untrusted/node-request.js';
export { fromBase64, toBase64 } from '../../js/binary/base64.js';
export { bytesOf, textToBytes, withBase64 } from '../../js/binary/binary.js';
export { digestOf, hashOf } from '../../js/binary/digest.js';
export { messageToText } from '../transports/json-text.js';

// A core and its driver.
/** The numbers of ABP's core, generated from C. */
export * as abp from '../../js/driver/abp-boundary.js';
export { E_LIMIT, FATES } from '../../js/driver/abp-boundary.js';
export { Core } from '../../js/driver/core.js';
export { CoreDriver, Machine } from '../../js/driver/machine.js';
export { CoreModule } from '../../js/driver/module.js';

// Calls, and transports.
export { Client } from '../../js/agent/client.js';
export { OPAQUE, iframeTransport } from '../../js/transports/iframe.js';
export { watchIframe } from '../../js/transports/iframe-watcher.js';
export { portTransport } from '../../js/transports/port.js';
export { Receiver } from '../../js/transports/receiver.js';
export { requireWindow, watchWindow } from '../../js/window/watch.js';
/** The kinds of the entries of frames. */
export * as FrameKind from '../../js/wire/frame-kinds.js';
export { FrameWriter, entriesOf, isFrame } from '../../js/wire/frames.js';
export { isResponse, unstarted } from '../../js/wire/messages.js';
export { reasonUnsent } from '../../js/wire/unsent.js';

// Foreign apps, and traces of calls.
export { foreignApp } from '../../js/foreign/foreign-app.js';
export { plain, plainJson } from '../../js/foreign/plain-json.js';
export { readError } from '../../js/foreign/read-error.js';
export { RelayTransport } from '../../js/foreign/relay-transport.js';
export { wholeOf } from '../../js/page/grace.js';
export { REPORTERS } from '../../js/page/reporters.js';
export { FIELDS, KINDS } from '../trace/abp-names.js';
export { REASONS, lineOf } from '../trace/trace.js';
