// Tests of axis scales and of numbers as text: a rounding error, nothing, infinities, the largest and the smallest numbers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import vm from 'node:vm';
import { fileURLToPath } from 'node:url';

const WEB = fileURLToPath(new URL('..', import.meta.url));
const page = vm.createContext({ window: { plaudit: {} } });
for (const name of ['format.js', 'scale.js']) vm.runInContext(readFileSync(join(WEB, name), 'utf8'), page);
const { ticks, range, padded, shares } = page.window.plaudit.scale;
const { change, number } = page.window.plaudit.format;
const plain = (list) => [...list];

const NUMBERS = [NaN, Infinity, -Infinity, 0, -0, 1, 0.1, 0.3, -1336.75, 1336.75, 1336.7499999999995, 1700000000123, 5e-324, 1e-310, 1e-300, 2 ** 53 - 2, 2 ** 53 - 1, 2 ** 53, 1e300, -1e308, 1.7e308];

test('every two numbers have a range that can be drawn and few names on it', () => {
  for (const one of NUMBERS) {
    for (const other of NUMBERS) {
      const [low, high] = padded(range([[one, other]]));
      const words = `${one} and ${other}`;
      assert.ok(Number.isFinite(low) && Number.isFinite(high) && high > low && Number.isFinite(high - low), words);
      for (const wanted of [0, 3, 5, 1e9, NaN, Infinity]) {
        for (const whole of [false, true]) {
          for (const found of [ticks(one, other, wanted, whole), ticks(low, high, wanted, whole)]) assert.ok(found.length <= 100 && found.every(Number.isFinite), words);
        }
      }
    }
  }
});

test('what differs by how it was rounded is one value', () => {
  const [low, high] = range([[1336.7499999999995, 1336.75]]);
  assert.ok(low < 1300 && high > 1400, `${low} to ${high}`);
});

test('what rounding leaves of 0 is written as 0', () => {
  assert.deepEqual([0, -0, -3.5e-18, 2.2e-16].map(number), ['0', '0', '0', '0']);
  assert.deepEqual([-2.2e-16, 2e-4].map((value) => change(value, number)), ['±0', '+2.0e-4']);
});

test('names are round and lie within the range', () => {
  assert.deepEqual(plain(ticks(0, 1, 5)), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(plain(ticks(-0.3, 1.27, 5)), [0, 0.5, 1]);
  assert.deepEqual(plain(ticks(3, 11, 4, true)), [4, 6, 8, 10]);
  assert.deepEqual(plain(ticks(2 ** 53 - 2, 2 ** 53 - 1, 5, true)), [2 ** 53 - 2, 2 ** 53 - 1]);
});

test('shares begin at 0 and end at 100 % at most', () => {
  assert.deepEqual(plain(shares([[0, 0]])), [0, 1]);
  assert.deepEqual(plain(shares([[null, NaN]])), [0, 1]);
  assert.deepEqual(plain(shares([[0.2, 1]])), [0, 1]);
  assert.deepEqual(plain(shares([[0.5]], [0.9])).map((end) => end.toFixed(3)), ['0.000', '0.954']);
});

test('an axis does not go on where no value can be', () => {
  assert.equal(padded(range([[0, 0]]), [0, Infinity])[0], 0);
  assert.deepEqual(plain(padded(range([[-1, 1]]), [-1, 1])), [-1, 1]);
  const [low, high] = padded(range([[3, 3]]), [0, 1]);
  assert.ok(low < 3 && high > 3, 'what is beyond is drawn all the same');
});
