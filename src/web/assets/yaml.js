// SPDX-License-Identifier: Apache-2.0
// Edits single lines of a configuration and leaves the rest, comments included, as it was typed.
// It knows sections of "key: value" lines; what is written otherwise is opaque, and left to the text.

// Where the value begins and ends in the line, without its comment.
function span(line, from) {
  let start = from;
  while (line[start] === ' ') start++;
  let quote = '';
  let end = start;
  for (let i = start; i < line.length; i++) {
    const c = line[i];
    if (quote) {
      if (c === '\\' && quote === '"') i++;
      else if (c === quote) quote = '';
    } else if ((c === '"' || c === "'") && (i === start || '[, '.includes(line[i - 1]))) quote = c;
    else if (c === '#' && (i === start || line[i - 1] === ' ')) break;
    if (c !== ' ') end = i + 1;
  }
  return [start, Math.max(start, Math.min(end, line.length))];
}

function unquote(text) {
  if (text.startsWith('"')) {
    try {
      return JSON.parse(text);
    } catch {
      return text.slice(1, -1);
    }
  }
  return text.startsWith("'") ? text.slice(1, -1).replaceAll("''", "'") : text;
}

export function flowList(text) {
  const items = text.slice(1, -1).match(/\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)/g) ?? [];
  return items.map((item) => unquote(item.trim())).filter((item) => item !== '');
}

// {keys: Map of "section.key" → {line, start, end, value | list, last, opaque}, sections: Map of name → {line, last, indent}}
export function scan(text) {
  const lines = text.split('\n');
  const keys = new Map();
  const sections = new Map();
  let section = null;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const found = /^( *)([\w-]+):(?= |$)/.exec(line);
    if (!found) {
      if (section && /^ +\S/.test(line) && !/^ *#/.test(line)) section.last = i;
      continue;
    }
    const [start, end] = span(line, found[0].length);
    const value = line.slice(start, end);
    if (!found[1]) {
      section = { name: found[2], line: i, last: i, indent: 2, opaque: value !== '' };
      sections.set(section.name, section);
      continue;
    }
    if (!section) continue;
    if (section.last === section.line) section.indent = found[1].length;
    section.last = i;
    if (found[1].length !== section.indent) continue;
    const entry = { line: i, start, end, last: i, opaque: /^[|>{&*!]/.test(value) };
    if (value.startsWith('[')) entry.list = flowList(value);
    else entry.value = unquote(value);
    if (value === '') i = blockList(lines, i, entry, section);
    keys.set(`${section.name}.${found[2]}`, entry);
  }
  return { lines, keys, sections };
}

function blockList(lines, at, entry, section) {
  const items = [];
  for (let i = at + 1; i < lines.length; i++) {
    const item = /^ +- +/.exec(lines[i]);
    if (item) {
      const [start, end] = span(lines[i], item[0].length);
      items.push(unquote(lines[i].slice(start, end)));
      entry.last = section.last = i;
    } else if (lines[i].trim() && !/^ *#/.test(lines[i])) break;
  }
  if (items.length) {
    entry.list = items;
    entry.block = true;
  } else if (/^ {3,}\S/.test(lines[at + 1] ?? '') && !/^ *#/.test(lines[at + 1])) entry.opaque = true;
  return entry.last;
}

const PLAIN = /^[\w./~+][\w./~+()-]*( [\w./~+()-]+)*$/;
const WORD = /^(true|false|yes|no|on|off|null|~|[-+]?(\d[\d_]*)?\.?\d+(e[-+]?\d+)?)$/i;

// A text that YAML reads as this text; numbers and words of the table pass as they are.
export function scalar(value, isText) {
  const text = String(value);
  return PLAIN.test(text) && !(isText && WORD.test(text)) ? text : JSON.stringify(text);
}

// The text with the key set to a value, a list, or with its line removed (null).
export function write(text, key, value, isText = false) {
  const [name, leaf] = key.split('.');
  const { lines, keys, sections } = scan(text);
  const entry = keys.get(key);
  const section = sections.get(name);
  const pad = ' '.repeat(section?.indent ?? 2);
  if (Array.isArray(value) && value.length === 1 && entry && !entry.list) [value] = value; // one word stays one word
  const listed = (block) => (block ? value.map((item) => `${pad}  - ${scalar(item, isText)}`) : [`[${value.map((item) => scalar(item, isText)).join(', ')}]`]);
  const block = Array.isArray(value) && (entry?.block || value.some((item) => /[,\][]/.test(item)) || value.join().length > 60);
  if (entry) {
    const line = lines[entry.line];
    if (value === null) {
      // A section without keys would be an empty value, so it goes with its last one.
      const whole = section.line === entry.line - 1 && section.last === entry.last;
      lines.splice(entry.line - whole, entry.last - entry.line + 1 + whole);
    } else {
      const head = line.slice(0, entry.start).trimEnd();
      const words = Array.isArray(value) ? listed(block) : [scalar(value, isText)];
      const inline = block ? '' : ` ${words.shift()}`;
      lines.splice(entry.line, entry.last - entry.line + 1, `${head}${inline}${line.slice(entry.end)}`, ...words);
    }
    return lines.join('\n');
  }
  if (value === null) return text;
  const words = Array.isArray(value) ? listed(block) : [scalar(value, isText)];
  const fresh = block ? [`${pad}${leaf}:`, ...words] : [`${pad}${leaf}: ${words[0]}`];
  if (section) lines.splice(section.last + 1, 0, ...fresh);
  else {
    while (lines.length && !lines.at(-1).trim()) lines.pop();
    lines.push(`${name}:`, ...fresh, '');
  }
  return lines.join('\n');
}

// A configuration of another program: it is taken as it is.
export const isForeign = (text) => ['job', 'config', 'meta'].some((name) => scan(text).sections.has(name));

// What the command line set beside the text: [key, value]; the last one of a key counts.
export const overrides = (options) => [...(options?.set ?? []).map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  ...(options?.steps >= 0 ? [['train.steps', String(options.steps)]] : [])];

// The text with that written into it.
export const withOverrides = (text, options, isText = () => false) => overrides(options).reduce((now, [key, value]) => write(now, key, value.startsWith('[') ? flowList(value) : value, isText(key)), text);

// The lines of both, marked: [' ' | '+' | '-', line].
export function diff(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const out = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push([' ', a[i++], j++]);
    else if (i < a.length && (j === b.length || best[i + 1][j] >= best[i][j + 1])) out.push(['-', a[i++]]);
    else out.push(['+', b[j++]]);
  }
  return out.map(([mark, line]) => [mark, line]);
}

// A command line as a shell would split it, without variables, and back; null where a quote is open.
export function splitCommand(text) {
  const out = [];
  text = text.replace(/\\\r?\n/g, ' ');
  const word = /\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+)/gsy;
  let at = 0;
  for (let m = word.exec(text); m; m = word.exec(text)) {
    at = word.lastIndex;
    out.push(m[1].replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/gs, (_, d, s, c) => (d !== undefined ? d.replace(/\\(["\\$`])/g, '$1') : s ?? c)));
  }
  return text.slice(at).trim() ? null : out;
}

export const joinCommand = (argv) => argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
