// A chart: a title, a legend with the values at the selected step, the plot, and a table with the same numbers. All charts
// share one step, moved by pointer or arrow keys and selected by click or Enter.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, svg, put } = P;

  // The step that all charts look at: `over` while a pointer or a key is on one, else `shown`, the one the page shows. A
  // line across marks it where a person has `chosen` it.
  const look = { over: null, shown: null, chosen: false, charts: new Set(), onChoose: null };
  const lookAt = (step) => {
    if (look.over === step) return;
    look.over = step;
    for (const chart of look.charts) chart.mark();
  };
  const choose = (step) => { if (look.onChoose) look.onChoose(step); };
  const show = (step, chosen) => {
    look.shown = step;
    look.chosen = chosen;
    for (const chart of look.charts) chart.mark();
  };

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) P.part(`the chart ${target.chart.title}`, () => target.chart.resized(target));
  });

  class Chart {
    constructor({ id, title, note, tall }) {
      this.height = tall || 132;
      this.title = title;
      this.legend = el('p', { class: 'legend' });
      this.at = el('span', { class: 'at' });
      this.plot = el('div', { class: 'plot', tabindex: 0, role: 'slider', 'aria-orientation': 'horizontal', 'aria-label': `${title}, by step` });
      this.plot.chart = this;
      this.legend.chart = this;
      this.body = el('tbody');
      this.head = el('tr');
      this.table = el(
        'details',
        { class: 'numbers', ontoggle: () => this.fillTable() },
        el('summary', { 'aria-label': `${title}: the numbers as a table` }, 'Table'),
        el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `${title}: table` }, el('table', {}, el('thead', {}, this.head), this.body)));
      this.node = el('figure', { class: 'chart', id: `chart-${id}` },
        el('figcaption', {}, el('h3', {}, P.visible(title)), note ? el('p', { class: 'note' }, note) : null, this.at), this.legend, this.plot, this.table);
      this.listen();
      look.charts.add(this);
      sizes.observe(this.plot);
      sizes.observe(this.legend);
    }

    listen() {
      const stepAt = (event) => {
        const box = this.plot.getBoundingClientRect();
        return this.nearest(this.frame.x.back(event.clientX - box.left));
      };
      const steps = () => this.model && this.frame && this.model.kind !== 'bars' && this.model.steps.length;
      this.plot.addEventListener('pointermove', (event) => { if (steps()) lookAt(stepAt(event)); });
      this.plot.addEventListener('pointerleave', () => lookAt(null));
      this.plot.addEventListener('click', (event) => { if (steps()) choose(stepAt(event)); });
      this.plot.addEventListener('blur', () => lookAt(null));
      this.plot.addEventListener('keydown', (event) => this.key(event));
      this.table.addEventListener('keydown', (event) => { if (event.key === 'Escape') { this.table.open = false; this.table.firstChild.focus(); } });
    }

    key(event) {
      if (!this.model || !this.model.steps.length || event.ctrlKey || event.metaKey || event.altKey) return;
      const list = this.model.steps.map((step) => step.step);
      const place = list.indexOf(this.current());
      const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity, PageUp: 10, PageDown: -10 };
      if (event.key in moves) lookAt(list[Math.min(list.length - 1, Math.max(0, place + moves[event.key]))]);
      else if (event.key === 'Enter' || event.key === ' ') choose(this.current());
      else if (event.key === 'Escape') { lookAt(null); choose(null); } else return;
      event.preventDefault();
      event.stopPropagation();
    }

    nearest(value) {
      let best = null;
      for (const { step } of this.model.steps) if (best === null || Math.abs(step - value) < Math.abs(best - value)) best = step;
      return best;
    }

    current() {
      const has = (step) => step !== null && this.model.steps.some((one) => one.step === step);
      if (has(look.over)) return look.over;
      if (has(look.shown)) return look.shown;
      return this.model.steps.length ? this.model.steps[this.model.steps.length - 1].step : null;
    }

    update(model) {
      this.model = model;
      this.draw();
      this.fillTable();
    }

    // A plot that got wider is drawn anew. A legend keeps the height it once needed, so that no plot moves under the pointer.
    resized(target) {
      if (target === this.plot) {
        if (!this.model || this.plot.clientWidth === this.drawnWidth) return;
        this.legend.style.minHeight = '';
        this.draw();
      } else if (this.legend.offsetHeight) this.legend.style.minHeight = `${this.legend.offsetHeight}px`;
    }

    draw() {
      const width = this.plot.clientWidth;
      this.drawnWidth = width;
      if (width < 40) return;
      const model = this.model;
      const height = this.height;
      this.shown = this.current();
      const spec = model.kind === 'bars' ? this.barsSpec(model) : this.stepsSpec(model, width);
      const labels = spec.ys.map(spec.formatY);
      const left = Math.max(28, Math.max(...labels.map((label) => label.length)) * 6.1 + 10);
      const frame = { left, right: width - 8, top: 6, bottom: height - 20 };
      frame.x = P.scale.linear(spec.domainX, [frame.left + spec.inset, frame.right - spec.inset]);
      frame.y = P.scale.linear(spec.domainY, [frame.bottom, frame.top]);
      const picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true', focusable: 'false' });
      picture.append(P.draw.axes(frame, spec));
      if (model.ref !== undefined) picture.append(svg('line', { class: 'ref', x1: left, x2: frame.right, y1: frame.y(model.ref), y2: frame.y(model.ref) }));
      for (const step of model.kind === 'bars' ? [] : model.steps) {
        if (step.alarms.some((alarm) => model.alarms && model.alarms(alarm.code)))
          picture.append(svg('path', { class: 'alarm-mark', d: `M${(frame.x(step.step) - 4).toFixed(1)} ${frame.top}h8l-4 6z` }));
      }
      picture.append(...spec.paint(frame));
      this.cross = svg('line', { class: 'cross', y1: frame.top, y2: frame.bottom });
      picture.append(this.cross);
      this.plot.replaceChildren(picture);
      this.frame = frame;
      this.mark();
    }

    stepsSpec(model, width) {
      const steps = model.steps;
      let domainX = steps.length ? [steps[0].step, steps[steps.length - 1].step] : [0, 1];
      // Beside a very large number, a half is not seen.
      const room = Math.max(0.5, domainX[1] * 1e-9);
      if (domainX[0] === domainX[1]) domainX = [domainX[0] - room, domainX[1] + room];
      const paint = { heat: P.draw.heat, stacked: P.draw.stacked }[model.kind] || P.draw.lines;
      const inset = model.kind === 'stacked' || model.kind === 'heat' ? Math.min(14, width / 2 / (steps.length + 1)) + 1 : 4;
      return {
        domainX,
        domainY: model.domain,
        inset,
        formatX: P.format.count,
        formatY: (value) => P.format.trim(model.format(value)),
        xs: P.scale.ticks(domainX[0], domainX[1], Math.max(2, width / 90), true).filter(Number.isInteger),
        ys: P.scale.ticks(model.domain[0], model.domain[1], this.height > 180 ? 5 : 3), paint: (frame) => paint(frame, model) };
    }

    barsSpec(model) {
      const histogram = model.histogramOf(this.shown);
      const domainX = histogram ? P.scale.range([[histogram.from, histogram.to]]) : [0, 1];
      const top = histogram ? Math.max(...histogram.counts) : 1;
      return {
        domainX,
        domainY: [0, top * 1.05],
        inset: 2,
        formatX: (value) => P.format.trim(model.format(value)),
        formatY: P.format.count,
        xs: P.scale.ticks(domainX[0], domainX[1], 5),
        ys: P.scale.ticks(0, top, 4, true),
        paint: (frame) => (histogram ? P.draw.bars(frame, histogram) : []),
      };
    }

    // Shows the step looked at: the line across, the values in the legend, and the same in words for a screen reader.
    mark() {
      if (!this.model || !this.frame) return;
      const step = this.current();
      if (this.model.kind === 'bars' && step !== this.shown) { this.draw(); this.fillTable(); return; }
      const place = this.model.steps.findIndex((one) => one.step === step);
      const pinned = look.over !== null || look.chosen;
      this.cross.classList.toggle('on', pinned && this.model.kind !== 'bars');
      if (place >= 0 && this.model.kind !== 'bars') for (const side of ['x1', 'x2']) this.cross.setAttribute(side, this.frame.x(step));
      const values = place < 0 ? [] : this.model.read(place);
      const open = place >= 0 && this.model.steps[place].open;
      put(this.at, place < 0 || look.over === null ? '' : `step ${step}${open ? ', still running' : ''}`);
      P.keyed(this.legend, values, (one) => one.name, (one) => this.entry(one), (entry, one) => put(entry.value, one.text));
      if (place < 0) return;
      this.plot.setAttribute('aria-valuemin', this.model.steps[0].step);
      this.plot.setAttribute('aria-valuemax', this.model.steps[this.model.steps.length - 1].step);
      this.plot.setAttribute('aria-valuenow', step);
      this.plot.setAttribute('aria-valuetext', `step ${step}${open ? ', still running' : ''}: ${values.map((one) => `${one.name} ${one.text}`).join(', ')}`);
    }

    entry(one) {
      const value = el('b', {});
      const swatch = one.tint ? el('i', { class: `swatch ${one.tint}${one.band ? ' band' : ''}` }) : null;
      return { node: el('span', { class: 'key' }, swatch, P.said(one.name), ' ', value), value };
    }

    // A closed table holds no rows: the browser tells of its opening a moment after it is seen, and rows of before would be seen until then.
    fillTable() {
      if (!this.model) return;
      const { head, rows } = this.table.open ? this.model.table(this.model.kind === 'bars' ? this.current() : null) : { head: [], rows: [] };
      this.head.replaceChildren(...head.map((name) => el('th', { scope: 'col' }, P.visible(name))));
      P.keyed(this.body, rows, (row) => row.join('\u0000'), (row) => ({
        node: el('tr', {}, row.map((cell, index) => (index ? el('td', {}, cell) : el('th', { scope: 'row' }, cell)))),
      }));
    }

    close() {
      look.charts.delete(this);
      sizes.unobserve(this.plot);
      sizes.unobserve(this.legend);
    }
  }

  P.chart = { Chart, lookAt, show, look };
})();
