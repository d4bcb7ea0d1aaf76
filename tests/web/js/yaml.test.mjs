// SPDX-License-Identifier: Apache-2.0
// The form's edits of single lines: comments, order and what it does not know stay.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { diff, isForeign, joinCommand, overrides, scalar, scan, splitCommand, withOverrides, write } from '../../../src/web/assets/yaml.js';

const TEXT = `# head
model:
  kind: wan   # which
  path: "a b.safetensors"
data:
  path: [one, "two, three"]
  # a comment inside
sample:
  prompts:
    - a cat # not part of it
    - "b: c"
  every: 20
odd: {flow: 1}
`;

test('scan finds keys with their values', () => {
  const { keys, sections } = scan(TEXT);
  assert.equal(keys.get('model.kind').value, 'wan');
  assert.equal(keys.get('model.path').value, 'a b.safetensors');
  assert.deepEqual(keys.get('data.path').list, ['one', 'two, three']);
  assert.deepEqual(keys.get('sample.prompts').list, ['a cat', 'b: c']);
  assert.equal(keys.get('sample.every').value, '20');
  assert.equal(sections.get('odd').opaque, true);
});

test('a value is replaced, its comment stays', () => {
  assert.equal(write(TEXT, 'model.kind', 'gpt').split('\n')[2], '  kind: gpt   # which');
  assert.match(write(TEXT, 'sample.every', '5'), /\n {2}every: 5\n/);
});

test('writing what is there changes nothing', () => {
  for (const [key, entry] of scan(TEXT).keys) if (!entry.list) assert.equal(scan(write(TEXT, key, entry.value)).keys.get(key).value, entry.value);
  assert.equal(write(TEXT, 'sample.every', '20'), TEXT);
  assert.equal(write(TEXT, 'model.kind', 'wan'), TEXT);
});

test('a new key goes to the end of its section, a new section to the end', () => {
  const more = write(TEXT, 'model.task', 't2v-A14B');
  assert.equal(more.split('\n')[4], '  task: t2v-A14B');
  assert.ok(write(TEXT, 'train.steps', '10').endsWith('\ntrain:\n  steps: 10\n'));
});

test('what the command line set becomes part of the text', () => {
  const options = { set: ['model.path=x=y.safetensors', 'data.path=[one, "two, three"]', 'train.lr=1e-3', 'train.lr=2e-3'], steps: 40, last: { step: 3 } };
  assert.deepEqual(overrides(options).at(-1), ['train.steps', '40']);
  const { keys } = scan(withOverrides(TEXT, options));
  assert.equal(keys.get('model.path').value, 'x=y.safetensors');
  assert.deepEqual(keys.get('data.path').list, ['one', 'two, three']);
  assert.equal(keys.get('train.lr').value, '2e-3');
  assert.equal(keys.get('train.steps').value, '40');
  assert.equal(withOverrides(TEXT, { last: {} }), TEXT);
  assert.equal(withOverrides(TEXT, undefined), TEXT);
  assert.equal(scan(withOverrides(TEXT, { set: ['model.task=123'] }, () => true)).lines[4], '  task: "123"');
  assert.ok(isForeign('job: extension\nconfig:\n  name: x\n') && !isForeign(TEXT));
});

test('removing the only key of a section removes the section', () => {
  const text = 'a:\n  b: 1\nc:\n  d: 2\n  e: 3\n';
  assert.equal(write(text, 'a.b', null), 'c:\n  d: 2\n  e: 3\n');
  assert.equal(write(text, 'c.d', null), 'a:\n  b: 1\nc:\n  e: 3\n');
  assert.equal(write(text, 'x.y', null), text);
});

test('lists keep their form', () => {
  const flow = write(TEXT, 'data.path', ['x', 'y']);
  assert.match(flow, /\n {2}path: \[x, y\]\n/);
  const block = write(TEXT, 'sample.prompts', ['one', 'two # three', '- four']);
  assert.match(block, /prompts:\n {4}- one\n {4}- "two # three"\n {4}- "- four"\n {2}every/);
  assert.deepEqual(scan(block).keys.get('sample.prompts').list, ['one', 'two # three', '- four']);
});

test('a list of one that was written as a word stays a word', () => {
  const text = 'data:\n  path: docs # here\n';
  for (const one of ['words.txt', 'a, b', 'x'.repeat(80)])
    assert.equal(write(text, 'data.path', [one], true), `data:\n  path: ${scalar(one, true)} # here\n`);
  assert.equal(write(text, 'data.path', ['a', 'b'], true), 'data:\n  path: [a, b] # here\n');
  assert.equal(write('data:\n  path: [docs]\n', 'data.path', ['a'], true), 'data:\n  path: [a]\n');
});

test('texts that YAML would read as something else are quoted', () => {
  for (const text of ['', 'true', '12', '1e-4', 'null', 'a: b', 'a #b', '- x', '[x]', '{x}', '*x', '&x', "it's", '"', '@x', '%', 'a\nb', ' x'])
    assert.equal(scalar(text, true), JSON.stringify(text), text);
  for (const text of ['data/clips', 'a cat', 'models/x_1.0.safetensors', '~/x', 'auto']) assert.equal(scalar(text, true), text);
  assert.equal(scalar('1e-4', false), '1e-4');
});

test('every key of every shipped configuration survives being written again', () => {
  const folder = new URL('../../../configs/', import.meta.url);
  for (const name of readdirSync(folder).filter((n) => n.endsWith('.yaml'))) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    const { keys } = scan(text);
    assert.ok(keys.size > 2, name);
    for (const [key, entry] of keys) {
      const value = entry.list ?? entry.value;
      const again = scan(write(text, key, value));
      assert.deepEqual(again.keys.get(key).list ?? again.keys.get(key).value, value, `${name}: ${key}`);
      assert.equal(again.keys.size, keys.size);
      const without = scan(write(text, key, null));
      assert.equal(without.keys.has(key), false);
      assert.equal(without.keys.size, keys.size - 1, `${name}: ${key} removed`);
    }
  }
});

test('a difference has the lines of both', () => {
  const lines = diff('a\nb\nc\nd', 'a\nc\nx\nd');
  assert.deepEqual(lines, [[' ', 'a'], ['-', 'b'], [' ', 'c'], ['+', 'x'], [' ', 'd']]);
  assert.deepEqual(diff('a', 'a'), [[' ', 'a']]);
});

test('a command is split as a shell would, and joined so that it splits again', () => {
  assert.deepEqual(splitCommand('python  train.py --a="b c" \'d e\' f\\ g'), ['python', 'train.py', '--a=b c', 'd e', 'f g']);
  assert.deepEqual(splitCommand('a \\\n  b'), ['a', 'b']);
  assert.deepEqual(splitCommand('   '), []);
  for (const open of ['python "train.py', "a 'b", 'a "b\\']) assert.equal(splitCommand(open), null, open);
  for (const argv of [['a b', "it's", '$HOME', '"', ''], ['x', '-y', '--z=1']]) assert.deepEqual(splitCommand(joinCommand(argv)), argv);
});
