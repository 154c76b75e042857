// What the theme leaves out for keyboards and screen readers: names of landmarks, focus on what scrolls.
function access() {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    const at = [...document.querySelectorAll(".md-code__nav")].indexOf(nav) + 1;
    nav.setAttribute("aria-label", `Code block ${at}`);
  });
  document.querySelectorAll('input[name="__palette"]:not([tabindex])').forEach((choice) => {
    choice.tabIndex = -1; // hidden from readers, so out of the way of the Tab key too; the system's setting decides
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wide, i) => {
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", `Table ${i + 1}`);
  });
}
// Arguments in docstrings, "name  what it is" line by line, as a list.
function listed() {
  document.querySelectorAll(".doc-contents p:not([data-read])").forEach((text) => {
    text.dataset.read = "";
    const entries = [];
    for (const line of text.innerHTML.split("\n")) {
      const found = /^(\S(?:.*?\S)?) {2,}(\S.*)$/.exec(line);
      if (found) entries.push([found[1], found[2]]);
      else if (entries.length && /^ +\S/.test(line)) entries[entries.length - 1][1] += " " + line.trim();
      else return;
    }
    const list = document.createElement("dl");
    list.className = "arguments";
    list.innerHTML = entries.map(([name, what]) => `<dt><code>${name}</code></dt><dd>${what}</dd>`).join("");
    text.replaceWith(list);
  });
}
new MutationObserver(listed).observe(document.documentElement, { childList: true, subtree: true });
listed();
new MutationObserver(access).observe(document.documentElement, { childList: true, subtree: true });
access();
