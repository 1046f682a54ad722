// The items of rubrics, a table for each component: a row for each criterion, a column for each response. The judge's reason is behind
// each cell.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el } = P;
  const { player } = P.words;
  const MAX_ITEMS = 200;

  // How an answer looks. Where it is bad to meet an item, what is met is shown as bad.
  const face = (item, part) => {
    if (!item) return part && part.reason ? { text: '!', kind: 'failed', words: `no number, ${part.reason.code}` } : { text: '', kind: 'unmet', words: 'not asked about' };
    if (P.absent(item.verdict)) return { text: '?', kind: 'missing', words: 'no verdict' };
    if (item.verdict === 'not applicable') return { text: '–', kind: 'loss', words: 'does not apply' };
    if (!['yes', 'no'].includes(item.verdict)) return { text: P.said(item.verdict.slice(0, 12)), kind: 'tie', words: item.verdict };
    const met = item.verdict === 'yes';
    return { text: met ? '✓' : '✗', kind: met === !item.negative ? 'win' : 'wrong', words: met ? 'met' : 'not met' };
  };

  // The items of all responses, each once: {about, answers: Map place -> item}. A criterion that stands twice in a rubric has two rows.
  const rows = (parts) => {
    const found = new Map();
    for (const [place, part] of parts) {
      const seen = new Map();
      for (const item of (part && part.info && part.info.items) || []) {
        const before = seen.get(item.criterion) || 0;
        seen.set(item.criterion, before + 1);
        const key = `${before} ${item.criterion}`;
        if (!found.has(key)) found.set(key, { about: item, answers: new Map() });
        found.get(key).answers.set(place, item);
      }
    }
    return [...found.values()];
  };

  const show = (about, item, part, said) => P.words.show(said,
    P.block(about.criterion, { 'aria-label': 'Criterion' }),
    item && item.reason
      ? [el('h3', {}, 'The judge’s reason'), P.block(item.reason, { 'aria-label': 'The judge’s reason' })]
      : el('p', { class: 'quiet' }, !item && part && part.reason ? P.said(part.reason.message || part.reason.code) : 'The judge gave no reason.'));

  const table = (name, parts) => {
    const all = rows(parts);
    const body = all.slice(0, MAX_ITEMS).map(({ about, answers }, y) => {
      const facts = [about.negative ? 'a fault' : null, `weight ${P.format.plain(about.weight)}`, ...(about.tags || [])].filter(Boolean).join(' · ');
      const given = [...answers.values()];
      const count = (verdict) => given.filter((item) => item.verdict === verdict).length;
      return el('tr', {}, el('th', { scope: 'row' }, P.said(about.criterion.slice(0, 300)), el('span', { class: 'note' }, P.said(facts))),
        [...parts].map(([place, part], x) => {
          const item = answers.get(place);
          const { text, kind, words } = face(item, part);
          const said = `${player(place)}: ${words}`;
          const node = el('td', { class: `bout ${kind}`, role: 'gridcell', tabindex: y + x === 0 ? 0 : -1, 'data-place': place, 'aria-label': said }, text);
          return Object.assign(node, { open: () => show(about, item, part, said) });
        }),
        el('td', { class: 'n' }, count('yes') + count('no') ? `${count('yes')} of ${count('yes') + count('no')}` : ''));
    });
    const label = `Items of ${name}`;
    const grid = el('table', { class: 'matrix items', role: 'grid', 'aria-label': label },
      el('thead', {}, el('tr', {}, el('td', {}), [...parts.keys()].map((place) => el('th', { scope: 'col' }, player(place))), el('th', { scope: 'col', class: 'n' }, 'met'))),
      el('tbody', {}, body));
    P.matrix.listen(grid);
    return el('section', { class: 'matrix-of' }, el('h3', {}, P.said(name)), P.scroller(grid, '', { 'aria-label': label, tabindex: null }),
      all.length > MAX_ITEMS ? el('p', { class: 'note' }, `${P.format.count(all.length - MAX_ITEMS)} more items are not shown.`) : null);
  };

  // One table for each component of which some response has items.
  const tables = (rollouts, order) => {
    const part = (place, name) => (rollouts[place].result.components || {})[name];
    const names = [...new Set(rollouts.flatMap((rollout) => Object.keys(rollout.result.components || {})))];
    const has = (name) => order.some((place) => ((part(place, name) || {}).info || {}).items);
    return names.filter(has).map((name) => table(name, new Map(order.map((place) => [place, part(place, name)]))));
  };

  P.items = { tables };
})();
