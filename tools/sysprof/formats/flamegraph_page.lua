----------------------------------------------------------------------------
-- HTML page of a flame graph.
--
-- sysprof.formats.flamegraph fills the places in double braces. {{modules}} is the page's script:
-- sysprof.formats.flamegraph_script and what it uses.
----------------------------------------------------------------------------

return [=[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sysprof for LuaJIT">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
:root {
  color-scheme: light dark;
  --page: #fff; --bar: #f4f5f7; --line: #d9dce1; --text: #1f2328; --soft: #5d6570;
  --accent: #2563eb; --warn: #b45309;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181d; --bar: #1f2229; --line: #353a44; --text: #e4e7ec;
    --soft: #9aa3b0; --accent: #7aa2f7; --warn: #f0b45a;
  }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body {
  display: flex; flex-direction: column; background: var(--page);
  color: var(--text); font: 13px/1.4 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
}
header, footer {
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px;
  padding: 7px 12px; background: var(--bar); flex: none;
}
header { border-bottom: 1px solid var(--line); }
footer { border-top: 1px solid var(--line); color: var(--soft); font-size: 12px; }
h1 { font-size: 15px; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
#total, #matched { color: var(--soft); white-space: nowrap; }
#matched b { color: var(--text); }
#hidden { display: flex; flex-wrap: wrap; gap: 4px; }
#hidden:empty { display: none; }
#hidden button { max-width: 22em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: 1px 7px; font-size: 12px; }
#incomplete { color: var(--warn); font-weight: 600; }
.space { flex: 1; }
input, button {
  font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--line); border-radius: 5px; padding: 3px 9px;
}
input { width: 15em; }
button { cursor: pointer; }
button:hover, input:hover { border-color: var(--soft); }
button[aria-pressed=true] { border-color: var(--accent); color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -1px; }
#threads { flex: none; max-height: 30%; overflow-y: auto; display: none; border-bottom: 1px solid var(--line); }
#times { position: static; }
#scroll { flex: 1; overflow-x: hidden; overflow-y: auto; position: relative; min-height: 0; }
#space { position: relative; }
canvas { position: sticky; top: 0; display: block; width: 100%; cursor: default; }
#hover { flex: 1; min-width: 20em; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; color: var(--text); }
#legend { display: flex; flex-wrap: wrap; gap: 2px 12px; }
#legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; vertical-align: -1px; }
#tip {
  position: fixed; display: none; pointer-events: none; max-width: min(46em, 90vw);
  background: var(--page); border: 1px solid var(--line); border-radius: 6px;
  padding: 7px 10px; box-shadow: 0 3px 14px #0003; z-index: 2;
}
#tip b { display: block; overflow-wrap: anywhere; font-weight: 600; }
#tip table { border-spacing: 0; color: var(--soft); margin-top: 3px; }
#tip td { padding: 0 12px 0 0; text-align: right; font-variant-numeric: tabular-nums; }
#tip td:first-child { text-align: left; }
dialog { border: 1px solid var(--line); border-radius: 8px; background: var(--page); color: var(--text); max-width: 60em; }
dialog th { text-align: left; vertical-align: top; padding: 1px 16px 1px 0; font-weight: 600; white-space: nowrap; }
dialog td { overflow-wrap: anywhere; }
#keys { display: flex; flex-wrap: wrap; gap: 4px 18px; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; font-size: 11px; }
</style>
</head>
<body>
<header>
<h1>{{title}}</h1>
<span id="total"></span>{{incomplete}}
<span class="space"></span>
<span id="matched" role="status"></span>
<input id="search" type="search" placeholder="Search: text or /regexp/" aria-label="Search" autocomplete="off" spellcheck="false">
<button id="icicle" aria-pressed="false" title="Root at the top (i)">Icicle</button>
<button id="reverse" aria-pressed="false" title="Merge from the leaves: who calls it (r)">Reverse</button>
<button id="fold" aria-pressed="false" title="Fold recursion: a repeat is one box (f)">Fold</button>
<button id="gone" aria-pressed="true" title="Hatched: what is gone since the base (g)">Gone</button>
<button id="kinds" aria-pressed="false" title="Colours of kinds, not of states (k)">Kinds</button>
<button id="reset" title="Whole profile, no search, nothing hidden (Esc)">Reset</button>
<button id="about">About</button>
<span id="hidden"></span>
</header>
<div id="threads"><canvas id="times" aria-label="States of threads over time"></canvas></div>
<div id="scroll"><div id="space"><canvas id="graph" aria-label="Flame graph"></canvas></div></div>
<footer><span id="hover"></span><span id="legend"></span></footer>
<div id="tip"></div>
<dialog id="report" aria-label="About this profile">
<table>
{{report}}
</table>
<p id="keys">
<span><kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>F</kbd> search, again in the field: the browser's search</span>
<span><kbd>Enter</kbd> next match</span> <span><kbd>Shift</kbd> <kbd>Enter</kbd> the one before</span>
<span>click: zoom</span> <span>arrow keys: zoom to the caller, the hottest callee, the one beside it</span>
<span><kbd>i</kbd> icicle</span> <span><kbd>r</kbd> reverse</span> <span><kbd>f</kbd> fold recursion</span>
<span><kbd>h</kbd> or <kbd>Alt</kbd> and click: hide a frame, its callees join its caller</span>
<span><kbd>k</kbd> kinds or states</span> <span><kbd>g</kbd> what is gone</span> <span><kbd>Esc</kbd> reset</span>
<span>Back undoes a step; the address keeps what is shown</span>
</p>
<form method="dialog"><button>Close</button></form>
</dialog>
<noscript>This page draws the flame graph with JavaScript.</noscript>
<script type="application/json" id="data">
{{data}}
</script>
<script>
{{modules}}
</script>
</body>
</html>
]=]
