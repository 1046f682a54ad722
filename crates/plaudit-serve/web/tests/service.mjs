// Starts `plaudit serve` with `plaudit judge-sim` as its judge for the tests, each in a folder of its own.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
export const BINARY = process.env.PLAUDIT_BIN || join(ROOT, 'target/debug/plaudit');

const RECIPE = (judge) => `
name: pairs
components:
  quality: { reward: principle, weight: 1.0, mode: pairwise, judge: main, principles: [helpfulness] }
  format:  { reward: reasoning_format, weight: 0.1 }
judges:
  main: { base_url: "${judge}", model: sim, hedge_share: 0, price: { input: 1.0, output: 4.0 } }
`;

// A judge that answers at once and does not err.
const SURE = ['--latency', '1ms', '--ties', '0', '--position-bias', '0', '--temperature', '0.01'];

const freePort = () => new Promise((found) => {
  const server = createServer();
  server.listen(0, '127.0.0.1', () => { const { port } = server.address(); server.close(() => found(port)); });
});

// A process whose first line on stdout is its address.
const begin = (args) => new Promise((found, failed) => {
  const child = spawn(BINARY, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk) => { errors += chunk; });
  child.on('exit', (code, signal) => {
    const words = `plaudit ${args[0]} ended with ${code ?? signal}: ${errors.slice(-2000)}`;
    console.error(words);
    failed(new Error(words));
  });
  createInterface(child.stdout).once('line', (line) => found({ child, url: line.trim() }));
});
const end = (child, signal = 'SIGKILL') => new Promise((done) => {
  if (child.exitCode !== null || child.signalCode !== null) { done(); return; }
  child.removeAllListeners('exit');
  child.on('exit', done);
  child.kill(signal);
});

export class Service {
  static async start({ token = false, judge = SURE, recipe = RECIPE } = {}) {
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), 'plaudit-dashboard-'));
    service.sim = await begin(['judge-sim', '--port', '0', ...judge]);
    writeFileSync(join(service.folder, 'mine.yaml'), recipe(service.sim.url));
    writeFileSync(join(service.folder, 'config.yaml'), 'recipes: [mine.yaml, quickstart, math, code, instructions]\nkeep: { groups: 100 }\n');
    service.recipe = recipe('').match(/^name: (.*)$/m)[1];
    service.port = await freePort();
    if (token) {
      service.tokens = join(service.folder, 'tokens.json');
      service.token = execFileSync(BINARY, ['token', 'create', 'browser', '--file', service.tokens, '--scope', 'read', '--scope', 'score'], { encoding: 'utf8' }).trim().split(/\s+/).pop();
    }
    try { await service.up(); } catch (failure) { await end(service.sim.child); throw failure; }
    return service;
  }

  async up() {
    const args = ['serve', '--bind', `127.0.0.1:${this.port}`, '--config', join(this.folder, 'config.yaml'), '--state', join(this.folder, 'state')];
    if (this.tokens) args.push('--token-file', this.tokens);
    this.process = await begin(args);
    this.url = `http://127.0.0.1:${this.port}`;
  }

  async down(signal) { await end(this.process.child, signal); }

  async close() {
    await end(this.process.child);
    await end(this.sim.child);
    rmSync(this.folder, { recursive: true, force: true });
  }

  async call(path, body) {
    const answer = await fetch(this.url + path, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json', ...(this.token ? { authorization: `Bearer ${this.token}` } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  score(run, step, rollouts, more) { return this.call('/v1/score', { recipe: this.recipe, run, step, rollouts, ...more }); }
}

// A group whose responses are the better, the later they come: the simulated judge reads the mark.
export const group = (name, size, quality = (place) => place, prompt = 'What is 2 + 2?') => Array.from({ length: size }, (_, place) => ({
  id: `${name}-${place}`, group: name, prompt, reference: '4', tokens: 10 + place,
  response: `<think>adding</think><answer>${place} [[quality:${quality(place)}]]</answer>`,
}));
