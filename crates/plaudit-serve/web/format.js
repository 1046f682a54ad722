// Formatting of numbers, shares, durations, costs and times.
//
// A missing value is an en dash, never a 0.
(() => {
  'use strict';
  const P = window.plaudit;
  const NONE = '–';
  const known = (value) => typeof value === 'number' && Number.isFinite(value);
  // A real minus is as wide as a plus, so that columns stand still.
  const minus = (text) => text.replace(/^-/, '−');

  // Three digits that matter: 0.0123, 1.23, 123, 12,300.
  const number = (value) => {
    if (!known(value)) return NONE;
    const size = Math.abs(value);
    // What is left of a difference that is 0, such as -3.5e-18; as the summary of the command has it.
    if (size < 1e-12) return '0';
    if (size >= 1e6) return minus((value / 1e6).toFixed(size >= 1e7 ? 1 : 2)) + ' M';
    if (size >= 1000) return minus(Math.round(value).toLocaleString('en'));
    if (size >= 100) return minus(value.toFixed(0));
    if (size >= 10) return minus(value.toFixed(1));
    if (size >= 0.1) return minus(value.toFixed(3));
    if (size >= 0.001) return minus(value.toFixed(4));
    return minus(value.toExponential(1));
  };
  // Without the zeros that only say how exact it is: for weights, whole numbers among facts, and the names on an axis.
  const trim = (text) => (text.startsWith('$') ? text : text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, ''));
  const plain = (value) => trim(number(value));
  const count = (value) => (known(value) ? Math.round(value).toLocaleString('en') : NONE);
  const share = (value) => {
    if (!known(value)) return NONE;
    const percent = value * 100;
    const size = Math.abs(percent);
    return minus(percent === 0 ? '0' : percent.toFixed(size >= 9.95 ? 0 : size >= 0.95 ? 1 : 2)) + '\u2009%';
  };
  const seconds = (value) => {
    if (!known(value)) return NONE;
    if (value === 0) return '0';
    if (value < 1e-3) return `${(value * 1e6).toFixed(0)}\u2009µs`;
    if (value < 1) return `${(value * 1e3).toFixed(value < 0.01 ? 1 : 0)}\u2009ms`;
    if (value < 120) return `${value.toFixed(value < 10 ? 2 : 1)}\u2009s`;
    if (value < 7200) return `${Math.round(value / 60)}\u2009min`;
    if (value < 172800) return `${(value / 3600).toFixed(1)}\u2009h`;
    return `${Math.round(value / 86400)}\u2009days`;
  };
  const digits = (value) => {
    if (value >= 100) return value.toFixed(0);
    if (value >= 0.1 || value === 0) return value.toFixed(2);
    if (value >= 0.01) return value.toFixed(3);
    return value >= 0.0001 ? value.toFixed(4) : value.toExponential(0);
  };
  const cost = (value) => (known(value) ? `$${digits(value)}` : NONE);
  // The difference of two shares is in points, not in percent of anything.
  const points = (value) => share(value).replace('%', 'pp');
  // A change has a sign, and one that cannot be seen in the digits shown is no change.
  const change = (value, format) => {
    if (!known(value)) return '';
    const text = format(Math.abs(value));
    if (/^[$]?[0.]*(\u2009.*)?$/.test(text)) return '±0';
    return (value < 0 ? '−' : '+') + text;
  };

  const clock = (unix) => (known(unix) ? new Date(unix * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' }) : NONE);
  const moment = (unix) => {
    if (!known(unix)) return NONE;
    const at = new Date(unix * 1000);
    const today = at.toDateString() === new Date().toDateString();
    const time = at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
    return today
      ? time
      : `${at.toLocaleDateString([], { day: 'numeric', month: 'short', year: at.getFullYear() === new Date().getFullYear() ? undefined : 'numeric' })} ${time}`;
  };
  const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many || one + 's'}`;

  const ALARMS = {
    length_hacking: 'length hacking',
    invalid: 'invalid',
    drift: 'drift',
    judge_change: 'judge changed',
    nothing_scored: 'nothing scored',
    zero_variance: 'no variance',
    position_bias: 'position bias',
  };
  const alarm = (code) => ALARMS[code] || String(code);

  P.format = { NONE, known, number, trim, plain, count, points, share, seconds, cost, change, clock, moment, plural, alarm };
})();
