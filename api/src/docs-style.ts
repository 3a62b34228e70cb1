/** How the page of documentation looks: one column on a phone, contents beside it on a desktop, light or dark as the reader's system. */
export const style = `
:root{color-scheme:light dark;--ink:light-dark(#1c2024,#e6e8eb);--soft:light-dark(#5c6570,#9aa3ad);--page:light-dark(#fff,#14171a);
--tint:light-dark(#f4f6f8,#1d2126);--edge:light-dark(#dfe3e8,#30363d);--link:light-dark(#0b5cad,#7db7f5)}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
nav{padding:1rem;background:var(--tint);border-bottom:1px solid var(--edge);max-height:45vh;overflow:auto;font-size:.9rem}
nav p{margin:0}nav h2{margin:1rem 0 .2rem;font-size:.8rem;color:var(--soft)}nav ul{margin:0;padding:0;list-style:none}
nav li a{display:block;padding:.15rem 0}
main{padding:1rem;max-width:56rem;overflow-wrap:anywhere}
h1{font-size:1.7rem;margin:.5rem 0}h2{margin:2.5rem 0 .5rem;font-size:1.35rem}
h3{margin:0;font-size:1.1rem}h3 a{color:inherit}h4{margin:1rem 0 .25rem;font-size:.85rem;color:var(--soft)}
p{margin:.4rem 0}small{color:var(--soft);font-size:.8em}
article{margin:1.5rem 0;padding-top:1.5rem;border-top:1px solid var(--edge)}
code,pre{font-family:ui-monospace,monospace;font-size:.875em}
code{background:var(--tint);border-radius:3px;padding:.1em .3em}
pre{background:var(--tint);border:1px solid var(--edge);border-radius:6px;padding:.75rem;overflow:auto;overflow-wrap:normal}
.line b{display:inline-block;font:600 .8rem ui-monospace,monospace;padding:.1rem .45rem;border-radius:4px;color:#fff;background:#2f6f4f}
.line .post{background:#0b5cad}.line .put{background:#8a5a00}.line .delete{background:#a82a2a}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92rem}
th{text-align:left;font-weight:600;color:var(--soft)}th,td{padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--edge);vertical-align:top}
td{min-width:6rem}summary{cursor:pointer;color:var(--soft);margin-top:.75rem}
:target{background:light-dark(#fff7d6,#33301c)}
@media(min-width:60rem){body{display:grid;grid-template-columns:17rem 1fr}
nav{position:sticky;top:0;height:100vh;max-height:none;border:0;border-right:1px solid var(--edge)}main{padding:1rem 2.5rem 4rem}}
`.trim();
