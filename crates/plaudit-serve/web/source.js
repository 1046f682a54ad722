// The data source of the page.
//
// Everything comes through get(path): out of the file itself where the page is a report, and from the service else. A
// token is asked for when the service wants one; it lives in this closure and nowhere else: no storage, no address.
(() => {
  'use strict';
  const P = window.plaudit;
  const MAX_STEPS = 500;
  const PATIENCE = 15000;

  const embedded = (() => {
    const tag = document.getElementById('data');
    return tag ? JSON.parse(tag.textContent) : null;
  })();
  let token = null;

  class Trouble extends Error {
    // status 0: nobody answered.
    constructor(status, code, message) { super(message); Object.assign(this, { status, code }); }
  }

  const fromFile = (path) => {
    const found = embedded[path] !== undefined ? embedded[path] : embedded[path.split('?')[0]];
    if (found === undefined) throw new Trouble(404, 'report.absent', 'This is not part of the report file.');
    return found;
  };

  const get = async (path) => {
    if (embedded) return fromFile(path);
    let answer;
    let body;
    try {
      answer = await fetch(path, {
        headers: token ? { Accept: 'application/json', Authorization: `Bearer ${token}` } : { Accept: 'application/json' },
        cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(PATIENCE),
      });
      body = await answer.json();
    } catch {
      if (answer && !answer.ok) throw new Trouble(answer.status, 'http', `The service answered ${answer.status}.`);
      throw new Trouble(0, 'unreachable', 'The service cannot be reached.');
    }
    if (answer.ok) return body;
    const error = body && body.error ? body.error : {};
    throw new Trouble(answer.status, error.code || 'http', error.message || `The service answered ${answer.status}.`);
  };

  const path = (run, rest = '') => `/v1/runs/${encodeURIComponent(run)}${rest}`;

  // The steps of each run that was looked at, in order. Asked for again is only what can have changed: the steps from the
  // first that is still open, and those after the last. Of a very long run these are the newest ones, or some of all.
  const held = new Map();
  const refreshSteps = async (run, identity, whole) => {
    const key = `${whole ? 'whole' : 'newest'} ${run}`;
    let entry = held.get(key);
    if (!entry || entry.identity !== identity || entry.list.length > 2 * MAX_STEPS && !embedded) held.set(key, entry = { list: [], version: 0, identity });
    if (embedded && entry.version) return entry;
    const open = entry.list.find((step) => step.open);
    const last = entry.list[entry.list.length - 1];
    const after = open ? open.step - 1 : last ? last.step : -1;
    const { steps } = await get(path(run, `/steps?limit=${MAX_STEPS}${after >= 0 ? `&after=${after}` : whole ? '&whole=1' : ''}`));
    if (merge(entry.list, larger(steps)) || !entry.version) entry.version += 1;
    return entry;
  };

  // The newest step is open until the next one comes; it counts as complete once it has as many rollouts as the one before.
  const isComplete = (list, place) => place === 0 || !list[place].open || list[place].statistics.rollouts >= list[place - 1].statistics.rollouts;

  // A step that was cut by a restart is told of twice; the larger part stands for it, and says how many rollouts the others have.
  const both = (one, other) => {
    const [more, less] = one.statistics.rollouts >= other.statistics.rollouts ? [one, other] : [other, one];
    if (one.from === other.from) return more;
    const { [more.from]: _, ...apart } = { ...one.apart, ...other.apart, [less.from]: less.statistics.rollouts };
    return { ...more, apart };
  };
  const apart = (step) => Object.values(step.apart || {}).reduce((sum, many) => sum + many, 0);
  const larger = (steps) => {
    const by = new Map();
    for (const step of steps) by.set(step.step, by.has(step.step) ? both(by.get(step.step), step) : step);
    return [...by.values()].sort((left, right) => left.step - right.step);
  };

  // Puts what came into the list in the order of steps, and says whether that changed anything.
  const merge = (list, steps) => {
    let changed = false;
    for (const step of steps) {
      let at = list.length;
      while (at > 0 && list[at - 1].step >= step.step) at -= 1;
      const old = list[at];
      if (old && old.step === step.step) {
        const now = old.from === step.from ? { ...step, apart: step.apart || old.apart } : both(old, step);
        if (old.open === now.open && old.to === now.to && old.statistics.rollouts === now.statistics.rollouts && apart(old) === apart(now)) continue;
        list[at] = now;
      } else list.splice(at, 0, step);
      changed = true;
    }
    return changed;
  };

  P.source = {
    get, path, refreshSteps, isComplete, apart, Trouble, MAX_STEPS,
    report: embedded !== null,
    // The run that a report is of.
    only: embedded ? embedded['/v1/runs'].runs[0].id : null,
    setToken: (text) => { token = text || null; },
    hasToken: () => token !== null,
  };
})();
