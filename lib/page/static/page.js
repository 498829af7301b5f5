// What every page does: on paper nothing can be opened, so answers, rules and lists are open while it prints.
(() => {
  const KEPT = ".book-code, .book-cite, .book-data, .book-provenance *";  // of use on a screen only, or long
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((part) => !part.matches(KEPT));
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.splice(0).forEach((part) => { part.open = false; }));
})();
