// SPDX-License-Identifier: MIT
// The shell around the pages: head, keys, theme, and which page the address names.
import { comparePage } from "./compare.js";
import { bytes, count, el, number } from "./format.js";
import { overview } from "./overview.js";
import { processPage } from "./process.js";
import { $, LONG_SPANS, SPANS, address, readAddress, resetZoom, setPaused, shell, store, view, writeAddress } from "./view.js";

function header() {
  const meta = store.meta;
  $("host").textContent = [meta.host, meta.os, `${meta.cpus} CPUs`].filter(Boolean).join(" · ");
  const badges = [el("span", { class: `badge ${meta.source === "poll" ? "warn" : "good"}`, title: meta.fallback ?? "where the figures come from" }, meta.source)];
  if (meta.recorded) badges.push(el("span", { class: "badge" }, "recording"));
  else badges.push(el("span", { class: `badge ${store.connected ? (store.paused ? "warn" : "good") : "bad"}` }, store.connected ? (store.paused ? "paused" : "live") : "not connected"));
  const lost = (store.self.lost ?? 0) + (store.self.dropped ?? 0) + store.lost;
  badges.push(el("span", { class: `badge ${lost ? "bad" : "good"}`, title: "kernel events, facts and stream events that were lost" }, lost ? `${count(lost)} lost` : "nothing lost"));
  $("badges").replaceChildren(...badges);
  const own = meta.recorded ? "" : ` · itself ${number(store.self.cpu_percent, 2)} % of one core, ${bytes(store.self.rss_bytes)}, ${number(store.self.hz_effective, 0)} samples/s`;
  $("cost").textContent = `etwatch ${meta.version}${own}`;
  for (const button of $("spans").children) button.setAttribute("aria-pressed", String(!view.from && Number(/** @type {HTMLElement} */ (button).dataset.ms) === view.span));
}

function route() {
  shell.page?.leave();
  document.title = "etwatch";
  readAddress();
  if (view.from && !store.meta.recorded) setPaused(true); // a shared view is a fixed time
  if (view.id) processPage(); else if (view.a && view.b) comparePage(); else overview();
  header();
}

async function share() {
  const text = location.href.replace(/#.*$/, "") + address(true);
  let said = "Copied";
  try { await navigator.clipboard.writeText(text); } catch { history.replaceState(null, "", address(true)); said = "In the address bar"; }
  $("share").textContent = said;
  setTimeout(() => { $("share").textContent = "Share"; }, 1500);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.tagName === "INPUT") { if (event.key === "Escape") target.blur(); return; }
  if (event.key === "/") { document.getElementById("search")?.focus(); event.preventDefault(); }
  else if (event.key === " " && target.tagName !== "BUTTON") { $("pause").click(); event.preventDefault(); }
  else if (event.key === "t") document.getElementById("tree")?.click();
  else if (event.key === "d") $("theme").click();
  else if (event.key === "?") $("help").click();
  else if (event.key === "Escape") { if (view.from) resetZoom(); else if (view.a) location.hash = `#/process/${view.a}`; else if (view.id) location.hash = "#/"; }
  else if (/^[1-9]$/.test(event.key)) /** @type {HTMLElement|undefined} */ ($("spans").children[Number(event.key) - 1])?.click();
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* private mode */ }
}

function start() {
  let theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
  try { theme = localStorage.getItem("theme") ?? theme; } catch { /* private mode */ }
  setTheme(theme);
  shell.header = header;
  const addSpans = (/** @type {[string, number][]} */ spans) => {
    for (const [label, ms] of spans) {
      const button = el("button", { type: "button", "data-ms": ms }, label);
      button.addEventListener("click", () => { view.span = ms; view.from = view.to = 0; setPaused(false); writeAddress(false); header(); shell.page?.update(); });
      $("spans").append(button);
    }
  };
  addSpans(SPANS);
  $("pause").addEventListener("click", () => { setPaused(!store.paused); header(); });
  $("share").addEventListener("click", () => void share());
  $("theme").addEventListener("click", () => { setTheme(document.documentElement.dataset.theme === "light" ? "dark" : "light"); route(); });
  $("help").addEventListener("click", () => /** @type {HTMLDialogElement} */ ($("keys")).showModal());
  addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  store.addEventListener("second", () => { header(); if (!view.from) shell.page?.update(); });
  store.addEventListener("link", () => { if (store.meta) header(); });
  store.load().then(() => {
    if (store.meta.recorded) $("pause").hidden = true;
    if (store.meta.store) addSpans(LONG_SPANS);
    route();
    store.connect();
    if (store.meta.recorded && !store.meta.ended) void reading();
  }, (error) => {
    $("main").replaceChildren(el("p", { class: "notice" }, `The server does not answer: ${error.message}`));
    setTimeout(() => location.reload(), 3000);
  });
}

/** A recording that is still being read. */
async function reading() {
  await new Promise((done) => setTimeout(done, 1000));
  await store.load();
  header();
  shell.page?.update();
  if (!store.meta.ended) await reading();
}

start();
