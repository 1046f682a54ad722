// Tests of what figures say about themselves: whose they are, how many values they come from, where a verdict came from, and
// that nothing is out of sight without a sign.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, numbers, open, wide } from './browser.mjs';
import { Service, group } from './service.mjs';

let service;
let browser;
let run;

before(async () => {
  service = await Service.start();
  browser = await launch();
  // The third step asks what the first has asked.
  const asked = (name, size) => group(name, size, undefined, `What is 2 + 2, asked as ${name}?`);
  for (const [step, name] of ['a', 'b', 'a'].entries()) run = (await service.score('training', step, [...asked(`${name}0`, 4), ...asked(`${name}1`, 16)])).run;
});
after(async () => {
  if (browser) await browser.close();
  if (service) await service.close();
});

test('a verdict says that it came from the cache only where it did', async () => {
  const { steps } = await service.call(`/v1/runs/${run}/steps`);
  const figures = steps.map(({ judges: [{ asked, cached, latency }] }) => [asked, cached, latency.count]);
  const questions = 6 + 120;
  assert.deepEqual(figures, [[questions, 0, questions], [questions, 0, questions], [questions, questions, 0]]);
  for (const step of [0, 2]) {
    const page = await open(browser, `${service.url}/#run=${run}&step=${step}`);
    await page.getByRole('link', { name: 'a0', exact: true }).click();
    await page.getByRole('button', { name: /^All/ }).click();
    const notes = await page.locator('#words .exchange .note').allTextContents();
    assert.ok(notes.length >= 6 && notes.every((note) => note.includes('from the cache') === (step === 2)), notes.join('\n'));
    await page.context().close();
  }
});

test('a step that the cache answers made no calls, which is a number', async () => {
  const page = await open(browser, `${service.url}/#run=${run}`);
  assert.deepEqual((await numbers(page, 'calls')).map((row) => row.main), ['126', '126', '0']);
  await page.context().close();
});

test('a probability says whose it is', async () => {
  const page = await open(browser, `${service.url}/#run=${run}&step=0`);
  await page.getByRole('link', { name: 'a0', exact: true }).click();
  await page.getByRole('button', { name: /^All/ }).click();
  // This judge is sure, so that whoever wins has almost all of the probability, on whichever side it was shown.
  for (const title of await page.locator('#words .exchange h3').allTextContents()) {
    const [, winner, named, sure] = title.match(/^(#\d) beats #\d; the judge gives (#\d) a probability of (.*)$/) || assert.fail(title);
    assert.ok(winner === named && Number(sure) > 0.9, title);
  }
});

test('a number that comes from few values says so, and its point is hollow', async () => {
  const rollouts = (known) => Array.from({ length: 40 }, (_, place) => ({ id: `f-${place}`, group: `${place % 10}`, prompt: 'p', response: '\\boxed{4}', ...(place < known ? { reference: '4' } : {}) }));
  await service.score('few', 0, rollouts(40), { recipe: 'math' });
  await service.score('few', 1, rollouts(2), { recipe: 'math' });
  const { run: few } = await service.score('few', 2, rollouts(40), { recipe: 'math' });
  const page = await open(browser, `${service.url}/#run=${few}&step=1`);
  const tile = page.locator('[data-tile="mean"]');
  await tile.waitFor();
  assert.equal(await tile.locator('.change').textContent(), 'of 2 of 40');
  assert.equal(await page.locator('#chart-total circle.few').count(), 2, 'the mean and the median of one step');
  assert.match(await page.locator('#chart-total .legend').textContent(), /values 2 of 40, few: hollow/);
  assert.deepEqual((await numbers(page, 'total')).map((row) => row.values), ['40 of 40', '2 of 40, few: hollow', '40 of 40']);
  await page.getByRole('button', { name: 'The step after' }).click();
  await page.waitForFunction(() => document.querySelector('[data-tile="mean"] .change').textContent.endsWith(' since 0'));
  assert.deepEqual(page.faults, []);
});

test('axes of shares go from 0 to 100 % at most', async () => {
  const page = await open(browser, `${service.url}/#run=${run}`);
  await page.locator('#chart-cache svg').waitFor();
  const axes = await page.locator('.chart').evaluateAll((charts) => charts.map((chart) => [chart.id, [...chart.querySelectorAll('.tick')].map((tick) => tick.textContent)]));
  const shares = axes.map(([id, ticks]) => [id, ticks.filter((tick) => tick.endsWith('%'))]).filter(([, ticks]) => ticks.length);
  assert.ok(shares.length >= 4);
  for (const [id, ticks] of shares) {
    assert.match(ticks[0], /^0\u2009%$/, id);
    assert.ok(ticks.every((tick) => parseFloat(tick) <= 100), `${id}: ${ticks}`);
  }
  const below = axes.filter(([id]) => /latency|cost|calls|std|length$/.test(id)).flatMap(([id, ticks]) => ticks.filter((tick) => tick.startsWith('−')).map((tick) => `${id} ${tick}`));
  assert.deepEqual(below, [], 'nor is there a negative cost');
});

// Whether all of a node can be seen in the box that it scrolls in.
const inSight = (node) => node.evaluate((one) => {
  const [inner, outer] = [one, one.closest('.scroll')].map((each) => each.getBoundingClientRect());
  return inner.right <= outer.right + 1 && inner.bottom <= outer.bottom + 1;
});

test('a matrix that is wider than a phone says so, and scrolls to its end', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open(browser, `${service.url}/#run=${run}&step=0`, { width: 390, height: 844, colorScheme });
    await page.getByRole('link', { name: 'a1', exact: true }).click();
    const box = page.locator('.matrix-of .scroll');
    await page.locator('.matrix-of').getByText('→ scroll for all columns').waitFor();
    const last = page.locator('.matrix thead th').last();
    assert.equal(await inSight(last), false);
    assert.notEqual(await box.evaluate((one) => getComputedStyle(one).maskImage), 'none', 'the edge fades');
    await box.evaluate((one) => { one.scrollLeft = one.scrollWidth; });
    await page.waitForFunction(() => !document.querySelector('.matrix-of .scroll').classList.contains('more-right'));
    assert.ok(await inSight(last));
    const name = page.locator('.matrix tbody th').first();
    assert.ok((await name.boundingBox()).x >= (await box.boundingBox()).x - 1, 'the name of the row stays');
    assert.equal(await wide(page), 0);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

test('a table of groups shows sixteen, and says where there are more', async () => {
  const pairs = (many) => Array.from({ length: many }, (_, place) => group(`p${place}`, 2)).flat();
  await service.score('tables', 0, pairs(16), { recipe: 'quickstart' });
  const { run: tables } = await service.score('tables', 1, pairs(60), { recipe: 'quickstart' });
  const page = await open(browser, `${service.url}/#run=${tables}&step=0`);
  await page.locator('.groups tbody tr').nth(15).waitFor();
  assert.ok(await inSight(page.locator('.groups tbody tr').last()));
  assert.equal(await page.getByText('↓ scroll for all rows').count(), 0);
  await page.getByRole('button', { name: 'The step after' }).click();
  await page.getByText('↓ scroll for all rows').waitFor();
  assert.equal(await inSight(page.locator('.groups tbody tr').last()), false);
  assert.deepEqual(page.faults, []);
});

test('a thought is folded, and what is said is shown', async () => {
  const responses = ['<think>first thought</think>\nThe words.', 'opened before</think>The words.', '<think>never closed', 'The words.', 'a <think>b <think>c</think> d</think> e'];
  const rollouts = responses.map((response, place) => ({ id: `w-${place}`, group: 'folded', prompt: 'p', response }));
  const { run: thoughts } = await service.score('thoughts', 0, rollouts, { recipe: 'quickstart' });
  const page = await open(browser, `${service.url}/#run=${thoughts}&step=0`);
  await page.getByRole('link', { name: 'folded', exact: true }).click();
  await page.locator('.card').nth(4).waitFor();
  const shown = (place) => page.locator(`.card[data-place="${place}"]`).evaluate((card) => ({
    said: [...card.querySelectorAll(':scope > .said')].map((one) => one.textContent),
    thought: [...card.querySelectorAll(':scope > details')].map((one) => [one.open, one.querySelector('summary').textContent, one.querySelector('.said').textContent]),
  }));
  assert.deepEqual(await shown(0), { said: ['The words.'], thought: [[false, 'thought, 13 characters', 'first thought']] });
  assert.deepEqual(await shown(1), { said: ['The words.'], thought: [[false, 'thought, 13 characters', 'opened before']] });
  assert.deepEqual(await shown(2), { said: [], thought: [[false, 'thought, 12 characters', 'never closed']] });
  assert.deepEqual(await shown(3), { said: ['The words.'], thought: [] });
  assert.deepEqual(await shown(4), { said: ['a', ' e'], thought: [[false, 'thought, 20 characters', 'b <think>c</think> d']] });
  assert.match(await page.locator('.card[data-place="2"]').textContent(), /It says nothing beside its thought/);
  assert.deepEqual(page.faults, []);
});

test('how a judge gives its verdicts is said once the service knows', async () => {
  const page = await open(browser, `${service.url}/#run=${run}`);
  await page.locator('#chart-calls svg').waitFor();
  const forms = page.locator('.forms li');
  await page.route('**/v1/judges', (route) => route.fulfill({ json: { judges: [
    { judge: 'main', formats: [{ text: 'verdicts on pairs by json: logprobs gave no <b>usable</b> probabilities' }] }, { judge: 'other', formats: [{ text: 'x' }] }, { judge: 'main' },
  ] } }));
  // Before, it may have shown what the service itself answered.
  await forms.filter({ hasText: 'usable' }).waitFor();
  assert.deepEqual(await forms.allTextContents(), ['main verdicts on pairs by json: logprobs gave no <b>usable</b> probabilities']);
  assert.deepEqual(page.faults, []);
});
