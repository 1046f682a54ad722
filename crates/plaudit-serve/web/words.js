// The dialog with what a judge said: its exchanges, word for word, or its reason; Esc closes it.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el } = P;
  const { known, number, plural } = P.format;

  // A rollout by its place in the group, or the reference.
  const player = (place) => (place === null ? 'the reference' : `#${place}`);

  const verdict = (exchange) => {
    const { verdict: said, shown } = exchange;
    if (said.kind === 'pair') {
      // The reply says how likely the one shown first is the better one; here it is that of the one named first.
      const named = said.winner === 1 ? 1 : 0;
      const sure = known(said.first) ? `; the judge gives ${player(shown[named])} a probability of ${number(named ? 1 - said.first : said.first)}` : '';
      return P.absent(said.winner)
        ? `A tie between ${player(shown[0])} and ${player(shown[1])}${sure}`
        : `${player(shown[named])} beats ${player(shown[1 - named])}${sure}`;
    }
    if (said.kind === 'ranking') return `Best first: ${said.order.map((place) => player(shown[place])).join(', ')}`;
    if (said.kind === 'items') return `${player(shown[0])}: ${said.items.map((item, place) => `${exchange.labels[place]} ${item ? item.said : 'no verdict'}`).join(', ')}`;
    if (said.kind === 'score') return `Score ${number(said.score)} for ${player(shown[0])}`;
    return `Failed: ${said.code}`;
  };

  const article = (exchange) => {
    const failed = exchange.verdict.kind === 'failed';
    // The labels of a call about items are those of the items.
    const labels = (exchange.labels || []).filter((label) => !label.startsWith('item_'));
    const seen = exchange.shown.map((place, index) => (labels[index] ? `${labels[index]} = ${player(place)}` : player(place))).join(', ');
    const facts = [
      `shown: ${seen}`,
      exchange.form,
      exchange.attempts > 1 ? plural(exchange.attempts, 'attempt') : null,
      exchange.cached ? 'from the cache' : null,
    ]
      .filter(Boolean)
      .join(' · ');
    return el('article', { class: failed ? 'exchange failed' : 'exchange' },
      el('h3', {}, P.said(verdict(exchange))),
      el('p', { class: 'note' }, P.said(`${exchange.component} by ${exchange.judge}`), ' · ', P.said(facts)),
      failed && exchange.verdict.message ? el('p', {}, P.said(exchange.verdict.message)) : null,
      P.absent(exchange.reply)
        ? el('p', { class: 'quiet' }, failed ? 'No reply came.' : 'The reply was not kept.')
        : P.block(exchange.reply, { 'aria-label': 'The judge’s reply' }),
    );
  };

  const FIRST = 60;
  const open = (title, exchanges) => {
    const rest = exchanges.slice(FIRST);
    const more = rest.length ? P.button(`Show ${rest.length} more`, 'more', () => more.replaceWith(...rest.map(article))) : null;
    show(title, exchanges.slice(0, FIRST).map(article), more, exchanges.length ? null : el('p', { class: 'quiet' }, 'The judge was not asked about this.'));
  };
  const show = (title, ...content) => {
    const sheet = document.getElementById('words');
    const from = document.activeElement;
    const close = P.button('✕', 'plain', () => sheet.close(), { 'aria-label': 'Close' });
    sheet.replaceChildren(
      el('header', {}, el('h2', { id: 'words-title' }, P.said(title)), close),
      el('div', { class: 'exchanges' }, content),
    );
    sheet.addEventListener('close', () => { sheet.replaceChildren(); if (from && from.isConnected) from.focus(); }, { once: true });
    if (!sheet.open) sheet.showModal();
    close.focus();
  };
  const close = () => { const sheet = document.getElementById('words'); if (sheet.open) sheet.close(); };

  P.words = { open, show, close, player, verdict };
})();
