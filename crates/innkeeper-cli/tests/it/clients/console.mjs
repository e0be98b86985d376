// Uses the console with the keyboard alone, in Chromium at two sizes, and checks each page in both colour
// schemes with axe. Prints what it saw as JSON.
//
// Arguments: the URL of the console, an API key, the program of the browser, the directory of the
// packages, and optionally a directory for screenshots.
import { createRequire } from "node:module";

const [url, key, program, packages, shots] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

const MAX_TABS = 60;
const seen = { flows: 0, pages: 0, violations: [], problems: [] };

/** A page that a person uses without a mouse. */
class Person {
  constructor(page, name) {
    this.page = page;
    this.name = name;
  }

  /** Presses Tab until an element has the focus, which is visible then. */
  async tabTo(selector) {
    for (let presses = 0; presses < MAX_TABS; presses += 1) {
      await this.page.keyboard.press("Tab");
      const found = await this.page.evaluate((selector) => {
        const active = document.activeElement;
        return active.matches(selector) && getComputedStyle(active).outlineStyle !== "none";
      }, selector);
      if (found) return;
    }
    throw new Error(`${this.name}: no visible focus on \`${selector}\` at ${this.page.url()}`);
  }

  /** Activates the focused element, which loads a page. */
  async enter() {
    await Promise.all([this.page.waitForNavigation(), this.page.keyboard.press("Enter")]);
  }

  async follow(selector) {
    await this.tabTo(selector);
    await this.enter();
  }

  /** Replaces the value of a field. */
  async fill(selector, text) {
    await this.tabTo(selector);
    await this.page.keyboard.press("Control+A");
    await this.page.keyboard.type(text);
  }

  async expect(selector) {
    await this.page.waitForSelector(selector, { timeout: 10_000 });
  }

  /** Checks the page as it is: accessibility in both schemes, and that it fits into the window. */
  async check(title) {
    await this.expect(`h1:has-text("${title}")`);
    await this.page.evaluate(axe);
    for (const colorScheme of ["light", "dark"]) {
      await this.page.emulateMedia({ colorScheme });
      // The schemes differ in their colours only.
      const rules = colorScheme === "light" ? {} : { runOnly: ["color-contrast"] };
      const options = { resultTypes: ["violations"], ...rules };
      const run = (options) => globalThis.axe.run(document, options);
      for (const { id, impact, nodes } of (await this.page.evaluate(run, options)).violations) {
        const isGrave = impact === "serious" || impact === "critical";
        const place = `${this.name} ${colorScheme} ${title}`;
        if (isGrave) seen.violations.push(`${place}: ${id}: ${nodes[0].html}`);
      }
      if (shots) {
        const file = `${title}-${colorScheme}-${this.name}`.replaceAll(/[^a-z0-9]+/gi, "-");
        await this.page.screenshot({ path: `${shots}/${file}.png`, fullPage: true });
      }
      seen.pages += 1;
    }
    const excess = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (excess > 0) seen.problems.push(`${this.name} ${title}: ${excess} pixels too wide`);
  }
}

/** Everything an operator does, by keyboard. */
async function operate(person) {
  const { page } = person;
  await page.goto(`${url}/servers`);
  await person.check("Sign in");
  await person.fill("#credential", "a wrong key");
  await person.enter();
  await person.expect("[role=alert]");
  await person.fill("#credential", key);
  await person.enter();
  await person.check("Servers");

  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const focused = await page.evaluate(() => document.activeElement.id);
  if (focused !== "main") seen.problems.push(`${person.name}: the first link skips to ${focused}`);
  await person.follow("#servers a");
  await person.check("Server a");

  await person.follow("nav a[href=tools]");
  await person.fill("#q", "query");
  await person.enter();
  await person.check("Tools");
  await person.follow(".tools a");
  await person.fill("#f0", "words & <tags>");
  await person.fill("#f1", "many");
  await person.tabTo("#f2");
  await page.keyboard.press("ArrowDown");
  await person.tabTo("input[type=checkbox]");
  await page.keyboard.press("Space");
  await person.follow("main form button");
  await person.expect("#f1-notes .problem");
  await person.check("Tool a.query");
  await person.fill("#f1", "7");
  await person.follow("main form button");
  await person.expect(".state.good");
  const result = await page.textContent("pre.result");
  const expected = { text: "words & <tags>", limit: 7, order: "score", kinds: ["page"] };
  const called = JSON.parse(result).arguments;
  if (JSON.stringify(called) !== JSON.stringify(expected)) seen.problems.push(`called with ${result}`);
  await person.check("Call a.query");

  await page.goto(`${url}/tool?name=b.echo`);
  await person.fill("#f0", "hi");
  await person.follow("main form button");
  await person.expect(".state.busy");
  // The section is read again without a load of the page.
  await person.expect("#call progress");
  await person.check("Call b.echo");
  await person.follow("#cancel");
  await person.expect(".state.muted");

  for (const title of ["Calls", "Charts", "Audit"]) {
    await person.follow(`nav a[href=${title.toLowerCase()}]`);
    await person.check(title);
  }
  await person.follow(".who button");
  await person.expect("#credential");
  seen.flows += 1;
}

/** The main flow in a browser without scripts. */
async function operateWithoutScripts(browser) {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${url}/sign-in`);
  await page.fill("#credential", key);
  await page.click("button");
  await page.click("nav a[href=tools]");
  await page.click("a[href='tool?name=a.query']");
  await page.fill("#f0", "x");
  await page.selectOption("#f2", "1");
  await page.click("main form button");
  await page.waitForSelector(".state.good", { timeout: 10_000 });
  await context.close();
  seen.flows += 1;
}

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const flows = [{ width: 390, height: 844 }, { width: 1280, height: 800 }].map(async (viewport) => {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  const name = `${viewport.width}`;
  page.on("pageerror", (error) => seen.problems.push(`${name}: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    const isGrave = ["error", "warning"].includes(message.type());
    // The responses to wrong keys and arguments are no problems.
    if (isGrave && !/status of (401|422)/.test(text)) seen.problems.push(`${name}: ${text}`);
  });
  await operate(new Person(page, name)).catch((error) => {
    seen.problems.push(`${name} at ${page.url()}: ${error.message}`);
  });
  await context.close();
});
await Promise.all([...flows, operateWithoutScripts(browser)]);
await browser.close();
console.log(JSON.stringify(seen));
