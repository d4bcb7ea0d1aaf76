// SPDX-License-Identifier: Apache-2.0
// Samples: a row per step, a column per prompt, by the index that the trainer wrote.
import { h, t, icon, fill, settle } from '../dom.js';
import { get, getText, fileUrl, filePath } from '../api.js';
import { on } from '../events.js';
import { empty, loading, problemBox } from '../ui.js';
import { count } from '../format.js';
import { isVideo, still } from '../run_card.js';

export function open(root, { uid }) {
  let grid = { steps: [], columns: [], at: new Map() };
  const box = h('div', loading());
  root.append(box);
  const load = async () => {
    try {
      const { samples } = await get(`jobs/${uid}/samples`);
      grid = arrange(samples);
      const texts = samples.length ? [] : await textSamples(uid, 50);
      if (texts.length) return fill(box, h('div.stack', texts.map((s) => h('section.card', h('h2', t('sample.at', { step: count(s.step) })), h('p.said', s.text)))));
      fill(box, samples.length ? table(grid, (step, column) => viewer(grid, step, column)) : empty('image', t('samples.none.title'), t('samples.none.text'), h('code', 'sample.every: 200')));
    } catch (problem) {
      fill(box, problemBox(problem, load));
    }
  };
  load();
  const off = [on('sample', settle(500, (e) => e.uid === uid && load())), on('checkpoint', (e) => e.uid === uid && load())];
  return () => off.forEach((undo) => undo());
}

// A language model writes its samples as texts, one file per step; the newest first.
export async function textSamples(uid, most) {
  const { files } = await get(`jobs/${uid}/files`).catch(() => ({ files: [] }));
  const own = files.filter((f) => /^samples\/.*\.txt$/.test(f.path) && f.step !== null).sort((a, b) => b.step - a.step).slice(0, most);
  return Promise.all(own.map(async (f) => ({ step: f.step, text: (await getText(filePath('files', f.folder, f.path))).text.trim() })));
}

// By what the index says, so that a missing file leaves a gap and shifts nothing.
export function arrange(samples) {
  const steps = [...new Set(samples.map((s) => s.step))].sort((a, b) => b - a);
  const columns = [...new Set(samples.map((s) => s.index))].sort((a, b) => a - b);
  const at = new Map(samples.map((s) => [`${s.step} ${s.index}`, s]));
  return { steps, columns, at, prompt: (column) => samples.findLast((s) => s.index === column)?.prompt ?? '' };
}

function table({ steps, columns, at, prompt }, look) {
  return h('div.samples', { css: { '--n': columns.length } }, h('table', h('caption.hidden', t('tab.samples')),
    h('thead', h('tr', h('th', { scope: 'col' }, t('chart.axis.step')), columns.map((c) => h('th', { scope: 'col', title: prompt(c) }, h('span.two-lines', prompt(c) || t('samples.prompt', { n: c + 1 })))))),
    h('tbody', steps.map((step) => h('tr', h('th', { scope: 'row' }, count(step)), columns.map((c) => {
      const s = at.get(`${step} ${c}`);
      return h('td', s ? h('button.thumb', { onclick: () => look(step, c), 'aria-label': t('samples.look', { step: count(step), n: c + 1 }) }, still(s, ''), isVideo(s) && icon('play')) : h('span.gap', t('samples.gap')));
    }))))));
}

// One sample, large: ← → steps, ↑ ↓ prompts, space plays.  A pinned one stays beside the others.
function viewer({ steps, columns, at, prompt }, step, column) {
  let pinned = null;
  const stage = h('div.stage');
  const title = h('h2', { id: 'view-title' });
  const text = h('p.muted');
  const slider = h('input', { type: 'range', min: 0, max: steps.length - 1, 'aria-label': t('chart.axis.step'), oninput: () => show(steps[steps.length - 1 - slider.value], column) });
  const pin = h('button.button.small', { 'aria-pressed': 'false', onclick: () => { pinned = pinned ? null : { step, column }; show(step, column); } }, t('samples.pin'));
  const link = h('a.button.small', { download: '' }, icon('save'), t('log.download'));
  const box = h('dialog.viewer', { 'aria-labelledby': 'view-title', onclose: () => box.remove(), onkeydown: keys }, h('div.row', h('div.grow', title, text), h('button.quiet', { onclick: () => box.close(), 'aria-label': t('close') }, icon('close'))), stage, h('div.row', slider, pin, link));

  function large(place) {
    const s = at.get(`${place.step} ${place.column}`);
    const src = s && fileUrl('files', s.folder, s.path);
    const name = t('sample.at', { step: count(place.step) });
    return h('figure', !s ? h('p.muted', t('samples.gap')) : isVideo(s) ? h('video', { src, controls: true, autoplay: true, loop: true, muted: true, 'aria-label': name }) : h('img', { src, alt: s.prompt ?? name }), pinned && h('figcaption', name, place.column === column ? '' : ` · ${prompt(place.column)}`));
  }

  function show(nextStep, nextColumn) {
    [step, column] = [nextStep, nextColumn];
    title.textContent = t('sample.at', { step: count(step) });
    text.textContent = prompt(column);
    slider.value = steps.length - 1 - steps.indexOf(step);
    pin.setAttribute('aria-pressed', String(Boolean(pinned)));
    stage.classList.toggle('two', Boolean(pinned));
    fill(stage, pinned && large(pinned), large({ step, column }));
    const s = at.get(`${step} ${column}`);
    link.hidden = !s;
    if (s) link.href = fileUrl('files', s.folder, s.path);
  }

  function keys(e) {
    const go = (list, now, by) => list[Math.max(0, Math.min(list.length - 1, list.indexOf(now) + by))];
    const videos = [...stage.querySelectorAll('video')];
    if (e.key === 'ArrowRight' || e.key === 'ArrowLeft') show(go(steps, step, e.key === 'ArrowRight' ? -1 : 1), column);
    else if (e.key === 'ArrowUp' || e.key === 'ArrowDown') show(step, go(columns, column, e.key === 'ArrowDown' ? 1 : -1));
    else if (e.key === ' ' && videos.length && e.target.tagName !== 'BUTTON') {
      // Two clips play in step.
      const play = videos[0].paused;
      for (const video of videos) {
        video.currentTime = videos[0].currentTime;
        if (play) video.play();
        else video.pause();
      }
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }
  document.body.append(box);
  show(step, column);
  box.showModal();
}
