// What is looked at as files: a drawing and a table.

import type { Rows } from './api.js';
import { hour, ticks, time } from './clock.js';
import { fills, ground } from './palette.js';
import { Class, Flag, type Picture } from './picture.js';
import { text } from './text.js';

/** Sheet is one pool as it is looked at. */
export interface Sheet { site: string; pool: string; pes: number; picture: Picture; rows: Rows | null; mask: Uint8Array | null }

export interface Frame { from: number; to: number; zone: string; now: number }

const within = (s: Sheet, i: number, f: Frame) => {
  const start = s.picture.t0 + s.picture.start[i]!;
  return start < f.to && start + s.picture.length[i]! > f.from && (s.mask === null || s.mask[i] !== 0);
};

/** stateOf returns the words for what a bar is. */
export function stateOf(p: Picture, i: number): string {
  const f = p.flags[i]!;
  const words = [f & Flag.mine && p.class[i] === Class.promise ? 'your promise' : text.classes[p.class[i]!]!];
  for (const [flag, word] of [[Flag.held, 'held'], [Flag.active, 'running'], [Flag.over, 'over'], [Flag.provisional, 'provisional'], [Flag.announced, 'announced']] as const) if (f & flag) words.push(word);
  return words.join(', ');
}

/** quoted returns a field of a table. One that a spreadsheet would take for a formula is text. */
function quoted(field: string | number): string {
  let t = String(field);
  if (typeof field === 'string' && /^[=+\-@\t\r]/.test(t)) t = "'" + t;
  return /[",\n\r]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t;
}

/** csvOf returns the bars that are looked at as RFC 4180 has tables, with times in UTC. */
export function csvOf(sheets: Sheet[], f: Frame): string {
  const stamp = (at: number) => new Date(at * 1000).toISOString().slice(0, 19) + 'Z';
  const lines = [['site', 'pool', 'number', 'what', 'first_pe', 'pes', 'start', 'end', 'seconds', 'nodes']];
  const all: (string | number)[][] = [];
  for (const s of sheets) {
    const p = s.picture;
    for (let i = 0; i < p.count; i++) {
      if (!within(s, i, f)) continue;
      const start = p.t0 + p.start[i]!;
      const last = p.first[i]! + p.size[i]!;
      const nodes = (s.rows?.rows ?? []).filter((r) => r.first < last && r.first + r.pes > p.first[i]!);
      const names = nodes.length === 0 ? '' : nodes.length === 1 ? nodes[0]!.name : `${nodes[0]!.name} to ${nodes[nodes.length - 1]!.name}`;
      const placed = p.first[i]! < p.pes;
      all.push([
        s.site, s.pool, p.number[i]!, stateOf(p, i), placed ? p.first[i]! : '', p.size[i]!, p.flags[i]! & Flag.openStart ? '' : stamp(start), p.flags[i]! & Flag.openEnd ? '' : stamp(start + p.length[i]!),
        p.flags[i]! & (Flag.openStart | Flag.openEnd) ? '' : p.length[i]!, placed ? names : '',
      ]);
    }
  }
  return [...lines, ...all].map((l) => l.map(quoted).join(',') + '\r\n').join('');
}

const escaped = (t: string) => t.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);

const most = 20_000; // bars of a drawing that a viewer still opens

/** svgOf returns what is looked at as a drawing, light, with its zone and the time it was made at. Patterns tell apart what colours do. */
export function svgOf(sheets: Sheet[], f: Frame): string {
  const width = 1200;
  const side = 130;
  const plot = width - side - 10;
  const c = fills.light;
  const x = (at: number) => side + ((at - f.from) / (f.to - f.from)) * plot;
  const n = (v: number) => String(Math.round(v * 100) / 100);
  const out: string[] = [];
  let y = 44;
  const fill = (p: Picture, i: number) => {
    if (p.class[i] === Class.degraded) return 'url(#degraded)';
    if (p.class[i] === Class.outage) return p.flags[i]! & Flag.announced ? 'url(#announced)' : 'url(#outage)';
    if (p.class[i] === Class.job) return c.job;
    return p.flags[i]! & Flag.mine ? c.mine : c.promise;
  };
  for (const s of sheets) {
    const p = s.picture;
    const row = Math.max(0.5, Math.min(14, 480 / s.pes));
    const height = s.pes * row;
    out.push(`<text x="8" y="${n(y)}" font-weight="600">${escaped(`${s.site}, ${s.pool}`)}</text>`);
    y += 22;
    for (const t of ticks(f.from, f.to, (84 / plot) * (f.to - f.from), f.zone)) {
      out.push(`<line x1="${n(x(t.at))}" x2="${n(x(t.at))}" y1="${n(y)}" y2="${n(y + height)}" stroke="#ddd"/><text x="${n(x(t.at))}" y="${n(y - 6)}" text-anchor="middle" fill="#5f5c56">${escaped(t.label)}</text>`);
    }
    let drawn = 0;
    if (p.cells) {
      const tint = [ground.light, p.own ? c.mine : c.promise, c.job, c.degraded, c.outage];
      for (let g = 0; g < p.height; g++) {
        for (let b = 0; b < p.width; ) {
          const cell = p.cells[g * p.width + b]!;
          let e = b + 1;
          while (e < p.width && p.cells[g * p.width + e] === cell) e++;
          const [a, z] = [Math.max(f.from, p.t0 + b * p.step), Math.min(f.to, p.t0 + e * p.step)];
          if (cell !== 0 && a < z) out.push(`<rect x="${n(x(a))}" y="${n(y + (p.lo + g * p.group) * row)}" width="${n(x(z) - x(a))}" height="${n(p.group * row)}" fill="${tint[Math.min(4, cell >> 4)]}" fill-opacity="${n((cell & 15) / 15)}"/>`);
          b = e;
        }
      }
    }
    for (let i = 0; i < p.count && drawn < most; i++) {
      if (!within(s, i, f) || p.first[i]! >= p.pes) continue;
      drawn++;
      const start = p.t0 + p.start[i]!;
      const [a, z] = [Math.max(f.from, start), Math.min(f.to, start + p.length[i]!)];
      const held = (p.flags[i]! & Flag.held) !== 0;
      if (p.class[i] === Class.outage && p.flags[i]! & Flag.openStart && start > f.from) out.push(`<path d="M${n(x(start) - 18)} ${n(y + (p.first[i]! + p.size[i]! / 2) * row)}h18" stroke="${c.outage}" stroke-width="${n(Math.max(1, Math.min(6, p.size[i]! * row - 2)))}" stroke-dasharray="2 4"/>`);
      out.push(`<rect x="${n(x(a))}" y="${n(y + p.first[i]! * row)}" width="${n(Math.max(0.5, x(z) - x(a) - 0.5))}" height="${n(Math.max(0.4, p.size[i]! * row - (row > 3 ? 1 : 0)))}" ${held ? `fill="#fff" stroke="${fill(p, i)}" stroke-dasharray="4 2"` : `fill="${fill(p, i)}"`}${p.flags[i]! & Flag.over ? ' fill-opacity="0.4"' : ''}><title>${escaped(`${stateOf(p, i)}, ${text.pes(p.size[i]!)}, ${p.flags[i]! & Flag.openStart ? text.orEarlier(time(start, f.zone)) : time(start, f.zone)} to ${p.flags[i]! & Flag.openEnd ? 'an unknown end' : time(start + p.length[i]!, f.zone)}`)}</title></rect>`);
    }
    if (row >= 10) for (const r of s.rows?.rows ?? []) out.push(`<text x="8" y="${n(y + (r.first + r.pes / 2) * row + 4)}" fill="#5f5c56">${escaped(r.name)}</text>`);
    if (f.now > f.from && f.now < f.to) out.push(`<line x1="${n(x(f.now))}" x2="${n(x(f.now))}" y1="${n(y)}" y2="${n(y + height)}" stroke="#c01048" stroke-width="1.5"/><text x="${n(x(f.now))}" y="${n(y + height + 12)}" text-anchor="middle" fill="#c01048">now ${hour(f.now, f.zone)}</text>`);
    out.push(`<rect x="${side}" y="${n(y)}" width="${plot}" height="${n(height)}" fill="none" stroke="#bbb"/>`);
    y += height + 34;
  }
  const legend = [['your promise', c.mine], ['promise', c.promise], ['ordinary job', c.job], ['degraded', 'url(#degraded)'], ['out of use', 'url(#outage)'], ['announced', 'url(#announced)']].map(([name, paint], i) => `<rect x="${side + i * 150}" y="${n(y)}" width="18" height="11" fill="${paint}"/><text x="${side + i * 150 + 24}" y="${n(y + 10)}">${name}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${n(y + 30)}" viewBox="0 0 ${width} ${n(y + 30)}" font-family="system-ui, sans-serif" font-size="11">
<defs><pattern id="degraded" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" fill="${c.degraded}"/><rect width="2" height="8" fill="#fff"/></pattern>
<pattern id="outage" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" fill="${c.outage}"/><rect width="1" height="8" fill="#fff"/><rect width="8" height="1" fill="#fff"/></pattern>
<pattern id="announced" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1" height="8" fill="${c.outage}"/><rect width="8" height="1" fill="${c.outage}"/></pattern></defs>
<rect width="100%" height="100%" fill="#fff"/>
<text x="8" y="18" font-size="13">${escaped(`${time(f.from, f.zone)} to ${time(f.to, f.zone)}, ${f.zone}; as of ${time(f.now, f.zone)}`)}</text>
${out.join('\n')}
${legend.join('\n')}
</svg>
`;
}
