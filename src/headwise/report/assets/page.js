// Filters, legends, tables and the tooltip of the page; figures are drawn by charts.js.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const hidden = { environment: new Set(), view: new Set(), algorithm: new Set(), factorization: new Set() };
const color = (key) => data.colors[key] || "#888";

const tipBox = document.getElementById("tip");

function tip(event, title, rows) {
  tipBox.hidden = event === null;
  if (event === null) return;
  const table = html("table");
  for (const [tint, ...texts] of rows) {
    const row = html("tr");
    texts.forEach((text, i) => {
      const cell = html("td");
      if (i === 0 && tint) {
        const dot = html("i");
        dot.style.background = tint;
        cell.append(dot);
      }
      cell.append(text);
      row.append(cell);
    });
    table.append(row);
  }
  tipBox.replaceChildren(html("strong", {}, title), table);
  const { width, height } = tipBox.getBoundingClientRect();
  const right = event.clientX + 16 + width < innerWidth;
  tipBox.style.left = `${Math.max(4, right ? event.clientX + 16 : event.clientX - 16 - width)}px`;
  tipBox.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 6))}px`;
}

const isHidden = (tags) => Object.entries(tags).some(([name, value]) => hidden[name]?.has(value));

// --- figures ---------------------------------------------------------------------------------------

function drawFigure(figure) {
  const holder = document.querySelector(`[data-figure="${figure.name}"]`);
  const grid = holder.querySelector(".panels");
  const off = (holder.off ??= new Set());
  const keep = (item) => !off.has(item.label) && !hidden.factorization.has(item.key) && !hidden.view.has(item.key) && !isHidden(item.tags || {});
  const drawn = [];
  for (const panel of figure.panels) {
    if (isHidden(panel.tags)) continue;
    const box = html("div", { class: "panel" }, html("h4", {}, panel.title));
    if (panel.kind === "lines") box.append(drawLines(panel, figure.columns, keep, color, tip));
    if (panel.kind === "intervals") box.append(drawIntervals(panel, figure.columns, keep, color, tip));
    if (panel.kind === "scatter") box.append(drawScatter(panel, figure.columns, keep, color, tip));
    if (panel.kind === "heat") box.append(drawHeat(panel, isHidden, tip));
    drawn.push(box);
  }
  grid.style.setProperty("--columns", figure.columns);
  grid.replaceChildren(...drawn);
  holder.closest(".block").hidden = !drawn.length;
}

function drawLegend(figure) {
  const entries = new Map();
  for (const panel of figure.panels)
    for (const s of panel.series || []) if (!entries.has(s.label)) entries.set(s.label, s);
  for (const panel of figure.panels)
    for (const p of panel.points || []) if (!entries.has(p.label)) entries.set(p.label, p);
  if (entries.size < 2) return;
  const holder = document.querySelector(`[data-figure="${figure.name}"]`);
  const legend = html("div", { class: "legend", role: "group", "aria-label": "Lines" });
  for (const [label, s] of entries) {
    const shape = SHAPES[s.tags?.algorithm];
    const sample = shape
      ? svg("path", { d: shape(12, 5), fill: color(s.key) })
      : svg("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke: color(s.key), "stroke-width": 3, "stroke-dasharray": DASH[s.dash] });
    const swatch = svg("svg", { viewBox: "0 0 24 10" }, sample);
    const button = html("button", { type: "button", "aria-pressed": "true" }, swatch, label);
    button.addEventListener("click", () => {
      const off = holder.off;
      off.has(label) ? off.delete(label) : off.add(label);
      button.setAttribute("aria-pressed", String(!off.has(label)));
      drawFigure(figure);
    });
    legend.append(button);
  }
  holder.querySelector(".panels").before(legend);
}

// --- filters over the whole page -------------------------------------------------------------------

function chips(title, entries, onToggle) {
  const group = html("div", { class: "chips", role: "group", "aria-label": title }, html("span", {}, title));
  for (const [value, label] of entries) {
    const button = html("button", { type: "button", "aria-pressed": "true", "data-value": value }, label);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      onToggle(value, on);
    });
    group.append(button);
  }
  return group;
}

function refresh() {
  data.figures.forEach(drawFigure);
  for (const row of document.querySelectorAll("tr[data-tags]")) {
    row.hidden = isHidden(JSON.parse(row.dataset.tags));
  }
  showClaims();
}

for (const filter of data.filters) {
  if (filter.values.length < 2) continue;
  const group = chips(filter.title, filter.values, (value, on) => {
    on ? hidden[filter.name].delete(value) : hidden[filter.name].add(value);
    const some = Object.values(hidden).some((values) => values.size);
    document.querySelector(".filters summary").classList.toggle("some", some);
    refresh();
  });
  document.getElementById("filters").append(group);
}

// --- the claims ledger -----------------------------------------------------------------------------

const claimsOff = { verdict: new Set(), topic: new Set() };

function showClaims() {
  let count = 0;
  const rows = document.querySelectorAll(".claims tr[data-claim]");
  for (const row of rows) {
    const tags = JSON.parse(row.dataset.claim);
    row.hidden = claimsOff.verdict.has(tags.verdict) || claimsOff.topic.has(tags.topic);
    count += !row.hidden;
  }
  const shown = document.querySelector(".claims .count");
  if (shown) shown.textContent = `${count} of ${rows.length} shown`;
}

const pick = document.querySelector(".claims .pick");
if (pick) {
  const seen = { verdict: new Set(), topic: new Set() };
  for (const row of document.querySelectorAll(".claims tr[data-claim]")) {
    const tags = JSON.parse(row.dataset.claim);
    seen.verdict.add(tags.verdict);
    seen.topic.add(tags.topic);
  }
  for (const name of ["verdict", "topic"]) {
    const entries = [...seen[name]].map((value) => [value, value]);
    pick.append(chips(name === "verdict" ? "Verdict" : "Topic", entries, (value, on) => {
      on ? claimsOff[name].delete(value) : claimsOff[name].add(value);
      showClaims();
    }));
  }
  pick.append(html("span", { class: "count" }));
}

// --- tables are sorted by a click on a column ------------------------------------------------------

function sortBy(head) {
  const table = head.closest("table");
  const column = [...head.parentNode.children].indexOf(head);
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const order = x !== "" && y !== "" && !isNaN(x) && !isNaN(y) ? x - y : x.localeCompare(y);
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows);
}

for (const head of document.querySelectorAll(".scroll thead th")) {
  head.tabIndex = 0;
  head.addEventListener("click", () => sortBy(head));
  head.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sortBy(head);
  });
}

document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
});

data.figures.forEach((figure) => { drawFigure(figure); drawLegend(figure); });
showClaims();
document.documentElement.dataset.ready = "true";
