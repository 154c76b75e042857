// Opens pages in headless Chromium: screenshots, console errors, requests, width, axe-core.  Run by tools/pages.py.
// argv: JSON file {chromium, modules, shots, pages: [{name, path, keep}]}; prints one JSON object a line for each look.
import { createRequire } from "node:module";
import { readFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const asked = JSON.parse(readFileSync(process.argv[2], "utf8"));
const require = createRequire(join(asked.modules, "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SIZES = [
  { name: "desktop", width: 1280, height: 900, media: "screen" },
  { name: "phone", width: 390, height: 844, media: "screen" },
  { name: "print", width: 794, height: 1123, media: "print" },
];
const profile = mkdtempSync(join(tmpdir(), "pages-"));
const flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: asked.chromium, headless: true, args: flags, bypassCSP: true,
});

async function look(page, size, scheme) {
  const tab = await browser.newPage();
  const faults = [];
  const url = page.url ?? pathToFileURL(page.path).href;
  const home = page.site ?? url;
  tab.on("console", (said) => { if (said.type() === "error") faults.push(`console: ${said.text()}`); });
  tab.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  tab.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(home) && !to.startsWith("data:") && !to.startsWith("blob:")) faults.push(`request: ${to}`);
  });
  await tab.emulateMedia({ media: size.media, colorScheme: scheme });
  await tab.setViewportSize({ width: size.width, height: size.height });
  await tab.goto(url, { waitUntil: "load" });
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 1) faults.push(`wider than the window by ${wide} px`);
  const shot = join(asked.shots, `${page.name}-${size.name}${scheme === "dark" ? "-dark" : ""}.png`);
  await tab.screenshot({ path: shot, fullPage: true });
  if (page.keep && size.name === "desktop" && scheme === "light") {
    const tall = await tab.evaluate(() => document.documentElement.scrollHeight);
    await tab.setViewportSize({ width: 1000, height: 900 });
    await tab.screenshot({ path: page.keep, clip: { x: 0, y: 0, width: 1000, height: Math.min(tall, 900) } });
    await tab.setViewportSize({ width: size.width, height: size.height });
  }
  if (size.media === "screen") {
    await tab.evaluate(axe);
    const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    for (const v of found.violations) {
      const where = v.nodes.slice(0, 2).map((n) => n.target.join(" ")).join(", ");
      faults.push(`axe ${v.id} (${v.impact}): ${v.help}: ${where} (${v.nodes.length})`);
    }
  }
  await tab.close();
  console.log(JSON.stringify({ page: page.name, size: size.name, scheme, shot, faults }));
}

for (const page of asked.pages) {
  for (const size of SIZES) {
    for (const scheme of size.media === "print" ? ["light"] : ["light", "dark"]) await look(page, size, scheme);
  }
}
await browser.close();
rmSync(profile, { recursive: true, force: true });
