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
new MutationObserver(access).observe(document.documentElement, { childList: true, subtree: true });
access();
