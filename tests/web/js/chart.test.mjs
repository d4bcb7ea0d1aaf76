// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logTicks, nearest, smoothed, ticks, toRun } from '../../../src/web/assets/chart.js';

test('a smoothed constant is the constant, a smoothed line has no lag', () => {
  const xs = Array.from({ length: 101 }, (_, i) => i);
  assert.deepEqual(smoothed(xs, xs.map(() => 3), 10).map((v) => Number(v.toFixed(9))), xs.map(() => 3));
  const line = smoothed(xs, xs, 5);
  assert.ok(Math.abs(line[50] - 50) < 1e-6, `the middle is ${line[50]}`);
});

test('smoothing does not depend on how the points are spaced', () => {
  const f = (x) => Math.sin(x / 40);
  const fine = Array.from({ length: 1001 }, (_, i) => i / 2);
  const coarse = Array.from({ length: 251 }, (_, i) => i * 2);
  const a = smoothed(fine, fine.map(f), 20);
  const b = smoothed(coarse, coarse.map(f), 20);
  for (const x of [100, 200, 300, 400]) assert.ok(Math.abs(a[x * 2] - b[x / 2]) < 0.01, `at ${x}: ${a[x * 2]} and ${b[x / 2]}`);
});

test('what is not a number leaves no trace in its neighbours', () => {
  const out = smoothed([1, 2, 3, 4], [5, NaN, 5, Infinity], 1);
  assert.deepEqual(out.map((v) => Number(v.toFixed(9))), [5, 5, 5, 5]);
  assert.deepEqual(smoothed([1, 2], [1, 2], 0), [1, 2]);
});

test('ticks are round and inside', () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(0.05, 0.43, 4), [0.1, 0.2, 0.3, 0.4]);
  assert.deepEqual(ticks(1, 33, 14, true), [5, 10, 15, 20, 25, 30]);
  assert.deepEqual(ticks(1, 4, 14, true), [1, 2, 3, 4]);
  assert.deepEqual(ticks(3, 3, 4), [3]);
  for (const [low, high] of [[1e-9, 2e-9], [-5, 12], [1234, 987654]]) {
    const list = ticks(low, high, 6);
    assert.ok(list.length >= 3 && list.length <= 14, `${low} to ${high}: ${list}`);
    assert.ok(list.every((v) => v >= low - 1e-9 && v <= high + 1e-9 * Math.abs(high)));
  }
  assert.deepEqual(logTicks(0.01, 100, 5), [0.01, 0.1, 1, 10, 100]);
  assert.deepEqual(logTicks(0.09, 1.2, 8), [0.1, 0.2, 0.5, 1]);
});

test('the nearest point, by a plain search', () => {
  const xs = [1, 2, 4, 8, 16];
  for (let x = -1; x < 20; x += 0.3) {
    const want = xs.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best), 0);
    assert.equal(Math.abs(xs[nearest(xs, x)] - x), Math.abs(xs[want] - x), String(x));
  }
});

test('a series becomes a run, by step or by time; gaps stay out', () => {
  const series = { step: [1, 2, 3], metrics: { loss: { min: [1, null, 2], max: [3, null, 4], mean: [2, null, 3] }, elapsed_s: { min: [5, 10, 15], max: [5, 10, 15], mean: [5, 10, 15] } }, events: [{ step: 2, event: 'restart', note: 'x' }] };
  const run = toRun(series, 'loss', false, { name: 'a', color: 0 });
  assert.deepEqual([run.xs, run.mean, run.events], [[1, 3], [2, 3], [{ x: 2, event: 'restart', note: 'x' }]]);
  const timed = toRun(series, 'loss', true, {});
  assert.deepEqual([timed.xs, timed.events[0].x], [[5, 15], 10]);
  assert.deepEqual(toRun(series, 'none', false, {}).xs, []);
});
