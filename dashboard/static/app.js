// Keeps the page "Now" fresh. Everything is written as text: nothing that comes is taken for markup.
"use strict";

const live = document.getElementById("live");
const hand = document.getElementById("in-hand");
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

function showOperator(name, cells) {
  const box = document.querySelector(`[data-op="${name}"]`);
  const row = document.querySelector(`[data-row="${name}"]`);
  if (!box || !row) return;
  const before = row.querySelector('[data-cell="done"]').textContent;
  if (before !== cells.done) pulse(name);
  for (const cell of row.querySelectorAll("[data-cell]")) put(cell, cells[cell.dataset.cell]);
  for (const cell of box.querySelectorAll("[data-cell]")) put(cell, cells[cell.dataset.cell]);
  box.classList.toggle("busy", cells.in_flight !== "0");
  box.classList.toggle("hurt", cells.failed !== "0");
  box.classList.toggle("idle", cells.done === "0" && cells.in_flight === "0");
}

function added(parent, tag, text, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
}

function showInHand(rows) {
  hand.replaceChildren(
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
  document.getElementById("in-hand-none").hidden = rows.length > 0;
}

function show(now) {
  for (const [name, cells] of Object.entries(now.cells)) showOperator(name, cells);
  for (const [name, count] of Object.entries(now.ends)) {
    const number = document.querySelector(`[data-count="${name}"]`);
    if (number && number.textContent !== String(count)) pulse(name);
    put(number, String(count));
  }
  showInHand(now.in_hand);
  put(document.getElementById("at"), now.at);
}

const events = new EventSource("/events");
events.onopen = () => says("Live", false);
events.onerror = () => says("Connection lost: the figures are the last ones", true);
events.onmessage = (event) => show(JSON.parse(event.data));
window.addEventListener("pagehide", () => events.close());
