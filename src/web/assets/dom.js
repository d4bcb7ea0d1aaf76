// SPDX-License-Identifier: Apache-2.0
// Elements from descriptions, texts from a table.  Text always becomes a text node: nothing here parses markup.
import words from './text/en.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['checked', 'disabled', 'hidden', 'indeterminate', 'muted', 'open', 'readOnly', 'spellcheck', 'value']);

// t('key', {name: value}): the text, with {name} replaced; "one|many" is chosen by the value of n.
export function t(key, values) {
  let text = words[key];
  if (text === undefined) return key;
  if (values && 'n' in values && text.includes('|')) text = text.split('|')[values.n === 1 ? 0 : 1];
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? '')) : text;
}

export const has = (key) => key in words;

// h('a.button.small', {href, onclick}, child, …): null, undefined and false children are left out.
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name || 'div');
  if (classes.length) node.className = classes.join(' ');
  if (isChild(props)) children.unshift(props);
  else for (const key in props) setProp(node, key, props[key]);
  return add(node, children);
}

function isChild(value) {
  return typeof value === 'string' || typeof value === 'number' || value instanceof Node || Array.isArray(value);
}

function setProp(node, key, value) {
  if (value === undefined || value === null) return;
  if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
  else if (key === 'class') node.className += ` ${value}`;
  else if (key === 'css') for (const name in value) node.style.setProperty(name, value[name]);
  else if (PROPERTIES.has(key)) node[key] = value;
  else if (value === true) node.setAttribute(key, '');
  else if (value !== false) node.setAttribute(key, value);
}

export function add(node, children) {
  for (const child of children.flat(3))
    if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

export function svg(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

// A picture of the sprite, which main.js puts into the page; it never carries meaning alone.
export function icon(name, extra = '') {
  return svg('svg', { class: `icon ${extra}`, 'aria-hidden': 'true' }, svg('use', { href: `#i-${name}` }));
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

// Writes only what changed, so that live numbers cost nothing and selections stay.
export function put(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
  return node;
}

export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? '' : value);
}

// Makes the children of parent stand for items: make(item) builds one, its update(item) renews it, and focus is kept.
export function keyed(parent, items, keyOf, make) {
  const old = new Map();
  for (const node of parent.children) old.set(node.itemKey, node);
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let node = old.get(key);
    old.delete(key);
    if (!node) {
      node = make(item);
      node.itemKey = key;
    }
    node.update?.(item);
    if (node === at) at = at.nextElementSibling;
    else moveBefore(parent, node, at);
  }
  for (const node of old.values()) node.remove();
}

function moveBefore(parent, node, at) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(node, at);
  focused?.focus();
}

// Delays calls until none came for ms milliseconds.
export function settle(ms, work) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
