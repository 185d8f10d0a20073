#include "core/report/html_style.h"

namespace assay::report {

const std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#fbfaf7;--card:#fff;--ink:#1d2125;--soft:#565f68;--line:#d9dcd6;--code:#f1f1ec;
--good:#1c6b3f;--goodbg:#e2f1e7;--warn:#7a5200;--warnbg:#fbefd2;--bad:#a3242b;--badbg:#fbe6e5;--err:#7b2a86;
--errbg:#f4e6f6;--gold:#7a5200;--goldbg:#fdf0d0;--res:#0b5394;--resbg:#e1eefb;--h0:#e6ebf0;--h1:#c9dcee;--h2:#94bfe2;
--h3:#5a9bd0;--h4:#2a72b0;--h5:#0d4a85;--h6:#062a52}
@media(prefers-color-scheme:dark){:root{--bg:#15181b;--card:#1d2125;--ink:#e6e8ea;--soft:#a3adb6;--line:#363c42;
--code:#262b30;--good:#7fd3a0;--goodbg:#1a3626;--warn:#f0c36a;--warnbg:#3b2f14;--bad:#ff9b96;--badbg:#46201f;
--err:#e0a5ea;--errbg:#3d2343;--gold:#f0c36a;--goldbg:#3b2f14;--res:#8cc4f7;--resbg:#17324b;--h0:#2b3138;--h1:#2a4a66;
--h2:#2f6a96;--h3:#3f8fc4;--h4:#6db3e0;--h5:#a8d4f0;--h6:#e9f5ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main,header,footer{max-width:76rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.6rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .3rem;font-weight:650}
h2{font-size:1.2rem;margin:2.2rem 0 .7rem;font-weight:650}
h3{font-size:1.08rem;margin:0;font-weight:650;overflow-wrap:anywhere}
h4{font-size:.98rem;margin:1.2rem 0 .3rem}
h5{font-size:.9rem;margin:1.1rem 0 .3rem;color:var(--soft);font-weight:600}
p{margin:.4rem 0}
a{color:var(--res)}
code,pre,.tokens,.tok{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86rem}
pre,code.cmd{display:block;background:var(--code);border-radius:6px;padding:.6rem .75rem;margin:.3rem 0;white-space:pre-wrap;
overflow-wrap:anywhere;unicode-bidi:plaintext}
code.cmd{user-select:all}
pre.short{max-height:7.5rem;overflow:auto}
pre.log{max-height:18rem;overflow:auto}
.soft,.note,.legend,dt,caption,figcaption{color:var(--soft);font-size:.88rem}
.badge{display:inline-block;border-radius:5px;padding:.08rem .5rem;font-size:.8rem;font-weight:650;letter-spacing:.02em;
white-space:nowrap;border:1px solid currentColor}
.pass{color:var(--good);background:var(--goodbg)}.weak{color:var(--warn);background:var(--warnbg)}
.fail{color:var(--bad);background:var(--badbg)}.error{color:var(--err);background:var(--errbg)}
.skip{color:var(--soft);background:var(--code)}
.counts{display:flex;flex-wrap:wrap;gap:.45rem;margin:.7rem 0}
.bar{display:flex;height:.5rem;border-radius:4px;overflow:hidden;gap:2px;margin:.6rem 0 1rem}
.bar i{display:block;background:currentColor;min-width:3px}
.bar i.pass,.bar i.weak,.bar i.fail,.bar i.error,.bar i.skip{background:currentColor}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.6rem 0}
dd{margin:0;overflow-wrap:anywhere;unicode-bidi:isolate}
article{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.15rem;margin:0 0 1.1rem;
content-visibility:auto;contain-intrinsic-size:auto 40rem}
article>.head{display:flex;flex-wrap:wrap;gap:.6rem;align-items:baseline}
.reason{font-size:1.03rem;margin:.5rem 0;overflow-wrap:anywhere;unicode-bidi:plaintext}
.why{border-left:4px solid var(--res);background:var(--resbg);border-radius:0 6px 6px 0;padding:.5rem .8rem;margin:.7rem 0}
.why p{margin:.2rem 0;unicode-bidi:plaintext;overflow-wrap:anywhere}
.say{unicode-bidi:plaintext;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.4rem 0 .8rem;font-size:.88rem;display:block;overflow-x:auto;max-width:100%}
caption{text-align:left;padding-bottom:.15rem}
th,td{text-align:left;padding:.22rem .7rem .22rem 0;border-bottom:1px solid var(--line);vertical-align:top;
unicode-bidi:isolate}
th{font-weight:600;color:var(--soft)}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
td.wide{min-width:24rem;overflow-wrap:anywhere}
tr.hit td{background:var(--code)}
.tag{border-radius:4px;padding:0 .35rem;font-size:.8rem;font-weight:600}
.golden{color:var(--gold)}.result{color:var(--res)}
.tag.golden{background:var(--goldbg)}.tag.result{background:var(--resbg)}
details{margin:.5rem 0}
summary{cursor:pointer;font-weight:600;unicode-bidi:plaintext;overflow-wrap:anywhere}
details.request{border-top:1px solid var(--line);padding-top:.5rem}
.tokens{display:flex;flex-wrap:wrap;gap:5px 1px;line-height:1.35;margin:.3rem 0}
.tokens b{display:flex;flex-direction:column;font-weight:400;background:var(--code);border-radius:3px}
.tokens u,.tokens s{text-decoration:none;padding:0 3px;white-space:pre;unicode-bidi:isolate;max-width:18rem;overflow:hidden;
text-overflow:ellipsis;color:var(--soft)}
.tokens .x u{background:var(--goldbg);color:var(--gold);font-weight:650}
.tokens .x s{background:var(--resbg);color:var(--res);font-weight:650;border-top:1px dashed var(--res)}
.tokens .first{outline:2px solid var(--bad);outline-offset:1px;z-index:1}
.tokens .side{background:none;font-weight:600}.tokens .side u{color:var(--gold)}.tokens .side s{color:var(--res)}
em{font-style:normal;opacity:.65}
.strip{margin:.3rem 0}
.heat{display:block;width:100%;height:1.6rem;background:repeating-linear-gradient(45deg,transparent 0 4px,var(--line) 4px 5px);
border-radius:3px}
.key{width:1rem;height:.75rem;vertical-align:-1px;margin-right:.25rem;border:1px solid var(--line);
background:repeating-linear-gradient(45deg,transparent 0 4px,var(--line) 4px 5px)}
.legend span{white-space:nowrap;margin-right:.5rem}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}.h6{fill:var(--h6)}
.ends{display:flex;justify-content:space-between;position:relative;color:var(--soft);font-size:.8rem}
.mark{position:absolute;transform:translateX(-50%);color:var(--bad);font-style:normal;line-height:1}
.plots{display:flex;flex-wrap:wrap;gap:.5rem 1.5rem}
figure{margin:.4rem 0;flex:1 1 28rem;min-width:0;max-width:40rem}
.plot{width:100%;height:auto;display:block}
.plot text{fill:var(--soft);font-size:12px}
.grid{stroke:var(--line);fill:none}
.line{fill:none;stroke-width:1.6}.line.golden{stroke:var(--gold);stroke-dasharray:5 3}.line.result{stroke:var(--res)}
.linekey{font-weight:600}
.bars{width:100%;max-width:32rem}.bars tbody{display:block}.bars tr{display:flex;align-items:center}.bars th{flex:0 0 5rem}
.bars td{flex:1}.bars td.n{flex:0 0 4rem;text-align:right}.bars i{display:block;height:.7rem;background:var(--res);border-radius:2px}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:.8rem}
.sides pre{margin:.15rem 0}
mark{background:var(--badbg);color:var(--bad);border-bottom:2px solid currentColor}
.cases td,.cases th{padding-top:.15rem;padding-bottom:.15rem}
.cases tr{content-visibility:auto}
.squares{display:inline-flex;gap:2px;flex-wrap:wrap;vertical-align:middle}
.squares i{width:.95rem;height:.95rem;border-radius:3px;font:600 .62rem/.95rem system-ui,sans-serif;text-align:center;
border:1px solid currentColor}
footer{color:var(--soft);font-size:.85rem;padding-top:1.5rem;padding-bottom:2rem}
@media(max-width:640px){body{font-size:15px}main,header,footer{padding-left:.8rem;padding-right:.8rem}
.sides{grid-template-columns:1fr}dl{grid-template-columns:1fr}dt{margin-top:.35rem}article{padding:.8rem}td.wide{min-width:12rem}}
@media print{article{content-visibility:visible;break-inside:avoid}}
)css";

}  // namespace assay::report
