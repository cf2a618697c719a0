// Keeps the pages "Overview" and "Flow" fresh. Everything is written as text: nothing that comes is taken for markup.
"use strict";

const live = document.getElementById("live");
const progress = document.getElementById("in-progress");
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

function showHealth(health) {
  const ill = health !== undefined && (health.state === "ill" || health.state === "unknown");
  const verdict = document.getElementById("verdict");
  says(ill ? (verdict ? "" : health.verdict) : "Live", ill);
  if (!health || !verdict) return;
  put(verdict, health.verdict);
  verdict.className = `verdict-line is-${health.state}`;
  for (const row of health.rows) {
    const card = document.querySelector(`[data-topic="${row.topic}"]`);
    if (!card) continue;
    fill(card, row);
    card.className = `card is-${row.state}`;
  }
}

function added(parent, tag, text, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}

function showInProgress(rows) {
  progress.replaceChildren(
    ...rows.map((row) => {
      const item = document.createElement("li");
      added(item, "strong", row.kind);
      item.append(` by ${row.who} in ${row.where} `);
      added(item, "span", row.since, "dim");
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
  if (!progress) return;
  for (const [name, cells] of Object.entries(now.cells)) showOperator(name, cells);
  for (const [name, count] of Object.entries(now.ends)) {
    const number = document.querySelector(`[data-count="${name}"]`);
    if (number && number.textContent !== String(count)) pulse(name);
    put(number, String(count));
  }
  showInProgress(now.in_progress);
}

const events = new EventSource("/events");
events.onerror = () => says("Connection lost: the figures are the last ones", true);
events.onmessage = (event) => show(JSON.parse(event.data));
window.addEventListener("pagehide", () => events.close());
