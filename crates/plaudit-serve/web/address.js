// The URL fragment as state: `#run=ID&step=3&span=whole&group=17&theme=dark`, so that links and the back button work.
(() => {
  'use strict';
  const P = window.plaudit;

  const read = () => {
    const fields = new URLSearchParams(location.hash.slice(1));
    const step = fields.get('step');
    return {
      run: fields.get('run') || null,
      step: step !== null && /^-?\d+$/.test(step) ? Number(step) : null,
      group: fields.get('group') || null,
      span: fields.get('span') === 'whole' ? 'whole' : null,
      theme: ['light', 'dark'].includes(fields.get('theme')) ? fields.get('theme') : null,
    };
  };

  // The address of a place, as links have it. Within a run, how much of it is shown stays.
  const to = (place) => {
    const fields = new URLSearchParams();
    const here = read();
    const full = { ...(place.run && place.run === here.run ? { span: here.span } : {}), ...place };
    for (const name of ['run', 'step', 'span', 'group', 'theme']) {
      if (full[name] !== null && full[name] !== undefined) fields.set(name, full[name]);
    }
    return `#${fields}`;
  };
  // The same place seen differently is no new page to go back from.
  const replace = (place) => {
    history.replaceState(null, '', to({ theme: read().theme, ...place }));
    dispatchEvent(new HashChangeEvent('hashchange'));
  };
  // Links do not name the theme; it goes along wherever one goes.
  const keepTheme = (theme) => { if (theme && !read().theme) history.replaceState(null, '', to({ ...read(), theme })); };

  P.address = { read, to, replace, keepTheme };
})();
