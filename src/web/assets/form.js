// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration as fields.  A field reads and writes one line of the text; it holds nothing itself.
import { h, t, has, icon, fill, put, attr } from './dom.js';
import { bytes } from './format.js';
import { flowList, isForeign, scan, write } from './yaml.js';

// What most people set, by kind of model; every other key of the table is under "more".
const FIRST = {
  gpt: ['model.path', 'model.layers', 'model.heads', 'model.width', 'model.context', 'data.path', 'data.tokenizer', 'lora.rank', 'train.steps', 'train.batch', 'train.lr', 'train.optimizer', 'sample.every', 'sample.prompts', 'checkpoint.every', 'run.dir'],
  wan: ['model.path', 'model.task', 'model.expert', 'model.high_noise_path', 'model.vae_path', 'model.text_encoder_path', 'model.quantize', 'data.path', 'data.resolution', 'data.frames', 'data.trigger', 'lora.rank', 'train.steps', 'train.lr', 'train.optimizer', 'train.batch', 'sample.every', 'sample.prompts', 'checkpoint.every', 'run.dir'],
};

export function form({ table, changed }) {
  const node = h('div.form');
  let fields = [];
  let shape = '';
  let text = '';

  const edit = (key, value) => {
    text = write(text, key.name, value, key.type === 'text' || key.type === 'list');
    changed(text);
  };

  function build(kind) {
    const keys = table().kinds[kind] ?? [];
    const first = new Set(FIRST[kind] ?? []);
    const sections = [...new Set(keys.map((k) => k.name.split('.')[0]))];
    fields = [];
    fill(node, sections.map((name) => {
      const own = keys.filter((k) => k.name.startsWith(`${name}.`) && k.name !== 'model.kind');
      const make = (k) => {
        const made = field(k, edit);
        fields.push(made);
        return made.node;
      };
      const common = own.filter((k) => first.has(k.name)).map(make);
      const rare = own.filter((k) => !first.has(k.name));
      const about = table().sections?.[name];
      const title = has(`section.${name}`) ? t(`section.${name}`) : name;
      const others = h('div.fields', rare.map(make));
      if (!common.length) return h('details.card', h('summary', title, h('span.muted', ` · ${about}`)), others);
      return h('fieldset.card', h('legend', title), about && h('p.muted', about), h('div.fields', common), rare.length > 0 && h('details', h('summary', t('form.more', { n: rare.length })), others));
    }));
    fill(node.firstChild.querySelector('.fields'), kindField(kind), [...node.firstChild.querySelector('.fields').children]);
  }

  const kindField = (kind) => h('div.field', h('label', { for: 'f-kind' }, t('form.kind')), h('select', { id: 'f-kind', onchange: (e) => edit({ name: 'model.kind' }, e.target.value) }, Object.keys(table().kinds).map((k) => h('option', { value: k, selected: k === kind }, t(`kindof.${k}`)))));

  node.show = (next) => {
    text = next;
    const found = scan(text);
    const kind = found.keys.get('model.kind')?.value || 'gpt';
    if (isForeign(text) || !table().kinds[kind]) {
      shape = '';
      return fill(node, h('div.notice', icon('info'), h('p', t('form.strange'))));
    }
    if (shape !== kind) build(kind);
    shape = kind;
    for (const f of fields) f.show(found.keys.get(f.key.name), found.sections.get(f.key.name.split('.')[0])?.opaque);
  };
  node.mark = (errors) => {
    for (const f of fields) f.mark(errors.find((e) => e.key === f.key.name));
  };
  return node;
}

// A word that is not in the list, such as a number where one is allowed, is shown all the same.
function setValue(control, value) {
  control.value = value;
  if (control.tagName !== 'SELECT' || control.value === value) return;
  control.append(h('option', { value }, value));
  control.value = value;
}

const labelOf = (name) => {
  const leaf = name.split('.')[1].replaceAll('_', ' ').replace(/\b(vae|lr|cfg|fps|ema|ffn)\b/g, (word) => word.toUpperCase());
  return leaf[0].toUpperCase() + leaf.slice(1);
};
const bare = (text) => String(text ?? '').replace(/^"(.*)"$/s, '$1');

function field(key, edit) {
  const id = `f-${key.name.replace('.', '-')}`;
  const base = { id, 'aria-describedby': `${id}-about`, spellcheck: false };
  const plain = key.type === 'list' ? flowList(String(key.default)).join('\n') : bare(key.default);
  let control;
  const set = (value) => edit(key, value === '' && key.type !== 'bool' ? null : value);
  if (key.type === 'bool') control = h('input', { ...base, type: 'checkbox', onchange: () => edit(key, String(control.checked)) });
  else if (key.words && key.type !== 'text') control = h('select', { ...base, onchange: () => set(control.value) }, h('option', { value: '' }, t('form.default', { x: plain })), key.words.map((w) => h('option', { value: w }, w)));
  else if (key.type === 'list') control = h('textarea', { ...base, rows: 2, placeholder: plain, oninput: () => edit(key, control.value.trim() ? control.value.split('\n').map((s) => s.trim()).filter(Boolean) : null) });
  else control = h('input', { ...base, type: 'text', inputmode: key.type === 'number' ? 'decimal' : 'text', placeholder: plain, autocomplete: 'off', oninput: () => set(control.value.trim()) });
  const wrong = h('p.wrong', { hidden: true });
  const back = h('button.quiet.back-to', { title: t('form.reset', { x: plain }), 'aria-label': t('form.reset.label', { name: labelOf(key.name), x: plain }), onclick: () => edit(key, null) }, icon('again'));
  const node = h('div.field', { class: key.type === 'list' || /(path|dir|file)$/.test(key.name) ? 'wide' : key.type === 'bool' ? 'check' : '' }, h('label', { for: id }, labelOf(key.name), key.unit && h('span.muted', ` (${key.unit})`)), control, back, h('p.about', { id: `${id}-about` }, key.about), wrong);
  return {
    key,
    node,
    show(entry, opaque) {
      const value = entry ? (entry.list ? entry.list.join('\n') : entry.value) : null;
      control.disabled = Boolean(opaque || entry?.opaque);
      back.hidden = !entry || control.disabled;
      node.classList.toggle('set', Boolean(entry));
      if (key.type === 'bool') control.checked = (value ?? plain) === 'true';
      else if (document.activeElement !== control) setValue(control, value ?? '');
      if (control.tagName === 'TEXTAREA') control.rows = Math.max(2, Math.min(8, (value ?? '').split('\n').length));
    },
    mark(error) {
      wrong.hidden = !error;
      put(wrong, error ? [error.message, error.hint].filter(Boolean).join('. ') : '');
      attr(control, 'aria-invalid', error ? 'true' : null);
      if (error) node.closest('details')?.setAttribute('open', '');
    },
  };
}

// "Will it fit?": what a plan says about memory, as a bar and a sentence.
export function showFit(box, plan) {
  const { fits, budget_bytes: budget } = plan;
  const need = plan.unified_memory ? plan.peak_bytes ?? plan.device_bytes : plan.device_bytes;
  const parts = (plan.parts ?? []).map((part) => ({ name: part.name, size: part.device_bytes + (plan.unified_memory ? part.host_bytes : 0) })).filter((part) => part.size > 0).sort((a, b) => b.size - a.size);
  const all = Math.max(need || 0, budget || 0) || 1;
  const bar = h('div.fit-bar', { 'aria-hidden': 'true' }, parts.map((part, i) => h('i', { class: `c${i % 8}`, css: { width: `${(part.size / all) * 100}%` } })), budget && need > budget ? h('b', { css: { left: `${(budget / all) * 100}%` } }) : null);
  const word = fits === true ? 'yes' : fits === false ? 'no' : 'unknown';
  fill(box, h('p.fit-word', { class: `is-${{ yes: 'ok', no: 'fail', unknown: 'warn' }[word]}` }, icon({ yes: 'ok', no: 'failed', unknown: 'info' }[word]), h('span', t(`fit.${word}`))),
    need > 0 && h('p', budget ? t('fit.of', { need: bytes(need), have: bytes(budget) }) : t('fit.need', { need: bytes(need) }), plan.device_title ? h('span.muted', ` · ${plan.device_title}`) : ''),
    parts.length > 0 && bar, h('ul.fit-parts', parts.map((part, i) => h('li', h('i.dot', { class: `c${i % 8}` }), h('span.grow', part.name), h('span.muted', bytes(part.size))))),
    !plan.unified_memory && plan.host_bytes > 0 && h('p.muted', t('fit.host', { size: bytes(plan.host_bytes) })),
    (plan.given_way ?? []).length > 0 && h('p.muted', t('fit.gave', { what: plan.given_way.map((g) => g.text ?? g.name ?? g).join(', ') })),
    plan.hint && h('p', plan.hint));
}
