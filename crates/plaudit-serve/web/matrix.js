// The matrix of pairwise verdicts, one per component: a row for each response and, where it took part, for the reference. A
// cell says how the row fared against the column; the judge's words are behind it.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el } = P;
  const { player } = P.words;
  const REFERENCE = null;

  // The bouts of each two that one exchange decides: {row, column, result: 'win' | 'loss' | 'tie' | 'failed'}.
  const bouts = (exchange) => {
    const { verdict, shown } = exchange;
    if (shown.length < 2 || verdict.kind === 'score') return [];
    const found = [];
    const meet = (left, right, result) => {
      const back = { win: 'loss', loss: 'win' }[result] || result;
      found.push({ row: left, column: right, result }, { row: right, column: left, result: back });
    };
    if (verdict.kind === 'pair') {
      meet(shown[0], shown[1], P.absent(verdict.winner) ? 'tie' : verdict.winner === 0 ? 'win' : 'loss');
    } else if (verdict.kind === 'ranking') {
      verdict.order.forEach((better, place) => verdict.order.slice(place + 1).forEach((worse) => meet(shown[better], shown[worse], 'win')));
    } else if (verdict.kind === 'failed') {
      shown.forEach((left, place) => shown.slice(place + 1).forEach((right) => meet(left, right, 'failed')));
    }
    return found;
  };

  // {component: {cells: Map 'row column' -> {win, loss, tie, failed, exchanges}, players}} of those components that compare.
  const tally = (exchanges) => {
    const all = new Map();
    for (const exchange of exchanges) {
      for (const bout of bouts(exchange)) {
        if (!all.has(exchange.component)) all.set(exchange.component, { cells: new Map(), players: new Set() });
        const { cells, players } = all.get(exchange.component);
        players.add(bout.row);
        const key = `${bout.row} ${bout.column}`;
        if (!cells.has(key)) cells.set(key, { win: 0, loss: 0, tie: 0, failed: 0, exchanges: [] });
        cells.get(key)[bout.result] += 1;
        cells.get(key).exchanges.push(exchange);
      }
    }
    return all;
  };

  const face = (cell) => {
    if (!cell) return { text: '', kind: 'unmet', words: 'never compared' };
    const { win, loss, tie, failed } = cell;
    const decided = win + loss + tie;
    const words = [win && `won ${win}`, loss && `lost ${loss}`, tie && `tied ${tie}`, failed && `failed ${failed}`].filter(Boolean).join(', ');
    if (!decided) return { text: '!', kind: 'failed', words };
    const kind = win > loss ? 'win' : loss > win ? 'loss' : 'tie';
    const clear = [win, loss, tie].filter(Boolean).length === 1;
    const text = clear ? { win: '▲', loss: '▽', tie: '=' }[kind] : `${win}:${loss}`;
    return { text: failed ? `${text}!` : text, kind, words };
  };

  // A response without a row was either not judged or is, to the judge, word for word the same as one that has a row.
  const absent = (order, players) => {
    const missing = order.filter((place) => !players.has(place)).sort((left, right) => left - right);
    return missing.length
      ? el('p', { class: 'note' }, `Not asked about: ${missing.map(player).join(', ')}; judged as another that reads the same, or not judged.`)
      : null;
  };

  const table = (component, { cells, players }, order) => {
    const list = [...order.filter((place) => players.has(place)), ...(players.has(REFERENCE) ? [REFERENCE] : [])];
    const short = (place) => (place === REFERENCE ? 'ref' : `#${place}`);
    const body = list.map((row, y) => {
      const met = list.map((column) => cells.get(`${row} ${column}`)).filter(Boolean);
      const points = (result) => met.reduce((sum, cell) => sum + cell[result], 0);
      return el('tr', {}, el('th', { scope: 'row' }, short(row)), list.map((column, x) => {
        if (row === column) return el('td', { class: 'self', role: 'gridcell', 'aria-label': 'itself' }, '·');
        const cell = cells.get(`${row} ${column}`);
        const { text, kind, words } = face(cell);
        const said = `${player(row)} against ${player(column)}: ${words}`;
        const node = el('td', {
          class: `bout ${kind}`,
          role: 'gridcell',
          tabindex: y === 0 && x === 1 ? 0 : -1,
          'data-row': short(row),
          'data-column': short(column),
          'aria-label': said,
        }, text);
        return Object.assign(node, { open: () => P.words.open(said, cell ? cell.exchanges : []) });
      }), el('td', { class: 'n' }, `${points('win')}:${points('loss')}`));
    });
    const grid = el('table', { class: list.length > 20 ? 'matrix many' : 'matrix', role: 'grid', 'aria-label': `Who beat whom: ${component}` },
      el('thead', {}, el('tr', {}, el('td', {}),
        list.map((column) => el('th', { scope: 'col' }, short(column))),
        el('th', { scope: 'col', class: 'n' }, 'won:lost'))),
      el('tbody', {}, body));
    listen(grid);
    return el('section', { class: 'matrix-of' }, el('h3', {}, P.said(component)),
      P.scroller(grid, '', { 'aria-label': `Who beat whom: ${component}`, tabindex: null }), absent(order, players));
  };

  // One stop for Tab; the arrow keys go from cell to cell, Enter opens the words.
  const listen = (grid) => {
    grid.addEventListener('click', (event) => { const cell = event.target.closest('.bout'); if (cell) { focus(grid, cell); cell.open(); } });
    grid.addEventListener('keydown', (event) => {
      const cell = event.target.closest('.bout');
      if (!cell) return;
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); cell.open(); return; }
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      let row = cell.parentNode.sectionRowIndex;
      let column = cell.cellIndex;
      const rows = grid.tBodies[0].rows;
      for (;;) {
        row += by[0];
        column += by[1];
        const next = rows[row] && rows[row].cells[column];
        if (!next) return;
        if (next.classList.contains('bout')) { focus(grid, next); return; }
      }
    });
  };
  const focus = (grid, cell) => {
    for (const old of grid.querySelectorAll('[tabindex="0"]')) old.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  };

  const matrices = (exchanges, order) => [...tally(exchanges)].map(([component, found]) => table(component, found, order));

  P.matrix = { matrices, tally, listen };
})();
