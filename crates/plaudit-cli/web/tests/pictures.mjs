// Pictures of the dashboard for docs/images, of the real service under a live load: node pictures.mjs
//
// The prompts and responses are those of examples/rollouts.jsonl. With every step more of the responses are
// mended, so that there is something to see; the judge is simulated, and fails now and then.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open } from './browser.mjs';
import { ROOT, Service } from './service.mjs';

const STEPS = Number(process.env.STEPS || 48);
const GROUPS = 16;
const RECIPE = (judge) => `
name: tutorial
components:
  principle: { reward: principle, weight: 0.95, mode: pairwise, judge: main, principles: [helpfulness, harmlessness, honesty], audit: 0.1 }
  accuracy:  { reward: number_accuracy, weight: 0.5, scope: answer }
  format:    { reward: reasoning_format, weight: 0.05 }
  length:    { reward: total_length, weight: 1.0, max: 700, band: 300, unit: token }
combine: sum
judges:
  main: { base_url: "${judge}", model: qwen3-32b, concurrency: 64, timeout: 1s, price: { input: 0.2, output: 0.6 } }
`;

// A number from 0 to 1 that is the same in every run.
let seed = 11;
const chance = () => { seed = (seed * 1664525 + 1013904223) >>> 0; return seed / 2 ** 32; };

const service = await Service.start({
  recipe: RECIPE, judge: ['--latency', '40ms', '--jitter', '0.5', '--slow-factor', '30', '--slow-share', '0.02', '--error-rate', '0.02', '--invalid-rate', '0.06', '--position-bias', '1.5', '--temperature', '0.3', '--ties', '0.2'],
});
const lines = readFileSync(join(ROOT, 'examples/rollouts.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const groups = [...new Set(lines.map((line) => line.group))].map((name) => lines.filter((line) => line.group === name))
  .filter((group) => group.every((line) => /^-?\d+(\.\d+)?$/.test(line.reference || '')));

// A step: some of the groups. The later the step, the more of the responses think as they did, but end well.
const WAYS = ['So the result is', 'Therefore:', 'The answer is', 'Altogether that gives', 'This leaves', 'Hence we get', 'Checked, it is', 'In the end'];
const mended = (line, step, member) => `<think>\n${line.response.replace(/<\/?(think|answer)>/g, '').trim().split('\n')[0].slice(0, 700)}\n</think>\n<answer>${WAYS[(member + step) % WAYS.length]} ${line.reference}, checked in ${2 + (step % 9)} ways: \\boxed{${line.reference}}.</answer>`;
const draw = (step) => Array.from({ length: GROUPS }, (_, place) => {
  const group = groups[(step * 7 + place) % groups.length];
  const name = `s${step}-${group[0].group}`;
  return group.map((line, member) => ({ ...line, id: `${name}-${member}`, group: name, response: chance() < 0.75 * (1 - Math.exp((-2.5 * step) / STEPS)) ? mended(line, step, member) : line.response }));
}).flat();

const pause = (milliseconds) => new Promise((passed) => { setTimeout(passed, milliseconds); });
const images = join(ROOT, 'docs/images');
mkdirSync(images, { recursive: true });
const browser = await launch();
try {
  for (let step = 0; step < 14; step += 1) await service.score('format-only', step, draw(step), { recipe: 'quickstart' });
  let run;
  for (let step = 0; step < STEPS; step += 1) {
    ({ run } = await service.score('qwen3-8b-grpo', step, draw(step), { validate: step % 4 === 0 }));
    await pause(1200);
  }
  // Half of a step, while the pages are looked at: the run is live.
  await service.score('qwen3-8b-grpo', STEPS, draw(STEPS).slice(0, GROUPS * 3));
  await pause(5000);
  const shots = [
    ['dashboard-runs', '', { height: 260 }], ['dashboard-run', `#run=${run}`, { height: 1000 }], ['dashboard-dark', `#run=${run}`, { height: 1000, colorScheme: 'dark', at: '#section-judging' }],
    ['dashboard-phone', `#run=${run}`, { width: 390, height: 844 }], ['dashboard-group', `#run=${run}&step=${STEPS - 4}`, { height: 1000, group: true }],
  ];
  for (const [name, hash, options] of shots) {
    const page = await open(browser, `${service.url}/${hash}`, { height: 500, ...options });
    await page.locator(hash ? '#chart-total svg' : '.spark path').first().waitFor({ state: 'attached' });
    if (options.group) {
      await page.locator('.groups tbody a').nth(1).click();
      await page.locator('.card').first().waitFor();
    }
    if (options.at) await page.locator(options.at).evaluate((node) => scrollTo(0, node.getBoundingClientRect().top - 60));
    await page.waitForTimeout(800);
    await page.screenshot({ path: join(images, `${name}.png`) });
    if (page.faults.length) throw new Error(page.faults.join('\n'));
    await page.context().close();
  }
} finally {
  await browser.close();
  await service.close();
}
