// The list of a run's charts, in order, with the numbers of a step that each draws.
//
// A chart whose numbers no step has is left out: a run without a judge has no section of judges.
(() => {
  'use strict';
  const P = window.plaudit;
  const { distribution, lines, stacked, heat, histogram } = P.series;
  const { share, seconds, cost, plain } = P.format;
  const total = (step) => step.statistics.total;
  const component = (name) => (step) => (step.statistics.components || {})[name] || {};
  // The rollouts of the recipes that have a component, whatever came of it there.
  const rolloutsOf = (name) => (step) => { const { scored = 0, floored = 0, skipped = 0, invalid = 0 } = component(name)(step).outcomes || {}; return scored + floored + skipped + invalid; };
  const ratio = (part, whole) => (whole ? part / whole : null);
  const REDS = ['t6', 't3', 't1', 't4', 't7'];
  const AMBERS = ['t1', 't5', 't2', 't3', 't7'];

  const names = (steps, pick) => [...new Set(steps.flatMap((step) => Object.keys(pick(step) || {})))];
  const judges = (steps) => [...new Set(steps.flatMap((step) => (step.judges || []).map((one) => one.judge)))];
  const judge = (step, name) => (step.judges || []).find((one) => one.judge === name) || {};

  const totals = (steps) => [
    { id: 'total', title: 'Total', tall: 220, alarms: () => true, model: distribution(steps, total, { of: (step) => step.statistics.rollouts }) },
    { id: 'heat', title: 'How the totals are spread', tall: 220, note: 'Darker: a larger share of the step.', model: heat(steps, total) },
    { id: 'histogram', title: 'Totals of one step', tall: 220, model: histogram(steps, total) },
  ];

  // One chart per component, those of the recipe first and in its order.
  const components = (run, steps) => {
    const written = [...new Set((run.components || []).map((one) => one.name))];
    const all = [...written, ...names(steps, (step) => step.statistics.components).filter((name) => !written.includes(name))];
    return all.map((name) => {
      const found = (run.components || []).find((one) => one.name === name);
      return {
        id: `component-${name}`,
        title: name,
        note: found ? `${found.reward}, weight ${plain(found.weight)}` : null,
        model: distribution(steps, (step) => component(name)(step).values, { of: rolloutsOf(name) }),
      };
    });
  };

  // In tokens where they were counted, else in characters.
  const length = (steps) => {
    const tokens = distribution(steps, (step) => step.statistics.tokens, { bounds: [0, Infinity] });
    return {
      id: 'length',
      title: tokens ? 'Length in tokens' : 'Length in characters',
      model: tokens || distribution(steps, (step) => step.statistics.characters, { bounds: [0, Infinity] }),
    };
  };

  const signal = (steps) => [
    {
      id: 'zero-variance',
      title: 'Groups without variance',
      note: 'All totals of the group are the same: nothing to learn from.',
      alarms: (code) => code === 'zero_variance',
      model: lines(steps, [{ name: 'share', pick: (step) => (step.statistics.groups.count ? step.statistics.groups.zero_variance_share : null) }], { format: share }),
    },
    { id: 'group-std', title: 'Standard deviation within groups', model: distribution(steps, (step) => step.statistics.groups.std, { bounds: [0, Infinity] }) },
    {
      id: 'length-correlation',
      title: 'Reward and length',
      note: 'Correlation of the total with the length of the response.',
      alarms: (code) => code === 'length_hacking',
      model: lines(
        steps,
        [
          { name: 'all', pick: (step) => step.statistics.length_correlation },
          { name: 'within groups', pick: (step) => step.statistics.length_correlation_in_groups },
        ],
        { ref: 0, bounds: [-1, 1] },
      ),
    },
    length(steps),
  ];

  // Where a reward says in a word why: an answer that is wrong and one that cannot be read are two curves.
  const why = (steps) => {
    const pick = (name) => (step) => component(name)(step).why;
    const said = names(steps, (step) => step.statistics.components).filter((name) => steps.some(pick(name)));
    const sum = (counts) => Object.values(counts || {}).reduce((left, right) => left + right, 0);
    return said.map((name) => ({
      id: `why-${name}`,
      title: `${name}, by cause`,
      model: lines(
        steps,
        names(steps, pick(name)).map((word) => ({ name: word.replace('_', ' '), pick: (step) => ratio((pick(name)(step) || {})[word] || 0, sum(pick(name)(step))) })),
        { format: share },
      ),
    }));
  };

  // Of programs, what their tests came to, and how long one takes.
  const tests = (steps) => {
    const pick = (name) => (step) => component(name)(step).tests;
    const run = names(steps, (step) => step.statistics.components).filter((name) => steps.some(pick(name)));
    return run.flatMap((name) => {
      const verdicts = (step) => (pick(name)(step) || {}).verdicts;
      const sum = (step) => Object.values(verdicts(step) || {}).reduce((left, right) => left + right, 0);
      return [
        {
          id: `tests-${name}`,
          title: `${name}, verdicts of tests`,
          model: lines(
            steps,
            names(steps, verdicts).map((word) => ({ name: word, pick: (step) => ratio((verdicts(step) || {})[word] || 0, sum(step)) })),
            { format: share },
          ),
        },
        { id: `cpu-${name}`, title: `${name}, CPU milliseconds of a test`, model: distribution(steps, (step) => (pick(name)(step) || {}).cpu_ms, { bounds: [0, Infinity] }) },
      ];
    });
  };

  // The shares of several parts, those that are least over all steps, which a policy still has to learn. `pick` gives their counts by
  // name, and `of` what of them is a share of what.
  const MAX_PARTS = 8;
  const leastOf = (steps, pick, of, words) => {
    const both = (step, name) => { const counts = (pick(step) || {})[name]; return counts ? of(counts) : [0, 0]; };
    const total = (name) => {
      const sum = (place) => steps.reduce((all, step) => all + both(step, name)[place], 0);
      return sum(0) / Math.max(1, sum(1));
    };
    const all = names(steps, pick).sort((left, right) => total(left) - total(right) || (left < right ? -1 : 1));
    const shown = all.slice(0, MAX_PARTS);
    return {
      note: all.length > shown.length ? `The ${shown.length} that are ${words} least, of ${all.length}.` : undefined,
      model: lines(steps, shown.map((name) => ({ name, pick: (step) => ratio(...both(step, name)) })), { format: share }),
    };
  };

  // Of instructions, how often each constraint is followed.
  const constraints = (steps) => {
    const pick = (name) => (step) => component(name)(step).constraints;
    const said = names(steps, (step) => step.statistics.components).filter((name) => steps.some(pick(name)));
    return said.map((name) => ({
      id: `constraints-${name}`,
      title: `${name}, constraints followed`,
      ...leastOf(steps, pick(name), (counts) => [counts.followed, counts.checked], 'followed'),
    }));
  };

  // Of rubrics, how often items are met, by tag.
  const items = (steps) => {
    const pick = (name) => (step) => {
      const { all, tags } = (component(name)(step).judging || {}).items || {};
      return all ? { ...tags, 'all items': all } : undefined;
    };
    const graded = names(steps, (step) => step.statistics.components).filter((name) => steps.some(pick(name)));
    return graded.map((name) => ({
      id: `items-${name}`,
      title: `${name}, items met`,
      ...leastOf(steps, pick(name), (counts) => [counts.met, counts.asked - counts.missing - counts.not_applicable], 'met'),
    }));
  };

  const outcomes = (steps) => {
    const reasons = (kind) => (step) => (step.statistics.outcomes.reasons || {})[kind];
    const all = (step) => step.statistics.rollouts;
    return [
      {
        id: 'invalid',
        title: 'Invalid, by reason',
        note: 'Not the model’s fault; no total.',
        alarms: (code) => code === 'invalid',
        model: stacked(steps, reasons('invalid'), all, REDS),
      },
      {
        id: 'floored',
        title: 'Floored, by reason',
        note: 'The model broke a stated limit; the total holds the floor.',
        model: stacked(steps, reasons('floored'), all, AMBERS),
      },
    ];
  };

  const judging = (steps) => {
    const judged = names(steps, (step) => step.statistics.components).filter((name) => steps.some((step) => component(name)(step).judging));
    const each = (field) => judged.map((name) => ({ name, pick: (step) => (component(name)(step).judging || {})[field] }));
    const failed = (step) => merged(judged.map((name) => (component(name)(step).judging || {}).failed));
    const sum = (list) => list.reduce((left, right) => left + right, 0);
    const rates = { format: share };
    const fromZero = { include: [0], bounds: [0, Infinity] };
    const all = judges(steps);
    const of = (pick) => all.map((name) => ({ name, pick: (step) => pick(judge(step, name)) }));
    const delay = (name) => [['p50', 't0'], ['p95', 't4'], ['p99', 't1']]
      .map(([quantile, tint]) => ({ name: quantile, tint, pick: (step) => ((judge(step, name).latency || {}).quantiles || {})[quantile] }));
    return [
      { id: 'win-rate', title: 'Win rate against the reference', model: lines(steps, each('win_rate'), { ...rates, ref: 0.5 }) },
      {
        id: 'position',
        title: 'What is shown first wins',
        note: 'A judge without position bias is at 50\u00a0%.',
        alarms: (code) => code === 'position_bias',
        model: lines(steps, each('first'), { ...rates, ref: 0.5 }),
      },
      { id: 'swap', title: 'Same verdict when swapped', model: lines(steps, each('swap_agreement'), rates) },
      { id: 'ties', title: 'Ties', model: lines(steps, each('ties'), rates) },
      {
        id: 'cycles',
        title: 'Cycles',
        note: 'Groups where a beats b, b beats c and c beats a.',
        model: lines(steps, each('cycles'), rates),
      },
      {
        id: 'failed',
        title: 'Failed verdicts, by reason',
        model: stacked(steps, failed, (step) => sum(judged.map((name) => (component(name)(step).judging || {}).verdicts || 0)) + sum(Object.values(failed(step))), REDS),
      },
      ...all.map((name) => ({
        id: `latency-${name}`,
        title: all.length > 1 ? `Latency of ${name}` : 'Judge latency',
        model: lines(steps, delay(name), { format: seconds, ...fromZero }),
      })),
      {
        id: 'cache',
        title: 'Answered without a call',
        note: 'Verdicts from the cache, of those asked.',
        model: lines(steps, of((one) => ratio(one.cached, one.asked)), rates),
      },
      { id: 'cost', title: 'Cost of each step', model: lines(steps, of((one) => one.cost), { format: cost, ...fromZero }) },
      { id: 'calls', title: 'Calls', model: lines(steps, of((one) => one.calls).filter(({ pick }) => steps.some(pick)), { format: P.format.count, ...fromZero }) },
    ];
  };
  const merged = (counts) => {
    const sum = {};
    for (const one of counts) for (const [code, many] of Object.entries(one || {})) sum[code] = (sum[code] || 0) + many;
    return sum;
  };

  const sections = (run, steps) => [
    { id: 'totals', title: 'Totals', make: totals },
    { id: 'components', title: 'Components', make: () => [...components(run, steps), ...why(steps), ...tests(steps), ...constraints(steps), ...items(steps)] },
    { id: 'signal', title: 'Signal', make: signal },
    { id: 'outcomes', title: 'Invalid and floored', make: outcomes },
    { id: 'judging', title: 'Judges', make: judging },
  ].map(({ make, ...section }) => ({ ...section, panels: (P.part(`the section ${section.title}`, () => make(steps)) || []).filter((panel) => panel.model) }))
    .filter((section) => section.panels.length);

  P.panels = { sections };
})();
