// Axis scales: maps values to positions, and picks round values for the ticks.
(() => {
  'use strict';
  const P = window.plaudit;

  const { known } = P.format;

  // Values that differ by no more than this share of their size differ by how they were rounded.
  const ROUNDING = 1e-9;
  // What lies beyond is drawn at the edge, and what is nearer to 0 is drawn at 0: there is no room left to reckon with it.
  const HUGE = 1e300;
  const TINY = 1e-300;
  const MAX_TICKS = 100;

  // Round values, about as many as asked for, that lie within the range. Where there is none to speak of, its beginning.
  const ticks = (from, to, wanted, whole) => {
    const rough = (to - from) / Math.max(1, wanted);
    if (!(rough > TINY && rough < HUGE)) return known(from) ? [from] : [];
    const power = 10 ** Math.floor(Math.log10(rough));
    let pace = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
    if (whole) pace = Math.max(1, Math.round(pace));
    const first = Math.ceil(from / pace - 1e-9);
    const many = Math.floor(to / pace + 1e-9) - first + 1;
    const at = (place) => (first + place) * pace;
    return Array.from({ length: Math.min(Math.max(0, many), MAX_TICKS) }, (_, place) => (whole ? Math.round(at(place)) : Number(at(place).toPrecision(12))));
  };

  // The range of all the values, with what must be on the plot, and never of a width that cannot be seen.
  const range = (lists, include = []) => {
    let low = Infinity;
    let high = -Infinity;
    for (const list of [...lists, include]) {
      for (const value of list) {
        if (!known(value)) continue;
        const drawn = Math.min(HUGE, Math.max(-HUGE, value));
        if (drawn < low) low = drawn;
        if (drawn > high) high = drawn;
      }
    }
    if (low > high) return [0, 1];
    const size = Math.max(Math.abs(low), Math.abs(high));
    if (high - low > Math.max(size * ROUNDING, TINY)) return [low, high];
    const room = size > TINY ? size * 0.1 : 0.5;
    return [low - room, high + room];
  };
  // With some room on both sides, but not beyond what the values can be, unless they are.
  const padded = ([low, high], bounds = [-Infinity, Infinity]) => {
    const room = (high - low) * 0.06;
    const [from, to] = [Math.max(low - room, bounds[0]), Math.min(high + room, bounds[1])];
    return from < to ? [from, to] : [low - room, high + room];
  };
  // Shares begin at 0, and end at 100 % at most.
  const shares = (lists, include = []) => {
    const top = Math.max(0, ...[...lists, include].flatMap((list) => list.filter(known)));
    return [0, Math.min(1, top * 1.06) || 1];
  };
  const linear = (domain, pixels) => {
    const pace = (pixels[1] - pixels[0]) / (domain[1] - domain[0]);
    const at = (value) => pixels[0] + (value - domain[0]) * pace;
    at.back = (pixel) => domain[0] + (pixel - pixels[0]) / pace;
    at.domain = domain;
    return at;
  };

  // The stretches without a gap: lists of places where every one of the lists has a value.
  const stretches = (lists) => {
    const found = [];
    let open = null;
    for (let place = 0; place < lists[0].length; place += 1) {
      if (lists.every((list) => known(list[place]))) {
        if (!open) found.push(open = []);
        open.push(place);
      } else open = null;
    }
    return found;
  };
  const fixed = (pixel) => pixel.toFixed(1);
  const line = (places, x, y) => places.map((place, index) => `${index ? 'L' : 'M'}${fixed(x(place))} ${fixed(y(place))}`).join('');
  const area = (places, x, low, high) => {
    if (places.length === 1) {
      const at = x(places[0]);
      return `M${fixed(at - 1.5)} ${fixed(high(places[0]))}H${fixed(at + 1.5)}V${fixed(low(places[0]))}H${fixed(at - 1.5)}Z`;
    }
    return line(places, x, high) + line([...places].reverse(), x, low).replace('M', 'L') + 'Z';
  };

  // The counts of one histogram spread over bins of another width, each in proportion to what overlaps.
  const rebin = (histogram, from, to, bins) => {
    const counts = new Array(bins).fill(0);
    const width = (to - from) / bins;
    const own = histogram.counts.length;
    const place = (value) => Math.min(bins - 1, Math.max(0, Math.floor((value - from) / width)));
    histogram.counts.forEach((count, index) => {
      if (!count) return;
      const left = histogram.from + (histogram.to - histogram.from) * (index / own);
      const right = histogram.from + (histogram.to - histogram.from) * ((index + 1) / own);
      // What a bin of the source holds may lie anywhere in it; but 0 and 1 alone fill the outermost bins, and stay there.
      if (right - left <= width) { counts[place(index === own - 1 ? right : left)] += count; return; }
      for (let bin = place(left); bin <= place(right); bin += 1) {
        const overlap = Math.min(right, from + (bin + 1) * width) - Math.max(left, from + bin * width);
        if (overlap > 0) counts[bin] += count * (overlap / (right - left));
      }
    });
    return counts;
  };

  P.scale = { ticks, range, padded, shares, linear, stretches, line, area, rebin };
})();
