// The report: the same page as one file, without a service and without a network.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { launch, numbers, open } from './browser.mjs';
import { HOSTILE } from './hostile.mjs';
import { BINARY, Service, group } from './service.mjs';

let browser;
let file;
let run;

before(async () => {
  const service = await Service.start();
  try {
    for (let step = 0; step < 3; step += 1) run = (await service.score('training', step, group(`a${step}`, 4))).run;
    await service.score('training', 3, HOSTILE.map((response, place) => ({ id: `h-${place}`, group: 'hostile', prompt: 'x', response, reference: 'y' })));
    await service.down('SIGTERM');
    file = join(mkdtempSync(join(tmpdir(), 'plaudit-report-')), 'report.html');
    execFileSync(BINARY, ['report', 'training', '--state', join(service.folder, 'state'), '--html', file]);
  } finally { await service.close(); }
  browser = await launch();
});
after(async () => {
  if (browser) await browser.close();
  if (file) rmSync(dirname(file), { recursive: true, force: true });
});

test('runs, charts and groups are all in the file', async () => {
  const page = await open(browser, pathToFileURL(file).href);
  await page.locator('#chart-total svg').waitFor();
  assert.match(page.url(), new RegExp(`#run=${run}`), 'it opens on its run');
  await page.getByRole('link', { name: 'plaudit' }).click();
  await page.locator(`[data-run="${run}"] a`).click();
  assert.equal((await numbers(page, 'total')).length, 4);
  await page.locator('#chart-total .plot').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'a0', exact: true }).click();
  assert.match(await page.locator('[data-row="#3"][data-column="#0"]').getAttribute('aria-label'), /won/);
  await page.goBack();
  await page.locator('#chart-total .plot').focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'hostile' }).click();
  await page.locator('.card').first().waitFor();
  assert.equal(await page.locator('.card').count(), HOSTILE.length);
  await page.locator('#theme').click();
  assert.match(page.url(), /theme=dark/);
  await page.waitForTimeout(2500);
  assert.deepEqual(page.asked, [pathToFileURL(file).href], 'nothing is asked of anybody');
  assert.deepEqual(page.faults, []);
});
