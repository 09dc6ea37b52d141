// SPDX-License-Identifier: MIT
// Drives the dashboard in headless Chromium. usage: node web.mjs FOLDER-OF-TOOLS URL MODE [ARGUMENT...]. Writes what it
// saw as JSON lines {name, value}; the last one is "errors": messages of the console and requests to other hosts. A mode
// that waits for the test reads a line from standard input.
import { createRequire } from "module";
import { readFileSync } from "fs";
import readline from "readline";

const [folder, url, mode, ...args] = process.argv.slice(2);
const { chromium } = createRequire(folder + "/")("playwright-core");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu",
  "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, acceptDownloads: true, colorScheme: "dark", reducedMotion: "reduce",
  permissions: ["clipboard-read", "clipboard-write"] });
const page = await context.newPage();
page.setDefaultTimeout(60000);
const errors = [];
const say = (name, value) => console.log(JSON.stringify({ name, value }));
page.on("console", (m) => { if (m.type() === "error") errors.push(m.text()); });
page.on("pageerror", (e) => errors.push(String(e)));
page.on("request", (r) => { if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url())) errors.push("other host: " + r.url()); });

const line = () => new Promise((done) => readline.createInterface({ input: process.stdin }).once("line", done));
const hash = (part) => page.waitForFunction((text) => location.hash.includes(text), part);
const noHash = (part) => page.waitForFunction((text) => !location.hash.includes(text), part);
const row = (pid) => page.locator(`.row.item[href^="#/process/${pid}-"]`).first();

async function search(pid) {
  await page.goto(url);
  await page.fill("#search", String(pid));
  await row(pid).waitFor();
}

async function open(pid, query = "") {
  await search(pid);
  const id = (await row(pid).getAttribute("href")).replace("#/process/", "");
  await page.goto(`${url}#/process/${id}${query}`);
  await page.waitForSelector(".charts .uplot canvas");
  return id;
}

async function save(text) {
  const download = page.waitForEvent("download");
  await page.click(`.segmented button:text-is("${text}")`);
  const file = await download;
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

async function drag(selector, from, to) {
  const box = await page.locator(selector).first().boundingBox();
  await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
}

/** Serious findings of axe on the page. */
async function serious() {
  await page.waitForTimeout(300);
  const source = readFileSync(folder + "/node_modules/axe-core/axe.min.js", "utf8");
  const found = await page.evaluate(async (code) => {
    if (!window.axe) (0, eval)(code);
    return (await window.axe.run(document, { resultTypes: ["violations"] })).violations.map((v) => ({ id: v.id, impact: v.impact, node: v.nodes[0].html.slice(0, 160) }));
  }, source);
  return found.filter((v) => v.impact === "serious" || v.impact === "critical");
}

const modes = {
  // A process from its start to its exit: search, table, page, zoom.
  async life(pid) {
    await search(pid);
    say("name", await row(pid).locator(".cell.name").textContent());
    say("address", page.url());
    say("csv", (await save("CSV")).name);
    await row(pid).click();
    await page.waitForSelector(".charts canvas");
    await page.waitForFunction(() => /[1-9]/.test(document.querySelector(".figures")?.textContent ?? ""));
    say("title", await page.locator("h1").textContent());
    await drag(".u-over", 0.7, 0.95);
    await hash("from=");
    say("paused", await page.locator("#pause").textContent());
    await page.keyboard.press("Escape");
    await noHash("from=");
    say("ready", true);
    await line();
    await page.waitForFunction(() => document.querySelector(".title .badge")?.textContent.includes("exited"));
    say("exited", await page.locator(".title .badge").textContent());
    say("scripts", await page.evaluate(() => document.querySelectorAll("script").length));
  },

  // What is exported of a process: the values of its charts.
  async exports(pid) {
    await open(pid);
    await page.waitForFunction(() => document.querySelector(".title .badge")?.textContent.includes("exited"));
    await page.waitForTimeout(1500); // the last second is closed
    await page.evaluate(() => document.querySelector('[data-ms="300000"]').click());
    await page.waitForResponse((r) => r.url().includes("from=-300000"));
    await page.waitForTimeout(500);
    const csv = await save("CSV"), png = await save("PNG"), trace = await save("Perfetto");
    say("csv", csv.bytes.toString());
    say("png", { name: png.name, magic: png.bytes.subarray(1, 4).toString(), size: png.bytes.length });
    say("trace", { name: trace.name, base64: trace.bytes.toString("base64") });
  },

  // Two processes over each other, then swapped; then two times of one.
  async compare(a, b) {
    await open(a);
    await page.click('button:text-is("Compare…")');
    await page.fill("dialog.compare input", b);
    await page.click(`dialog.compare [data-id^="${b}-"]`);
    await hash("compare?a=");
    await page.waitForSelector("table.totals tbody tr");
    const cpu = () => page.evaluate(() => [...document.querySelectorAll("table.totals tbody tr")].filter((r) => r.textContent.startsWith("CPU time")).map((r) => [...r.children].map((c) => c.textContent))[0]);
    await page.waitForFunction(() => /×[0-9.]+/.test(document.querySelector("table.totals")?.textContent ?? ""));
    say("names", await page.locator(".title .sub").textContent());
    say("csv", (await save("CSV")).bytes.toString());
    say("row", await cpu());
    await page.click('button:text-is("Swap")');
    await hash(`a=${b}-`);
    await page.goto(`${url}#/`);
    await open(a);
    await page.click('button:text-is("Compare…")');
    await page.click('button:text-is("The same process, the time before")');
    await hash("bfrom=");
    await page.waitForSelector("table.totals tbody tr");
    say("times", await page.locator(".bar .count").textContent());
  },

  // Scheduling on demand; pause; the address of a fixed view.
  async scheduling(pid) {
    await open(pid);
    await page.click('button:text-is("Show the scheduling of its threads")');
    await hash("details=1");
    await page.waitForFunction(() => /threads, /.test(document.querySelector(".strip .count")?.textContent ?? ""));
    say("state", await page.locator(".strip .count").textContent());
    say("spoken", await page.locator(".strip > .visually-hidden").textContent());
    await drag(".lanes", 0.4, 0.6);
    await page.waitForFunction(() => document.querySelector(".strip .count").textContent.includes("held"));
    await page.keyboard.press("Escape"); // a zoom of the strip is none of the page
    await page.goto(`${url}#/`);
    await page.click("#pause");
    say("paused", await page.locator("#pause").getAttribute("aria-pressed"));
    await page.click("#share");
    await page.waitForFunction(() => document.querySelector("#share").textContent !== "Share");
    say("shared", await page.evaluate(() => navigator.clipboard.readText().catch(() => location.href)));
  },

  // Every page, in both themes: axe, no scrolling sideways on a phone.
  async accessible(pid, other) {
    const found = [];
    const check = async (where) => { found.push(...(await serious()).map((v) => ({ where, ...v }))); };
    const id = await open(pid, "?details=1"), second = await open(other);
    await page.evaluate(() => document.querySelector("main").append(document.createElement("img")));
    await check("a picture without words");
    say("checker works", found.splice(0).map((v) => v.id));
    for (const theme of ["dark", "light"]) {
      await page.goto(`${url}#/`);
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await page.waitForSelector(".row.item");
      await check(`overview, ${theme}`);
      await page.goto(`${url}#/process/${id}?details=1`);
      await page.waitForSelector(".u-over");
      await check(`process, ${theme}`);
      await page.goto(`${url}#/compare?a=${id}&b=${second}`);
      await page.waitForSelector("table.totals tbody tr");
      await check(`compare, ${theme}`);
    }
    await page.click("#help");
    await check("help");
    await page.keyboard.press("Escape");
    say("axe", found);
    const wide = [];
    await page.setViewportSize({ width: 390, height: 844 });
    for (const path of ["#/", `#/process/${id}`, `#/compare?a=${id}&b=${second}`]) {
      await page.goto(url + path);
      await page.waitForTimeout(700);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wide.push(`${path}: ${over} pixels`);
    }
    say("wide", wide);
    // The table by keyboard alone.
    await page.setViewportSize({ width: 1360, height: 850 });
    await page.goto(`${url}#/`);
    await page.waitForSelector(".row.item");
    await page.locator(".scroll").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await hash("#/process/");
    say("keyboard", true);
  },

  // 5,000 processes: only the rows on screen exist. How long a frame takes while the table scrolls is reported.
  async many() {
    await page.route("**/api/v1/processes?**", async (route) => {
      const answer = await (await route.fetch()).json();
      const width = answer.columns.length;
      answer.processes = Array.from({ length: 5000 }, (_, i) => ({ id: `${i + 10}-${i + 1}`, pid: i + 10, ppid: Math.max(1, i >> 2), name: `worker-${i}`, user: "root", cgroup: "/",
        start_ms: 1, exit_ms: null, values: Array.from({ length: width }, (_, c) => ((i * 7919 + c) % 1000) / 10) }));
      await route.fulfill({ json: answer });
    });
    await page.goto(url);
    await page.waitForFunction(() => document.querySelectorAll(".row.item").length > 5);
    say("listed", await page.locator(".bar .count").textContent());
    const frames = await page.evaluate(() => new Promise((done) => {
      const scroll = document.querySelector(".scroll"), times = [];
      let last = performance.now(), rows = 0, changes = 0;
      new MutationObserver((list) => { changes += list.length; }).observe(scroll, { childList: true, subtree: true, attributes: true, characterData: true });
      const step = (now) => {
        times.push(now - last);
        last = now;
        scroll.scrollTop += 137;
        rows = Math.max(rows, document.querySelectorAll(".row.item").length);
        if (times.length < 240) requestAnimationFrame(step);
        else { times.sort((a, b) => a - b); done({ rows, changes: changes / times.length, median: times[120], p95: times[228], top: scroll.scrollTop }); }
      };
      requestAnimationFrame(step);
    }));
    say("frames", frames);
    await page.click("#tree");
    await page.waitForFunction(() => document.querySelector(".twig"));
    await page.fill("#search", "worker-4999");
    await page.waitForFunction(() => document.querySelectorAll(".row.item").length < 3);
    say("found", await page.locator(".row.item .cell.name").first().textContent());
  },

  // Marked work with its causes: in its process, and of all processes.
  async spans(pid, ...pictures) {
    await open(pid);
    await page.waitForSelector(".spans .slowest li .causes i");
    say("names", await page.locator(".spans tbody tr td:first-child").allTextContents());
    say("counts", await page.locator(".spans tbody tr td:nth-child(2)").allTextContents());
    say("spoken", await page.locator(".spans .slowest li .causes").first().getAttribute("aria-label"));
    say("why", await page.locator(".spans .slowest li .why").first().textContent());
    if (pictures[0]) await page.screenshot({ path: pictures[0], fullPage: true });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(300);
    say("wide", await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
    if (pictures[1]) await page.screenshot({ path: pictures[1], fullPage: true });
    await page.setViewportSize({ width: 1360, height: 850 });
    await page.goto(`${url}#/`);
    await page.waitForSelector(".spans-of-all tbody tr");
    say("all", await page.locator(".spans-of-all tbody tr td:first-child").allTextContents());
    say("axe", await serious());
    if (pictures[2]) await page.screenshot({ path: pictures[2], fullPage: true });
  },

  // A process of an earlier run, from the history on disk.
  async earlier(pid, ...pictures) {
    await page.goto(url);
    await page.waitForSelector(".row.item");
    say("spans", await page.locator("#spans button").allTextContents());
    await page.click('#spans button:text-is("1 d")');
    await hash("span=86400000");
    await page.click("#earlier");
    await hash("earlier=1");
    await page.fill("#search", String(pid));
    const link = page.locator(`.earlier a[href^="#/process/${pid}-"]`).first();
    await link.waitFor();
    say("wide", await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
    say("axe", await serious());
    if (pictures[0]) await page.screenshot({ path: pictures[0] });
    await link.click();
    await hash("from=");
    await page.waitForSelector(".charts .uplot canvas");
    await page.waitForFunction(() => document.querySelector(".bar .count")?.textContent.includes("from disk"));
    say("title", await page.locator("h1").textContent());
    say("csv", (await save("CSV")).bytes.toString());
    if (pictures[1]) await page.screenshot({ path: pictures[1] });
  },

  // An alert: in the overview, and as a mark in the charts of its process.
  async alert(pid) {
    await search(pid);
    await page.waitForSelector(".alerts li a");
    say("text", await page.locator(".alerts li a").first().textContent());
    await page.locator(".alerts li a").first().click();
    await hash(`#/process/${pid}-`);
    await page.waitForSelector(".charts .uplot canvas");
    // Marks are drawn on a canvas: what is drawn there is recorded.
    await page.evaluate(() => {
      window.drawn = [];
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { window.drawn.push(text); return fill.call(this, text, ...rest); };
    });
    await page.waitForFunction(() => window.drawn.includes("cpu_percent"));
    say("marks", await page.evaluate(() => [...new Set(window.drawn)].filter((t) => t === "cpu_percent" || t === "start")));
  },

  // A recording of Windows: its stacks as a flame graph that can be zoomed, and the strip of its switches.
  async stacks(pid) {
    await open(pid, "?details=1");
    await page.waitForSelector(".flame .frame");
    say("frames", await page.locator(".flame .frame").count());
    say("root", await page.locator(".flame .frame").first().getAttribute("title"));
    say("state", await page.locator(".flame").evaluate((e) => e.previousElementSibling.textContent));
    const second = page.locator(".flame .frame").nth(1), name = (await second.getAttribute("title")).split(":")[0];
    await second.click();
    say("zoomed", (await page.locator(".flame .frame").allTextContents()).slice(0, 2).includes(name));
    await page.waitForFunction(() => !/starting|reading/.test(document.querySelector(".strip .count").textContent));
    say("strip", await page.locator(".strip .count").textContent());
  },

  // The strip of a recording, around the middle of a range.
  async lanes(pid, from, to) {
    await open(pid, `?details=1&from=${from}&to=${to}`);
    await page.waitForFunction(() => /threads, /.test(document.querySelector(".strip .count")?.textContent ?? ""));
    say("state", await page.locator(".strip .count").textContent());
    say("spoken", await page.locator(".strip > .visually-hidden").textContent());
  },

  // A click on the head of a column sorts by it, a second one turns the order.
  async sorting() {
    await page.goto(url);
    await page.waitForSelector(".row.item");
    await page.click("#pause"); // values stay
    const pids = () => page.locator(".row.item .cell:nth-child(2)").allTextContents();
    const head = page.locator('.row.head button:has-text("PID")');
    await head.click();
    await hash("sort=");
    say("first", (await pids()).slice(0, 10).map(Number));
    await head.click();
    say("second", (await pids()).slice(0, 10).map(Number));
    say("spoken", await page.locator('.row.head [aria-sort]:has-text("PID")').getAttribute("aria-sort"));
  },

  // A device has a tile with its figures.
  async device() {
    await page.goto(url);
    await page.waitForFunction(() => /40 %/.test(document.querySelector(".tile.device .figure b")?.textContent ?? ""));
    say("tile", await page.locator(".tile.device").first().textContent());
  },

  // A recording in the same pages.
  async recording(pid) {
    await search(pid);
    say("total", await page.locator(".bar .count").textContent());
    await open(pid, "?details=1");
    await page.waitForFunction(() => /threads|no switches|not |unavailable/.test(document.querySelector(".strip .count")?.textContent ?? ""));
    say("strip", await page.locator(".strip .count").textContent());
    await page.waitForFunction(() => /samples|part/.test(document.querySelector(".flame")?.previousElementSibling?.textContent ?? ""));
    say("frames", await page.locator(".frame").count());
  },

  // The pictures of the README: two views, as PNG. How much they differ from those of before is reported.
  async pictures(pid, first, second, ...before) {
    const paint = async () => Math.max(0, ...(await page.evaluate(() => performance.getEntriesByType("paint").map((p) => p.startTime))));
    await page.setViewportSize({ width: 1280, height: 760 });
    await page.goto(url);
    await page.waitForSelector(".row.item");
    say("first paint", Math.round(await paint()));
    await page.waitForTimeout(2500);
    await page.screenshot({ path: first });
    await open(pid, "?details=1");
    await page.waitForFunction(() => /threads, /.test(document.querySelector(".strip .count")?.textContent ?? "") || !document.querySelector(".strip"));
    await page.waitForTimeout(2500);
    await page.screenshot({ path: second });
    const difference = [];
    for (const [i, path] of before.entries()) {
      const images = [path, [first, second][i]].map((p) => `data:image/png;base64,${readFileSync(p).toString("base64")}`);
      difference.push(await page.evaluate(async (sources) => {
        const pixels = await Promise.all(sources.map(async (source) => {
          const image = new Image();
          image.src = source;
          await image.decode();
          const canvas = document.createElement("canvas");
          canvas.width = 16; canvas.height = 10;
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0, 16, 10);
          return context.getImageData(0, 0, 16, 10).data;
        }));
        return pixels[0].reduce((sum, v, at) => sum + Math.abs(v - pixels[1][at]), 0) / pixels[0].length;
      }, images));
    }
    say("difference", difference);
  },
};

try {
  await modes[mode](...args);
} catch (error) {
  errors.push(`${mode}: ${error.message}`);
}
say("errors", errors);
await browser.close();
process.exit(0);
