// The view of one run: its head, its alarms, the tiles, the charts, and the groups of the selected step.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const { moment, count, plain } = P.format;
  const ALARMS = 6;

  class Run {
    constructor(id) {
      this.id = id;
      this.charts = new Map();
      this.title = id;
      this.name = el('h1', {});
      this.facts = el('p', { class: 'facts' });
      this.alarms = el('ul', { class: 'alarms', 'aria-label': 'Alarms' });
      this.at = el('p', { class: 'step-bar', role: 'group', 'aria-label': 'The step that is shown' });
      this.tiles = el('dl', { class: 'tiles' });
      this.sections = el('div', {});
      this.groups = new P.Groups(id);
      this.wait = el('p', { class: 'empty' }, 'No step yet. The first appears when a group of this run is scored.');
      this.wait.hidden = true;
      this.body = el('div', {}, this.at, this.tiles, this.sections, this.groups.node);
      this.body.hidden = true;
      this.node = el('section', { class: 'page' }, el('header', { class: 'head' }, this.name, this.facts), this.alarms, this.wait, this.body);
      this.previous = this.stepButton('‹', 'The step before', -1);
      this.next = this.stepButton('›', 'The step after', 1);
      this.stepText = el('strong', {});
      this.latest = P.button('Latest', 'plain', () => this.choose(null));
      const down = P.button('Its groups ↓', 'plain', () => { this.groups.node.scrollIntoView(); this.groups.node.querySelector('a, button').focus({ preventScroll: true }); });
      this.span = P.button('', 'plain', () => P.address.replace({ run: this.id, span: P.address.read().span ? null : 'whole' }));
      this.at.append(this.previous, this.stepText, this.next, this.latest, down, this.span);
      P.chart.look.onChoose = (step) => this.choose(step);
    }

    stepButton(sign, label, by) {
      return P.button(sign, 'plain', () => {
        const to = this.steps[Math.min(this.steps.length - 1, Math.max(0, this.place() + by))];
        if (to) this.choose(to.step);
      }, { 'aria-label': label });
    }

    crumbs() { return [{ text: 'plaudit', href: P.address.to({}) }, { text: this.title, href: P.address.to({ run: this.id }) }]; }

    choose(step) {
      P.address.replace({ run: this.id, step });
    }

    // The chosen step, else the last that is complete.
    place() {
      const { step } = P.address.read();
      const chosen = this.steps.findIndex((one) => one.step === step);
      if (chosen >= 0) return chosen;
      let place = this.steps.length - 1;
      while (!P.source.isComplete(this.steps, place)) place -= 1;
      return place;
    }

    async refresh() {
      const run = await P.source.get(P.source.path(this.id));
      this.title = run.name || run.id;
      if (!this.steps) this.head(run);
      const { span } = P.address.read();
      const held = await P.source.refreshSteps(this.id, String(run.started), span !== null);
      this.steps = held.list;
      Object.assign(this, { shown: span, many: run.steps });
      this.head(run);
      this.wait.hidden = this.steps.length > 0;
      this.body.hidden = !this.steps.length;
      if (!this.steps.length) return;
      await this.askJudges(run);
      const changed = this.held !== held || this.version !== held.version;
      if (changed) {
        Object.assign(this, { held, version: held.version });
        P.part('the alarms', () => this.showAlarms());
        P.part('the charts', () => this.showCharts(run));
        P.part('the judges', () => this.showForms());
      }
      await this.showStep(changed);
    }

    // How the judges of a live run give their verdicts, as the service has found out by now.
    async askJudges(run) {
      const names = (run.judges || []).map((one) => (typeof one === 'string' ? one : one.name));
      if (P.source.report || !run.live || !names.length) { this.forms = []; return; }
      const { judges } = await P.source.get('/v1/judges').catch(() => ({ judges: [] }));
      const told = judges.filter((one) => names.includes(one.judge)).flatMap((one) => (one.formats || []).map((form) => ({ judge: one.judge, text: form.text })));
      this.forms = [...new Map(told.map((one) => [`${one.judge} ${one.text}`, one])).values()];
      this.showForms();
    }

    showForms() {
      const section = this.sections.heldByKey && this.sections.heldByKey.get('judging');
      if (!section) return;
      P.keyed(section.forms, this.forms, (one) => `${one.judge} ${one.text}`, (one) => ({
        node: el('li', {}, P.said(one.judge), ' ', P.said(one.text, { class: 'quiet' })),
      }));
    }

    // Called when the address changed but the run did not.
    async moved() {
      if (P.address.read().span !== this.shown) await this.refresh();
      else if (this.steps && this.steps.length) await this.showStep(false);
    }

    head(run) {
      if (this.name.textContent !== this.title) this.name.replaceChildren(P.said(this.title));
      const weights = [...new Set((run.components || []).map((one) => `${one.name} × ${plain(one.weight)}`))].join(', ');
      const facts = [
        ['recipe', run.recipe],
        ['components', weights],
        ['judges', (run.judges || []).map((one) => (typeof one === 'string' ? one : one.name)).join(', ')],
        ['started', moment(run.started)],
        [run.live ? 'live' : 'until', run.live ? 'now' : moment(run.seen)],
        ['steps', this.howMany(run.steps)], ['groups', count(run.groups)], ['rollouts', count(run.rollouts)]].filter(([, text]) => text);
      P.keyed(
        this.facts,
        facts,
        ([name]) => name,
        ([name]) => {
          const value = el('bdi', {});
          return { value, node: el('span', { class: name === 'live' ? 'fact live' : 'fact' }, el('i', {}, name), ' ', value) };
        },
        (entry, [, text]) => { if (entry.text !== text) { entry.text = text; entry.value.replaceChildren(...P.visible(text)); } });
    }

    // How many steps there are, and which of them are shown where those are not all.
    howMany(all) {
      const shown = this.steps ? this.steps.length : all;
      if (all <= P.source.MAX_STEPS || shown >= all) return count(all);
      return `${count(all)}, ${this.shown || P.source.report ? `${count(shown)} of them` : `the last ${count(shown)}`} shown`;
    }

    // One line for each kind of alarm: the newest in words, and at which steps it was before.
    showAlarms() {
      const kinds = new Map();
      for (const alarm of this.steps.flatMap((step) => step.alarms || [])) kinds.set(alarm.code, [alarm, ...(kinds.get(alarm.code) || [])]);
      const list = [...kinds.values()].sort((left, right) => right[0].step - left[0].step);
      P.keyed(this.alarms, list, ([alarm]) => alarm.code, () => {
        const entry = { code: el('a', { class: 'alarm-code' }), words: el('span', {}), before: el('span', { class: 'quiet' }) };
        return { ...entry, node: el('li', {}, entry.code, ' ', entry.words, entry.before) };
      }, (entry, [alarm, ...before]) => {
        entry.code.href = P.address.to({ run: this.id, step: alarm.step });
        put(entry.code, `${P.format.alarm(alarm.code)}, step ${alarm.step}`);
        if (entry.message !== alarm.message) { entry.message = alarm.message; entry.words.replaceChildren(P.said(alarm.message)); }
        const named = before.slice(0, ALARMS).map((one) => one.step).join(', ');
        const more = before.length > ALARMS ? ` and ${before.length - ALARMS} more` : '';
        put(entry.before, before.length ? ` Also at ${before.length === 1 ? 'step' : 'steps'} ${named}${more}.` : '');
      });
    }

    showCharts(run) {
      const wanted = P.panels.sections(run, this.steps);
      P.keyed(this.sections, wanted, (section) => section.id, (section) => {
        const grid = el('div', { class: `charts ${section.id}` });
        const forms = el('ul', { class: 'forms', 'aria-label': 'How judges give their verdicts' });
        const title = el('h2', { id: `section-${section.id}` }, section.title);
        return { grid, forms, node: el('section', { 'aria-labelledby': `section-${section.id}` }, title, section.id === 'judging' ? forms : null, grid) };
      }, (entry, section) => {
        P.keyed(entry.grid, section.panels, (panel) => panel.id, (panel) => {
          const chart = new P.chart.Chart(panel);
          this.charts.set(panel.id, chart);
          return { chart, node: chart.node };
        }, (held, panel) => { held.panel = panel; });
        // Drawn once they are in the page, since a plot is as wide as its place.
        queueMicrotask(() => {
          for (const panel of section.panels) P.part(`the chart ${panel.title}`, () => this.charts.get(panel.id).update({ ...panel.model, alarms: panel.alarms }));
        });
      });
    }

    async showStep(changed) {
      const place = this.place();
      const here = this.steps[place];
      const chosen = P.address.read().step;
      P.chart.show(here.step, chosen === here.step);
      const apart = P.source.apart(here);
      put(this.stepText, `Step ${here.step}${here.open ? ', still running' : ''}${apart ? `, without ${count(apart)} rollouts that a restart cut off` : ''}`);
      this.previous.disabled = place === 0;
      this.next.disabled = place === this.steps.length - 1;
      this.latest.hidden = chosen === null;
      this.span.hidden = P.source.report || (!this.shown && this.many <= P.source.MAX_STEPS);
      put(this.span, this.shown ? 'The newest steps' : 'The whole run');
      P.part('the tiles', () => P.tiles.update(this.tiles, this.steps, place));
      await this.groups.refresh(here.step, changed && here.open);
    }

    close() {
      for (const chart of this.charts.values()) chart.close();
      P.chart.look.onChoose = null;
      P.chart.lookAt(null);
    }
  }

  P.Run = Run;
})();
