// SVG drawing inside a plot: bands, lines, stacked shares, heat map, bars. Each takes a frame {x, y, left, right, top,
// bottom, gap} and returns SVG nodes; their style is in style.css.
(() => {
  'use strict';
  const P = window.plaudit;
  const { svg } = P;
  const { stretches, line, area } = P.scale;

  const axes = (frame, { formatY, formatX, xs, ys }) => {
    const group = svg('g', { class: 'axes', 'aria-hidden': 'true' });
    for (const value of ys) {
      const at = frame.y(value);
      group.append(svg('line', { class: 'grid', x1: frame.left, x2: frame.right, y1: at, y2: at }));
      group.append(svg('text', { class: 'tick', x: frame.left - 6, y: at, dy: '0.32em', 'text-anchor': 'end' }, formatY(value)));
    }
    for (const value of xs) {
      group.append(svg('text', { class: 'tick', x: frame.x(value), y: frame.bottom + 14, 'text-anchor': 'middle' }, formatX(value)));
    }
    return group;
  };

  // A line per series, its interval behind it, its lonely points as dots, those of few values hollow.
  const lines = (frame, model) => {
    const x = (place) => frame.x(model.steps[place].step);
    const nodes = [];
    const band = ({ low, high, tint }, kind) => {
      for (const places of stretches([low, high])) {
        nodes.push(svg('path', { class: `${kind} ${tint}`, d: area(places, x, (place) => frame.y(low[place]), (place) => frame.y(high[place])) }));
      }
    };
    for (const one of model.bands || []) band(one, 'band');
    for (const series of model.series) if (series.low) band(series, 'band interval');
    for (const series of model.series) {
      const y = (place) => frame.y(series.values[place]);
      for (const places of stretches([series.values])) {
        if (places.length > 1) nodes.push(svg('path', { class: `line ${series.tint}${series.dashed ? ' dashed' : ''}`, d: line(places, x, y) }));
        else nodes.push(svg('circle', { class: `dot ${series.tint}`, cx: x(places[0]), cy: y(places[0]), r: 2.5 }));
        for (const place of places) if (series.few && series.few[place]) nodes.push(svg('circle', { class: `few ${series.tint}`, cx: x(place), cy: y(place), r: 2.5 }));
      }
      const end = model.steps.length - 1;
      if (end >= 0 && model.steps[end].open && P.format.known(series.values[end])) {
        nodes.push(svg('circle', { class: `open ${series.tint}`, cx: x(end), cy: y(end), r: 3.5 }));
      }
    }
    return nodes;
  };

  // How wide a column for one step may be.
  const columnWidth = (frame, steps) => {
    if (steps.length < 2) return Math.min(24, frame.right - frame.left);
    let pace = Infinity;
    for (let place = 1; place < steps.length; place += 1) pace = Math.min(pace, steps[place].step - steps[place - 1].step);
    return Math.max(1, frame.x(pace) - frame.x(0));
  };

  const stacked = (frame, model) => {
    const width = Math.min(28, columnWidth(frame, model.steps));
    const bar = Math.max(1, width - (width > 4 ? 1.5 : 0));
    const base = model.steps.map(() => 0);
    return model.series.map((series) => {
      let path = '';
      series.values.forEach((value, place) => {
        if (!value) return;
        const at = frame.x(model.steps[place].step) - bar / 2;
        const low = frame.y(base[place]);
        base[place] += value;
        path += `M${at.toFixed(1)} ${low.toFixed(1)}h${bar.toFixed(1)}V${frame.y(base[place]).toFixed(1)}h${(-bar).toFixed(1)}Z`;
      });
      return svg('path', { class: `fill ${series.tint}`, d: path });
    });
  };

  // A column per step, or per few steps where there are many; the darker, the larger the share of that column.
  const COLUMNS = 120;
  const heat = (frame, model) => {
    const bins = model.bins;
    const together = Math.ceil(model.steps.length / COLUMNS);
    const [from, to] = model.domain;
    const nodes = [];
    const width = columnWidth(frame, model.steps);
    for (let start = 0; start < model.steps.length; start += together) {
      const part = model.steps.slice(start, start + together);
      const sum = new Array(bins).fill(0);
      for (let place = start; place < start + part.length; place += 1) {
        if (model.counts[place]) model.counts[place].forEach((count, bin) => { sum[bin] += count; });
      }
      const all = sum.reduce((left, right) => left + right, 0);
      if (!all) continue;
      const left = Math.max(frame.left, frame.x(part[0].step) - width / 2);
      const right = Math.min(frame.right, frame.x(part[part.length - 1].step) + width / 2);
      sum.forEach((count, bin) => {
        if (!count) return;
        const low = frame.y(from + ((to - from) * bin) / bins);
        const high = frame.y(from + ((to - from) * (bin + 1)) / bins);
        nodes.push(svg('rect', {
          class: 'heat',
          x: left.toFixed(1),
          y: high.toFixed(1),
          width: Math.max(1, right - left).toFixed(1),
          height: (low - high).toFixed(1),
          'fill-opacity': Math.min(1, 0.06 + 0.94 * Math.sqrt(count / all / 0.4)).toFixed(3),
        }));
      });
    }
    return nodes;
  };

  const bars = (frame, histogram) => {
    const wide = (histogram.to - histogram.from) || 1;
    const n = histogram.counts.length;
    return histogram.counts.map((count, bin) => {
      const left = n === 1 ? (frame.left + frame.right) / 2 - 12 : frame.x(histogram.from + (wide * bin) / n);
      const right = n === 1 ? left + 24 : frame.x(histogram.from + (wide * (bin + 1)) / n);
      const top = frame.y(count);
      return svg('rect', {
        class: 'fill t0',
        x: (left + 0.5).toFixed(1),
        width: Math.max(1, right - left - 1).toFixed(1),
        y: top.toFixed(1),
        height: Math.max(0, frame.bottom - top).toFixed(1),
      });
    });
  };

  // A small line without axes, for a row or a tile. It says nothing that the number beside it does not say.
  const spark = (values, width, height, few = []) => {
    const picture = svg('svg', { class: 'spark', width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    const known = values.filter(P.format.known);
    if (known.length < 2) return picture;
    const x = P.scale.linear([0, values.length - 1], [2, width - 3]);
    const y = P.scale.linear(P.scale.range([values]), [height - 3, 3]);
    for (const places of stretches([values])) {
      if (places.length > 1) picture.append(svg('path', { class: 'line t0', d: line(places, x, (place) => y(values[place])) }));
    }
    const end = values.length - 1;
    if (P.format.known(values[end])) picture.append(svg('circle', { class: 'dot t0', cx: x(end), cy: y(values[end]), r: 2 }));
    values.forEach((value, place) => { if (few[place] && P.format.known(value)) picture.append(svg('circle', { class: 'few t0', cx: x(place), cy: y(value), r: 2 })); });
    return picture;
  };

  P.draw = { axes, lines, stacked, heat, bars, spark };
})();
