"""Style of the parts of a report's page that tell of yields."""

STYLE = """
i.planned { background: var(--idle); border: 1px solid var(--line); } i.kept { background: var(--bar); }
rect.planned { fill: var(--line); } rect.kept { fill: var(--bar); } rect.kept.bad { fill: var(--fault); }
.charts { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; } .charts figure { margin: 0; max-width: 14rem; }
.charts svg { height: 44px; } .charts figcaption { font-size: .78rem; color: var(--faint); overflow-wrap: anywhere; }
.charts b { color: var(--ink); font-weight: 600; } details { margin-top: 1rem; } summary { cursor: pointer; }
figure.table { margin: 0; } figure.table figcaption { color: var(--faint); font-size: .85rem; margin-top: .4rem; }
rect.cell { stroke: #fff; stroke-opacity: .5; }
rect.cell.bad { stroke: var(--fault); stroke-width: 3; stroke-opacity: 1; }
svg text.cell { fill: #fff; font-weight: 650; text-anchor: middle; paint-order: stroke; stroke: #0009;
  stroke-width: 3px; } svg text.cell.small { font-size: 10px; font-weight: 400; }
rect.region { fill: none; stroke: #1d2129; stroke-width: 2; stroke-dasharray: 6 3; }
svg text.region { fill: #1d2129; font-size: 11px; paint-order: stroke; stroke: #fffc; stroke-width: 3px; }
rect.beyond { fill: #1d2129; fill-opacity: .45; }
ul.tree { padding-left: 1.1rem; margin: 0; } ul.tree ul { padding-left: 1.2rem; margin: .2rem 0 .8rem; }
ul.tree li li { display: flow-root; margin-bottom: .4rem; } ul.tree img { float: left; width: 9rem; border-radius: 4px;
  margin-right: .8rem; }
"""
