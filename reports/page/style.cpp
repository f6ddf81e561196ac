// style: the style sheet of the report.
#include "reports/page/style.h"

#include <algorithm>
#include <cctype>

namespace assay::page {
namespace {

constexpr std::string_view kSheet = R"css(
:root { color-scheme: light; --ink: #17202e; --soft: #55606f; --rule: #c9d0d9; --tint: #f3f5f8; --blue: #1d4e89; --bad: #9b1c1c; --warn: #7a4d00; --good: #14603a;
  --paper: #fff; --desk: #e9ecf0; --bad-fill: #9b1c1c; --good-tint: #f2f8f4; --bad-tint: #fbf3f2; --warn-tint: #fcf8ef; --good-cell: #e6f2ea; --warn-cell: #f8edd6; --none-cell: #eceff3; --guard: #f0dfb4; --first-part: #1f4e79; }
* { box-sizing: border-box; }
html { background: var(--desk); }
body { font: 10.5pt/1.45 "Source Sans 3", "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper); max-width: 210mm; margin: 8mm auto; padding: 16mm 17mm; box-shadow: 0 1px 6px #0003; }
h1 { font-size: 25pt; line-height: 1.15; margin: 0 0 1mm; font-weight: 600; letter-spacing: -0.01em; }
h2 { font-size: 14.5pt; margin: 11mm 0 3mm; padding-bottom: 1mm; border-bottom: 1.5pt solid var(--ink); break-after: avoid; }
h3 { font-size: 11.5pt; margin: 6mm 0 1.5mm; break-after: avoid; }
p { margin: 0 0 2.5mm; }
ul, ol { margin: 0 0 3mm; padding-left: 6mm; }
code { font: 0.88em "DejaVu Sans Mono", Consolas, Menlo, monospace; overflow-wrap: anywhere; }
code.digest { color: var(--soft); font-size: 0.8em; }
pre { font: 8.5pt/1.4 "DejaVu Sans Mono", Consolas, Menlo, monospace; background: var(--tint); border: 0.5pt solid var(--rule); padding: 2.5mm 3mm; white-space: pre-wrap; overflow-wrap: anywhere; }
small, .small { font-size: 8.2pt; color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-size: 8.6pt; line-height: 1.35; margin: 0 0 4mm; font-variant-numeric: tabular-nums; }
thead { display: table-header-group; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.scroll { overflow-x: auto; }
a { color: var(--blue); }
section.action { border-left: 3pt solid var(--ink); padding: 0 0 0 5mm; margin: 0 0 6mm; }
section.action h2 { margin: 0 0 2mm; border: 0; padding: 0; }
table.action td:nth-child(2), table.action td:nth-child(3), table.action td:nth-child(4),
table.gpus td:nth-child(n+2) { white-space: nowrap; } table.gpus td:first-child { min-width: 38mm; }
nav ol { columns: 3; font-size: 9pt; padding-left: 7mm; margin: 0 0 6mm; }
tr { break-inside: avoid; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 1pt solid var(--ink); padding: 1mm 1.6mm 1mm 0; }
td { vertical-align: top; border-bottom: 0.5pt solid var(--rule); padding: 1.1mm 1.6mm 1.1mm 0; overflow-wrap: anywhere; }
table.facts th { width: 42mm; border-bottom: 0.5pt solid var(--rule); vertical-align: top; color: var(--soft); font-weight: 400; }
table.conformity td { white-space: nowrap; }
table.conformity tr.requirement td { white-space: normal; background: var(--tint); padding-left: 1.6mm; break-after: avoid; }
table.conformity td:last-child { overflow-wrap: normal; padding-right: 0; } table.conformity td:last-child .outcome { white-space: normal; display: inline-block; padding: 0 0.6mm; font-size: 7.6pt; } table.conformity td:first-child { white-space: normal; min-width: 21mm; } table.conformity th, table.conformity td { padding-right: 1.1mm; }
table.conformity tr.open td { border-bottom: 0; padding-bottom: 0; break-after: avoid; }
table.conformity tr.why td { white-space: normal; color: var(--soft); }
.masthead { display: flex; justify-content: space-between; border-bottom: 2.5pt solid var(--ink); padding-bottom: 2mm; margin-bottom: 5mm; font-size: 9pt; color: var(--soft); }
.masthead b { color: var(--ink); letter-spacing: 0.14em; }
.subtitle { font-size: 12pt; color: var(--soft); margin-bottom: 4mm; }
.verdict { border: 2.2pt solid; padding: 5mm 6mm; margin: 0 0 6mm; break-inside: avoid; }
.verdict .word { font-size: 30pt; font-weight: 700; letter-spacing: 0.05em; line-height: 1.1; }
.verdict p { margin: 1.5mm 0 0; color: var(--ink); }
.verdict.accepted { color: var(--good); background: var(--good-tint); }
.verdict.rejected { color: var(--bad); background: var(--bad-tint); border-style: double; border-width: 5pt; }
.verdict.incomplete { color: var(--warn); background: var(--warn-tint); border-style: dashed; }
.banner { border: 1.5pt solid var(--warn); color: var(--warn); background: var(--warn-tint); padding: 3mm 5mm; margin: 0 0 5mm; break-inside: avoid; }
.banner .word { font-size: 19pt; font-weight: 700; letter-spacing: 0.08em; }
.banner p { color: var(--ink); margin: 0.5mm 0 0; }
.counts { display: flex; flex-wrap: wrap; gap: 2mm; margin: 0 0 6mm; }
.counts div { flex: 1 1 0; border: 0.5pt solid var(--rule); padding: 1.5mm 2mm; font-size: 8.4pt; line-height: 1.25; }
.counts b { display: block; font-size: 15pt; line-height: 1.15; }
table.crossings td:nth-child(3), table.crossings td:nth-child(n+5),
table.attempts td:nth-child(2), table.attempts td:nth-child(6), table.instruments td:first-child code, table.nodes td:first-child { white-space: nowrap; }
table.recorded td:first-child { width: 48mm; } table.requirements td:first-child { white-space: nowrap; }
.on-paper { display: none; }
table.rule td { white-space: nowrap; } table.rule td:last-child { white-space: normal; }
.demand { white-space: normal; overflow-wrap: break-word; display: inline-block; max-width: 36mm; }
.outcome { font-weight: 600; white-space: nowrap; border: 0.8pt solid; border-radius: 1mm; padding: 0 1.2mm; font-size: 8.2pt; }
.outcome.pass { color: var(--good); }
.outcome.fail, .outcome.error { color: #fff; background: var(--bad-fill); border-color: var(--bad-fill); }
.outcome.conditional_pass, .outcome.conditional_fail, .outcome.inconclusive, .outcome.not_measured { color: var(--warn); border-style: dashed; }
.tag { font-size: 7.6pt; border: 0.5pt solid var(--rule); border-radius: 1mm; padding: 0 1mm; color: var(--soft); white-space: nowrap; }
.tag.weak { color: var(--warn); border-color: var(--warn); }
.unmet { font-weight: 700; color: var(--bad); }
table.matrix { width: auto; }
table.matrix th, table.matrix td { text-align: center; padding: 0.8mm 1.4mm; border: 0.5pt solid var(--rule); min-width: 8mm; white-space: nowrap; }
table.matrix td:first-child { text-align: left; }
.c-pass { background: var(--good-cell); } .c-fail, .c-error { background: var(--bad); color: #fff; font-weight: 700; }
.c-conditional_pass, .c-conditional_fail, .c-inconclusive { background: var(--warn-cell); font-weight: 600; } .c-not_measured { background: var(--none-cell); }
figure { margin: 1mm 0 4mm; break-inside: avoid; }
figcaption { font-size: 8.2pt; color: var(--soft); }
svg.plot { width: 100%; height: auto; display: block; }
svg text { font: 11px "Source Sans 3", "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: var(--ink); }
svg .mark { fill: var(--soft); font-size: 10.5px; } svg .label { font-size: 11.5px; } svg .outcome-text { font-weight: 600; fill: var(--good); } svg .outcome-text.open { fill: var(--warn); } svg .outcome-text.bad { fill: var(--bad); }
svg .limit-label { fill: var(--bad); font-size: 10.5px; font-weight: 600; }
svg .axis { stroke: var(--ink); stroke-width: 1; } svg .grid { stroke: var(--rule); stroke-width: 0.6; }
svg .sample { fill: var(--blue); fill-opacity: 0.55; } svg .value { stroke: var(--ink); stroke-width: 2.4; } svg .interval { stroke: var(--ink); stroke-width: 1.3; }
svg .limit { stroke: var(--bad); stroke-width: 1.8; } svg .acceptance { stroke: var(--bad); stroke-width: 1; stroke-dasharray: 4 2.5; } svg .guard { fill: var(--guard); } svg .cross { stroke: var(--bad); stroke-width: 1.8; }
svg .heading { font-size: 12px; font-weight: 600; } svg .in-light, svg .in-dark { font-size: 10px; } svg .in-light { fill: #17202e; } svg .in-dark { fill: #fff; }
svg .cell { stroke: var(--paper); stroke-width: 0.7; vector-effect: non-scaling-stroke; } svg .stroke { fill: none; stroke-width: 0.9; vector-effect: non-scaling-stroke; }
svg .s-pass_wide { fill: #cfe3f3; } svg .s-pass_middle { fill: #a5cbe8; } svg .s-pass_narrow { fill: #78abd4; } svg .s-guard_band { fill: #e0a458; } svg .s-open_pass { fill: #f3ddb0; } svg .s-open_fail { fill: #8a4b08; }
svg .part-0 { fill: var(--first-part); } svg .part-1 { fill: #78abd4; } svg .part-2 { fill: #d9a441; } svg .part-3 { fill: #8a8f98; } svg .part-4 { fill: #cfe3f3; }
svg .s-fail_near { fill: #a82a18; } svg .s-fail_far { fill: #4f0a0a; } svg .s-inconclusive, svg .s-not_measured { fill: #cfd3d8; } svg .s-error { fill: #101010; }
svg .stroke.s-inconclusive, svg .stroke.s-not_measured { fill: none; stroke: #17202e; } svg .stroke.s-error { fill: none; stroke: #fff; }
svg .frame { fill: none; stroke: var(--soft); stroke-width: 0.8; } svg .between { stroke: var(--soft); stroke-width: 0.7; }
svg .band { fill: var(--blue); fill-opacity: 0.16; } svg .curve { fill: none; stroke: var(--blue); stroke-width: 1.8; } svg .dot { fill: var(--blue); }
svg .limit-path { fill: none; stroke: var(--bad); stroke-width: 1.8; } svg .acceptance-path { fill: none; stroke: var(--bad); stroke-width: 1; stroke-dasharray: 4 2.5; }
svg .wire, svg .reference { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 1.5 2.5; }
.legend { font-size: 8.4pt; color: var(--soft); }
.end { text-align: center; margin-top: 10mm; color: var(--soft); letter-spacing: 0.1em; }
@media screen and (max-width: 860px) { body { padding: 12mm 10mm; } }
@media screen and (max-width: 640px) {
  body { padding: 5mm 4mm; margin: 0; } h1 { font-size: 19pt; } nav ol { columns: 1; }
  .verdict { padding: 4mm; } .verdict .word { font-size: 21pt; letter-spacing: 0; overflow-wrap: anywhere; }
  .banner .word { font-size: 15pt; } .counts div { flex-basis: 28%; } .masthead { flex-wrap: wrap; }
  table.facts, table.facts tbody, table.facts tr, table.facts th, table.facts td { display: block; width: auto; }
  table.facts th { border: 0; padding-bottom: 0; } .scroll > table { min-width: 130mm; } .scroll > table.matrix { min-width: 0; }
  figure { overflow-x: auto; } svg.plot { min-width: 165mm; }
  table.action, table.action tbody, table.action td { display: block; } .scroll > table.action { min-width: 0; } table.action thead { display: none; }
  table.action tr { display: flex; flex-wrap: wrap; gap: 0 4mm; border-bottom: 0.5pt solid var(--rule); padding: 1.5mm 0; }
  table.action td { border: 0; padding: 0.4mm 0; } table.action td:first-child, table.action td:last-child { flex: 1 0 100%; }
  section.action { padding-left: 3mm; }
  .scroll > table.conformity { min-width: 0; } table.conformity, table.conformity tbody, table.conformity td { display: block; } table.conformity thead { display: none; }
  table.conformity tr:not(.on-paper) { display: flex; flex-wrap: wrap; gap: 0 4mm; border-bottom: 0.5pt solid var(--rule); padding: 1mm 0; } table.conformity tr.open { border: 0; padding-bottom: 0; }
  table.conformity td { border: 0; padding: 0.3mm 0; white-space: normal; } table.conformity td:first-child { flex: 1 1 60%; } table.conformity td[colspan] { flex-basis: 100%; } table.conformity td:last-child:not([colspan]) { order: -1; }
  table.conformity td:nth-child(2)::before { content: "limit "; } table.conformity td:nth-child(3)::before { content: "accepted at "; } table.conformity td:nth-child(5)::before { content: "n "; }
  table.conformity td:nth-child(6)::before { content: "margin "; } table.conformity td:nth-child(7)::before { content: "risk "; } table.conformity td:nth-child(n+2)::before { color: var(--soft); }
}
@media print {
  .scroll { overflow: visible; } a { color: inherit; text-decoration: none; }
  .detail { display: none; } .on-paper { display: block; } tr.on-paper { display: table-row; } li.on-paper { display: list-item; }
  html { background: none; } body { max-width: none; margin: 0; padding: 0; box-shadow: none; font-size: 8.9pt; }
  h2 { margin-top: 5mm; } table { font-size: 7.7pt; line-height: 1.28; } table.requirements { font-size: 7.2pt; } table.requirements th:last-child { width: 62%; }
  table.conformity td:first-child { overflow-wrap: anywhere; } table td { padding-top: 0.7mm; padding-bottom: 0.7mm; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e4e8ee; --soft: #a3adba; --rule: #3a434f; --tint: #1f262f; --blue: #7fb2ea; --bad: #ff9a90; --warn: #f0c36b; --good: #7fd0a0;
    --paper: #161b22; --desk: #0d1117; --good-tint: #15261d; --bad-tint: #2b1818; --warn-tint: #29210f; --good-cell: #1d3a2a; --warn-cell: #4a3a12; --none-cell: #2a323c; --guard: #5a4715; --first-part: #4f8ac4; }
}
)css";

}  // namespace

std::string style_sheet(std::string_view footer) {
  const auto safe = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == ' ' || c == '.' || c == '_' || c == '-');
  };
  const std::string words(std::ranges::all_of(footer, safe) ? footer : std::string_view());
  return std::string(kSheet) + "@page { size: A4; margin: 16mm 15mm 18mm; @bottom-left { content: \"" + words +
         "\"; font: 8pt sans-serif; color: #55606f; } @bottom-right { content: \"Page \" counter(page) \" of \" "
         "counter(pages); font: 8pt "
         "sans-serif; color: #55606f; } }\n";
}

std::string_view watermark_style() {
  return R"css(
.watermark { position: fixed; top: 45%; left: 0; width: 100%; text-align: center; font-size: 84pt; font-weight: 700; letter-spacing: 0.08em; color: #9b1c1c; opacity: 0.16; transform: rotate(-32deg); pointer-events: none; z-index: 9; }
@media screen and (max-width: 640px) { .watermark { font-size: 38pt; } }
)css";
}

}  // namespace assay::page
