# SPDX-License-Identifier: Apache-2.0
"""The style sheet of a report, for wide and narrow screens, light and dark, and paper."""

import base64
import hashlib
from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--text:#1b1f24;--soft:#525b66;--page:#fff;--panel:#f4f6f8;--line:#c9d0d8;
--link:#0b57c2;--plain:#3b6fb6;--plain-text:#fff;--other:#8a5a00;--red:#b3261e;--amber:#8a5a00;--green:#1d6b34;
--gray:#59636e}
@media(prefers-color-scheme:dark){:root{--text:#e6e9ed;--soft:#a9b3be;--page:#14171a;--panel:#1e2328;--line:#3d464f;
--link:#8ab8ff;--plain:#6fa3e8;--plain-text:#0b1016;--other:#e0b050;--red:#ff8a80;--amber:#e8b64c;--green:#7fd197;
--gray:#a0a9b3}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:100rem;padding:1rem clamp(.75rem,3vw,2.5rem) 4rem;background:var(--page);
color:var(--text);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:.25rem 0 .75rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.5rem 0 .4rem}
p,ul,ol,dl{margin:.5rem 0;max-width:75rem}
ul,ol{padding-left:1.25rem}
a{color:var(--link)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;padding:0}
code{font:.875em/1.4 ui-monospace,monospace;background:var(--panel);padding:.1em .25em;border-radius:3px}
.verdict{border-left:.5rem solid var(--green);background:var(--panel);padding:.75rem 1rem;margin:.5rem 0 1rem}
.verdict.suspicious,.verdict.unreadable{border-color:var(--amber)}
.verdict.damaged,.verdict.data-loss{border-color:var(--red)}
.verdict h1,.verdict p{margin:.15rem 0}
.note,.legend{color:var(--soft);font-size:.9rem}
dl{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(0,1fr);gap:.15rem 1rem}
dt{color:var(--soft)}
dd{margin:0}
.frame{overflow-x:auto;margin:.5rem 0 1rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
caption{text-align:left;color:var(--soft);padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line);
font-weight:normal;min-width:4.5rem;overflow-wrap:break-word}
td.t{min-width:14rem;overflow-wrap:anywhere}
.words{overflow-wrap:anywhere}
tbody th:not(.n){min-width:7rem;overflow-wrap:anywhere}
.bars{max-width:56rem}
thead th{font-weight:600;background:var(--panel)}
.n{text-align:right;font-variant-numeric:tabular-nums}
td.g,th.g{min-width:6rem;width:30%}
.severity{display:inline-flex;align-items:center;gap:.3rem;font-weight:600;white-space:nowrap}
.severity.data-loss,.severity.damaged{color:var(--red)}
.severity.suspicious{color:var(--amber)}
.severity.harmless{color:var(--gray)}
.key{display:inline-flex;align-items:center;gap:.35rem;margin-right:1.1rem;white-space:nowrap}
figure{margin:.75rem 0 1.25rem;overflow-x:clip;overflow-clip-margin:1rem}
figcaption{font-size:.9rem;color:var(--soft);margin-bottom:.35rem}
svg{display:block;overflow:visible}
.key svg,.severity svg{flex:none}
.unseen{position:absolute}
text{font:.8rem system-ui,sans-serif;fill:var(--text)}
text.tick{fill:var(--soft);font-size:.75rem}
text.in{text-anchor:middle;font-size:.75rem}
.plain-text{fill:var(--plain-text)}
.bar{stroke:var(--page);stroke-width:1px}
.paper{fill:var(--page)}
.bar.ground{fill:var(--panel);stroke:var(--line)}
.bar.plain{fill:var(--plain)}
.bar.whole{fill:var(--plain);stroke:none}
.bar.damage{fill:url(#pattern-cross);stroke:var(--red);stroke-width:2px}
.bar.fork{fill:url(#pattern-hatch);stroke:var(--red);stroke-width:1.5px}
.bar.gap{fill:url(#pattern-hatch);stroke:var(--other)}
.bar.padding{fill:url(#pattern-dots);stroke:var(--gray)}
.bar.snapshot{fill:var(--page);stroke:var(--plain);stroke-width:1.5px}
.fork-text,.snapshot-text{paint-order:stroke;stroke:var(--page);stroke-width:3px}
.stroke-cross{stroke:var(--red);stroke-width:1.5;fill:none}
.stroke-hatch{stroke:var(--other);stroke-width:1.5;fill:none}
.stroke-dots{stroke:var(--gray);stroke-width:2;fill:none}
.cut{stroke:var(--text);stroke-width:1.5}
.mark{stroke:var(--page);stroke-width:1.5}
.mark.data-loss,.mark.damaged{fill:var(--red)}
.mark.suspicious{fill:var(--amber)}
.mark.harmless{fill:var(--gray)}
@media screen and (max-width:700px){
text.wide{display:none}
th,td{white-space:nowrap}
.bars th,.bars td,td.t{white-space:normal}
.cards thead{display:none}
.cards tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}
.cards th,.cards td{display:block;border:0;padding:.05rem 0;text-align:left;min-width:0;width:auto;white-space:normal}
.cards td.n{display:inline-block;padding-right:1rem}
.cards td.none{display:none}
.findings td:nth-child(4)::before{content:"position "}
.findings td:nth-child(5)::before{content:"offset "}
.findings td:nth-child(6)::before{content:"epoch "}
.rules td:nth-child(3)::before{content:"findings: "}
.rules td:nth-child(6)::before{content:"first in "}
}
@media screen and (min-width:1000px){.findings td:nth-child(3){min-width:24rem}}
@media print{
:root{font-size:9pt;color-scheme:light;--text:#000;--soft:#444;--page:#fff;--panel:#f1f1f1;--line:#999;--link:#000;--plain:#3b6fb6;
--plain-text:#fff;--other:#8a5a00;--red:#b3261e;--amber:#8a5a00;--green:#1d6b34;--gray:#59636e}
body{max-width:none;padding:0 .25rem}
nav{display:none}
.frame{overflow:visible}
tr,figure,.verdict{break-inside:avoid}
h2,h3{break-after:avoid}
thead{display:table-header-group}
table{font-size:.8rem}
th,td,td.t,td.g{min-width:0;padding:.15rem .25rem}
code{overflow-wrap:anywhere}
svg,.verdict,thead th{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""

STYLE_HASH: Final = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
"""The hash that lets the page's content security policy allow this style sheet, and no other."""
