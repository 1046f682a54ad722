// The view of one group: the prompt, the responses side by side with every component's share in the total, and who beat whom.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el } = P;
  const { number, plain, count, known } = P.format;

  const written = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1));
  const prompt = (text) => {
    if (P.absent(text)) return el('p', { class: 'quiet' }, 'No prompt came with this group.');
    if (!Array.isArray(text)) return P.block(written(text), { 'aria-label': 'Prompt' });
    return el('div', {}, text.map((message) => el('div', { class: 'message' },
      el('h3', {}, P.said(message.role)),
      P.block(written(message.content), { 'aria-label': `Message of ${message.role}` }))));
  };

  // What a response thinks and what it says, in order, as the engine tells them apart: a thought that is never closed goes on to the
  // end, and what comes before a `</think>` that nothing opened is thought as well.
  const pieces = (text) => {
    const list = [];
    let from = 0;
    let depth = 0;
    const cut = (thought, tag) => {
      const piece = text.slice(from, tag.index).replace(/^\s*\n|\s+$/g, '');
      if (piece !== '') list.push({ thought, text: piece });
      from = tag.index + tag[0].length;
    };
    for (const tag of text.matchAll(/<(\/?)think>/g)) {
      const closes = tag[1] !== '';
      if (!depth) {
        cut(closes, tag);
        if (closes) for (const piece of list) piece.thought = true;
      } else if (closes && depth === 1) cut(true, tag);
      depth = Math.max(0, depth + (closes ? -1 : 1));
    }
    cut(depth > 0, { index: text.length, 0: '' });
    return list;
  };
  // Thoughts are folded: judges and most rules do not read them.
  const words = (response, place) => {
    const said = { 'aria-label': `Text of response ${place}` };
    const list = pieces(String(response));
    if (!list.some((piece) => piece.thought)) return P.block(response, said);
    const shown = list.map((piece) => (piece.thought ? folded(`thought, ${P.format.plural(piece.text.length, 'character')}`, piece.text) : P.block(piece.text, said)));
    return [shown, list.every((piece) => piece.thought) ? el('p', { class: 'quiet' }, 'It says nothing beside its thought.') : null];
  };

  // A conversation turn by turn. Thoughts, tool calls and what tools gave back are folded.
  const MAX_TURNS = 200;
  const folded = (title, text, name) => el('details', {}, el('summary', {}, title, name), P.block(text, { 'aria-label': title }));
  const turn = (message) => {
    const role = String(message.role);
    const called = (call) => folded('calls ', written(call.function.arguments), P.said(String(call.function.name).slice(0, 80)));
    return el('div', { class: `message ${role === 'assistant' ? 'own' : 'other'}`, 'data-role': role },
      el('h4', {}, P.said(role === 'tool' ? 'tool output' : role)),
      P.absent(message.reasoning_content) ? null : folded('thought', written(message.reasoning_content)),
      message.content === '' ? null : role === 'tool' ? folded('output', written(message.content)) : P.block(written(message.content), { 'aria-label': `Message of ${role}` }),
      (message.tool_calls || []).map(called));
  };
  const conversation = (turns) => el('div', { class: 'conversation' },
    turns.slice(0, MAX_TURNS).map(turn),
    turns.length > MAX_TURNS ? el('p', { class: 'note' }, `${count(turns.length - MAX_TURNS)} more turns are not shown.`) : null);

  const fact = ([name, value]) =>
    `${name.replace(/_/g, ' ')} ${typeof value === 'number' ? plain(value) : value === true ? 'yes' : value === false ? 'no' : typeof value === 'string' ? value : JSON.stringify(value)}`;
  // The tests of a program as a strip, one mark for each verdict, and what the first that failed had to say.
  const VERDICTS = { passed: '✓', wrong: '✗', error: '!', time: 't', memory: 'm', output: 'o' };
  const MAX_TESTS = 400;
  const tests = (part) => (part.info && Array.isArray(part.info.verdicts) && part.info.verdicts.length ? part.info.verdicts.map(String) : null);
  const strip = (part) => {
    const verdicts = tests(part);
    if (!verdicts) return null;
    const kind = (verdict) => (Object.hasOwn(VERDICTS, verdict) ? verdict : 'error');
    const mark = (verdict, place) => el('li', { class: kind(verdict), title: `test ${place + 1}: ${kind(verdict)}` }, VERDICTS[kind(verdict)]);
    const passed = verdicts.filter((verdict) => verdict === 'passed').length;
    return [
      el('ol', { class: 'tests', 'aria-label': `${count(passed)} of ${P.format.plural(part.info.tests, 'test')} passed` }, verdicts.slice(0, MAX_TESTS).map(mark)),
      verdicts.length > MAX_TESTS ? el('p', { class: 'note' }, `${count(verdicts.length - MAX_TESTS)} more tests are not shown.`) : null,
      P.absent(part.info.message) || part.info.message === '' ? null : folded(`test ${count(part.info.failed_test)} says`, String(part.info.message))];
  };

  // The constraints of a response as marks with their names.
  const constraints = (part) => {
    const all = part.info && Array.isArray(part.info.constraints) ? part.info.constraints : [];
    if (!all.length) return null;
    const mark = (one) => el('li', { class: one.followed ? 'passed' : 'wrong', title: `${one.id}: ${one.followed ? 'followed' : 'not followed'}` }, `${one.followed ? '✓' : '✗'} ${one.id}`);
    const followed = all.filter((one) => one.followed).length;
    return el('ol', { class: 'constraints', 'aria-label': `${count(followed)} of ${P.format.plural(all.length, 'constraint')} followed` }, all.slice(0, MAX_TESTS).map(mark));
  };

  const why = (part) => {
    if (part.reason) return P.said(`${part.reason.code}: ${part.reason.message || ''}`);
    const shown = [...(tests(part) ? ['verdicts', 'message'] : []), ...(constraints(part) ? ['constraints'] : []), 'items'];
    const facts = Object.entries(part.info || {}).filter(([name]) => !shown.includes(name)).map(fact).join(', ');
    return facts ? P.said(facts.length > 400 ? `${facts.slice(0, 400)}…` : facts) : null;
  };

  // One component: value × weight = what it adds to the total, with the reason or the facts under it.
  const share = (name, part, exchanges, reads) => {
    const adds = known(part.value) && known(part.weight) && part.outcome !== 'skipped' ? part.value * part.weight : null;
    const words = exchanges.length
      ? P.button(P.format.plural(exchanges.length, 'verdict'), 'more', () => P.words.open(`${name}: what the judge said`, exchanges))
      : null;
    const because = why(part);
    const scope = P.absent(reads) ? null : P.said(`reads: ${reads}`, { class: 'quiet reads' });
    return [
      el('tr', { class: part.outcome, 'data-component': name },
        el('th', { scope: 'row' }, P.said(name), part.outcome === 'scored' ? null : el('span', { class: `outcome ${part.outcome}` }, part.outcome)),
        el('td', { class: 'n' }, number(part.value)),
        el('td', { class: 'n' }, `× ${plain(part.weight)}`),
        el('td', { class: 'n sum' }, adds === null ? P.format.NONE : `= ${number(adds)}`)),
      because || words || scope ? el('tr', { class: 'why' }, el('td', { colspan: 4 }, strip(part), constraints(part), because, ' ', scope, ' ', words)) : null];
  };

  const card = (rollout, place, exchanges, recipe, reads) => {
    const { result } = rollout;
    // In the order of the recipe.
    const parts = Object.entries(result.components || {}).sort(([left], [right]) => recipe.indexOf(left) - recipe.indexOf(right));
    const about = (name) => exchanges.filter((exchange) => exchange.component === name && exchange.shown.includes(place));
    return el('article', { class: `card ${result.outcome}`, 'data-place': place, 'aria-label': `Response ${place}` },
      el('header', {},
        el('h3', {}, `#${place} `, P.said(result.id || '', { class: 'quiet' })),
        el('span', { class: `outcome ${result.outcome}` }, result.outcome),
        el('strong', { class: 'total' }, number(result.total))),
      result.reason
        ? el('p', { class: 'reason' }, P.said(`${result.reason.component ? `${result.reason.component}: ` : ''}${result.reason.code}. ${result.reason.message || ''}`))
        : null,
      Array.isArray(rollout.conversation) ? conversation(rollout.conversation) : words(rollout.response, place),
      result.correct === true || result.correct === false ? el('p', { class: 'note' }, result.correct ? 'The answer is right.' : 'The answer is wrong.') : null,
      el('p', { class: 'note' }, `${count(String(rollout.response).length)} characters${known(rollout.tokens) ? `, ${count(rollout.tokens)} tokens` : ''}`),
      el('table', { class: 'parts' },
        el('thead', { class: 'unseen' }, el('tr', {}, ['component', 'value', 'weight', 'adds'].map((name) => el('th', { scope: 'col' }, name)))),
        el('tbody', {}, parts.map(([name, part]) => share(name, part, about(name), Array.isArray(rollout.conversation) ? reads[name] : null)))));
  };

  class Group {
    constructor(run, step, id) {
      Object.assign(this, { run, step, id, title: `Group ${id}` });
      this.node = el('section', { class: 'page' }, el('h1', {}, 'Group'));
    }

    crumbs() {
      const step = this.group ? this.group.step : this.step;
      return [{ text: 'plaudit', href: P.address.to({}) }, { text: this.runName || this.run, href: P.address.to({ run: this.run }) },
        ...(step === null ? [] : [{ text: `step ${step}`, href: P.address.to({ run: this.run, step }) }]),
        { text: this.title, href: P.address.to({ run: this.run, step, group: this.id }) },
      ];
    }

    // A kept group never changes, so that it is fetched once.
    async refresh() {
      if (this.group) return;
      const [group, run] = await Promise.all([
        P.source.get(P.source.path(this.run, `/groups/${encodeURIComponent(this.id)}`)),
        P.source.get(P.source.path(this.run)),
      ]);
      this.group = group;
      this.runName = run.name;
      this.recipe = (run.components || []).map((one) => one.name);
      this.title = group.group || group.id;
      this.show(group);
    }

    show(group) {
      const totals = (place) => (known(group.rollouts[place].result.total) ? group.rollouts[place].result.total : -Infinity);
      const order = group.rollouts.map((_, place) => place).sort((left, right) => totals(right) - totals(left) || left - right);
      const exchanges = group.exchanges || [];
      const failed = exchanges.filter((exchange) => exchange.verdict.kind === 'failed');
      const matrices = P.matrix.matrices(exchanges, order);
      const items = P.items.tables(group.rollouts, order);
      const all = P.button(`All ${P.format.plural(exchanges.length, 'verdict')}`, 'more', () => P.words.open('All that the judges said', exchanges));
      const lost = P.button(`${P.format.plural(failed.length, 'verdict')} failed`, 'more bad', () => P.words.open('Failed verdicts', failed));
      const named = (name, text) => el('span', { class: 'fact' }, el('i', {}, name), ` ${text}`);
      const section = (title, ...content) => el('section', {}, el('h2', {}, title), content);
      this.node.replaceChildren(
        el('header', { class: 'head' }, el('h1', {}, P.said(this.title)),
          el('p', { class: 'facts' }, named('step', group.step), named('responses', group.rollouts.length), named('scored at', P.format.clock(group.at)))),
        el('div', { class: 'asked' },
          section('Prompt', prompt(group.prompt)),
          P.absent(group.reference) ? null : section('Reference', P.block(written(group.reference), { 'aria-label': 'Reference' }))),
        ...(exchanges.length
          ? [el('section', { class: 'bouts' }, el('h2', {}, matrices.length ? 'Who beat whom' : 'What the judges said'),
            el('p', { class: 'note' },
              matrices.length ? '▲ the row won, ▽ it lost, = a tie, 1:1 won and lost, ! a verdict failed. Enter or a click shows the judge’s words. ' : null,
              all, ' ', failed.length ? lost : null),
            el('div', { class: 'matrices' }, matrices))]
          : []),
        ...(items.length
          ? [section('Item by item',
            el('p', { class: 'note' }, '✓ met, ✗ not met, which is good of a fault, – does not apply, ? no verdict, ! no number. Enter or a click shows the judge’s reason.'),
            el('div', { class: 'matrices' }, items))]
          : []),
        section('Responses, the best first',
          el('div', { class: 'cards' }, order.map((place) => card(group.rollouts[place], place, exchanges, this.recipe, group.reads || {})))),
      );
    }

    close() { P.words.close(); }
  }

  P.Group = Group;
})();
