// SPDX-License-Identifier: Apache-2.0
// The log: its end first, earlier parts on demand, new lines as they come.
import { h, t, icon, fill, put, settle } from '../dom.js';
import { getText, url } from '../api.js';
import { on } from '../events.js';
import { empty, problemBox, toggle } from '../ui.js';
import { bytes, count } from '../format.js';
import { clean, isBar, isError } from '../log_line.js';

const PIECE = 256 * 1024;
const MOST_LINES = 10000;
const sizeOf = (text) => new Blob([text]).size;
export function open(root, { uid, job, query }) {
  let start = 0;
  let end = 0;
  let rest = '';
  let follow = !query().has('error');
  let fold = false;
  let hits = [];
  let at = -1;
  const box = h('div.log', { tabindex: 0, role: 'log', 'aria-live': 'off', 'aria-label': t('log.title') });
  const slot = h('div');
  const earlier = h('button.button.small', { hidden: true, onclick: () => loadEarlier() }, icon('up'), h('span'));
  const search = h('input', { type: 'search', placeholder: t('log.search'), 'aria-label': t('log.search'), oninput: settle(150, () => find(0)), onkeydown: (e) => e.key === 'Enter' && find(e.shiftKey ? -1 : 1) });
  const found = h('span.muted', { 'aria-live': 'polite' });
  const error = h('button.button.small.to-error', { hidden: true, onclick: () => jump(box.querySelector('.first-error')) }, icon('failed'), t('log.error'));
  const followBox = toggle(t('log.follow'), follow, (v) => setFollow(v));
  const download = h('a.button.small', { href: url(`jobs/${uid}/log?offset=0&limit=33554432`), download: `${job().name}.log` }, icon('save'), t('log.download'));
  root.append(h('div.toolbar', search, h('button.quiet', { 'aria-label': t('log.previous'), onclick: () => find(-1) }, icon('up')), h('button.quiet', { 'aria-label': t('log.next'), onclick: () => find(1) }, icon('down')), found, h('span.grow'), error,
    toggle(t('log.fold'), fold, (v) => { fold = v; box.classList.toggle('fold', v); }), followBox, download), slot, earlier, box);

  function setFollow(v) {
    follow = v;
    followBox.firstChild.checked = v;
    if (v) box.scrollTop = box.scrollHeight;
  }

  const lineNode = (line) => {
    const text = clean(line);
    const node = h('div', text);
    node.raw = line;
    if (isError(text)) node.className = 'err';
    else if (isBar(text)) node.className = 'bar-line';
    else if (/^\s*warning\b/i.test(text)) node.className = 'warn';
    return node;
  };

  function mark() {
    box.querySelector('.first-error')?.classList.remove('first-error');
    box.querySelector('.err')?.classList.add('first-error');
    error.hidden = !box.querySelector('.err');
    earlier.hidden = start <= 0;
    put(earlier.lastChild, t('log.earlier', { size: bytes(start) }));
  }

  function append(text) {
    let lines = (rest + text).split('\n');
    rest = lines.pop();
    if (lines.length > MOST_LINES) {
      start += sizeOf(lines.slice(0, -MOST_LINES).join('\n')) + 1;
      lines = lines.slice(-MOST_LINES);
    }
    box.append(...lines.map(lineNode));
    // What grows too long loses its beginning, many lines at a time; they can be loaded again.
    if (follow && box.childElementCount > 2 * MOST_LINES) {
      const old = [...box.children].slice(0, box.childElementCount - MOST_LINES);
      start += sizeOf(old.map((node) => node.raw).join('\n')) + 1;
      for (const node of old) node.remove();
    }
    mark();
    if (follow) box.scrollTop = box.scrollHeight;
  }

  async function load() {
    try {
      const part = await getText(`jobs/${uid}/log?tail=${PIECE}`);
      start = part.offset || 0;
      end = part.size || 0;
      fill(box);
      rest = '';
      let { text } = part;
      // The first line of a tail is a torn one.
      if (start > 0) text = text.slice(text.indexOf('\n') + 1);
      fill(slot, !text && empty('jobs', t('log.none.title'), t('log.none.text')));
      box.hidden = !text;
      append(text);
      if (rest) append('\n');
      if (query().has('error')) jump(box.querySelector('.first-error'));
    } catch (problem) {
      fill(slot, problemBox(problem, load));
    }
  }

  async function loadEarlier() {
    const from = Math.max(0, start - PIECE);
    const { text } = await getText(`jobs/${uid}/log?offset=${from}&limit=${start - from}`);
    const cut = from > 0 ? text.indexOf('\n') + 1 : 0;
    const height = box.scrollHeight;
    setFollow(false);
    box.prepend(...text.slice(cut).replace(/\n$/, '').split('\n').map(lineNode));
    start = from + sizeOf(text.slice(0, cut));
    box.scrollTop += box.scrollHeight - height;
    mark();
  }

  function jump(node) {
    if (!node) return;
    setFollow(false);
    node.scrollIntoView({ block: 'center' });
    node.classList.add('here');
    setTimeout(() => node.classList.remove('here'), 1500);
  }

  function find(by) {
    const word = search.value.toLowerCase();
    if (by === 0 || !hits.length) {
      for (const node of hits) node.classList.remove('hit');
      hits = word ? [...box.children].filter((node) => node.textContent.toLowerCase().includes(word)) : [];
      for (const node of hits) node.classList.add('hit');
      at = hits.length;
      by = -1;
    }
    put(found, word ? t('log.found', { n: count(hits.length) }) : '');
    if (!hits.length) return;
    at = (at + by + hits.length) % hits.length;
    put(found, t('log.at', { at: count(at + 1), n: count(hits.length) }));
    jump(hits[at]);
  }

  box.addEventListener('scroll', () => {
    const bottom = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
    if (bottom !== follow) {
      follow = bottom;
      followBox.firstChild.checked = bottom;
    }
  });
  const off = [on('log', (e) => {
    if (e.uid !== uid || e.offset < end) return;
    if (e.offset > end) return void load();
    end = e.offset + sizeOf(e.text);
    box.hidden = false;
    fill(slot);
    append(e.text);
  }), on('opened', async () => {
    await loaded;
    const { size } = await getText(`jobs/${uid}/log?tail=1`).catch(() => ({}));
    if (size > end) load();
  })];
  const loaded = load();
  const close = () => off.forEach((undo) => undo());
  close.go = () => {
    if (query().has('error')) jump(box.querySelector('.first-error'));
    return true;
  };
  close.keys = (key) => {
    if (key === '/') search.focus();
    else if (key === 'f') setFollow(!follow);
    else if (key === 'E') jump(box.querySelector('.first-error'));
    else return false;
    return true;
  };
  return close;
}
