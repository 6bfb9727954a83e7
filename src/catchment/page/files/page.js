"use strict";

// Asks for /status.json and draws it. All that comes from the feed enters the page as text, never as markup.

const EVERY_MS = 2000;
const SVG = "http://www.w3.org/2000/svg";
const STATES = { following: "good", copying: "busy", renewing: "busy", paused: "warn", halted: "warn", stale: "warn" };
// Minutes that a plot shows: as few as hold what there is.
const SPANS = [5, 15, 60];
// Beyond so many tables the others are counted, and beyond so many that are copied their shards are left out.
const TABLES_MAX = 300, PARTED_MAX = 20;
const SURE = { counted: "all of them", keys: "by the keys that are left", catalog: "as the server estimated", unknown: "of how many is unknown" };
const byId = (id) => document.getElementById(id);

function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const grouped = new Intl.NumberFormat("en");
const number = (value) => (value === null || value === undefined ? "?" : grouped.format(Math.round(value)));

function small(value) {
  if (value === null || value === undefined) return "?";
  return value >= 10 || value === 0 ? number(value) : value.toFixed(1);
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "?";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

function bytes(size) {
  if (size === null || size === undefined) return "?";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

// The likely time, and the range or the reason why there is none. `through`: what is said where nothing is left.
function forecast(value, through) {
  const { low = null, likely = null, high = null, why = "" } = value || {};
  if (likely === null) return ["unknown", why];
  if (likely === 0 && high === 0) return [through, ""];
  if (high === null) return [duration(likely), `${duration(low)} or more: ${why}`];
  return [duration(likely), `${duration(low)} to ${duration(high)}`];
}

function cell(text, kind = "", note = "") {
  const made = element("td", text, kind);
  if (note) made.append(element("small", note));
  return made;
}

function row(cells, kind = "") {
  const made = element("tr", "", kind);
  made.append(...cells);
  return made;
}

function rows(id, made, none) {
  const table = byId(id);
  if (!made.length) {
    const empty = cell(none, "none");
    empty.colSpan = table.querySelectorAll("th").length;
    made = [row([empty])];
  }
  table.tBodies[0].replaceChildren(...made);
}

function state(text, kind) {
  const made = element("td");
  made.append(element("span", text, `state ${kind}`));
  return made;
}

// What the run compares by itself, where it does.
function comparisons(status, add) {
  const { last = null, now = null, next = "" } = (status && status.verification) || {};
  const differ = (one) => (one.differences ? `${number(one.differences)} keys differ` : "equal");
  if (last) add("compared", differ(last), `${last.ended}, ${number(last.rows)} rows${last.mended ? `; ${number(last.mended)} keys mended` : ""}`);
  if (now) add("comparing", differ(now), now.waits || `${number(now.rows)} of about ${number(now.expected)} rows`);
  if (next) add("compares next", next);
}

function facts(shown) {
  const { progress, history } = shown;
  const list = [];
  const add = (name, value, note = "") => {
    const box = element("div");
    const said = element("dd", value);
    if (note) said.append(element("small", note));
    box.append(element("dt", name), said);
    list.push(box);
  };
  const lag = progress ? Math.max(0, ...progress.logs.map((log) => log.lag_seconds)) : null;
  const rate = (values) => (values.length ? values.slice(-6).reduce((a, b) => a + b, 0) / Math.min(6, values.length) : null);
  add("lag", duration(lag));
  add("cut window", shown.window_us === null ? "?" : `${(shown.window_us / 1000).toFixed(1)} ms`);
  add("epochs a second", small(rate(history.epochs)));
  add("changes a second", small(rate(history.changes)));
  if (progress) {
    add("initial copy", ...forecast(progress.copy, "done"));
    add("logs", ...forecast(progress.log, "caught up"));
    add("until all is up to date", ...forecast(progress.whole, "up to date now"));
  }
  comparisons(shown.status, add);
  byId("facts").replaceChildren(...list);
}

function shards(shown) {
  const { status, progress } = shown;
  const troubled = new Set((status ? status.troubles : []).map((one) => one.shard));
  const logs = new Map((progress ? progress.logs : []).map((log) => [log.shard, log]));
  const known = status ? Object.keys(status.cut) : [...logs.keys()];
  rows("shards", known.map((shard) => {
    const log = logs.get(shard) || {};
    const away = troubled.has(shard) || (status && shard in status.absent);
    const [left, note] = log.left ? forecast(log.left, "keeps up") : ["?", ""];
    const name = element("th", shard);
    name.scope = "row";
    if (shown.addresses[shard]) name.append(element("small", shown.addresses[shard]));
    const waits = (status ? status.throttled : []).find((one) => one.shard === shard);
    const since = status && status.absent[shard] ? `rows as of ${status.absent[shard]}` : "";
    const where = state(away ? "away" : waits ? "throttled" : "answers", away ? "bad" : waits ? "warn" : "good");
    const said = since || (waits ? waits.text : "");
    if (said) where.append(element("small", said));
    return row([
      name, where, cell(log.position || (status ? status.cut[shard] : "?")),
      cell(duration(log.lag_seconds), "number"), cell(bytes(log.backlog_bytes), "number"),
      cell(`${bytes(log.written)}/s`, "number"), cell(`${bytes(log.read)}/s`, "number"), cell(left, "", note),
    ]);
  }), "no epoch yet");
}

function bar(label, done, expected) {
  const made = element("td");
  if (!expected) return made;
  const share = Math.min(1, done / expected);
  const shape = document.createElement("progress");
  shape.max = 1;
  shape.value = share;
  shape.setAttribute("aria-label", `${label} copied`);
  made.append(shape, ` ${Math.floor(share * 100)} %`);
  return made;
}

function tables(status) {
  const made = [];
  const all = status ? [...status.tables] : [];
  const first = (table) => (table.parts.length || table.as_of ? 0 : 1);
  all.sort((a, b) => first(a) - first(b));
  const parted = all.filter((table) => table.parts.length).length <= PARTED_MAX;
  for (const table of all.slice(0, TABLES_MAX)) {
    const open = table.parts.length > 0;
    const [left, why] = open ? forecast(table.left, "") : ["", ""];
    const name = element("th", table.table);
    name.scope = "row";
    const said = table.as_of ? `readers see epoch ${table.as_of}: ${table.reason}` : table.refused.join("; ");
    if (said) name.append(element("small", said));
    made.push(row([
      name, state(table.state, STATES[table.state] || ""), cell(number(table.rows), "number"),
      cell(open ? number(table.expected) : "", "number"),
      open ? bar(table.table, table.rows, table.expected) : cell(""),
      cell(open ? small(table.rate) : "", "number"), cell(left, "", why),
    ]));
    for (const part of parted ? table.parts : []) {
      const [rest, reason] = forecast(part.left, "copied");
      made.push(row([
        cell(part.shard), cell(SURE[part.basis] || ""), cell(number(part.rows), "number"),
        cell(number(part.expected), "number"), bar(`${table.table} on ${part.shard}`, part.rows, part.expected),
        cell(part.basis === "counted" ? "" : small(part.rate), "number"), cell(rest, "", reason),
      ], "part"));
    }
  }
  if (all.length > TABLES_MAX) made.push(row([cell(`and ${all.length - TABLES_MAX} more: catchment tables`, "none")]));
  rows("tables", made, "no epoch yet");
  const outside = status ? status.tables_not_carried : [];
  byId("uncarried").textContent = outside.map((one) => `not carried: ${one.table} on ${one.shards.join(", ")} (${one.reason})`).join("\n");
}

function lists(status) {
  rows("orders", (status ? status.orders : []).map((one) => row([
    cell(String(one.number), "number"), cell(one.order), cell(one.user), cell(one.asked),
    cell(one.state === "open" ? "queued; a run carries it out" : `${one.state}: ${one.answer}`, "text"),
  ])), "none");
  rows("errors", (status ? status.errors : []).map((one) => row([
    cell(one.last), cell(String(one.count), "number"), cell(one.kind), cell(one.message, "text"),
  ])), "none");
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// One or two lines over the last hour, or what there is of it. The top is the largest value, rounded up to 1, 2 or 5.
function plot(id, label, series, said) {
  const svg = byId(id), width = Math.max(svg.clientWidth, 200), height = Math.max(svg.clientHeight, 80);
  const left = 56, bottom = 18;
  const span = SPANS.find((minutes) => minutes * 12 >= Math.max(...series.map((values) => values.length))) || 60;
  const steps = span * 12;
  const most = Math.max(1e-9, ...series.flat());
  const power = 10 ** Math.floor(Math.log10(most));
  const top = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= most) || most;
  const x = (back) => width - (back / steps) * (width - left);
  const y = (value) => 6 + (1 - value / top) * (height - bottom - 6);
  const parts = [drawn("title", {}, label)];
  for (const share of [0, 0.5, 1]) {
    parts.push(drawn("line", { class: "axis", x1: left, x2: width, y1: y(share * top), y2: y(share * top) }));
    parts.push(drawn("text", { x: left - 6, y: y(share * top) + 4, "text-anchor": "end" }, said(share * top)));
  }
  for (const share of [1, 0.5, 0]) {
    const anchor = share === 1 ? "start" : share === 0 ? "end" : "middle";
    const text = share ? `−${span * share} min` : "now";
    parts.push(drawn("text", { x: x(steps * share), y: height - 4, "text-anchor": anchor }, text));
  }
  series.forEach((values, place) => {
    if (!values.length) return;
    const points = values.map((value, at) => `${x(values.length - 1 - at).toFixed(1)},${y(value).toFixed(1)}`);
    parts.push(drawn("polyline", { class: place ? "two" : "one", points: points.join(" ") }));
  });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", label);
  svg.replaceChildren(...parts);
}

function plots(history) {
  const last = (values) => (values.length ? values[values.length - 1] : null);
  plot("lag-plot", "lag over the last hour, in seconds", [history.lag], (value) => duration(value));
  plot("rate-plot", "rows copied and changes applied a second, over the last hour", [history.rows, history.changes], small);
  byId("lag-now").textContent = history.lag.length ? duration(last(history.lag)) : "";
  byId("rate-now").textContent = history.rows.length ? `${small(last(history.rows))} and ${small(last(history.changes))}` : "";
}

function head(shown) {
  const { status } = shown;
  document.title = `${shown.feed} – Catchment`;
  byId("feed").textContent = shown.feed;
  health(shown.fault, shown.unready || []);
  const run = status && status.runner ? `${status.runner}${status.run ? ` since ${status.run.started}` : ""}` : "";
  byId("epoch").textContent = status && status.epoch_text ? `epoch ${status.epoch_text}` : "no epoch yet";
  const strategy = run && status.run && status.run.strategy !== "rewind" ? `, rows are copied by ${status.run.strategy}` : "";
  byId("runner").textContent = `Catchment ${shown.version}${run ? `, run by ${run}` : ""}${strategy}`;
  byId("as-of").textContent = `as of ${new Date(shown.time_us / 1000).toISOString().slice(0, 19)}Z`;
  const said = status ? status.troubles.map((one) => one.text) : [];
  if (shown.status_fault) said.push(shown.status_fault);
  byId("troubles").hidden = said.length === 0;
  byId("troubles").querySelector("ul").replaceChildren(...said.map((text) => element("li", text)));
}

function health(fault, unready) {
  byId("health").textContent = fault || unready.join("; ") || "healthy";
  byId("health").className = fault ? "bad" : unready.length ? "warn" : "good";
}

async function look() {
  try {
    const answer = await fetch("/status.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const shown = await answer.json();
    head(shown);
    facts(shown);
    shards(shown);
    tables(shown.status);
    lists(shown.status);
    plots(shown.history);
  } catch (error) {
    health(`the run does not answer (${error.message})`);
  }
  setTimeout(look, EVERY_MS);
}

look();
