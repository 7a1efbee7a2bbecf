'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const list = document.getElementById('cases');
  const count = document.getElementById('count');
  const more = document.getElementById('more');
  const pick = {};
  for (const name of ['run', 'status', 'family', 'text']) pick[name] = document.getElementById('pick-' + name);
  const PAGE = 100;
  const SAYS = { in: 'to the candidate', out: 'from the candidate', err: 'its standard error', start: 'started', exit: 'ended', truncated: 'cut', 'model-in': 'to the model', 'model-out': 'from the model' };
  let found = [];
  let shown = 0;

  function make(tag, text, name) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  }

  function turns(rows) {
    const all = make('ol', undefined, 'turns');
    for (const [seconds, session, dir, text] of rows) {
      const turn = make('li', undefined, dir);
      turn.append(make('small', seconds.toFixed(3) + ' s, session ' + session + ', ' + (SAYS[dir] || dir)));
      turn.append(make('pre', text));
      all.append(turn);
    }
    return all;
  }

  function entry(item) {
    const [run, seed, family, repeat, status, bits, reason, error, seconds, attempts, transcript] = item;
    const node = make('details', undefined, 'case');
    const head = make('summary');
    head.append(make('strong', status, status === 'passed' ? 'good' : status === 'failed' || status === 'agent_error' ? 'bad' : 'odd'));
    head.append(' ' + family + ', seed ' + seed + (repeat ? ', repeat ' + repeat : '') + (data.runs.length > 1 ? ', ' + data.runs[run] : ''));
    if (reason) head.append(' — ' + reason);
    node.append(head);
    node.addEventListener('toggle', () => {
      if (!node.open || node.children.length > 1) return;
      const body = make('div');
      if (error) body.append(make('pre', error));
      const checks = data.checks[family] || [];
      const words = { 1: 'pass', 0: 'FAIL', '-': 'none' };
      body.append(make('p', 'Checks: ' + checks.map((name, at) => name + ' ' + (words[bits[at]] || 'none')).join(', ')));
      body.append(make('p', (seconds === null ? 'No time was taken' : seconds.toFixed(3) + ' s') + ', ' + attempts + (attempts === 1 ? ' attempt' : ' attempts'), 'soft'));
      if (transcript === null) body.append(make('p', 'Its transcript is not in this report; casewarden show has it.', 'soft'));
      else if (!data.transcripts[transcript].length) body.append(make('p', 'Its transcript is empty.', 'soft'));
      else body.append(turns(data.transcripts[transcript]));
      node.append(body);
    });
    return node;
  }

  function page() {
    const part = document.createDocumentFragment();
    for (const item of found.slice(shown, shown + PAGE)) part.append(entry(item));
    list.append(part);
    shown = Math.min(found.length, shown + PAGE);
    count.textContent = found.length + ' of ' + data.cases.length + ' cases, ' + shown + ' shown';
    more.hidden = shown >= found.length;
  }

  function filter() {
    const text = pick.text.value.toLowerCase();
    found = data.cases.filter((item) =>
      (pick.run.value === '' || item[0] === Number(pick.run.value)) &&
      (pick.status.value === '' || (pick.status.value === '*' ? item[4] !== 'passed' : item[4] === pick.status.value)) &&
      (pick.family.value === '' || item[2] === pick.family.value) &&
      (text === '' || ((item[6] || '') + ' ' + (item[7] || '') + ' ' + item[1]).toLowerCase().includes(text)));
    shown = 0;
    list.replaceChildren();
    page();
  }

  for (const node of Object.values(pick)) node.addEventListener('input', filter);
  more.addEventListener('click', () => {
    const before = list.children.length;
    page();
    const next = list.children[before];
    if (next) next.querySelector('summary').focus();
  });
  filter();
})();
