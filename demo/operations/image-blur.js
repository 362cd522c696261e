/** image.blur: blurs a picture, pixel by pixel, and encodes it as PNG with upng-js. */
// @ts-expect-error: it has no types
import UPNG from 'upng-js';

export const inputSchema = {
  type: 'object',
  properties: {
    size: { type: 'integer', minimum: 16, maximum: 2048 },
    radius: { type: 'integer', minimum: 1, maximum: 64 },
  },
};

/** A picture to work on: rings of colour. @param {number} size in pixels, each way */
function rings(size) {
  const pixels = new Uint8ClampedArray(size * size * 4);
  for (let y = 0, at = 0; y < size; y++) {
    for (let x = 0; x < size; x++, at += 4) {
      const d = Math.hypot(x - size / 2, y - size / 2);
      const on = Math.floor(d / 24) % 2;
      pixels[at] = on ? 255 : (x * 255) / size;
      pixels[at + 1] = on ? (y * 255) / size : 80;
      pixels[at + 2] = on ? 90 : 200;
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}

/**
 * @param {{ size?: number, radius?: number }} params
 * @param {import('../../js/app/registry.js').CallContext} context
 */
export async function handler({ size = 640, radius = 6 }, { progress, breathe }) {
  let from = rings(size);
  for (const [pass, step] of [4, size * 4].entries()) {
    const to = new Uint8ClampedArray(from.length);
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        const along = pass ? y : x;
        const first = Math.max(-radius, -along);
        const last = Math.min(radius, size - 1 - along);
        for (let channel = 0; channel < 4; channel++) {
          let sum = 0;
          const at = (y * size + x) * 4 + channel;
          for (let k = first; k <= last; k++) sum += from[at + k * step];
          to[at] = sum / (last - first + 1);
        }
      }
      await breathe();
      if (y % 16 === 0) {
        progress({ progress: pass * size + y, total: size * 2, stage: pass ? 'columns' : 'rows' });
      }
    }
    from = to;
  }
  const content = UPNG.encode([from.buffer], size, size, 0);
  progress({ progress: size * 2, total: size * 2, stage: 'done' });
  return { content, mimeType: 'image/png', size: content.byteLength, filename: 'blurred.png' };
}
