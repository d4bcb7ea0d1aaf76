// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { t } from '../../../src/web/assets/dom.js';
import { bytes, count, duration, figure, loss, percent, speed } from '../../../src/web/assets/format.js';
import { clean, isBar, isError } from '../../../src/web/assets/log_line.js';

test('texts: values and plurals', () => {
  assert.equal(t('jobs.live', { n: 1 }), '1 running');
  assert.equal(t('jobs.live', { n: 3 }), '3 running');
  assert.equal(t('gpu.n', { n: 0 }), 'GPU 0');
  assert.equal(t('queue.handle', { name: 'a $& b' }), 'Move a $& b: Alt+Up, Alt+Down');
});

test('numbers', () => {
  assert.equal(count(1234567), '1,234,567');
  assert.equal(count(null), '–');
  assert.equal(figure(0.00012345), '1.23e−4');
  assert.equal(figure(0), '0');
  assert.equal(figure(123456), '123,456');
  assert.deepEqual([0.04213, 2.3456, 12.345, 345.67, NaN, undefined].map(loss), ['0.0421', '2.346', '12.35', '345.7', '–', '–']);
  assert.deepEqual([0, 1023, 1024, 1.5 * 2 ** 30, 112 * 2 ** 30].map(bytes), ['0 B', '1023 B', '1.0 KiB', '1.5 GiB', '112 GiB']);
  assert.equal(percent(0.999), '99 %');
});

test('durations', () => {
  assert.deepEqual([0, 59, 60, 95, 600, 605, 3600, 4320, 200000, null].map(duration), ['0 s', '59 s', '1 min', '1 min 35 s', '10 min', '10 min', '1 h', '1 h 12 min', '2 d 7 h', '–']);
  assert.deepEqual([{ s_per_it: 4.21 }, { s_per_it: 0.05 }, { s_per_it: null }, { s_per_it: 0 }].map(speed), ['4.21 s/step', '20 steps/s', '–', '–']);
});

test('lines of a log', () => {
  assert.equal(clean('\u001b[33mwarning:\u001b[0m x'), 'warning: x');
  assert.equal(clean('10%|#  |\r60%|## |\r100%|###|'), '100%|###|');
  assert.equal(clean('a\r'), 'a');
  assert.equal(clean('\u001b]0;title\u0007b'), 'b');
  for (const line of ['Traceback (most recent call last):', 'RuntimeError: HIP error', 'cairn: error: x', 'torch.OutOfMemoryError: HIP out of memory', 'Segmentation fault (core dumped)', 'ValueError']) assert.ok(isError(line), line);
  for (const line of ['step 3 loss 0.1', 'finished with 0 errors', 'no error', 'error_correction: on', 'terror']) assert.ok(!isError(line), line);
  assert.ok(isBar('Encoding:  60%|######    | 6/10') && isBar('step 12/2000  loss 0.1') && !isBar('saved a checkpoint of step 200'));
});
