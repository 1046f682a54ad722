// The list of runs, with their alarms.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const { number, share, count, moment } = P.format;
  const SPARKS = 12;
  const RECENT = 120;

  const empty = () => el('div', { class: 'empty' }, el('h2', {}, 'No run yet'),
    el('p', {}, 'The service is up and waits for rollouts. A run appears here with its first scored group.'),
    el('p', {}, 'To see one now, send a small load from the repository:'),
    el('pre', {}, 'python3 examples/serve/load.py'),
    el('p', {}, 'Or score by hand:'),
      el(
        'pre',
        {},
        `curl -s ${location.origin}/v1/score -H 'content-type: application/json' \\\n  -d '{"recipe": "quickstart", "run": "first", "step": 0, "rollouts": [{"prompt": "2 + 2?", "response": "4", "reference": "4"}]}'`,
      ),
    );

  const make = (run) => {
    const cells = {};
    const cell = (name, title, kind) => { cells[name] = el('td', { class: kind, 'data-title': title }); return cells[name]; };
    cells.state = el('span', { class: 'state' });
    cells.link = el('a', { class: 'name' });
    return { cells, node: el('tr', { 'data-run': run.id },
      el('th', { scope: 'row' }, cells.link, cells.state),
      cell('recipe', 'recipe'), cell('started', 'started'), cell('steps', 'steps', 'n'), cell('rollouts', 'rollouts', 'n'),
      cell('mean', 'mean total', 'n'), cell('spark', 'over steps', 'trend'), cell('invalid', 'invalid', 'n'), cell('alarms', 'alarms')) };
  };

  const update = (entry, run) => {
    const { cells } = entry;
    if (entry.name !== run.name) { entry.name = run.name; cells.link.replaceChildren(P.said(run.name || run.id)); }
    cells.link.href = P.address.to({ run: run.id });
    cells.state.className = `state ${run.live ? 'live' : ''}`;
    put(cells.state, run.live ? 'live' : `until ${moment(run.seen)}`);
    if (entry.recipe !== run.recipe) { entry.recipe = run.recipe; cells.recipe.replaceChildren(P.said(run.recipe || '')); }
    put(cells.started, moment(run.started));
    put(cells.steps, count(run.steps));
    put(cells.rollouts, count(run.rollouts));
    put(cells.mean, number(run.total_mean));
    put(cells.invalid, share(run.invalid_share));
    const alarms = run.alarms || [];
    const key = alarms.map((alarm) => `${alarm.code} ${alarm.step}`).join();
    if (entry.alarms !== key) {
      entry.alarms = key;
      const codes = [...new Set(alarms.map((alarm) => alarm.code))];
      cells.alarms.replaceChildren(
        ...(codes.length
          ? codes.map((code) =>
              el('span', { class: 'alarm-code', title: alarms.filter((alarm) => alarm.code === code).pop().message }, P.format.alarm(code)),
            )
          : [el('span', { class: 'quiet' }, 'none')]),
      );
    }
  };

  class Runs {
    constructor() {
      this.sparks = new Map();
      this.body = el('tbody');
      this.table = el('table', { class: 'runs' }, el('caption', { class: 'unseen' }, 'Runs, the newest first'), el('thead', {}, el('tr', {},
            ['Run', 'Recipe', 'Started'].map((name) => el('th', { scope: 'col' }, name)),
            ['Steps', 'Rollouts', 'Mean total'].map((name) => el('th', { scope: 'col', class: 'n' }, name)),
        el('th', { scope: 'col' }, 'Over steps'), el('th', { scope: 'col', class: 'n' }, 'Invalid'), el('th', { scope: 'col' }, 'Alarms'))), this.body);
      this.node = el('section', { class: 'page' }, el('h1', {}, 'Runs'));
      this.title = 'Runs';
    }

    crumbs() { return [{ text: 'plaudit', href: P.address.to({}) }]; }

    async refresh() {
      const { runs } = await P.source.get('/v1/runs');
      if (!runs.length) {
        this.table.remove();
        if (!this.empty) this.node.append(this.empty = empty());
        return;
      }
      if (this.empty) { this.empty.remove(); this.empty = null; }
      if (!this.table.isConnected) this.node.append(this.table);
      P.keyed(this.body, runs, (run) => run.id, make, update);
      await Promise.all(runs.slice(0, SPARKS).map((run) => this.spark(run)));
    }

    // The last steps of a run as a small line; asked for again only where the run has gone on.
    async spark(run) {
      const key = `${run.seen} ${run.rollouts}`;
      if (this.sparks.get(run.id) === key || !run.steps) return;
      this.sparks.set(run.id, key);
      const { steps } = await P.source.get(P.source.path(run.id, `/steps?limit=${RECENT}`));
      const entry = this.body.heldByKey.get(run.id);
      const totals = steps.filter((_, place) => P.source.isComplete(steps, place)).slice(-RECENT).map(({ statistics }) => ({ ...statistics.total, of: statistics.rollouts }));
      if (entry) P.part('the line over steps', () => entry.cells.spark.replaceChildren(P.draw.spark(totals.map((one) => one.mean), 140, 26, totals.map((one) => P.series.isFew(one.count, one.of)))));
    }

    close() {}
  }

  P.Runs = Runs;
})();
