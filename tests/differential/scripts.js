/**
 * Random scripts of inputs to the core, and what plays them on an instance of it. An input is nine
 * 32-bit numbers, the function, seven arguments and the length of the text that stands in the
 * scratch, and that text. What a script does next depends on what came out before, so that calls
 * are really made, found, cancelled and forgotten.
 */
import { CONFIG } from '../../js/driver/abp-boundary.js';

const FUNCTIONS =
  'end create describe connect close lost leave advance request cancel cancel_by_id finish_with_outcome unsent progress_received progress_wanted call_received call_local finish receive cancel_received stream_wanted chunk chunk_received chunk_read credit_received cancel_answered suspect value_received goes_on postpone begin take outcome_received failure'.split(
    ' ',
  );
const CODE = Object.fromEntries(FUNCTIONS.map((name, i) => [name, i]));
const [SEND, REFUSE] = [9, 5];
/** Numbers of an input before its text. */
export const HEAD = 10;
const encoder = new TextEncoder();

/** Mulberry32: the same numbers from the same seed everywhere. */
export function random(seed) {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Plays inputs on the exports of a core. */
export class Player {
  hash = 0;
  /** The endpoint that scripts are about. */
  ep = 0;
  /** Handles that actions named, latest last. */
  calls = [];

  /** @param {any} exports */
  constructor(exports) {
    this.x = exports;
    exports._initialize();
    this.action = exports.action() >> 2;
  }

  #add(value) {
    for (let shift = 0; shift < 32; shift += 8) {
      this.hash = Math.imul(this.hash ^ ((value >>> shift) & 255), 16777619);
    }
  }

  #text(at, length) {
    this.#add(length);
    for (const byte of new Uint8Array(this.x.memory.buffer, at, length)) {
      this.hash = Math.imul(this.hash ^ byte, 16777619);
    }
  }

  /**
   * @param {Uint8Array} seed
   * @param {Record<string, number>} values
   */
  #configure(seed, values) {
    const at = this.x.config();
    const { buffer } = this.x.memory;
    new Uint8Array(buffer, at + CONFIG.seed, 16).set(seed.subarray(0, 16));
    for (const [name, value] of Object.entries(values)) {
      new Uint32Array(buffer, at + CONFIG[name], 1)[0] = value;
    }
  }

  #drain(packed) {
    this.#add(packed);
    while (packed > 0) {
      const words = new Uint32Array(this.x.memory.buffer, this.action << 2, 11);
      const [, , call, , at, , text, length, chunks, , number] = words;
      this.#add(call);
      this.#add(at);
      this.#add(chunks);
      this.#add(number);
      if (text) this.#text(text, length);
      if (call && this.calls.at(-1) !== call) this.calls.push(call);
      const kind = packed & 255;
      if (kind === SEND || kind === REFUSE) {
        const printed = this.x.print(this.ep, 1700000000000);
        const bytes = new Uint8Array(this.x.memory.buffer);
        if (printed) this.#text(printed, bytes.indexOf(0, printed) - printed);
      }
      packed = this.x.next(this.ep);
      this.#add(packed);
    }
  }

  /**
   * @param {number} code
   * @param {number[]} args
   * @param {Uint8Array} text
   */
  play(code, args, text) {
    const { x } = this;
    const at = x.scratch(text.length + 64);
    new Uint8Array(x.memory.buffer).set(text, at);
    const [a, b, c, d, e] = args;
    const name = FUNCTIONS[code];
    switch (name) {
      case 'end':
        for (const counter of [3, 4, 5, 8]) this.#add(x.count(this.ep, counter));
        return;
      case 'create':
        this.hash = 2166136261 | 0;
        this.calls = [];
        x.destroy(this.ep);
        this.#configure(text, {
          role: a,
          features: b,
          maxCalls: 4,
          maxConcurrent: c,
          remembered: 3,
          rememberFor: 1000,
          grace: 50,
          maxIdLength: 64,
          maxControlLength: 4096,
          heartbeat: 200,
          restart: d & 1,
          foreign: d >> 1,
          streamChunks: 2,
          streamBytes: 100,
        });
        this.ep = x.create(e);
        return;
      case 'describe':
      case 'progress_wanted':
      case 'stream_wanted':
        return this.#add(x[name](this.ep, a));
      case 'failure':
        return this.#add(x.failure(this.ep, a, b, c, d, e));
      default:
        return this.#drain(x[name](this.ep, ...args));
    }
  }
}

const IDS = [
  'a',
  'b',
  'c',
  'é',
  'i1.1',
  'i1.2',
  'i1.02',
  's.1',
  'long'.repeat(12),
  'x'.repeat(65),
  '',
];
const VALUES = [
  '"a"',
  '"b"',
  '"i1.1"',
  '7',
  'null',
  '"\\u0000"',
  '"é"',
  '{"a":[1,2,{"b":-1.5e3}]}',
  '"\\ud83d\\ude00"',
];
const TYPES = [
  'initialize',
  'initialize-result',
  'capabilities/cancel',
  'capabilities/cancel-result',
  'shutdown',
  'bridge/bye',
  'bridge/cancel',
  'bridge/ping',
  'bridge/pong',
  'capabilities/list',
  'constructor',
];

/**
 * Makes one script and plays it.
 * @param {number} seed
 * @param {Player} player
 * @param {(bytes: Uint8Array) => void} write takes the script, an input at a time
 */
export function script(seed, player, write) {
  const pick = random(seed);
  const one = (list) => list[pick(list.length)];
  let now = pick(1000);
  const does = (name, args = [], text = '') => {
    const bytes = typeof text === 'string' ? encoder.encode(text) : text;
    const record = new Uint8Array(HEAD * 4 + bytes.length);
    const all = args.concat(Array(HEAD - 2 - args.length).fill(0));
    new Uint32Array(record.buffer, 0, HEAD).set([CODE[name], ...all, bytes.length]);
    record.set(bytes, HEAD * 4);
    write(record);
    player.play(CODE[name], all, bytes);
  };
  const call = () => (pick(8) ? (player.calls.at(-1 - pick(4)) ?? 0) : pick(2 ** 30));
  const id = () => {
    const text = one(IDS);
    return [encoder.encode(text).length, text];
  };
  /** An id as text in the scratch or, as often, a number. */
  const key = () => {
    if (pick(2)) return [[0, 1 + pick(6)], ''];
    const [length, text] = id();
    return [[length, 0], text];
  };
  const control = () => {
    const type = one(TYPES);
    const session = type.startsWith('initialize');
    const features = `{"notifications":true,"progress":${pick(2) === 1},"bridge.frames":true,"bridge.streams":${pick(2) === 1},"bridge.liveness":${pick(2) === 1}}`;
    const payload = session
      ? `{"protocolVersion":"${one(['0.1', '1', 'x'])}","sessionId":${one(['"s"', '7', '""'])},"features":${features},"stream":{"chunks":${pick(4)},"bytes":${pick(99)}}${pick(3) ? '' : ',"error":{"code":"ALREADY_INITIALIZED"}'}}`
      : `{"callId":${one(VALUES)},"cancelled":${pick(2) === 1},"reason":${one(VALUES)},"persisted":${pick(2) === 1}}`;
    const messageId = session ? one(['"i1"', '"i1"', '"i1"', '3']) : one(VALUES);
    const text = `{"type":"${type}","id":${messageId},"payload":${payload}}`;
    if (pick(8)) return text;
    const at = pick(text.length);
    return pick(2)
      ? text.slice(0, at)
      : text.slice(0, at) + one(['"', '{', ',', '\\', ' ']) + text.slice(at + 1);
  };
  /** A response as a number: mostly one that is one. */
  const response = () =>
    pick(8) ? pick(20) + 256 * pick(4) + 4096 * pick(7) + 65536 * (1 + pick(32)) : pick(2 ** 30);
  const STEPS = [
    [
      6,
      () => {
        const [args, text] = key();
        does('outcome_received', [...args, response()], text);
      },
    ],
    [1, () => does('failure', [4 + pick(4), pick(8), pick(7), pick(2) && response(), pick(16)])],
    [1, () => does('take', [pick(2), pick(4)])],
    [1, () => does('finish_with_outcome', [call(), response()])],
    [3, () => does('advance', [(now += pick(120))])],
    [1, () => does(one(['close', 'lost', 'leave', 'suspect']), [pick(2)])],
    [
      1,
      () => {
        const [args, text] = key();
        does('value_received', args, text);
      },
    ],
    [1, () => does('connect', [pick(1000)])],
    [
      4,
      () => {
        const [length, text] = pick(2) ? id() : [0, ''];
        const bytes = pick(3) ? 0 : pick(50);
        const [ms, flags, parent] = [pick(3) ? 0 : pick(100), pick(4), pick(3) ? 0 : call()];
        does('request', [length, ms, flags, parent, bytes], text);
      },
    ],
    [
      3,
      () => {
        const reason = pick(2) ? 'why' : '';
        does('cancel', [call(), reason.length], reason);
      },
    ],
    [
      1,
      () => {
        const [length, text] = id();
        does('cancel_by_id', [length, 3], `${text}why`);
      },
    ],
    [1, () => does('unsent', [call()])],
    [1, () => does('progress_wanted', [call()])],
    [
      1,
      () => {
        const [args, text] = key();
        does('progress_received', args, text);
      },
    ],
    [
      6,
      () => {
        const [args, text] = key();
        const [aboutLength, about] = pick(2) ? id() : [0, ''];
        does(
          'call_received',
          [...args, pick(3) ? 0 : pick(100), pick(2), 0, 0, pick(6) ? 0 : 3 + pick(4), aboutLength],
          text + about,
        );
      },
    ],
    [
      3,
      () => {
        const [args, text] = key();
        does('cancel_received', [...args, 3], `${text}why`);
      },
    ],
    [
      4,
      () => {
        const [args, text] = key();
        const window = [pick(4), 40 * pick(5)];
        does(
          'call_received',
          [...args, pick(3) ? 0 : pick(100), pick(2), ...window, pick(6) ? 0 : 3 + pick(4)],
          text,
        );
      },
    ],
    [1, () => does('stream_wanted', [call()])],
    [5, () => does('chunk', [call(), pick(60)])],
    [
      5,
      () => {
        const [args, text] = key();
        does('chunk_received', [...args, pick(60), pick(90)], text);
      },
    ],
    [4, () => does('chunk_read', [call(), pick(3) ? 0 : pick(60)])],
    [
      4,
      () => {
        const [args, text] = key();
        does('credit_received', [...args, pick(3), pick(3) ? 0 : pick(60)], text);
      },
    ],
    [1, () => does('call_local', [call(), pick(100), pick(6) ? 0 : 3])],
    [5, () => does('finish', [call(), [1, 2, 5, 6][pick(4)], [0, 1 + pick(6)][pick(2)]])],
    [2, () => does('postpone', [call()])],
    [2, () => does('begin', [call()])],
    [2, () => does('cancel_answered', [call(), pick(2), 0])],
    [2, () => does('goes_on', [call()])],
    [
      5,
      () => {
        const text = control();
        does('receive', [encoder.encode(text).length], text);
      },
    ],
  ].flatMap(([weight, step]) => Array(weight).fill(step));

  const role = pick(2);
  does(
    'create',
    [role, pick(256), pick(3), pick(4), now],
    new Uint8Array(16).map(() => pick(256)),
  );
  const about = '{"id":"x","name":"é","n":1.50}';
  const member = `${role ? 'app' : 'agent'}\0`.padEnd(32, ' ');
  does('describe', [encoder.encode(about).length], member + about);
  if (!role) does('connect', [500]);
  // Most scripts have a session from the start.
  if (pick(8)) {
    const features =
      '{"notifications":true,"progress":true,"elicitation":true,"bridge.liveness":true,"bridge.streams":true}';
    const text = role
      ? `{"type":"initialize","id":"i1","payload":{"protocolVersion":"0.1","features":${features}}}`
      : `{"type":"initialize-result","payload":{"protocolVersion":"0.1","sessionId":"s","features":${features}}}`;
    does('receive', [text.length], text);
  }
  for (let left = 15 + pick(40); left; left--) one(STEPS)();
  does('end');
}
