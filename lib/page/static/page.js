// What every page does: long tables begin with their first rows, and while a page prints all that can be opened is open.
(() => {
  const FIRST = 12;  // rows of a long table; book.css hides the others
  // Of use on a screen only, or of many pages
  const KEPT = ".book-code, .book-cite, .book-data, .book-claim *, .book-provenance *, :has(.book-long)";
  const shorten = (table) => {
    const count = table.tBodies[0].rows.length;
    if (count < FIRST + 4) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "book-more" });
    const set = (short) => {
      table.classList.toggle("book-short", short);
      button.textContent = short ? `Show all ${count} rows` : `Show the first ${FIRST} rows`;
      button.setAttribute("aria-expanded", !short);
    };
    button.addEventListener("click", () => set(!table.classList.contains("book-short")));
    set(true);
    table.after(button);
  };
  // The contents' arrows have no words of their own
  const name = (arrow) => {
    const page = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Sections of ${page.textContent.trim()}`);
  };
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table.book-long").forEach(shorten);
    document.querySelectorAll("summary:has(> .toctree-toggle)").forEach(name);
  });
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((part) => !part.matches(KEPT));
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.splice(0).forEach((part) => { part.open = false; }));
})();
