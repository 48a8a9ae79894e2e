// Draws panels as SVG from plain data. A panel is drawn anew whenever a filter changes.
"use strict";

const DASH = { solid: "", dash: "6 3", dot: "2 3", dashdot: "7 3 2 3" };
const SHAPES = {
  ppo: (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z`,
  sac: (x, y) => `M${x - 4} ${y - 4}h8v8h-8Z`,
  dqn: (x, y) => `M${x} ${y - 5}l5 9h-10Z`,
};
const SIZES = { 1: [900, 330], 2: [580, 290], 3: [380, 240] };

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function short(value) {
  const size = Math.abs(value);
  if (value === null || !isFinite(value)) return "–";
  if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "k";
  return String(+value.toPrecision(3));
}

function between(low, high) {
  return low === null ? "no interval" : `[${short(low)}, ${short(high)}]`;
}

// Round numbers that cover a range in about `count` steps.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= raw) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let e = Math.floor(low); e <= Math.ceil(high); e++)
    for (const m of high - low < 2 ? [1, 2, 5] : [1]) {
      const at = e + Math.log10(m);
      if (at >= low - 1e-9 && at <= high + 1e-9) found.push(at);
    }
  // A narrow range may have no such number in it, and one alone does not make a scale.
  return found.length > 1 ? found : ticks(10 ** low, 10 ** high, 4).map(Math.log10);
}

// An empty plot: the SVG, and functions from values to places.
function frame(panel, columns, xRange, yRange, { logX = false, left = 46, yTicks = true } = {}) {
  const [width, height] = SIZES[Math.min(columns, 3)];
  const box = { left, right: width - 8, top: 8, bottom: height - 38 };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": panel.title });
  const spanX = xRange[1] - xRange[0] || 1;
  const spanY = yRange[1] - yRange[0] || 1;
  const x = (v) => box.left + ((v - xRange[0]) / spanX) * (box.right - box.left);
  const y = (v) => box.bottom - ((v - yRange[0]) / spanY) * (box.bottom - box.top);
  for (const t of logX ? logTicks(...xRange) : ticks(...xRange, 5)) {
    root.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom }));
    root.append(svg("text", { x: x(t), y: box.bottom + 15, "text-anchor": "middle" }, short(logX ? 10 ** t : t)));
  }
  if (yTicks)
    for (const t of ticks(...yRange, 4)) {
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t) }));
      root.append(svg("text", { x: box.left - 6, y: y(t) + 4, "text-anchor": "end" }, short(t)));
    }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.left, y1: box.top, y2: box.bottom }));
  root.append(svg("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, panel.x_label || ""));
  if (panel.y_label)
    root.append(svg("text", { transform: `translate(11 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, panel.y_label));
  return { root, box, x, y };
}

function nothing(panel, columns, why) {
  const [width, height] = SIZES[Math.min(columns, 3)];
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": why });
  root.append(svg("rect", { class: "grid", fill: "none", x: 8, y: 8, width: width - 16, height: height - 16, rx: 6 }));
  root.append(svg("text", { class: "none", x: width / 2, y: height / 2, "text-anchor": "middle" }, why));
  return root;
}

function extent(values, margin = 0.04) {
  const found = values.filter((v) => v !== null && isFinite(v));
  const low = Math.min(...found), high = Math.max(...found);
  const pad = (high - low) * margin || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}

function path(xs, ys) {
  let text = "", down = false;
  xs.forEach((x, i) => {
    if (ys[i] === null) { down = false; return; }
    text += `${down ? "L" : "M"}${x.toFixed(1)} ${ys[i].toFixed(1)}`;
    down = true;
  });
  return text;
}

function drawLines(panel, columns, shown, color, tip) {
  if (!panel.series.some((s) => s.y.some((v) => v !== null))) return nothing(panel, columns, "not yet measured");
  const series = panel.series.filter(shown);
  if (!series.length) return nothing(panel, columns, "all lines are filtered out");
  const every = series.flatMap((s) => [...s.y, ...(s.low || []), ...(s.high || [])]);
  let [low, high] = extent(every);
  for (const [, level] of panel.references) {
    // A reference far away would flatten the curves.
    if (level > high && level < high + (high - low)) high = level + (high - low) * 0.06;
    if (level < low && level > low - (high - low)) low = level - (high - low) * 0.06;
  }
  const xRange = panel.markers ? extent(panel.x) : [Math.min(0, panel.x[0]), panel.x[panel.x.length - 1]];
  const { root, box, x, y } = frame(panel, columns, xRange, [low, high]);
  for (const [name, level] of panel.references) {
    if (level < low || level > high) continue;
    root.append(svg("line", { class: "reference", x1: box.left, x2: box.right, y1: y(level), y2: y(level) }));
    root.append(svg("text", { x: box.right, y: y(level) - 3, "text-anchor": "end", style: "font-size:9px" }, name));
  }
  const xs = panel.x.map(x);
  const place = (values) => values.map((v) => (v === null ? null : y(v)));
  for (const s of series) {
    if (!s.low || !s.high) continue;
    const there = panel.x.map((_, i) => i).filter((i) => s.low[i] !== null && s.high[i] !== null);
    const up = there.map((i) => `${xs[i].toFixed(1)} ${y(s.high[i]).toFixed(1)}`);
    const back = there.reverse().map((i) => `${xs[i].toFixed(1)} ${y(s.low[i]).toFixed(1)}`);
    if (up.length) root.append(svg("path", { d: `M${[...up, ...back].join("L")}Z`, fill: color(s.key), opacity: 0.14 }));
  }
  for (const s of series) {
    const line = { d: path(xs, place(s.y)), fill: "none", stroke: color(s.key), "stroke-width": 1.8, "stroke-dasharray": DASH[s.dash], "data-series": s.label };
    root.append(svg("path", line));
    if (panel.markers)
      s.y.forEach((v, i) => v !== null && root.append(svg("path", { d: SHAPES.ppo(xs[i], y(v)), fill: color(s.key) })));
  }
  const cursor = svg("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  root.append(cursor);
  root.addEventListener("pointermove", (event) => {
    const bounds = root.getBoundingClientRect();
    const at = ((event.clientX - bounds.left) / bounds.width) * root.viewBox.baseVal.width;
    let best = 0;
    xs.forEach((place, i) => { if (Math.abs(place - at) < Math.abs(xs[best] - at)) best = i; });
    cursor.setAttribute("x1", xs[best]);
    cursor.setAttribute("x2", xs[best]);
    cursor.setAttribute("visibility", "visible");
    const rows = series.filter((s) => s.y[best] !== null).sort((a, b) => b.y[best] - a.y[best]);
    tip(event, `${panel.x_label || "x"} ${short(panel.x[best])}`, rows.map((s) => [
      color(s.key), s.label, short(s.y[best]), s.low ? between(s.low[best], s.high[best]) : "", s.num_runs ? `${s.num_runs} runs` : "",
    ]));
  });
  root.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); tip(null); });
  return root;
}

function drawIntervals(panel, columns, shown, color, tip) {
  const dots = panel.dots.filter(shown);
  if (!dots.length) return nothing(panel, columns, panel.dots.length ? "all rows are filtered out" : "not yet measured");
  const left = Math.min(180, 14 + 6 * Math.max(...dots.map((d) => d.label.length)));
  const { root, box, x, y } = frame(panel, columns, extent(dots.flatMap((d) => [d.low, d.value, d.high]), 0.08), [0, dots.length], { left, yTicks: false });
  dots.forEach((d, i) => {
    const at = y(dots.length - i - 0.5);
    root.append(svg("text", { x: box.left - 8, y: at + 4, "text-anchor": "end" }, d.label));
    const row = svg("g", { "data-series": d.label });
    if (d.low !== null) row.append(svg("line", { x1: x(d.low), x2: x(d.high), y1: at, y2: at, stroke: color(d.key), "stroke-width": 6, opacity: 0.35 }));
    row.append(svg("path", { d: SHAPES.ppo(x(d.value), at), fill: color(d.key) }));
    row.append(svg("rect", { x: box.left, y: at - 12, width: box.right - box.left, height: 24, fill: "transparent" }));
    row.addEventListener("pointermove", (event) => tip(event, d.label, [[color(d.key), panel.x_label, short(d.value), between(d.low, d.high), `${d.num_runs} runs`]]));
    row.addEventListener("pointerleave", () => tip(null));
    root.append(row);
  });
  return root;
}

function drawScatter(panel, columns, shown, color, tip) {
  if (!panel.points.length) return nothing(panel, columns, "not yet measured");
  const points = panel.points.filter(shown);
  if (!points.length) return nothing(panel, columns, "all points are filtered out");
  const logs = points.map((p) => Math.log10(p.x));
  const { root, x, y } = frame(panel, columns, extent(logs, 0.1), extent(points.flatMap((p) => [p.low, p.y, p.high]), 0.08), { logX: true });
  points.forEach((p, i) => {
    const at = x(logs[i]);
    const mark = svg("g", { "data-series": p.label });
    if (p.low !== null) mark.append(svg("line", { x1: at, x2: at, y1: y(p.low), y2: y(p.high), stroke: color(p.key), "stroke-width": 1.5, opacity: 0.5 }));
    mark.append(svg("path", { d: (SHAPES[p.tags.algorithm] || SHAPES.ppo)(at, y(p.y)), fill: color(p.key) }));
    mark.append(svg("circle", { cx: at, cy: y(p.y), r: 11, fill: "transparent" }));
    mark.addEventListener("pointermove", (event) => tip(event, p.label, [
      ["", panel.x_label, short(p.x), "", ""], [color(p.key), panel.y_label, short(p.y), between(p.low, p.high), ""],
    ]));
    mark.addEventListener("pointerleave", () => tip(null));
    root.append(mark);
  });
  return root;
}

// Points on the scale "viridis", from dark to light.
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function heatColor(share) {
  const at = Math.max(0, Math.min(1, share)) * (SCALE.length - 1);
  const i = Math.min(Math.floor(at), SCALE.length - 2);
  return `rgb(${SCALE[i].map((c, k) => Math.round(c + (SCALE[i + 1][k] - c) * (at - i))).join(" ")})`;
}

function drawHeat(panel, hiddenBy, tip) {
  const rows = panel.rows.map((_, i) => i).filter((i) => !hiddenBy(panel.row_tags[i] || {}));
  const columns = panel.columns.map((_, j) => j).filter((j) => !hiddenBy(panel.column_tags[j] || {}));
  const table = html("table", { class: "heat" });
  const head = html("tr", {}, html("th"));
  columns.forEach((j) => head.append(html("th", { scope: "col" }, html("span", {}, panel.columns[j]))));
  const body = html("tbody");
  rows.forEach((i) => {
    const row = html("tr", {}, html("th", { scope: "row" }, panel.rows[i]));
    columns.forEach((j) => {
      const value = panel.values[i][j];
      const cell = html("td", {}, value !== null ? value.toFixed(2) : panel.texts[i][j] ? "·" : "");
      if (value !== null) {
        const share = (value - panel.low) / (panel.high - panel.low);
        cell.style.background = heatColor(share);
        cell.style.color = share > 0.6 ? "#000" : "#fff";
      }
      if (panel.texts[i][j]) {
        cell.addEventListener("pointermove", (event) => tip(event, panel.texts[i][j], []));
        cell.addEventListener("pointerleave", () => tip(null));
      }
      row.append(cell);
    });
    body.append(row);
  });
  table.append(html("thead", {}, head), body);
  return table;
}
