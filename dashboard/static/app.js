// Keeps the pages "Overview" and "Flow" fresh. Everything is written as text: nothing that comes is taken for markup.
"use strict";

const live = document.getElementById("live");
const progress = document.getElementById("in-progress");
const steps = document.getElementById("steps");
const health = document.getElementById("health");
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

function says(text, lost) {
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("lost", lost);
}

function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function pulse(name) {
  if (still.matches) return;
  for (const edge of document.querySelectorAll(`[data-into="${name}"]`)) {
    edge.classList.remove("moving");
    void edge.getBoundingClientRect(); // begins the animation anew
    edge.classList.add("moving");
  }
}

function fill(element, cells) {
  for (const cell of element.querySelectorAll("[data-cell]")) put(cell, cells[cell.dataset.cell]);
}

function showOperator(name, cells) {
  const box = document.querySelector(`[data-op="${name}"]`);
  if (!box) return;
  if (box.querySelector('[data-cell="line"]').textContent !== cells.line) pulse(name);
  fill(box, cells);
  box.setAttribute("class", `op ${cells.state}`);
}

function showHealth(found) {
  const ill = found !== undefined && (found.state === "ill" || found.state === "unknown");
  const verdict = document.getElementById("verdict");
  says(ill ? (verdict ? "" : found.verdict) : "Live", ill);
  if (!found || !verdict) return;
  put(verdict, found.verdict);
  verdict.className = `verdict-line is-${found.state}`;
  resize(health, found.rows.length, addTopic);
  found.rows.forEach((row, at) => {
    const card = health.children[at];
    fill(card, row);
    card.dataset.topic = row.topic;
    card.className = `card is-${row.state}`;
  });
}

function resize(list, count, add) {
  while (list.children.length < count) add();
  while (list.children.length > count) list.lastElementChild.remove();
}

function addTopic() {
  const item = added(health, "li", "");
  added(item, "h3", "").dataset.cell = "title";
  const line = added(item, "p", "");
  added(line, "strong", "").dataset.cell = "says";
  line.append(" ");
  added(line, "span", "", "dim").dataset.cell = "since";
  added(item, "p", "", "detail").dataset.cell = "detail";
}

function added(parent, tag, text, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}

function addStep() {
  const item = added(steps, "li", "", "card");
  added(item, "a", "");
  added(item, "br", "");
  added(item, "span", "", "dim");
}

function showSteps(rows) {
  resize(steps, rows.length, addStep);
  rows.forEach((row, at) => { // in place, so that the focus stays
    const link = steps.children[at].querySelector("a");
    put(link, row.text);
    if (link.getAttribute("href") !== row.link) link.setAttribute("href", row.link);
    put(steps.children[at].querySelector("span"), row.more);
  });
  document.getElementById("steps-none").hidden = rows.length > 0;
}

function showInProgress(rows) {
  progress.replaceChildren(
    ...rows.map((row) => {
      const item = document.createElement("li");
      added(item, "strong", row.kind);
      item.append(` by ${row.who} in ${row.where} `);
      added(item, "time", row.since, "dim");
      item.append(document.createElement("br"));
      added(item, "span", row.steps, "steps");
      return item;
    }),
  );
  document.getElementById("in-progress-none").hidden = rows.length > 0;
}

function show(now) {
  showHealth(now.health);
  put(document.getElementById("at"), now.at);
  if (steps && now.steps) showSteps(now.steps);
  if (!progress) return;
  for (const [name, cells] of Object.entries(now.cells)) showOperator(name, cells);
  for (const [name, count] of Object.entries(now.ends)) {
    const number = document.querySelector(`[data-count="${name}"]`);
    if (number && number.textContent !== count) pulse(name);
    put(number, count);
  }
  showInProgress(now.in_progress);
}

const events = new EventSource(steps ? "/events?steps" : "/events");
events.onerror = () => says("Connection lost: the figures are the last ones", true);
events.onmessage = (event) => show(JSON.parse(event.data));
window.addEventListener("pagehide", () => events.close());
