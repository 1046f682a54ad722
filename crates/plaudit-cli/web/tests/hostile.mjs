// Hostile texts that a model may write, for pages that must show them as texts.
export const HOSTILE = [
  '<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>',
  '</script><script>alert(4)</script>',
  '[a link](javascript:alert(5)) <a href="javascript:alert(6)">a</a> <iframe src="http://example.com/"></iframe>',
  '<style>body{display:none}</style><link rel=stylesheet href=http://example.com/x.css><base href=http://example.com/>',
  'The file \u202Egpj.exe\u202C, a zero\u200Bwidth space, \u001b[31mred\u001b[0m, a tag \u{E0041}\u{E0042}, a bell \u0007',
  '{{constructor.constructor("alert(7)")()}} ${alert(8)} __proto__',
  'é'.repeat(200) + '\u0301'.repeat(300),
  `${'long '.repeat(40000)}the end`,
];
