// SPDX-License-Identifier: Apache-2.0
// Curves on a canvas: the raw values as a band from least to most, the smoothed ones as a line.
// Zoom: drag, wheel (once the chart has the focus, or with Ctrl), two fingers, + and -.  Read: pointer or arrow keys.
import { h, t } from './dom.js';
import { announce } from './ui.js';
import { count, duration, figure } from './format.js';

const PAD = { right: 14, top: 14, bottom: 28 };
const LOUD = new Set(['restart', 'oom', 'nan', 'fallback', 'slow-step', 'failed']);

// A mean that looks both ways, so that it does not lag behind; reach is in units of x.
export function smoothed(xs, ys, reach) {
  if (!(reach > 0)) return ys;
  const one = (from, to, by) => {
    const out = new Array(ys.length);
    let mean = 0;
    let weight = 0;
    let last = xs[from];
    for (let i = from; i !== to; i += by) {
      const keep = Math.exp(-Math.abs(xs[i] - last) / reach);
      last = xs[i];
      mean *= keep;
      weight *= keep;
      if (Number.isFinite(ys[i])) {
        mean += ys[i];
        weight += 1;
      }
      out[i] = weight ? mean / weight : NaN;
    }
    return out;
  };
  const there = one(0, ys.length, 1);
  const back = one(ys.length - 1, -1, -1);
  return there.map((v, i) => (Number.isNaN(v) ? back[i] : Number.isNaN(back[i]) ? v : (v + back[i]) / 2));
}

// About n round numbers between low and high; steps are whole.
export function ticks(low, high, n, whole = false) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, n);
  const power = 10 ** Math.floor(Math.log10(raw));
  const fit = power * ([1, 2, 2.5, 5, 10].find((m) => m * power >= raw && !(whole && m * power % 1)) ?? 10);
  const size = whole ? Math.max(1, fit) : fit;
  const out = [];
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + size * 1e-9; i++) out.push(Number((i * size).toPrecision(12)));
  return out;
}

export function logTicks(low, high, n) {
  const out = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of [1, 2, 5]) if (m * 10 ** e >= low * 0.999 && m * 10 ** e <= high * 1.001) out.push(Number((m * 10 ** e).toPrecision(6)));
  if (out.length < 3) return ticks(low, high, n).filter((v) => v > 0);
  return out.length > n + 3 ? out.filter((v) => String(v).replace(/[.0e-]/g, '').startsWith('1')) : out;
}

const TIME_STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];

function timeTicks(low, high, n) {
  const size = TIME_STEPS.find((s) => s >= (high - low) / n) ?? 604800 * Math.ceil((high - low) / n / 604800);
  const out = [];
  for (let i = Math.ceil(low / size); i * size <= high; i++) out.push(i * size);
  return out;
}

// The place in sorted xs that is nearest to x.
export function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (xs[mid] < x) low = mid + 1;
    else high = mid;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

// What the server tells of a run's values, as a run of the chart: x is its step, or the seconds that it took so far.
export function toRun(series, metric, byTime, extra) {
  const { min = [], max = [], mean = [] } = series.metrics[metric] ?? {};
  const seconds = series.metrics.elapsed_s?.max;
  const keep = [];
  mean.forEach((v, i) => { if (v !== null && v !== undefined && (!byTime || Number.isFinite(seconds?.[i]))) keep.push(i); });
  const of = (list) => keep.map((i) => (list[i] === null ? NaN : Number(list[i])));
  const xs = of(byTime ? seconds : series.step);
  const timeOf = (step) => seconds?.[Math.max(0, series.step.findIndex((s) => s >= step))];
  const events = (series.events ?? []).map((e) => ({ x: byTime ? timeOf(e.step) : e.step, event: e.event, note: e.note })).filter((e) => Number.isFinite(e.x));
  return { xs, min: of(min), max: of(max), mean: of(mean), events, ...extra };
}

// run: {name, color 0–7, xs, min, max, mean, events: [{x, event, note}]}; view changes are told by onview(low, high).
export class Chart {
  constructor(label, hint) {
    this.canvas = h('canvas');
    this.tip = h('div.tip', { hidden: true, 'aria-hidden': 'true' });
    this.node = h('div.chart', { tabindex: 0, role: 'group', 'aria-label': label, 'aria-description': hint }, this.canvas, this.tip);
    this.runs = [];
    this.options = { smooth: 0, log: false, time: false, clip: false };
    this.view = null;
    this.cursor = null;
    this.onview = () => {};
    this.pointers = new Map();
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.node);
    this.onTheme = () => this.draw();
    this.scheme = matchMedia('(prefers-color-scheme: dark)');
    addEventListener('themechange', this.onTheme);
    this.scheme.addEventListener('change', this.onTheme);
  }

  close() {
    this.observer.disconnect();
    removeEventListener('themechange', this.onTheme);
    this.scheme.removeEventListener('change', this.onTheme);
  }

  set(runs, options) {
    this.runs = runs;
    Object.assign(this.options, options);
    const { low, high } = this.extent();
    const reach = (high - low) * 0.3 * (this.options.smooth / 100) ** 3;
    for (const run of runs) run.line = smoothed(run.xs, run.mean, reach);
    this.draw();
  }

  extent() {
    let low = Infinity;
    let high = -Infinity;
    for (const run of this.runs) {
      if (!run.xs.length) continue;
      low = Math.min(low, run.xs[0]);
      high = Math.max(high, run.xs.at(-1));
    }
    return high > low ? { low, high } : { low: Number.isFinite(low) ? low : 0, high: (Number.isFinite(low) ? low : 0) + 1 };
  }

  // Shows from low to high, or all with null; never less than a few points.
  zoom(view, tell = true) {
    const all = this.all ?? this.extent();
    if (view) {
      const least = Math.max((all.high - all.low) / 5000, this.options.time ? 1 : 4);
      const size = Math.min(all.high - all.low, Math.max(least, view.high - view.low));
      const low = Math.max(all.low, Math.min(all.high - size, (view.low + view.high - size) / 2));
      view = { low, high: low + size };
      if (view.low <= all.low && view.high >= all.high) view = null;
    }
    this.view = view;
    this.draw();
    if (tell) this.onview(view);
  }

  // --- drawing ---

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
    });
  }

  paint() {
    const box = this.node.getBoundingClientRect();
    const scale = devicePixelRatio || 1;
    const [w, height] = [Math.floor(box.width), Math.floor(box.height)];
    if (!w || !height) return;
    this.canvas.width = w * scale;
    this.canvas.height = height * scale;
    const g = this.g = this.canvas.getContext('2d');
    g.scale(scale, scale);
    g.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
    this.palette = palette(this.node);
    this.range = this.view ?? this.all ?? this.extent();
    this.values = this.valueRange();
    const rows = Math.max(2, Math.floor((height - 42) / 46));
    this.ticks = this.options.log ? logTicks(this.values.low, this.values.high, rows) : ticks(this.values.low, this.values.high, rows);
    const left = Math.ceil(Math.max(20, ...this.ticks.map((v) => g.measureText(figure(v, 3)).width))) + 10;
    this.area = { x: left, y: PAD.top, w: w - left - PAD.right, h: height - PAD.top - PAD.bottom };
    this.drawAxes();
    g.save();
    g.beginPath();
    g.rect(this.area.x, this.area.y - 2, this.area.w + 2, this.area.h + 4);
    g.clip();
    for (const run of this.runs) this.drawEvents(run);
    for (const run of this.runs) this.drawBand(run);
    for (const run of this.runs) this.drawLine(run);
    this.drawSelection();
    this.drawCursor();
    g.restore();
  }

  px(x) {
    return this.area.x + ((x - this.range.low) / (this.range.high - this.range.low)) * this.area.w;
  }

  py(y) {
    const f = this.options.log ? Math.log : (v) => v;
    const { low, high } = this.values;
    return this.area.y + this.area.h * (1 - (f(y) - f(low)) / (f(high) - f(low)));
  }

  at(pixel) {
    return this.range.low + ((pixel - this.area.x) / this.area.w) * (this.range.high - this.range.low);
  }

  part(run) {
    const from = Math.max(0, nearest(run.xs, this.range.low) - 1);
    return [from, Math.min(run.xs.length - 1, nearest(run.xs, this.range.high) + 1)];
  }

  valueRange() {
    const seen = [];
    for (const run of this.runs) {
      const [from, to] = this.part(run);
      for (let i = from; i <= to; i++) for (const v of [run.min[i], run.max[i], run.line[i]]) if (Number.isFinite(v) && (!this.options.log || v > 0)) seen.push(v);
    }
    if (!seen.length) return { low: this.options.log ? 0.1 : 0, high: 1 };
    seen.sort((a, b) => a - b);
    const cut = this.options.clip ? Math.floor(seen.length * 0.01) : 0;
    let low = seen[cut];
    let high = seen[seen.length - 1 - cut];
    if (this.options.log) return { low: low / 1.08, high: high * 1.08 };
    const air = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    low = low >= 0 && low - air < 0 ? 0 : low - air;
    return { low, high: high + air };
  }

  drawAxes() {
    const { g, area, range, palette: p } = this;
    g.strokeStyle = p.grid;
    g.fillStyle = p.soft;
    g.lineWidth = 1;
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (const v of this.ticks) {
      const y = Math.round(this.py(v)) + 0.5;
      g.beginPath();
      g.moveTo(area.x, y);
      g.lineTo(area.x + area.w, y);
      g.stroke();
      g.fillText(figure(v, 3), area.x - 8, y);
    }
    g.textAlign = 'center';
    g.textBaseline = 'top';
    const n = Math.max(2, Math.floor(area.w / 84));
    const places = this.options.time ? timeTicks(range.low, range.high, n) : ticks(range.low, range.high, n, true);
    for (const v of places) g.fillText(this.options.time ? duration(v) : count(v), Math.min(this.px(v), area.x + area.w - 12), area.y + area.h + 9);
  }

  drawBand(run) {
    const { g } = this;
    const [from, to] = this.part(run);
    const steps = [];
    for (let i = from; i <= to; i++) if (Number.isFinite(run.max[i])) steps.push(i);
    if (steps.length < 2) return;
    g.beginPath();
    steps.forEach((i, k) => g[k ? 'lineTo' : 'moveTo'](this.px(run.xs[i]), this.py(run.max[i])));
    for (const i of steps.reverse()) g.lineTo(this.px(run.xs[i]), this.py(run.min[i]));
    g.globalAlpha = this.options.smooth ? 0.22 : 0.15;
    g.fillStyle = g.strokeStyle = this.palette.runs[run.color];
    g.fill();
    g.lineWidth = 1;
    if (this.options.smooth) g.stroke();
    g.globalAlpha = 1;
  }

  drawLine(run) {
    const { g } = this;
    const [from, to] = this.part(run);
    g.strokeStyle = g.fillStyle = this.palette.runs[run.color];
    g.lineWidth = 2;
    g.lineJoin = 'round';
    g.beginPath();
    let pen = false;
    for (let i = from; i <= to; i++) {
      const good = Number.isFinite(run.line[i]);
      if (good) g[pen ? 'lineTo' : 'moveTo'](this.px(run.xs[i]), this.py(run.line[i]));
      pen = good;
    }
    g.stroke();
    if (run.xs.length === 1) g.fillRect(this.px(run.xs[0]) - 2, this.py(run.line[0]) - 2, 4, 4);
  }

  // What hurt is a line across; a checkpoint is a tick at the foot.
  drawEvents(run) {
    const { g, area } = this;
    for (const { x, event } of run.events ?? []) {
      if (x < this.range.low || x > this.range.high) continue;
      const at = Math.round(this.px(x)) + 0.5;
      const loud = LOUD.has(event);
      g.strokeStyle = loud ? this.palette.warn : this.palette.edge;
      g.setLineDash(loud ? [4, 3] : []);
      g.lineWidth = loud ? 1.5 : 2;
      g.beginPath();
      g.moveTo(at, loud ? area.y : area.y + area.h - 6);
      g.lineTo(at, area.y + area.h);
      g.stroke();
      g.setLineDash([]);
    }
  }

  drawSelection() {
    if (!this.drag || Math.abs(this.drag.to - this.drag.from) < 3) return;
    this.g.globalAlpha = 0.15;
    this.g.fillStyle = this.palette.accent;
    this.g.fillRect(this.drag.from, this.area.y, this.drag.to - this.drag.from, this.area.h);
    this.g.globalAlpha = 1;
  }

  drawCursor() {
    const { g, area } = this;
    this.tip.hidden = this.cursor === null || !this.runs.some((run) => run.xs.length);
    if (this.tip.hidden) return;
    const x = Math.round(this.px(this.cursor)) + 0.5;
    g.strokeStyle = this.palette.edge;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x, area.y);
    g.lineTo(x, area.y + area.h);
    g.stroke();
    for (const run of this.runs) {
      const i = nearest(run.xs, this.cursor);
      if (!run.xs.length || !Number.isFinite(run.line[i]) || this.cursor > run.xs.at(-1) || this.cursor < run.xs[0]) continue;
      g.fillStyle = this.palette.runs[run.color];
      g.beginPath();
      g.arc(x, this.py(run.line[i]), 4, 0, 7);
      g.fill();
    }
    this.showTip(x);
  }

  // --- reading ---

  readings() {
    return this.runs.filter((run) => run.xs.length && this.cursor <= run.xs.at(-1) && this.cursor >= run.xs[0]).map((run) => {
      const i = nearest(run.xs, this.cursor);
      return { run, value: run.mean[i], low: run.min[i], high: run.max[i], line: run.line[i] };
    });
  }

  place() {
    return this.options.time ? duration(this.cursor) : t('chart.step', { step: count(Math.round(this.cursor)) });
  }

  marks() {
    const near = (this.range.high - this.range.low) / 120;
    return this.runs.flatMap((run) => run.events ?? []).filter((e) => Math.abs(e.x - this.cursor) < near).slice(0, 3);
  }

  showTip(x) {
    this.tip.replaceChildren(h('p.muted', this.place()),
      ...this.readings().map(({ run, value, line }) => h('p', h('i.dot', { class: `c${run.color}` }), h('b', figure(line)), this.options.smooth ? h('span.muted', ` ${figure(value)}`) : '', this.runs.length > 1 ? h('span.clip', ` ${run.name}`) : '')),
      ...this.marks().map((e) => h('p.muted', e.note ? `${e.event}: ${e.note}` : e.event)));
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${x + wide + 20 > this.area.x + this.area.w ? x - wide - 12 : x + 12}px`;
  }

  say() {
    announce([this.place(), ...this.readings().map(({ run, line }) => `${this.runs.length > 1 ? `${run.name}: ` : ''}${figure(line)}`), ...this.marks().map((e) => e.event)].join(', '));
  }

  // --- hands ---

  listen() {
    const { node } = this;
    const local = (e) => e.clientX - node.getBoundingClientRect().left;
    node.addEventListener('pointerdown', (e) => {
      if (!this.area || e.button) return;
      this.pointers.set(e.pointerId, local(e));
      node.setPointerCapture(e.pointerId);
      if (this.pointers.size === 2) this.pinch = { ...this.range, at: [...this.pointers.values()] };
      this.drag = this.pointers.size === 1 && e.pointerType === 'mouse' ? { from: local(e), to: local(e) } : null;
    });
    node.addEventListener('pointermove', (e) => {
      if (!this.area) return;
      if (this.pointers.has(e.pointerId)) this.pointers.set(e.pointerId, local(e));
      if (this.drag) this.drag.to = Math.max(this.area.x, Math.min(this.area.x + this.area.w, local(e)));
      if (this.pinch && this.pointers.size === 2) return this.squeeze();
      this.cursor = Math.max(this.range.low, Math.min(this.range.high, this.at(local(e))));
      this.draw();
    });
    const up = (e) => {
      this.pointers.delete(e.pointerId);
      this.pinch = null;
      const { drag } = this;
      this.drag = null;
      if (drag && Math.abs(drag.to - drag.from) > 6) this.zoom({ low: this.at(Math.min(drag.from, drag.to)), high: this.at(Math.max(drag.from, drag.to)) });
      this.draw();
    };
    node.addEventListener('pointerup', up);
    node.addEventListener('pointercancel', up);
    node.addEventListener('pointerleave', () => { this.cursor = null; this.draw(); });
    node.addEventListener('dblclick', () => this.zoom(null));
    node.addEventListener('wheel', (e) => {
      if (!e.ctrlKey && !node.contains(document.activeElement)) return;
      e.preventDefault();
      this.scale(this.at(local(e)), e.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
    node.addEventListener('keydown', (e) => this.key(e));
  }

  squeeze() {
    const [a, b] = this.pinch.at;
    const [c, d] = [...this.pointers.values()];
    const size = ((this.pinch.high - this.pinch.low) * Math.abs(a - b)) / Math.max(20, Math.abs(c - d));
    const middle = this.pinch.low + (((a + b) / 2 - this.area.x) / this.area.w) * (this.pinch.high - this.pinch.low);
    this.zoom({ low: middle - size / 2, high: middle + size / 2 });
  }

  scale(around, by) {
    this.zoom({ low: around - (around - this.range.low) * by, high: around + (this.range.high - around) * by });
  }

  key(e) {
    const size = this.range.high - this.range.low;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by && e.shiftKey) this.zoom({ low: this.range.low + by * size / 4, high: this.range.high + by * size / 4 });
    else if (by) this.cursor = Math.max(this.range.low, Math.min(this.range.high, (this.cursor ?? (by > 0 ? this.range.low : this.range.high)) + (by * size) / 100));
    else if (e.key === 'Home' || e.key === 'End') this.cursor = e.key === 'Home' ? this.range.low : this.range.high;
    else if (e.key === '+' || e.key === '=') this.scale(this.cursor ?? (this.range.low + this.range.high) / 2, 0.6);
    else if (e.key === '-') this.scale(this.cursor ?? (this.range.low + this.range.high) / 2, 1.7);
    else if (e.key === '0' || e.key === 'Escape') this.zoom(null);
    else return;
    e.preventDefault();
    e.stopPropagation();
    this.draw();
    if (this.cursor !== null) this.say();
  }
}

// The colours as the style sheet resolves them for this theme.
function palette(node) {
  const probe = h('i');
  node.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const out = { grid: read('line'), soft: read('soft'), edge: read('edge'), warn: read('warn'), accent: read('accent'), runs: [0, 1, 2, 3, 4, 5, 6, 7].map((n) => read(`c${n}`)) };
  probe.remove();
  return out;
}
