// DOM helpers that cannot create markup from texts of models or judges.
//
// Every text goes in as a text node. There is no innerHTML in this folder, and a test looks for it.
(() => {
  'use strict';
  const P = window.plaudit = {};
  const SVG = 'http://www.w3.org/2000/svg';

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (absent(value) || value === false) continue;
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else if (name === 'class') node.setAttribute('class', value);
      else node.setAttribute(name, value === true ? '' : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (absent(child) || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  };
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  const button = (text, kind, onclick, attributes) => el('button', { type: 'button', class: kind, onclick, ...attributes }, text);
  const absent = (value) => value === null || value === undefined;

  // Sets a text only where it differs, so that a selection or a screen reader is not disturbed for nothing.
  const put = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };

  // Brings the children of `parent` in line with `items`, keeping the nodes of those that stay: no flicker, no lost focus.
  const keyed = (parent, items, key, make, update) => {
    const held = parent.heldByKey || (parent.heldByKey = new Map());
    const wanted = new Set(items.map(key));
    for (const [name, entry] of held) {
      if (!wanted.has(name)) { entry.node.remove(); held.delete(name); }
    }
    let before = parent.firstChild;
    for (const item of items) {
      const name = key(item);
      let entry = held.get(name);
      if (!entry) held.set(name, entry = make(item));
      if (entry.node === before) before = before.nextSibling;
      else parent.insertBefore(entry.node, before);
      if (update) update(entry, item);
    }
  };

  // Characters that do not show, or that turn the order of others around. They are written out, never obeyed.
  const HIDDEN =
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\uD800-\uDFFF\u{E0000}-\u{E0FFF}]/gu;
  // The joiner belongs between the parts of one emoji, and both joiners belong in the scripts that need them.
  const JOINED =
    /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F|\p{Script=Arabic}|\p{Script=Devanagari}|\p{Script=Bengali}|\p{Script=Malayalam}|\p{Script=Sinhala})$/u;
  const MARKS = 2000;

  const codepoint = (character) => 'U+' + character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
  const belongs = (text, at, character) => (character === '\u200C' || character === '\u200D') && JOINED.test(text.slice(Math.max(0, at - 2), at));

  // A model's text as nodes: plain text, with each hidden character as a mark that names it. A row of the same is one mark.
  const visible = (text) => {
    const source = String(text).replace(/\r\n/g, '\n');
    const nodes = [];
    let done = 0;
    let row = null;
    const flush = () => {
      if (!row) return;
      const name = row.count > 1 ? `${codepoint(row.character)} × ${row.count}` : codepoint(row.character);
      nodes.push(nodes.length < MARKS ? el('span', { class: 'hidden-character' }, name) : document.createTextNode(`[${name}]`));
      row = null;
    };
    for (const match of source.matchAll(HIDDEN)) {
      const character = match[0];
      if (belongs(source, match.index, character)) continue;
      if (row && row.character === character && done === match.index) row.count += 1;
      else {
        flush();
        if (match.index > done) nodes.push(document.createTextNode(source.slice(done, match.index)));
        row = { character, count: 1 };
      }
      done = match.index + character.length;
    }
    flush();
    if (done < source.length) nodes.push(document.createTextNode(source.slice(done)));
    return nodes;
  };

  // A short text from outside, in a line of ours: isolated, so that it cannot reorder what stands beside it.
  const said = (text, attributes) => el('bdi', attributes, visible(String(text)));

  // A long text from outside: as it was written, bounded, and all of it on demand.
  const SHORT = 4000;
  const block = (text, attributes) => {
    const source = String(text);
    // What may have to be scrolled can be reached by keys.
    const tall = source.length > 500 || source.split('\n', 11).length > 10;
    const body = el('div', { class: 'said', dir: 'auto', tabindex: tall ? 0 : null, role: 'group', ...attributes });
    if (source === '') return fill(body, { class: 'said nothing' }, ['(empty)']);
    if (source.length <= SHORT) return fill(body, {}, visible(source));
    const all = () => { body.replaceChildren(...visible(source)); body.focus(); };
    const more = button(`Show all ${source.length.toLocaleString('en')} characters`, 'more', all);
    let end = SHORT;
    if (/[\uD800-\uDBFF]/.test(source[end - 1])) end -= 1;
    return fill(body, {}, [visible(source.slice(0, end)), '… ', more]);
  };

  // A box that scrolls. Most screens hide their scroll bars, so that an edge where more follows fades, and a line above says what.
  const sizes = new ResizeObserver((entries) => { for (const { target } of entries) (target.scroller || target.parentNode.scroller)(); });
  const scroller = (content, kind, attributes) => {
    const box = el('div', { class: 'scroll', tabindex: 0, role: 'group', ...attributes }, content);
    const sign = el('p', { class: 'note', 'aria-hidden': 'true' });
    const look = () => {
      const [right, below] = [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight];
      box.classList.toggle('more-right', right - box.scrollLeft > 1);
      box.classList.toggle('more-below', below - box.scrollTop > 1);
      put(sign, [right > 1 ? '→ scroll for all columns' : '', below > 1 ? '↓ scroll for all rows' : ''].filter(Boolean).join(' · '));
    };
    box.scroller = look;
    box.addEventListener('scroll', look, { passive: true });
    sizes.observe(box);
    sizes.observe(content);
    return el('div', { class: `scroller ${kind}` }, sign, box);
  };

  // Draws a part of the page. A mistake in it is told, as what it is, and the other parts are drawn all the same.
  const part = (name, work) => {
    P.faults.delete(name);
    try { return work(); } catch (failure) {
      console.error(failure);
      P.faults.set(name, failure.message);
      return null;
    }
  };
  P.faults = new Map();

  Object.assign(P, { part, el, svg, button, absent, put, keyed, visible, said, block, scroller });
})();
