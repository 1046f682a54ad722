// What does a person see who glances once? The latest step's numbers, each with its change since the step before.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const { known, number, share, points, seconds, cost, change } = P.format;

  const sum = (list) => (list.some(known) ? list.filter(known).reduce((left, right) => left + right, 0) : null);
  const worst = (list, score) => list.reduce((best, one) => (best === null || score(one) > score(best) ? one : best), null);
  const judgings = (step) => Object.entries(step.statistics.components || {}).filter(([, one]) => one.judging).map(([name, one]) => ({ name, ...one.judging }));
  const outcome = (kind) => (step) => (step.statistics.rollouts ? step.statistics.outcomes[kind] / step.statistics.rollouts : null);
  // Where several components or judges have such a number, the tile shows the one to worry about.
  const first = (step) => { const found = worst(judgings(step).filter((one) => one.first), (one) => Math.abs(one.first.share - 0.5)); return found ? found.first.share : null; };
  const winning = (step) => { const found = judgings(step).filter((one) => one.win_rate); return found.length ? found[0].win_rate.share : null; };
  const slowest = (step) => { const found = (step.judges || []).map((one) => ((one.latency || {}).quantiles || {}).p99).filter(known); return found.length ? Math.max(...found) : null; };
  const cached = (step) => { const asked = sum((step.judges || []).map((one) => one.asked)); return asked ? sum(step.judges.map((one) => one.cached)) / asked : null; };

  // better: 1 where more is better, -1 where less is, 0 where neither is.
  const TILES = [
    { id: 'mean', name: 'Mean total', pick: (step) => step.statistics.total.mean, format: number, better: 1 },
    { id: 'win', name: 'Win rate', pick: winning, format: share, better: 1 },
    { id: 'std', name: 'Std in groups', pick: (step) => step.statistics.groups.std.mean, format: number, better: 0 },
    { id: 'zero', name: 'Without variance', pick: (step) => (step.statistics.groups.count ? step.statistics.groups.zero_variance_share : null), format: share, better: -1 },
    { id: 'invalid', name: 'Invalid', pick: outcome('invalid'), format: share, better: -1, alarm: 'invalid' },
    { id: 'floored', name: 'Floored', pick: outcome('floored'), format: share, better: -1 },
    { id: 'length', name: 'Reward–length', pick: (step) => (known(step.statistics.length_correlation_in_groups) ? step.statistics.length_correlation_in_groups : step.statistics.length_correlation), format: number, better: 0, alarm: 'length_hacking' },
    { id: 'first', name: 'First shown wins', pick: first, format: share, better: 0, alarm: 'position_bias' },
    { id: 'p99', name: 'Judge p99', pick: slowest, format: seconds, better: -1 },
    { id: 'cached', name: 'From cache', pick: cached, format: share, better: 0 },
    { id: 'cost', name: 'Cost of step', pick: (step) => sum((step.judges || []).map((one) => one.cost)), format: cost, better: 0 },
  ];
  const RECENT = 40;

  const make = (tile) => {
    const entry = { value: el('dd', { class: 'value' }), change: el('dd', { class: 'change' }), spark: el('dd', { class: 'trend', 'aria-hidden': 'true' }) };
    entry.node = el('div', { class: 'tile', 'data-tile': tile.id }, el('dt', {}, tile.name), entry.value, entry.change, entry.spark);
    return entry;
  };

  // `at` is the place of the step that is shown: the chosen one, or the last that is complete.
  const update = (list, steps, at) => {
    const here = steps[at];
    const before = steps[at - 1];
    const shown = TILES.filter((tile) => steps.some((step) => known(tile.pick(step))));
    P.keyed(list, shown, (tile) => tile.id, make, (entry, tile) => {
      const value = tile.pick(here);
      const old = before ? tile.pick(before) : null;
      put(entry.value, tile.format(value));
      const difference = known(value) && known(old) ? value - old : null;
      const text = change(difference, tile.format === share ? points : tile.format);
      put(entry.change, text && `${text} since ${before.step}`);
      const good = text === '±0' || !tile.better || difference === null ? '' : Math.sign(difference) === tile.better ? 'good' : 'bad';
      entry.change.className = `change ${good}`;
      entry.node.classList.toggle('alarmed', (here.alarms || []).some((alarm) => alarm.code === tile.alarm));
      const trend = steps.slice(Math.max(0, at - RECENT + 1), at + 1).map((step) => tile.pick(step));
      const key = trend.join();
      if (entry.key !== key) { entry.key = key; entry.spark.replaceChildren(P.draw.spark(trend, 84, 30)); }
    });
  };

  P.tiles = { update };
})();
