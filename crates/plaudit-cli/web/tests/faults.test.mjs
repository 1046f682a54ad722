// Faults in one part of the page: numbers that are hard to draw, and an error in a script, leave the rest as it is.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { Service, group } from './service.mjs';

let service;
let browser;

before(async () => {
  service = await Service.start();
  browser = await launch();
});
after(async () => {
  if (browser) await browser.close();
  if (service) await service.close();
});

test('lengths that differ by how their mean was rounded are drawn at once', async () => {
  const rollouts = Array.from({ length: 40 }, (_, place) => ({ id: `r${place}`, group: 'one', prompt: 'x', response: 'x'.repeat(place % 4 ? 1337 : 1336), reference: 'y' }));
  const { run } = await service.score('even', 0, rollouts, { recipe: 'quickstart' });
  const page = await open(browser, `${service.url}/#run=${run}`);
  await page.locator('#chart-length svg').waitFor({ timeout: 5000 });
  await page.locator('.groups tbody a').first().waitFor();
  assert.ok(await page.locator('#trouble').isHidden());
  assert.deepEqual(page.faults, []);
});

test('a mistake in one chart is told as what it is, and the rest is drawn', async () => {
  const { run } = await service.score('faulty', 0, group('a', 4));
  const page = await open(browser, `${service.url}/#run=${run}`);
  await page.locator('#chart-total svg').waitFor();
  await page.evaluate(() => { window.plaudit.draw.heat = () => { throw new Error('no colours left'); }; });
  await service.score('faulty', 1, group('b', 4));
  const told = page.getByRole('alert').getByText('The page has a fault and cannot draw the chart How the totals are spread: no colours left.');
  await told.waitFor();
  await page.waitForFunction(() => document.querySelector('#chart-total .plot').getAttribute('aria-valuemax') === '1');
  assert.equal(await page.getByText('cannot be reached').count(), 0);
  assert.ok(page.faults.every((fault) => fault.includes('no colours left')), page.faults.join('\n'));
});
