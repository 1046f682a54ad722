// Chromium for the tests: pages with every request, message and dialog noted.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });

// `faults` holds what must never be there: a dialog, an error, a message of the security policy, a request elsewhere.
export const open = async (browser, url, { width = 1280, height = 900, colorScheme = 'light', away = false, reducedMotion = 'no-preference' } = {}) => {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion });
  const page = await context.newPage();
  page.faults = [];
  page.asked = [];
  page.setDefaultTimeout(20000);
  page.on('dialog', (dialog) => { page.faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('pageerror', (error) => page.faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // A service that is away, or that wants a token, makes the browser itself say so; these are what is tested then.
    if (away && /Failed to load resource/.test(message.text())) return;
    if (['error', 'warning'].includes(message.type())) page.faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on('request', (request) => {
    page.asked.push(request.url());
    if (new URL(request.url()).origin !== new URL(url).origin) page.faults.push(`request: ${request.url()}`);
  });
  if (process.env.PAGE_FROM_DISK) await fromDisk(page);
  await page.goto(url);
  return page;
};

// The page as it lies in the folder instead of as it was compiled in, for work on it: PAGE_FROM_DISK=1 node --test
const fromDisk = (page) => page.route(/\/(static\/[a-z.]+)?$/, async (route) => {
  const name = new URL(route.request().url()).pathname.replace(/^\/(static\/)?/, '') || 'index.html';
  const response = await route.fetch();
  await route.fulfill({ response, body: readFileSync(new URL(`../${name}`, import.meta.url)) });
});

// The numbers under a chart, from the table that says the same as the picture: a list of rows of cells.
export const numbers = async (page, id) => {
  const chart = page.locator(`#chart-${id}`);
  const table = chart.locator('details');
  if (!(await table.evaluate((node) => node.open))) await chart.locator('summary').click();
  await chart.locator('tbody tr').first().waitFor();
  const rows = await chart.locator('tbody tr').evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const head = await chart.locator('thead th').allTextContents();
  await chart.locator('summary').click();
  return rows.map((row) => Object.fromEntries(row.map((cell, place) => [head[place], cell])));
};

export const wide = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
