// SPDX-License-Identifier: Apache-2.0
// A text area with line numbers, colours, marks at wrong lines, and completion of keys and words.
import { h, t, fill, attr } from './dom.js';

const TOKENS = /(#.*$)|("(?:[^"\\]|\\.)*"|'[^']*')|^(\s*(?:- )?[\w.-]+)(?=:(?:\s|$))|(?<=[:[,\s]\s*)(-?\d[\d_.]*(?:e[-+]?\d+)?|true|false|null)(?=\s*(?:$|[,\]#\s]))/g;
// A longer text is shown without colours and line numbers: a browser takes seconds to lay those out.
const LARGE = 200000;
const CLASSES = ['comment', 'string', 'key', 'number'];

// Pieces of a line as text nodes and spans.
function coloured(line) {
  const out = [];
  let at = 0;
  for (const m of line.matchAll(TOKENS)) {
    const kind = m.slice(1).findIndex((part) => part !== undefined);
    const from = m.index;
    if (from < at) continue;
    out.push(line.slice(at, from), h('span', { class: `y-${CLASSES[kind]}` }, m[0]));
    at = from + m[0].length;
    if (kind === 0) break;
  }
  out.push(line.slice(at), '\n');
  return out;
}

export const highlight = (text) => text.replace(/\n$/, '').split('\n').flatMap(coloured);

// keys(): the table of the configuration's keys; changed(text): after each edit by the user.
export class Editor {
  constructor({ label, keys, changed }) {
    this.keys = keys;
    this.area = h('textarea.code', { 'aria-label': label, spellcheck: false, autocapitalize: 'off', autocomplete: 'off', wrap: 'off', rows: 20,
      oninput: () => { this.paint(); this.suggest(); changed(this.area.value); }, onscroll: () => this.follow(), onkeydown: (e) => this.key(e), onblur: () => this.hide(), onclick: () => this.hide() });
    this.back = h('pre.back-text', { 'aria-hidden': 'true' });
    this.gutter = h('div.gutter', { 'aria-hidden': 'true' });
    this.list = h('ul.suggest', { hidden: true, role: 'listbox', 'aria-label': t('editor.suggest') });
    this.node = h('div.editor', this.gutter, h('div.sheet', this.back, this.area, this.list));
    this.errors = [];
    this.lines = [];
  }

  get value() {
    return this.area.value;
  }

  set(text) {
    if (text === this.area.value) return;
    this.area.value = text;
    this.paint();
  }

  // errors: [{line, message}]; shown in the gutter and told at the text.
  mark(errors) {
    this.errors = errors;
    attr(this.area, 'aria-invalid', errors.length ? 'true' : null);
    this.numbers();
  }

  // Only lines that changed are built anew.
  paint() {
    const lines = this.area.value.split('\n');
    const plain = this.area.value.length > LARGE;
    this.node.classList.toggle('plain', plain);
    if (plain) {
      this.lines = lines;
      fill(this.back);
      return fill(this.gutter);
    }
    lines.forEach((line, i) => {
      if (this.lines[i] === line && this.back.children[i]) return;
      const node = h('span', coloured(line));
      if (this.back.children[i]) this.back.replaceChild(node, this.back.children[i]);
      else this.back.append(node);
    });
    while (this.back.children.length > lines.length) this.back.lastChild.remove();
    const grew = lines.length !== this.gutter.childElementCount;
    this.lines = lines;
    if (grew) this.numbers();
    this.follow();
  }

  numbers() {
    if (this.node.classList.contains('plain')) return;
    const bad = new Map(this.errors.map((e) => [e.line, e.message]));
    fill(this.gutter, this.lines.map((_, i) => h('span', { class: bad.has(i + 1) ? 'bad' : '', title: bad.get(i + 1) }, String(i + 1))));
    [...this.back.children].forEach((node, i) => node.classList.toggle('bad', bad.has(i + 1)));
    this.follow();
  }

  follow() {
    this.back.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.gutter.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  goTo(line) {
    const before = this.lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(before, before + (this.lines[line - 1] ?? '').length);
    this.area.scrollTop = Math.max(0, (line - 5) * 20);
  }

  // --- completion ---

  // What could stand at the caret: keys of the section, or words of the key.
  candidates() {
    const { selectionStart: at, selectionEnd, value } = this.area;
    if (at !== selectionEnd || value.length > LARGE) return null;
    const start = value.lastIndexOf('\n', at - 1) + 1;
    const line = value.slice(start, at);
    if (/\S/.test(value.slice(at).split('\n')[0])) return null;
    const section = [...value.slice(0, start).matchAll(/^([\w-]+):/gm)].at(-1)?.[1];
    const word = /^( +)([\w-]*)$/.exec(line) ?? /^()([\w-]+)$/.exec(line);
    if (word) {
      const names = word[1] ? this.keys().filter((k) => k.name.startsWith(`${section}.`)).map((k) => ({ text: k.name.split('.')[1], about: k.about, after: ': ' }))
        : [...new Set(this.keys().map((k) => k.name.split('.')[0]))].map((name) => ({ text: name, about: '', after: ':\n  ' }));
      return { typed: word[2], list: names };
    }
    const value_ = /^ +([\w-]+): +(\S*)$/.exec(line);
    const key = value_ && this.keys().find((k) => k.name === `${section}.${value_[1]}`);
    const words = key?.words ?? (key?.type === 'bool' ? ['true', 'false'] : null);
    return words && { typed: value_[2], list: words.map((text) => ({ text, about: '', after: '' })) };
  }

  suggest() {
    const found = this.candidates();
    const fits = (found?.list ?? []).filter((c) => c.text.startsWith(found.typed) && c.text !== found.typed).slice(0, 8);
    if (!fits.length || (!found.typed && !fits[0].about)) return this.hide();
    this.offer = { ...found, fits, at: 0 };
    const { selectionStart: at, value } = this.area;
    const row = value.slice(0, at).split('\n');
    this.list.style.left = `${Math.max(0, 12 + row.at(-1).length * 7.6 - this.area.scrollLeft - found.typed.length * 7.6)}px`;
    this.list.style.top = `${10 + row.length * 20 - this.area.scrollTop}px`;
    this.list.hidden = false;
    this.showOffer();
  }

  showOffer() {
    fill(this.list, this.offer.fits.map((c, i) => h('li', { role: 'option', 'aria-selected': String(i === this.offer.at), onpointerdown: (e) => { e.preventDefault(); this.offer.at = i; this.accept(); } }, h('code', c.text), h('span.muted.clip', c.about))));
  }

  hide() {
    this.list.hidden = true;
    this.offer = null;
  }

  accept() {
    const { fits, at, typed } = this.offer;
    this.hide();
    // As if it had been typed, so that the browser's undo knows it.
    this.area.focus();
    const text = fits[at].text.slice(typed.length) + fits[at].after;
    if (document.execCommand?.('insertText', false, text)) return;
    this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, 'end');
    this.area.dispatchEvent(new Event('input'));
  }

  key(e) {
    if (!this.offer) {
      if (e.key === ' ' && e.ctrlKey) {
        e.preventDefault();
        this.suggest();
      }
      return;
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) {
      this.offer.at = (this.offer.at + by + this.offer.fits.length) % this.offer.fits.length;
      this.showOffer();
    } else if (e.key === 'Tab' || e.key === 'Enter') this.accept();
    else if (e.key === 'Escape') this.hide();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}
