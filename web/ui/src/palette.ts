// The colours of the Gantt. A test computes their contrast and how far apart they are.

export const names = ['free', 'promise', 'job', 'degraded', 'outage', 'mine'] as const;
export type Name = (typeof names)[number];
export type Theme = 'light' | 'dark';

export const ground: Record<Theme, string> = { light: '#ffffff', dark: '#14171c' };

export const fills: Record<Theme, Record<Exclude<Name, 'free'>, string>> = {
  light: { mine: '#123f7a', promise: '#3d8fd1', job: '#8f8b84', degraded: '#c2410c', outage: '#17191d' },
  dark: { mine: '#a8d8ff', promise: '#2f86c9', job: '#85807a', degraded: '#ff8a4c', outage: '#f2f0ea' },
};

/** rgb reads a colour such as #123f7a. */
export function rgb(hex: string): [number, number, number] {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/** pixel returns a colour, part of it mixed into the ground, as a pixel of an ImageData. */
export function pixel(hex: string, groundHex: string, part: number): number {
  const [r, g, b] = rgb(hex);
  const [x, y, z] = rgb(groundHex);
  const mix = (a: number, c: number) => Math.round(a * part + c * (1 - part));
  return ((255 << 24) | (mix(b, z) << 16) | (mix(g, y) << 8) | mix(r, x)) >>> 0;
}
