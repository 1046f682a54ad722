// Tests of the dashboard in a browser: runs, charts, groups and verdicts, live, and hostile texts shown as texts.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, numbers, open, wide } from './browser.mjs';
import { HOSTILE } from './hostile.mjs';
import { Service, group } from './service.mjs';

let service;
let browser;
let run;
const STEPS = 6;
const VALIDATED = 2;
const number = (text) => Number(text.replace('−', '-').replace(/[,\u2009]/g, '').replace(/%$/, ''));

before(async () => {
  service = await Service.start();
  browser = await launch();
  for (let step = 0; step < STEPS; step += 1) {
    run = (await service.score('training', step, [...group(`a${step}`, 4), ...group(`b${step}`, 4, () => 1)], { validate: step === VALIDATED })).run;
  }
  const hostile = HOSTILE.map((response, place) => ({ id: `h-${place}`, group: '<b>hostile</b>', prompt: HOSTILE[0], response, reference: HOSTILE[1] }));
  await service.score('training', STEPS, [...hostile, ...group('many', 64)]);
});
after(async () => {
  if (browser) await browser.close();
  if (service) await service.close();
});

// The steps that the service tells of, to compare the page with.
const steps = async () => (await service.call(`/v1/runs/${run}/steps`)).steps;

test('the list of runs says what there is, and leads to a run', async () => {
  const page = await open(browser, `${service.url}/`);
  const row = page.locator(`[data-run="${run}"]`);
  await row.waitFor();
  assert.match(await row.textContent(), /training.*pairs/s);
  assert.equal(await row.locator('td').nth(2).textContent(), String(STEPS + 1));
  await row.locator('svg.spark path').waitFor({ state: 'attached' });
  await row.getByRole('link').click();
  await page.locator('#chart-total').waitFor();
  assert.match(page.url(), new RegExp(`#run=${run}`));
  await page.goBack();
  await row.waitFor();
  assert.deepEqual(page.faults, []);
});

test('the charts say the numbers of the service', async () => {
  const page = await open(browser, `${service.url}/#run=${run}`);
  const said = await numbers(page, 'total');
  const known = await steps();
  assert.equal(said.length, known.length);
  known.forEach((step, place) => {
    assert.equal(said[place].step.split(' ')[0], String(step.step));
    assert.ok(Math.abs(number(said[place].mean) - step.statistics.total.mean) < 1e-3, `step ${step.step}`);
    assert.ok(Math.abs(number(said[place].median) - step.statistics.total.quantiles.p50) < 1e-3, `step ${step.step}`);
  });
  const variance = await numbers(page, 'zero-variance');
  known.forEach((step, place) => assert.ok(Math.abs(number(variance[place].share) / 100 - step.statistics.groups.zero_variance_share) < 0.01));
  const first = await numbers(page, 'position');
  known.forEach((step, place) => assert.match(first[place].quality.replace(/,/g, ''), new RegExp(`of ${step.statistics.components.quality.judging.first.of}\\)$`)));
  assert.equal(await page.locator('#chart-latency-main').count(), 1);
  // Only one step was compared with the reference: the others are gaps, not zeros.
  const wins = await numbers(page, 'win-rate');
  known.forEach((step, place) => assert.equal(wins[place].quality === '–', step.step !== VALIDATED));
  assert.equal(await page.locator('[data-tile="mean"] .value').count(), 1);
  assert.deepEqual(page.faults, []);
});

test('a run without a judge has no judges on its page', async () => {
  const { run: plain } = await service.score('rules', 0, group('r', 8), { recipe: 'quickstart' });
  const page = await open(browser, `${service.url}/#run=${plain}`);
  await page.locator('#chart-total').waitFor();
  assert.equal(await page.locator('#section-judging').count(), 0);
  assert.equal(await page.locator('[data-tile="p99"], [data-tile="cost"], [data-tile="first"]').count(), 0);
  assert.deepEqual(page.faults, []);
});

test('wrong answers and unreadable ones are two curves', async () => {
  const said = ['\\boxed{4}', '\\boxed{5}', '\\boxed{4 2 7}', 'no idea'];
  const rollouts = said.map((response, place) => ({ id: `m-${place}`, group: 'm', prompt: 'p', reference: '4', response }));
  await service.score('verified', 0, rollouts, { recipe: 'math' });
  const { run: verified } = await service.score('verified', 1, rollouts.slice(0, 2), { recipe: 'math' });
  const page = await open(browser, `${service.url}/#run=${verified}`);
  const shown = await numbers(page, 'why-accuracy');
  const shares = shown.map((row) => ['equal', 'different', 'not parsed', 'no answer'].map((name) => Math.round(number(row[name]))));
  assert.deepEqual(shares, [[25, 25, 25, 25], [50, 50, 0, 0]]);
  assert.deepEqual(page.faults, []);
});

test('how often each constraint is followed is a curve, and a mark at the response', async () => {
  const asked = { instruction_id_list: ['punctuation:no_comma', 'keywords:existence'], kwargs: [{}, { keywords: ['lantern'] }] };
  const said = ['A lantern in the dark', 'A lantern, in the dark', 'Only, the dark', 'Only the dark'];
  const rollouts = said.map((response, place) => ({ id: `i-${place}`, group: 'i', prompt: 'p', response, extra: asked }));
  await service.score('follows', 0, rollouts, { recipe: 'instructions' });
  const { run: follows } = await service.score('follows', 1, rollouts.slice(0, 2), { recipe: 'instructions' });
  const page = await open(browser, `${service.url}/#run=${follows}`);
  const shown = await numbers(page, 'constraints-follows');
  const shares = shown.map((row) => asked.instruction_id_list.map((id) => Math.round(number(row[id]))));
  assert.deepEqual(shares, [[50, 50], [50, 100]]);
  await page.locator('.groups a').first().click();
  const marks = page.locator('[data-component="follows"] + .why .constraints').first();
  await marks.waitFor();
  assert.deepEqual(await marks.locator('li').allTextContents(), ['✓ punctuation:no_comma', '✓ keywords:existence']);
  assert.deepEqual(page.faults, []);
});

test('of a long run the newest steps are shown, or some of all', async () => {
  const MANY = 1030;
  let long;
  for (let step = 0; step < MANY; step += 1) {
    long = (await service.call('/v1/score', { recipe: 'quickstart', run: 'long', step, rollouts: [{ id: `${step}`, response: 'word '.repeat(1 + (step % 7)) }] })).run;
  }
  const page = await open(browser, `${service.url}/#run=${long}`);
  await page.getByText(`1,030, the last 500 shown`).waitFor();
  assert.equal((await numbers(page, 'total'))[0].step, String(MANY - 500));
  await page.getByRole('button', { name: 'The whole run' }).click();
  await page.getByText(/1,030, 34\d of them shown/).waitFor();
  const whole = (await numbers(page, 'total')).map((row) => parseInt(row.step, 10));
  assert.ok(whole[0] < 3 && whole[1] - whole[0] === 3 && whole.includes(MANY - 1), `${whole.slice(0, 3)} … ${whole.slice(-3)}`);
  assert.match(page.url(), /span=whole/);
  // A step of long ago can be chosen and its groups opened, and back is the whole run again.
  await page.locator('#chart-total .plot').press('Home');
  await page.locator('#chart-total .plot').press('Enter');
  await page.getByText(`Step ${whole[0]}`, { exact: true }).waitFor();
  await page.locator('.groups a').first().click();
  await page.goBack();
  await page.getByText(/34\d of them shown/).waitFor();
  await page.getByRole('button', { name: 'The newest steps' }).click();
  await page.getByText('the last 500 shown').waitFor();
  assert.deepEqual(page.faults, []);
});

test('a new step comes by itself, and neither focus nor scroll is lost', async () => {
  const { run: live } = await service.score('live', 7, group('l0', 4));
  const page = await open(browser, `${service.url}/#run=${live}`);
  const plot = page.locator('#chart-total .plot');
  await plot.focus();
  await page.evaluate(() => scrollTo(0, 260));
  const top = () => plot.evaluate((one) => one.getBoundingClientRect().top);
  const before = await top();
  const node = await page.locator('#chart-total').elementHandle();
  await service.score('live', 8, group('l1', 4));
  await page.waitForFunction(() => document.querySelector('#chart-total .plot').getAttribute('aria-valuemax') === '8');
  assert.ok(Math.abs((await top()) - before) <= 2, 'the chart stays where it was on the screen');
  assert.ok(await plot.evaluate((one) => document.activeElement === one));
  assert.ok(await node.evaluate((one) => one.isConnected), 'the figure was not made anew');
  const asked = page.asked.filter((url) => url.includes('/steps?'));
  assert.ok(asked.slice(1).every((url) => url.includes('after=6') || url.includes('after=7')), 'only what is new is asked for');
  assert.deepEqual(page.faults, []);
});

test('a group shows who beat whom, and the judge’s words', async () => {
  const page = await open(browser, `${service.url}/#run=${run}&step=0`);
  await page.getByRole('link', { name: 'a0', exact: true }).click();
  const matrix = page.getByRole('grid', { name: /quality/ });
  const cell = (row, column) => matrix.locator(`[data-row="#${row}"][data-column="#${column}"]`);
  await matrix.waitFor();
  for (const [better, worse] of [[3, 0], [3, 2], [2, 1], [1, 0]]) {
    assert.match(await cell(better, worse).getAttribute('aria-label'), /won \d/);
    assert.match(await cell(worse, better).getAttribute('aria-label'), /lost \d/);
    assert.equal(await cell(better, worse).textContent(), '▲');
  }
  assert.deepEqual(await page.locator('.card').evaluateAll((cards) => cards.map((card) => card.dataset.place)), ['3', '2', '1', '0']);
  const card = page.locator('.card[data-place="3"]');
  const parts = await card.locator('tr[data-component] .n').allTextContents();
  const [value, weight, adds, format, less, little] = parts.map((text) => number(text.replace(/^[×=] /, '')));
  assert.ok(Math.abs(value * weight - adds) < 2e-3 && Math.abs(format * less - little) < 2e-3);
  assert.ok(Math.abs(adds + little - number(await card.locator('.total').textContent())) < 3e-3);
  await cell(3, 0).click();
  const sheet = page.locator('#words');
  assert.match(await sheet.textContent(), /#3 beats #0/);
  assert.ok((await sheet.locator('.said').count()) + (await sheet.locator('.quiet').count()) > 0);
  await page.keyboard.press('Escape');
  assert.equal(await sheet.evaluate((one) => one.open), false);
  assert.deepEqual(page.faults, []);
});

test('the reference has its own row where it took part', async () => {
  const page = await open(browser, `${service.url}/#run=${run}&step=${VALIDATED}`);
  await page.getByRole('link', { name: `a${VALIDATED}`, exact: true }).click();
  const cell = page.locator('[data-row="ref"][data-column="#3"]');
  await cell.waitFor();
  assert.match(await cell.getAttribute('aria-label'), /the reference against #3: (won|lost|tied) \d/);
  assert.deepEqual(page.faults, []);
});

test('hostile texts are shown as texts', async () => {
  const page = await open(browser, `${service.url}/#run=${run}&step=${STEPS}`);
  await page.getByRole('link', { name: '<b>hostile</b>' }).click();
  await page.locator('.card').first().waitFor();
  assert.equal(await page.locator('.card').count(), HOSTILE.length);
  assert.equal(await page.locator('.card .said').filter({ hasText: HOSTILE[0] }).count(), 1);
  const turned = page.locator('.card[data-place="4"] .said');
  assert.match(await turned.textContent(), /The file U\+202Egpj\.exeU\+202C/);
  assert.doesNotMatch(await turned.textContent(), /[\u202a-\u202e\u200b\u001b\u0007]/);
  assert.equal(await turned.evaluate((one) => getComputedStyle(one).unicodeBidi), 'isolate');
  const long = page.locator('.card[data-place="7"] .said');
  assert.ok((await long.textContent()).length < 5000);
  await long.getByRole('button').click();
  assert.match(await long.textContent(), /the end$/);
  assert.ok(await long.evaluate((one) => one.clientHeight <= 320), 'it scrolls in its own box');
  assert.equal(await page.locator('main img, main script, main iframe, main style, main link').count(), 0);
  assert.equal(await wide(page), 0);
  assert.deepEqual(page.faults, []);
});

test('a conversation is shown turn by turn, its texts as texts', async () => {
  const call = { type: 'function', function: { name: HOSTILE[0], arguments: { text: HOSTILE[1] } } };
  const response = [
    { role: 'assistant', content: HOSTILE[2] ?? HOSTILE[0], reasoning_content: HOSTILE[1], tool_calls: [call] },
    { role: 'tool', content: HOSTILE[0] },
    { role: 'assistant', content: 'It is 42.' },
  ];
  const rollouts = [0, 1].map((place) => ({ id: `t-${place}`, group: 'tools', prompt: '6 * 7?', reference: '42', response: place ? 'It is 41.' : response }));
  const { run: agent } = await service.score('agent', 0, rollouts, { recipe: 'quickstart' });
  const page = await open(browser, `${service.url}/#run=${agent}&step=0`);
  await page.getByRole('link', { name: 'tools', exact: true }).click();
  const card = page.locator('article[data-place="0"]');
  await card.locator('.conversation').waitFor();
  assert.deepEqual(await card.locator('.message').evaluateAll((all) => all.map((one) => one.dataset.role)), ['assistant', 'tool', 'assistant']);
  assert.equal(await card.locator('details').count(), 3);
  assert.equal(await card.locator('details[open]').count(), 0);
  assert.match(await card.locator('summary').nth(1).textContent(), /^calls .*<.*>/);
  assert.match(await card.locator('.message').last().textContent(), /It is 42\./);
  assert.equal(await page.locator('article[data-place="1"] .conversation').count(), 0);
  assert.ok(await card.locator('.reads').filter({ hasText: 'reads: ' }).count() > 0);
  assert.equal(await page.locator('article[data-place="1"] .reads').count(), 0);
  assert.deepEqual(page.faults, []);
});

test('the tests of a program are a strip of verdicts, and its words are text', async () => {
  const code = (text) => `\`\`\`python\n${text}\n\`\`\``;
  const extra = { inputs_outputs: { inputs: ['1 2', '3 4'], outputs: ['3', '7'] } };
  const responses = ['print(sum(map(int, input().split())))', 'print(3)', `raise ValueError(${JSON.stringify(HOSTILE[0])})`].map(code);
  const rollouts = responses.map((response, place) => ({ id: `c-${place}`, group: 'sums', prompt: 'Add.', response, extra }));
  const { run } = await service.score('programs', 0, rollouts, { recipe: 'code' });
  const page = await open(browser, `${service.url}/#run=${run}&step=0`);
  await page.getByRole('link', { name: 'sums', exact: true }).click();
  const card = (place) => page.locator(`article[data-place="${place}"]`);
  await card(0).locator('.tests').waitFor();
  const strip = (place) => card(place).locator('.tests li').evaluateAll((all) => all.map((one) => one.className));
  assert.deepEqual(await strip(0), ['passed', 'passed']);
  assert.deepEqual(await strip(1), ['passed', 'wrong']);
  assert.deepEqual(await strip(2), ['error', 'error']);
  assert.equal(await card(1).locator('.tests').getAttribute('aria-label'), '1 of 2 tests passed');
  assert.equal(await card(0).locator('details').count(), 0);
  await card(2).locator('summary').click();
  assert.match(await card(2).locator('details').textContent(), /ValueError/);
  assert.equal(await page.locator('main img, main script, main iframe, main style, main link').count(), 0);
  assert.equal(await wide(page), 0);
  await page.goto(`${service.url}/#run=${run}`);
  await page.getByText('tests, verdicts of tests').waitFor();
  assert.deepEqual(page.faults, []);
});

// A judge of rubrics: a response meets "Says X." where it has the word X.
const rubricJudge = () => new Promise((found) => {
  const server = createServer(async (request, reply) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const [, shown, criteria] = JSON.parse(body).messages[1].content.match(/# Response\n(.*?)# Criteria\n(.*?)# Verdict/s);
    const verdict = (word) => (/lost/.test(shown) || (word === 'river' && /unsure/.test(shown)) ? 'maybe' : word === 'river' && /desert/.test(shown) ? 'not applicable' : shown.includes(word) ? 'yes' : 'no');
    const said = [...criteria.matchAll(/^(item_\w+): Says (.*)\.$/gm)].map(([, label, word]) => [label, { reason: `${HOSTILE[0]} about ${word}`, verdict: verdict(word) }]);
    reply.end(JSON.stringify({ choices: [{ message: { content: JSON.stringify(Object.fromEntries(said)) }, finish_reason: 'stop' }] }));
  });
  server.listen(0, '127.0.0.1', () => found(server));
});

test('a rubric is a table of responses by item, with the judge’s reason as text', async () => {
  const judge = await rubricJudge();
  const graded = await Service.start({ recipe: () => `
name: graded
components:
  checklist:
    reward: rubric
    applies: judge
    tolerance: 0.6
    rubric:
      - { criterion: Says lantern., tags: [light] }
      - { criterion: Says river., weight: 2, tags: [water] }
      - { criterion: Says mud., weight: -1 }
      - { criterion: Says <b>bold</b>. }
judges:
  main: { base_url: "http://127.0.0.1:${judge.address().port}/v1", model: m, hedge_share: 0 }
` });
  try {
    const said = ['lantern, river', 'lantern, desert', 'unsure, lantern', 'river, mud', 'lost'];
    const rollouts = said.map((response, place) => ({ id: `r-${place}`, group: 'r', prompt: 'p', response }));
    await graded.score('rubric', 0, rollouts);
    const { run: rubric } = await graded.score('rubric', 1, rollouts.slice(0, 2));
    const page = await open(browser, `${graded.url}/#run=${rubric}`);
    const shown = await numbers(page, 'items-checklist');
    assert.deepEqual(shown.map((row) => ['light', 'water', 'all items'].map((tag) => Math.round(number(row[tag])))), [[75, 100, 43], [100, 100, 43]]);
    await page.goto(`${graded.url}/#run=${rubric}&step=0`);
    await page.locator('.groups a').first().click();
    const grid = page.getByRole('grid', { name: 'Items of checklist' });
    await grid.waitFor();
    const row = (name) => grid.locator('tbody tr').filter({ hasText: name });
    const cells = async (name) => Object.fromEntries(await row(name).locator('td.bout').evaluateAll((all) => all.map((one) => [one.dataset.place, `${one.textContent} ${one.className.slice(5)}`])));
    assert.deepEqual(await cells('lantern'), { 0: '✓ win', 1: '✓ win', 2: '✓ win', 3: '✗ wrong', 4: '! failed' });
    assert.deepEqual(await cells('river'), { 0: '✓ win', 1: '– loss', 2: '? missing', 3: '✓ win', 4: '! failed' });
    assert.deepEqual(await cells('mud'), { 0: '✗ win', 1: '✗ win', 2: '✗ win', 3: '✓ wrong', 4: '! failed' });
    assert.match(await row('bold').locator('th').textContent(), /^Says <b>bold<\/b>\./);
    const sheet = page.locator('#words');
    await row('bold').locator('[data-place="0"]').click();
    assert.match(await sheet.textContent(), /#0: not met/);
    assert.equal(await sheet.getByLabel('The judge’s reason').textContent(), `${HOSTILE[0]} about <b>bold</b>`);
    await page.keyboard.press('Escape');
    await sheet.locator('header').waitFor({ state: 'detached' });
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    assert.match(await sheet.textContent(), /#0: not met.*Says mud\./s);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /verdicts? failed/ }).click();
    assert.match(await sheet.textContent(), /shown: #4/);
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('.items b, main img, dialog b, dialog img').count(), 0);
    assert.equal(await wide(page), 0);
    assert.deepEqual(page.faults, []);
  } finally { await graded.close(); judge.close(); }
});

test('a judge that fails is seen to fail, and nothing stands in for its verdicts', async () => {
  const broken = await Service.start({ judge: ['--latency', '1ms', '--invalid-rate', '1'] });
  try {
    const { run: failed } = await broken.score('failing', 0, [...group('f', 4), ...group('g', 4), ...group('h', 32)]);
    const page = await open(browser, `${broken.url}/#run=${failed}`);
    await page.locator('#chart-invalid svg').waitFor();
    assert.equal(await page.locator('[data-tile="invalid"] .value').textContent(), '100\u2009%');
    assert.equal(await page.locator('#chart-total, [data-tile="mean"]').count(), 0, 'there is no total to draw');
    const [row] = await numbers(page, 'invalid');
    assert.ok(Object.keys(row).some((name) => name.startsWith('judge.')), JSON.stringify(row));
    await page.locator('.groups tbody a').first().click();
    await page.locator('.card.invalid').first().waitFor();
    assert.deepEqual(await page.locator('.card .total').allTextContents(), ['–', '–', '–', '–']);
    await page.getByRole('button', { name: /verdicts? failed/ }).click();
    assert.match(await page.locator('#words').textContent(), /Failed: judge\./);
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('[data-row="#0"][data-column="#1"]').textContent(), '!');
    assert.deepEqual(page.faults, []);
  } finally { await broken.close(); }
});

test('a group of 64 is there at once', async () => {
  const page = await open(browser, `${service.url}/#run=${run}&step=${STEPS}`);
  await page.getByRole('link', { name: 'many' }).click();
  await page.locator('.card').nth(63).waitFor({ state: 'attached' });
  assert.equal(await page.locator('.matrix tbody tr').count(), 64);
  assert.equal(await wide(page), 0);
  assert.deepEqual(page.faults, []);
});
