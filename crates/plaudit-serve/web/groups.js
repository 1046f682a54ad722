// The table of a step's sampled groups, which sorts by any of its columns.
(() => {
  'use strict';
  const P = window.plaudit;
  const { el, put } = P;
  const { number, count, clock } = P.format;
  const LIMIT = 200;
  const COLUMNS = [
    { id: 'group', name: 'Group', kind: '' },
    { id: 'size', name: 'Size', kind: 'n', text: count },
    { id: 'mean', name: 'Mean', kind: 'n', text: number },
    { id: 'std', name: 'Std', kind: 'n', text: number },
    { id: 'min', name: 'Min', kind: 'n', text: number },
    { id: 'max', name: 'Max', kind: 'n', text: number },
    { id: 'invalid', name: 'Invalid', kind: 'n', text: count },
    { id: 'floored', name: 'Floored', kind: 'n', text: count },
    { id: 'at', name: 'At', kind: 'n', text: clock },
  ];

  class Groups {
    constructor(run) {
      this.run = run;
      this.step = null;
      this.list = [];
      this.order = { by: 'at', down: false };
      this.heads = COLUMNS.map((column) => this.head(column));
      this.body = el('tbody');
      this.title = el('h2', { id: 'groups' }, 'Groups');
      this.note = el('p', { class: 'note' });
      this.table = el('table', { class: 'groups', 'aria-labelledby': 'groups' }, el('thead', {}, el('tr', {}, this.heads)), this.body);
      this.node = el('section', { 'aria-labelledby': 'groups' }, this.title, this.note,
        P.scroller(this.table, 'tall', { 'aria-label': 'The table of groups' }));
    }

    head(column) {
      const sort = () => {
        // The first click on a number shows the largest first, which is what one looks for.
        this.order = { by: column.id, down: this.order.by === column.id ? !this.order.down : column.kind === 'n' };
        this.show();
      };
      return el('th', { scope: 'col', class: column.kind }, P.button(column.name, 'sort', sort));
    }

    // Fetches anew where another step is looked at or `changed` says that this one has grown.
    async refresh(step, changed) {
      if (step === null || (step === this.step && !changed)) return;
      const { groups } = await P.source.get(P.source.path(this.run, `/groups?step=${step}&limit=${LIMIT}`));
      this.step = step;
      this.list = groups.filter((group) => group.step === step);
      this.show();
    }

    show() {
      const { by, down } = this.order;
      const rank = (group) => (P.absent(group[by]) ? -Infinity : group[by]);
      const compare = (left, right) =>
        by === 'group'
          ? String(left.group).localeCompare(String(right.group), undefined, { numeric: true })
          : rank(left) - rank(right);
      const list = [...this.list].sort((left, right) => (down ? compare(right, left) : compare(left, right)));
      COLUMNS.forEach((column, place) => {
        if (column.id === by) this.heads[place].setAttribute('aria-sort', down ? 'descending' : 'ascending');
        else this.heads[place].removeAttribute('aria-sort');
      });
      put(this.title, `Groups of step ${this.step}`);
      put(this.note, list.length ? `${P.format.plural(list.length, 'group is', 'groups are')} kept of this step.` : 'No group of this step is kept.');
      this.table.hidden = !list.length;
      P.keyed(this.body, list, (group) => `${this.step} ${group.id}`, (group) => this.row(group), (entry, group) => {
        COLUMNS.forEach((column, place) => { if (column.text) put(entry.cells[place], column.text(group[column.id])); });
        entry.node.classList.toggle('flat', group.std === 0);
        entry.cells[6].classList.toggle('bad', group.invalid > 0);
        entry.cells[7].classList.toggle('warned', group.floored > 0);
      });
    }

    row(group) {
      const link = el('a', { href: P.address.to({ run: this.run, step: group.step, group: group.id }) }, P.said(group.group || group.id));
      const cells = COLUMNS.map((column, place) => (place ? el('td', { class: column.kind }) : el('th', { scope: 'row' }, link)));
      return { cells, node: el('tr', { 'data-group': group.id }, cells) };
    }
  }

  P.Groups = Groups;
})();
