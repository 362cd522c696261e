/**
 * image.blur: blurs a picture, pixel by pixel, and encodes it as PNG: in a page by its canvas, in
 * Node with upng-js.
 */
// @ts-expect-error: it has no types
import UPNG from 'upng-js';

export const inputSchema = {
  type: 'object',
  properties: {
    size: { type: 'integer', minimum: 16, maximum: 4096 },
    radius: { type: 'integer', minimum: 1, maximum: 64 },
  },
};

/**
 * A picture to work on: hills in the evening.
 * @param {number} size in pixels, each way
 */
function hills(size) {
  const pixels = new Uint8ClampedArray(size * size * 4);
  const ridges = [0.45, 0.58, 0.72, 0.86].map((height, i) => (/** @type {number} */ x) => {
    const wave = Math.sin(x * (7 + 4 * i) + i) + 0.5 * Math.sin(x * (23 + 9 * i) + 2 * i);
    return size * (height + 0.05 * wave);
  });
  for (let x = 0; x < size; x++) {
    const heights = ridges.map((ridge) => ridge(x / size));
    for (let y = 0; y < size; y++) {
      const layer = heights.filter((height) => y > height).length;
      const sun = Math.hypot(x - size * 0.7, y - size * 0.3) < size * 0.07;
      const at = (y * size + x) * 4;
      pixels[at] = layer ? 120 - 28 * layer : sun ? 255 : 250 - (90 * y) / size;
      pixels[at + 1] = layer ? 110 - 18 * layer : sun ? 236 : 150 + (60 * y) / size;
      pixels[at + 2] = layer ? 150 - 20 * layer : sun ? 170 : 120 + (80 * y) / size;
      pixels[at + 3] = 255;
    }
  }
  return pixels;
}

/**
 * @param {Uint8ClampedArray<ArrayBuffer>} pixels
 * @param {number} size
 * @returns {Promise<ArrayBuffer>}
 */
async function encode(pixels, size) {
  if (!globalThis.OffscreenCanvas) return UPNG.encode([pixels.buffer], size, size, 0);
  const canvas = new OffscreenCanvas(size, size);
  canvas.getContext('2d')?.putImageData(new ImageData(pixels, size, size), 0, 0);
  return (await canvas.convertToBlob()).arrayBuffer();
}

/**
 * @param {{ size?: number, radius?: number }} params
 * @param {import('abp-bridge').CallContext} context
 */
export async function handler({ size = 640, radius = 6 }, { signal, progress, breathe }) {
  let from = hills(size);
  const before = await encode(from, size);
  // Rows, then columns, three times: nearly a Gaussian.
  const passes = [1, size, 1, size, 1, size].map((step) => step * 4);
  for (const [pass, step] of passes.entries()) {
    const to = new Uint8ClampedArray(from.length);
    const across = step === 4 ? size * 4 : 4;
    for (let line = 0; line < size; line++) {
      for (let channel = 0; channel < 4; channel++) {
        const start = line * across + channel;
        // The sum moves along the line: one pixel enters, one leaves.
        let sum = 0;
        for (let i = 0; i < Math.min(radius, size); i++) sum += from[start + i * step];
        for (let i = 0; i < size; i++) {
          if (i + radius < size) sum += from[start + (i + radius) * step];
          if (i > radius) sum -= from[start + (i - radius - 1) * step];
          const count = Math.min(size - 1, i + radius) - Math.max(0, i - radius) + 1;
          to[start + i * step] = sum / count;
        }
      }
      await breathe();
      if (line % 64 === 0) {
        const stage = step === 4 ? 'rows' : 'columns';
        progress({ progress: pass * size + line, total: size * passes.length, stage });
      }
    }
    from = to;
  }
  const content = await encode(from, size);
  signal.throwIfAborted();
  progress({ progress: 1, total: 1, stage: 'done' });
  return {
    content,
    before,
    mimeType: 'image/png',
    size: content.byteLength,
    filename: 'blurred.png',
  };
}
