// Rules for the files of the page: no markup from texts, nothing stored, nothing asked elsewhere.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const WEB = fileURLToPath(new URL('..', import.meta.url));
const files = readdirSync(WEB).filter((name) => /\.(js|css|html|svg)$/.test(name));
const read = (name) => readFileSync(join(WEB, name), 'utf8');

test('no text becomes markup, nothing is stored, nothing is asked elsewhere', () => {
  const never = [/\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment/, /\beval\(|new Function\(/, /localStorage|sessionStorage|document\.cookie|indexedDB/, /setAttribute\('style'|\sstyle="/, /\son[a-z]+="/, /url\(|@import/];
  for (const name of files) {
    // What a comment says is not done.
    const text = read(name).replace(/^\s*\/\/.*$/gm, '');
    for (const pattern of never) assert.doesNotMatch(text, pattern, name);
    const addresses = (text.match(/https?:\/\/[^'"\s)]+/g) || []).filter((address) => address !== 'http://www.w3.org/2000/svg');
    assert.deepEqual(addresses, [], name);
  }
});

test('the page names every script once, and none that is not there', () => {
  const named = [...read('index.html').matchAll(/\/static\/([a-z]+\.js)/g)].map((match) => match[1]);
  assert.deepEqual([...named].sort(), files.filter((name) => name.endsWith('.js')).sort());
});

test('every script says what it answers, and is short', () => {
  for (const name of files.filter((one) => one.endsWith('.js'))) {
    assert.match(read(name), /^\/\/ .*\n/, name);
    assert.ok(read(name).split('\n').length <= 300, name);
  }
});
