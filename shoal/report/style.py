"""How a report looks: light and dark, on paper, on a phone."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #556575; --line: #d9e0e6; --paper: #fff; --mark: #f2f6f9;
  --accent: #0072b2; --other: #d55e00; --good: #14683d; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #a4b1bd; --line: #37424d; --paper: #14191e;
  --mark: #1e262d; --accent: #56b4e9; --other: #e69f00; --good: #6fd09a; --bad: #ff9d94; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 2rem 1.25rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p.lead { font-size: 1.08rem; border-left: 4px solid var(--accent); padding: .2rem 0 .2rem 1rem; }
.wide, figure { overflow-x: auto; margin: 0 0 1rem; } .wide:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; padding-right: 0; padding-left: .8rem; }
code { font-size: .85em; overflow-wrap: anywhere; } abbr { text-underline-offset: 3px; cursor: help; }
.soft { color: var(--soft); } .good { color: var(--good); white-space: nowrap; } .bad { color: var(--bad); }
svg { max-width: 100%; min-width: 34rem; height: auto; display: block; } svg text { font: 12px system-ui, sans-serif; }
  svg text:not([fill]) { fill: var(--ink); } .sheet svg text:not([fill]) { fill: #1d2733; }
  .sheet img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; } .sheet svg { background: #fff; }
.before { fill: var(--other); } .after { fill: var(--accent); } .hidden { fill: var(--soft); }
.bars { display: grid; grid-template-columns: minmax(6rem, 12rem) 1fr minmax(7rem, auto); gap: .1rem .7rem;
  align-items: center; font-size: .9rem; } .bars span { min-width: 0; }
.bars i { display: block; height: .5rem; margin: 1px 0; border-radius: 1px; }
.bars .b { background: var(--other); } .bars .a { background: var(--accent); } .bars .h { background: var(--soft); }
.bars .name { text-align: right; } .key i { display: inline-block; width: 1rem; height: .5rem; margin-right: .4rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 0 1.5rem; }
.heat { font-size: .8rem; } .heat th, .heat td { padding: .25rem .35rem; border: 1px solid var(--paper); }
.heat th { font-weight: 400; white-space: nowrap; } .heat thead th { text-align: right; vertical-align: bottom;
  white-space: normal; }
.h1 { background: #eef5fa; } .h2 { background: #d7e8f3; } .h3 { background: #b7d5e8; } .h4 { background: #8fbcd9; }
.h5 { background: #66a3c8; color: #000; }
@media (prefers-color-scheme: dark) { .h1 { background: #1a2730; } .h2 { background: #1f3544; }
  .h3 { background: #24465d; } .h4 { background: #295877; } .h5 { background: #2f6a91; color: #fff; } }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; }
@media (max-width: 40rem) { body { padding: 1rem .9rem 3rem; } th, td { padding-right: .5rem; font-size: .92rem; }
  .bars { grid-template-columns: minmax(4rem, 7rem) 1fr minmax(5.5rem, auto); font-size: .82rem; } }
@media print { svg { min-width: 0; }
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; }
  body { font-size: 10pt; padding: 0; max-width: none; } h2, h3 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .heat td { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .bars i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .wide { overflow: visible; } }
"""
