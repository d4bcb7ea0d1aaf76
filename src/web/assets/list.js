// SPDX-License-Identifier: Apache-2.0
// Lists whose order people change, by hand or by keys, and lists of which they choose several.
import { h, t } from './dom.js';
import { announce } from './ui.js';

const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

// The children of list can be moved: by their .handle, or with Alt+↑ and Alt+↓.  moved() is called with the order of keys.
export function sortable(list, moved) {
  const order = () => [...list.children].map((node) => node.itemKey);
  list.sort = (node, by) => {
    const all = [...list.children];
    const to = all.indexOf(node) + by;
    if (to < 0 || to >= all.length) return;
    const focused = document.activeElement;
    list.insertBefore(node, by > 0 ? all[to].nextSibling : all[to]);
    if (list.contains(focused)) focused.focus();
    announce(t('queue.moved', { at: to + 1, n: all.length }));
    moved(order());
  };
  list.addEventListener('keydown', (e) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    const node = rowOf(list, e.target);
    if (!e.altKey || !by || !node) return;
    e.preventDefault();
    list.sort(node, by);
  });
  list.addEventListener('pointerdown', (e) => {
    const node = e.target.closest('.handle') && rowOf(list, e.target);
    if (node && e.button === 0) drag(list, node, e, () => moved(order()));
  });
}

const rowOf = (list, target) => [...list.children].find((node) => node.contains(target));

function drag(list, node, start, done) {
  start.preventDefault();
  const handle = start.target.closest('.handle');
  handle.setPointerCapture(start.pointerId);
  const before = [...list.children].indexOf(node);
  let from = start.clientY;
  node.classList.add('moving');
  const move = (e) => {
    const next = node.nextElementSibling;
    const last = node.previousElementSibling;
    let offset = e.clientY - from;
    if (next && offset > next.offsetHeight / 2) {
      from += next.offsetHeight;
      next.after(node);
    } else if (last && offset < -last.offsetHeight / 2) {
      from -= last.offsetHeight;
      last.before(node);
    }
    offset = e.clientY - from;
    node.style.transform = `translateY(${offset}px)`;
  };
  const end = () => {
    handle.removeEventListener('pointermove', move);
    node.classList.remove('moving');
    node.style.transform = '';
    if ([...list.children].indexOf(node) !== before) done();
  };
  handle.addEventListener('pointermove', move);
  for (const kind of ['pointerup', 'pointercancel']) handle.addEventListener(kind, end, { once: true });
}

// Check boxes of a list: click, Shift+click for a range; changed() after each.  chosen is a set of keys.
export function chooser(changed) {
  const chosen = new Set();
  let last = null;
  const self = {
    chosen,
    box(key, label) {
      return h('input.pick', { type: 'checkbox', 'aria-label': label, checked: chosen.has(key), onclick: (e) => {
        const boxes = [...e.target.closest('.rows').querySelectorAll('.pick')];
        const at = boxes.indexOf(e.target);
        const from = e.shiftKey && last && boxes.includes(last) ? boxes.indexOf(last) : at;
        for (const box of boxes.slice(Math.min(from, at), Math.max(from, at) + 1)) self.set(box, e.target.checked);
        last = e.target;
        changed();
      } });
    },
    set(box, value) {
      box.checked = value;
      const key = box.closest('.rows > *').itemKey;
      if (value) chosen.add(key);
      else chosen.delete(key);
    },
    clear(root) {
      chosen.clear();
      for (const box of root.querySelectorAll('.pick')) box.checked = false;
      changed();
    },
  };
  return self;
}

// Moves the focus from one .item-link of the page to the next.
export function step(root, by) {
  const links = [...root.querySelectorAll('.item-link')].filter((node) => node.offsetParent);
  const row = document.activeElement.closest('.item');
  const at = links.findIndex((link) => row?.contains(link));
  const to = links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))];
  to?.focus();
  to?.scrollIntoView({ block: 'nearest', behavior: still() ? 'auto' : 'smooth' });
}
