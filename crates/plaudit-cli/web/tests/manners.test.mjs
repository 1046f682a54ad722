// Usability: keyboard, phone, dark mode, token entry, and a service that goes away.
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
  for (let step = 0; step < 4; step += 1) run = (await service.score('training', step, [...group(`a${step}`, 4), ...group(`b${step}`, 4)])).run;
});
after(async () => {
  if (browser) await browser.close();
  if (service) await service.close();
});

const focused = (page, selector) => page.evaluate((wanted) => document.activeElement.matches(wanted), selector);
const tabTo = async (page, selector) => {
  for (let presses = 0; presses < 200; presses += 1) {
    if (await focused(page, selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not lead to ${selector}`);
};

test('everything is reached by keys alone', async () => {
  const page = await open(browser, `${service.url}/`);
  await page.locator('[data-run]').first().waitFor();
  await page.keyboard.press('Tab');
  assert.ok(await focused(page, '.skip'), 'the way past the head comes first');
  await page.keyboard.press('Enter');
  assert.ok(await focused(page, '#main'));
  await tabTo(page, `[data-run="${run}"] a`);
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
  await page.keyboard.press('Enter');
  await page.locator('#chart-total svg').waitFor();
  await tabTo(page, '#chart-total .plot');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  const plot = page.locator('#chart-total .plot');
  assert.match(await plot.getAttribute('aria-valuetext'), /^step 1(, still running)?: mean .*median/);
  assert.equal(await page.locator('#chart-heat .plot').getAttribute('aria-valuenow'), '1');
  await page.keyboard.press('Enter');
  await page.waitForURL(/step=1/);
  await page.getByRole('heading', { name: 'Groups of step 1' }).waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL((url) => !url.hash.includes('step='));
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Groups of step 0' }).waitFor();
  await tabTo(page, '.groups thead th:nth-child(4) button');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.groups thead th').nth(3).getAttribute('aria-sort'), 'descending');
  await tabTo(page, '.groups tbody a');
  await page.keyboard.press('Enter');
  await page.locator('.matrix').waitFor();
  await tabTo(page, '.bout');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const at = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
  await page.keyboard.press('Enter');
  assert.ok(await page.locator('#words').evaluate((sheet) => sheet.open));
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), at, 'the focus is back in the cell');
  await page.goBack();
  await page.locator('#chart-total').waitFor();
  assert.ok(await focused(page, '.groups tbody a'), 'back is where one was');
  assert.deepEqual(page.faults, []);
});

test('nothing sticks out on a phone or a small window', async () => {
  for (const width of [390, 720, 900]) {
    const page = await open(browser, `${service.url}/`, { width, height: 844 });
    await page.locator('[data-run]').first().waitFor();
    assert.equal(await wide(page), 0, `runs at ${width}`);
    await page.locator(`[data-run="${run}"] a`).click();
    await page.locator('#chart-total svg').waitFor();
    assert.equal(await wide(page), 0, `a run at ${width}`);
    await page.locator('.groups tbody a').first().click();
    await page.locator('.matrix').waitFor();
    assert.equal(await wide(page), 0, `a group at ${width}`);
    if (width === 390) {
      const lefts = await page.locator('.card').evaluateAll((cards) => new Set(cards.map((card) => card.getBoundingClientRect().left)).size);
      assert.equal(lefts, 1, 'one response below the other');
    }
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});

// How light a colour is, from 0 to 1.
const light = (page, selector, property) => page.evaluate(([wanted, name]) => {
  const [red, green, blue] = getComputedStyle(document.querySelector(wanted))[name].match(/\d+/g).map(Number);
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}, [selector, property]);

test('it is dark where the system is dark, and the switch is kept on the way', async () => {
  const page = await open(browser, `${service.url}/`, { colorScheme: 'dark' });
  await page.locator('[data-run]').first().waitFor();
  assert.ok((await light(page, 'body', 'backgroundColor')) < 0.2 && (await light(page, 'body', 'color')) > 0.7);
  await page.locator('#theme').click();
  assert.ok((await light(page, 'body', 'backgroundColor')) > 0.8);
  assert.match(page.url(), /theme=light/);
  await page.locator(`[data-run="${run}"] a`).click();
  await page.locator('#chart-total svg').waitFor();
  assert.match(page.url(), /theme=light/);
  await page.reload();
  await page.locator('#chart-total svg').waitFor();
  assert.ok((await light(page, 'body', 'backgroundColor')) > 0.8);
  assert.deepEqual(page.faults, []);
});

test('who wants less motion sees none', async () => {
  const page = await open(browser, `${service.url}/`, { reducedMotion: 'reduce' });
  await page.locator('.state.live').first().waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('.state.live'), '::before').animationName), 'none');
});

test('a service that dies is said to be away, and found again when it is back', async () => {
  const page = await open(browser, `${service.url}/#run=${run}`, { away: true });
  await page.locator('#chart-total svg').waitFor();
  await service.down();
  await page.getByRole('alert').getByText(/cannot be reached since \d/).waitFor();
  const since = await page.getByRole('alert').textContent();
  assert.equal(await page.locator('#chart-total svg').count(), 1, 'what was there stays');
  await page.waitForTimeout(4500);
  assert.equal(await page.getByRole('alert').textContent(), since, 'the moment is that of the first failure');
  await service.up();
  await service.score('training', 4, group('a4', 4));
  await page.waitForFunction(() => document.getElementById('trouble').hidden);
  await page.waitForFunction(() => document.querySelector('#chart-total .plot').getAttribute('aria-valuemax') === '4');
  assert.deepEqual(page.faults, []);
});

test('a step that a restart cuts says so', async () => {
  const cut = (await service.score('cut', 5, group('a', 8))).run;
  const page = await open(browser, `${service.url}/#run=${cut}`, { away: true });
  await page.getByText('Step 5, still running', { exact: true }).waitFor();
  await service.down('SIGTERM');
  await service.up();
  await service.score('cut', 5, group('b', 4));
  await page.getByText('Step 5, without 4 rollouts that a restart cut off', { exact: true }).waitFor();
  const fresh = await open(browser, `${service.url}/#run=${cut}`);
  await fresh.getByText('Step 5, without 4 rollouts that a restart cut off', { exact: true }).waitFor();
  assert.equal((await numbers(fresh, 'total')).length, 1);
});

test('a token is asked for, kept in memory only, and sent', async () => {
  const locked = await Service.start({ token: true });
  try {
    await locked.score('secret', 0, group('a', 4));
    const page = await open(browser, `${locked.url}/`, { away: true });
    const field = page.getByLabel('Token with the scope read');
    await field.waitFor();
    const before = page.asked.length;
    await page.waitForTimeout(4500);
    assert.equal(page.asked.length, before, 'nothing is asked until there is a token');
    await field.fill('plaudit_wrong');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('ask').open && document.getElementById('token').value === '');
    await field.fill(locked.token);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'secret' }).waitFor();
    assert.ok(!page.url().includes(locked.token));
    assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length), 0);
    await page.reload();
    await field.waitFor();
    assert.deepEqual(page.faults, []);
  } finally { await locked.close(); }
});

test('a service without runs says what to do next', async () => {
  const fresh = await Service.start();
  try {
    const page = await open(browser, `${fresh.url}/`);
    await page.getByText('python3 examples/serve/load.py').waitFor();
    await fresh.score('first', 0, group('a', 4));
    await page.getByRole('link', { name: 'first' }).waitFor();
    assert.equal(await page.getByText('No run yet').count(), 0);
    assert.deepEqual(page.faults, []);
  } finally { await fresh.close(); }
});
