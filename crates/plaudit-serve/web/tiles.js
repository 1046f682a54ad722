// The tiles: the latest step's numbers, each with its change since the step before.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const { known, number, count, share, points, seconds, cost, change } = P.format;

  const sum = (list) => (list.some(known) ? list.filter(known).reduce((left, right) => left + right, 0) : null);
  const worst = (list, score) => list.reduce((best, one) => (best === null || score(one) > score(best) ? one : best), null);
  const judgings = (step) => Object.entries(step.statistics.components || {}).filter(([, one]) => one.judging).map(([name, one]) => ({ name, ...one.judging }));
  const outcome = (kind) => (step) => (step.statistics.rollouts ? step.statistics.outcomes[kind] / step.statistics.rollouts : null);
  // Where several components or judges have such a number, the tile shows the one to worry about.
  const first = (step) => {
    const found = worst(
      judgings(step).filter((one) => one.first),
      (one) => Math.abs(one.first.share - 0.5),
    );
    return found ? found.first.share : null;
  };
  const winning = (step) => { const found = judgings(step).filter((one) => one.win_rate); return found.length ? found[0].win_rate.share : null; };
  const slowest = (step) => {
    const found = (step.judges || []).map((one) => ((one.latency || {}).quantiles || {}).p99).filter(known);
    return found.length ? Math.max(...found) : null;
  };
  const cached = (step) => {
    const asked = sum((step.judges || []).map((one) => one.asked));
    return asked ? sum(step.judges.map((one) => one.cached)) / asked : null;
  };

  // better: 1 where more is better, -1 where less is, 0 where neither is. of: how many values it comes from, of how many.
  const TILES = [
    {
      id: 'mean',
      name: 'Mean total',
      pick: (step) => step.statistics.total.mean,
      of: ({ statistics }) => [statistics.total.count, statistics.rollouts],
      format: number,
      better: 1,
    },
    { id: 'win', name: 'Win rate', pick: winning, format: share, better: 1 },
    { id: 'std', name: 'Std in groups', pick: (step) => step.statistics.groups.std.mean, format: number, better: 0 },
    {
      id: 'zero',
      name: 'Without variance',
      pick: (step) => (step.statistics.groups.count ? step.statistics.groups.zero_variance_share : null),
      format: share,
      better: -1,
    },
    { id: 'invalid', name: 'Invalid', pick: outcome('invalid'), format: share, better: -1, alarm: 'invalid' },
    { id: 'floored', name: 'Floored', pick: outcome('floored'), format: share, better: -1 },
    {
      id: 'length',
      name: 'Reward–length',
      pick: ({ statistics }) =>
        known(statistics.length_correlation_in_groups) ? statistics.length_correlation_in_groups : statistics.length_correlation,
      format: number,
      better: 0,
      alarm: 'length_hacking',
    },
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

  // `at` is the place of the step that is shown. A number that this step does not have, as where only every tenth step is
  // compared with references, is that of the last step that has it, and the tile says which.
  const update = (list, steps, at) => {
    const past = steps.slice(0, at + 1);
    const shown = TILES.map((tile) => ({
      ...tile,
      known: past.map((step) => ({ step, value: tile.pick(step), few: Boolean(tile.of) && P.series.isFew(...tile.of(step)) })).filter((one) => known(one.value)),
    })).filter((tile) => tile.known.length);
    P.keyed(list, shown, (tile) => tile.id, make, (entry, tile) => {
      const here = tile.known[tile.known.length - 1];
      // A change since or to a number that comes from few values says nothing.
      const before = here.few ? undefined : tile.known.slice(0, -1).filter((one) => !one.few).pop();
      put(entry.value, tile.format(here.value));
      const difference = before ? here.value - before.value : null;
      const text = change(difference, tile.format === share ? points : tile.format);
      const few = here.few ? `of ${tile.of(here.step).map(count).join(' of ')}` : '';
      const of = here.step === steps[at] ? '' : `step ${here.step.step}`;
      put(entry.change, [of, few || (text && `${text} since ${before.step.step}`)].filter(Boolean).join(': '));
      entry.node.classList.toggle('sparse', here.few);
      const good = !text || text === '±0' || !tile.better ? '' : Math.sign(difference) === tile.better ? 'good' : 'bad';
      entry.change.className = `change ${good}`;
      entry.node.classList.toggle('alarmed', (steps[at].alarms || []).some((alarm) => alarm.code === tile.alarm));
      const recent = tile.known.slice(-RECENT);
      const trend = recent.map((one) => one.value);
      const key = trend.join();
      if (entry.key !== key) { entry.key = key; entry.spark.replaceChildren(P.draw.spark(trend, 84, 30, recent.map((one) => one.few))); }
    });
  };

  P.tiles = { update };
})();
