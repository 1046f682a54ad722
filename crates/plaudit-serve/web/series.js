// Turns steps into the model of a chart: {steps, series, bands, domain, format, read, table}. A step without a value has null
// there, and the line a gap.
(() => {
  'use strict';
  const P = window.plaudit;
  const { known, number, share, count } = P.format;
  const value = (candidate) => (known(candidate) ? candidate : null);
  // Few values say little: under five, or less than a tenth of those that could be there. What is complete is never too few.
  const FEW = 5;
  const FEW_SHARE = 0.1;
  const isFew = (many, of) => many > 0 && many < of && (many < FEW || many < of * FEW_SHARE);
  const TINTS = 8;
  const tint = (place) => `t${place % TINTS}`;

  const marks = (steps) => steps.map((step) => ({ step: step.step, open: step.open, alarms: step.alarms || [] }));
  const rows = (steps, columns) => ({
    head: ['step', ...columns.map((column) => column.name)],
    rows: steps.map((step, place) => [String(step.step) + (step.open ? ' (running)' : ''), ...columns.map((column) => column.text(place))]),
  });
  const finish = (model, columns) => ({
    ...model,
    read: (place) => columns.filter((column) => !column.when || column.when(place)).map((column) => ({ name: column.name, text: column.text(place), tint: column.tint, band: column.band })),
    table: () => rows(model.steps, columns),
  });

  // Median, mean and the middle half and nine tenths of one distribution per step; null where no step has any. `of` says how many
  // values a step could have: where it has few of them, its points are hollow.
  const distribution = (steps, pick, { format = number, bounds, of } = {}) => {
    const all = steps.map((step) => { const found = pick(step); return found && found.count ? found : null; });
    if (!all.some(Boolean)) return null;
    const quantile = (name) => all.map((one) => (one ? value(one.quantiles[name]) : null));
    const [p05, p25, p50, p75, p95] = ['p05', 'p25', 'p50', 'p75', 'p95'].map(quantile);
    const mean = all.map((one) => (one ? value(one.mean) : null));
    const few = all.map((one, place) => Boolean(one && of) && isFew(one.count, of(steps[place])));
    const between = (low, high) => (place) => (low[place] === null ? P.format.NONE : `${format(low[place])} … ${format(high[place])}`);
    const model = {
      steps: marks(steps), format, domain: P.scale.padded(P.scale.range([p05, p95, mean]), bounds),
      bands: [{ low: p05, high: p95, tint: 't0 wide' }, { low: p25, high: p75, tint: 't0' }],
      series: [{ values: p50, tint: 't0', few }, { values: mean, tint: 't1', few }],
    };
    return finish(model, [
      { name: 'mean', tint: 't1', text: (place) => format(mean[place]) },
      { name: 'median', tint: 't0', text: (place) => format(p50[place]) },
      { name: 'p25–p75', tint: 't0', band: true, text: between(p25, p75) },
      { name: 'p05–p95', tint: 't0 wide', band: true, text: between(p05, p95) },
      ...(few.some(Boolean)
        ? [{ name: 'values', when: (place) => few[place], text: (place) => (all[place] ? `${count(all[place].count)} of ${count(of(steps[place]))}${few[place] ? ', few: hollow' : ''}` : P.format.NONE) }]
        : []),
    ]);
  };

  // One line per entry {name, pick}; an entry that never has a value is left out, and so is a chart without entries. What is
  // picked is a number, or {share, low, high, of} with its interval.
  const lines = (steps, entries, { format = number, include = [], bounds, ref } = {}) => {
    const series = [];
    for (const entry of entries) {
      const found = steps.map((step) => entry.pick(step));
      const interval = found.some((one) => one && typeof one === 'object');
      const values = found.map((one) => value(one && typeof one === 'object' ? one.share : one));
      if (!values.some(known)) continue;
      const low = interval ? found.map((one) => value(one && one.low)) : null;
      const high = interval ? found.map((one) => value(one && one.high)) : null;
      series.push({
        name: entry.name,
        values,
        low,
        high,
        dashed: entry.dashed,
        tint: entry.tint || tint(series.length),
        of: interval ? found.map((one) => (one ? one.of : null)) : null,
      });
    }
    if (!series.length) return null;
    const drawn = series.flatMap((one) => (one.low ? [one.low, one.high] : [one.values]));
    const kept = ref === undefined ? include : [...include, ref];
    const domain = format === share ? P.scale.shares(drawn, kept) : P.scale.padded(P.scale.range(drawn, kept), bounds);
    const text = (one) => (place) => {
      if (!known(one.values[place])) return P.format.NONE;
      return one.low
        ? `${format(one.values[place])} (${format(one.low[place])} … ${format(one.high[place])}, of ${count(one.of[place])})`
        : format(one.values[place]);
    };
    return finish(
      { steps: marks(steps), series, format, ref, domain },
      series.map((one) => ({ name: one.name, tint: one.tint, text: text(one) })),
    );
  };

  // The parts of a whole per step, by name: what `pick` gives as {name: count}, as a share of `of`. The largest come first.
  const stacked = (steps, pick, of, tints) => {
    const sums = new Map();
    for (const step of steps) for (const [name, many] of Object.entries(pick(step) || {})) sums.set(name, (sums.get(name) || 0) + many);
    const names = [...sums.keys()].filter((name) => sums.get(name) > 0).sort((left, right) => sums.get(right) - sums.get(left));
    if (!names.length) return null;
    const series = names.map((name, place) => ({
      name, tint: tints ? tints[place % tints.length] : tint(place),
      counts: steps.map((step) => (pick(step) || {})[name] || 0),
      values: steps.map((step) => (of(step) ? ((pick(step) || {})[name] || 0) / of(step) : null)),
    }));
    const tops = steps.map((_, place) => series.reduce((sum, one) => sum + (one.values[place] || 0), 0));
    return finish({ kind: 'stacked', steps: marks(steps), series, format: share, domain: P.scale.shares([tops]) },
      series.map((one) => ({ name: one.name, tint: one.tint, text: (place) => `${share(one.values[place])} (${count(one.counts[place])})` })));
  };

  // All histograms on one range, as a map of step by value.
  const BINS = 24;
  const heat = (steps, pick) => {
    const all = steps.map((step) => { const found = pick(step); return found && found.count && found.histogram ? found : null; });
    if (!all.some(Boolean)) return null;
    const domain = P.scale.range(all.filter(Boolean).map((one) => [one.min, one.max]));
    const counts = all.map((one) => (one ? P.scale.rebin(one.histogram, domain[0], domain[1], BINS) : null));
    const text = (place) => (all[place] ? `${number(all[place].min)} … ${number(all[place].max)}` : P.format.NONE);
    return finish({ kind: 'heat', steps: marks(steps), counts, bins: BINS, domain, format: number }, [
      { name: 'rollouts', text: (place) => (all[place] ? count(all[place].count) : P.format.NONE) },
      { name: 'least … most', text },
      { name: 'std', text: (place) => (all[place] ? number(all[place].std) : P.format.NONE) },
    ]);
  };

  // The histogram of one step, the one that is looked at.
  const histogram = (steps, pick) => {
    const by = new Map(steps.map((step) => [step.step, pick(step)]));
    if (![...by.values()].some((one) => one && one.count)) return null;
    const of = (step) => { const found = by.get(step); return found && found.count ? found.histogram : null; };
    const model = { kind: 'bars', steps: marks(steps), format: number, histogramOf: of };
    model.read = (place) => {
      const found = by.get(model.steps[place].step);
      return [
        { name: 'rollouts', text: found ? count(found.count) : P.format.NONE },
        { name: 'mean', text: number(found && found.mean) },
        { name: 'std', text: number(found && found.std) },
      ];
    };
    model.table = (step) => {
      const found = of(step);
      const edge = (bin) => number(found.from + ((found.to - found.from) * bin) / found.counts.length);
      return { head: ['from', 'to', 'rollouts'], rows: found ? found.counts.map((many, bin) => [edge(bin), edge(bin + 1), count(many)]) : [] };
    };
    return model;
  };

  P.series = { distribution, lines, stacked, heat, histogram, isFew };
})();
