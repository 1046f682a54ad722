// The application: picks the view, polls the service, and shows an error when the service does not answer.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const PACE = 2000;
  const find = (id) => document.getElementById(id);
  const main = find('main');
  const state = { view: null, key: null, timer: null, busy: false, stopped: false, lostAt: null, theme: null, kept: null };

  const viewOf = (place) => {
    if (place.run && place.group) return { key: `group ${place.run} ${place.group}`, make: () => new P.Group(place.run, place.step, place.group) };
    if (place.run) return { key: `run ${place.run}`, make: () => new P.Run(place.run) };
    return { key: 'runs', make: () => new P.Runs() };
  };

  const crumbs = () => {
    const list = state.view.crumbs();
    const key = JSON.stringify(list);
    if (find('crumbs').dataset.key === key) return;
    find('crumbs').dataset.key = key;
    find('crumbs').replaceChildren(el('ol', {}, list.map((one, place) =>
      el('li', {}, el('a', { href: one.href, 'aria-current': place === list.length - 1 ? 'page' : null }, P.said(one.text))))));
    document.title = list.length > 1 ? `${list[list.length - 1].text} · plaudit` : 'plaudit';
  };

  // What stands in the page stays there while the service is away; only the line at the top changes.
  const trouble = (text) => { put(find('trouble'), text || ''); find('trouble').hidden = !text; };
  const link = (text, kind) => { put(find('link'), text); find('link').className = `link ${kind}`; };
  const heard = (text) => put(find('heard'), text);

  // What the page itself does wrong is not the service's fault.
  const faults = () => trouble([...P.faults].map(([name, message]) => `The page has a fault and cannot draw ${name}: ${message}.`).join(' '));

  const failed = (failure) => {
    if (!(failure instanceof P.source.Trouble)) { P.part('this view', () => { throw failure; }); faults(); return; }
    if (failure.status === 401 || failure.status === 403) { state.stopped = true; link('needs a token', 'lost'); ask(failure); return; }
    if (failure.status === 404) { trouble(`The service does not know this, or does not keep it any more: ${failure.message}.`.replace(/\.+$/, '.')); return; }
    if (state.lostAt === null) state.lostAt = Date.now() / 1000;
    link('not reached', 'lost');
    heard('');
    trouble(
      failure.status === 0
        ? `The service cannot be reached since ${P.format.clock(state.lostAt)}. What is shown is from before. It is tried again every ${PACE / 1000} seconds; start it with: plaudit serve`
        : `The service does not answer since ${P.format.clock(state.lostAt)}: ${failure.message}`,
    );
  };

  const refresh = async () => {
    clearTimeout(state.timer);
    if (state.busy || state.stopped) return;
    state.busy = true;
    const view = state.view;
    try {
      await view.refresh();
      P.faults.delete('this view');
      if (state.lostAt !== null) heard('The service answers again.');
      state.lostAt = null;
      if (view === state.view) { faults(); crumbs(); link(P.source.report ? 'report' : `updated ${P.format.clock(Date.now() / 1000)}`, 'ok'); }
    } catch (failure) {
      if (view === state.view) failed(failure);
    } finally {
      state.busy = false;
      if (view !== state.view) refresh();
      else if (!P.source.report && !document.hidden && !state.stopped) state.timer = setTimeout(refresh, PACE);
    }
  };

  // A run stays in the page, hidden, while one of its groups is looked at: back is then where one was, to the pixel.
  const leave = (key) => {
    if (!state.view) return;
    const { view, key: old } = state;
    if (key.startsWith(`group ${old.slice(4)} `) && old.startsWith('run ')) {
      state.kept = { key: old, view, scroll: scrollY, focus: document.activeElement };
      view.node.hidden = true;
      return;
    }
    view.close();
    view.node.remove();
  };
  const enter = (key, make) => {
    const kept = state.kept;
    if (kept && kept.key === key) {
      Object.assign(state, { key, view: kept.view, kept: null });
      kept.view.node.hidden = false;
      scrollTo(0, kept.scroll);
      kept.focus.focus({ preventScroll: true });
      return;
    }
    if (kept && !key.startsWith(`group ${kept.key.slice(4)} `)) { kept.view.close(); kept.view.node.remove(); state.kept = null; }
    const first = state.view === null;
    Object.assign(state, { key, view: make() });
    main.append(state.view.node);
    if (!first) { scrollTo(0, 0); main.focus({ preventScroll: true }); }
  };

  const show = () => {
    const place = P.address.read();
    theme(place.theme);
    P.address.keepTheme(state.theme);
    const { key, make } = viewOf(place);
    if (key === state.key) {
      if (state.view.moved) state.view.moved().catch(failed);
      return;
    }
    leave(key);
    P.faults.clear();
    trouble(null);
    enter(key, make);
    crumbs();
    refresh();
  };

  // The token is asked for in a dialog, kept by source.js in memory, and gone with the tab.
  const ask = (failure) => {
    const dialog = find('ask');
    const field = el('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
    const form = el('form', { novalidate: true }, el('h2', { id: 'ask-title' }, 'This service wants a token'),
      el('p', {}, P.said(failure.message)), el('label', { for: 'token' }, 'Token with the scope read'), field,
      el('p', { class: 'note' }, 'It is kept in this tab’s memory only, and asked for again after a reload.'), el('button', { type: 'submit' }, 'Go on'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text) return;
      P.source.setToken(text);
      dialog.close();
      state.stopped = false;
      find('unasked').hidden = true;
      refresh();
    });
    dialog.replaceChildren(form);
    if (!dialog.open) dialog.showModal();
    field.focus();
  };
  // Who closes the dialog without a token can open it again.
  find('ask').addEventListener('close', () => { find('unasked').hidden = !state.stopped; });
  find('unasked').addEventListener('click', () => ask(new P.source.Trouble(401, 'auth', 'Without one it shows nothing.')));

  const dark = matchMedia('(prefers-color-scheme: dark)');
  const theme = (chosen) => {
    state.theme = chosen || state.theme;
    const now = state.theme || (dark.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = now;
    const other = now === 'dark' ? 'light' : 'dark';
    put(find('theme'), now === 'dark' ? '☀' : '☾');
    find('theme').setAttribute('aria-label', `Switch to ${other}`);
    find('theme').title = `Switch to ${other}`;
  };

  find('theme').addEventListener('click', () => {
    const place = P.address.read();
    P.address.replace({ ...place, theme: document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark' });
  });
  find('skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); main.scrollIntoView(); });
  dark.addEventListener('change', () => theme(null));
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
  addEventListener('hashchange', show);
  // A report opens on its run. The list with this one run is where the name at the top leads.
  if (P.source.only && !P.address.read().run) P.address.replace({ run: P.source.only });
  else show();
})();
