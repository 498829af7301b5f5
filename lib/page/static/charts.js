// Replace each chart's static picture by a live view once it comes near, and follow the page's light or dark theme.
(() => {
  const ink = { light: "#24292f", dark: "#d5d9de" };
  const AHEAD = "300px";  // how far below or above what is seen a chart is drawn
  const MOST_ROWS = 400;  // of a table
  const MOST_MARKS = 4000;  // that are drawn as SVG, so that each can be reached by keyboard; more, on a canvas
  const live = new WeakMap();  // chart node -> vega-embed result, so that a redraw keeps what the reader chose
  const specs = new WeakMap();  // chart node -> specification, once it is needed

  const GROUND = 0x14 / 255;  // of a dark page, about as bright as its three parts are
  const LEGIBLE = 4.5;  // contrast of lines and marks with it
  const bright = (parts) => parts.map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4))
    .reduce((sum, p, i) => sum + p * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (parts) => (bright(parts) + 0.05) / (bright([GROUND, GROUND * 1.2, GROUND * 1.5]) + 0.05);

  // A colour of the light page, mixed with as little white as makes it legible on the dark one.
  const lighter = (colour) => {
    let parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
    while (contrast(parts) < LEGIBLE) parts = parts.map((p) => p + 0.04 * (1 - p));
    return "#" + parts.map((p) => Math.round(p * 255).toString(16).padStart(2, "0")).join("");
  };
  // What is faint on white would vanish on a dark page: shaded regions, and bars of intervals.
  const FAINT = 1.8;
  const onDark = (spec) => {
    const { datasets, ...rest } = spec;
    const coloured = JSON.stringify(rest).replace(/"(#[0-9a-f]{6})"/g, (_, colour) => `"${colour === ink.light ? ink.dark : lighter(colour)}"`);
    const walk = (part) => {
      if (!part || typeof part !== "object") return;
      const { mark } = part;
      ["opacity", "strokeOpacity", "fillOpacity"].filter((name) => mark?.[name])
        .forEach((name) => { mark[name] = Math.min(1, FAINT * mark[name]); });
      Object.values(part).forEach(walk);
    };
    const told = JSON.parse(coloured);
    walk(told);
    return { ...told, datasets };
  };

  const config = (theme) => ({
    background: "transparent",
    axis: { labelColor: ink[theme], titleColor: ink[theme] },
    legend: { labelColor: ink[theme], titleColor: ink[theme] },
    header: { labelColor: ink[theme], titleColor: ink[theme] },
    title: { color: ink[theme] },
    text: { color: ink[theme] },
  });

  // Data lies in the page column by column; null is no value.
  const rows = (columns) => {
    const lists = Object.entries(columns);
    return (lists[0] || [0, []])[1].map((_, i) =>
      Object.fromEntries(lists.filter(([, list]) => list[i] !== null).map(([name, list]) => [name, list[i]])));
  };
  const read = (node) => {
    if (!specs.has(node)) {
      const spec = JSON.parse(node.querySelector('script[type="application/json"]').textContent);
      Object.keys(spec.datasets || {}).forEach((name) => { spec.datasets[name] = rows(spec.datasets[name]); });
      specs.set(node, spec);
    }
    return specs.get(node);
  };

  const bound = (spec) => (spec.params || []).filter((p) => p.bind && p.bind !== "legend");
  const named = (node) => node.closest("figure[id]")?.id || "figure";

  // What is not there is not told.
  const told = (value) => Object.entries(value).filter(([, v]) => !/^(NaN\S*|null|undefined|)$/.test(String(v).trim()));
  const tip = (value, sanitize) => {
    if (value === null || typeof value !== "object") return sanitize(String(value));
    const cells = told(value).map(([k, v]) => `<tr><td class="key">${sanitize(k)}</td><td class="value">${sanitize(String(v))}</td></tr>`);
    return `<table><tbody>${cells.join("")}</tbody></table>`;
  };

  // Sliders count places in a list: their value stands beside them, in the words of the chart, and is what a screen reader says.
  const speak = (place, spec, view) => (spec.params || []).forEach(({ name }) => {
    const input = place.querySelector(`input[type="range"][name="${name}"]`);
    if (!input || !spec.params.some((p) => p.name === `${name}_text`)) return;
    const value = Object.assign(document.createElement("output"), { className: "book-value" });
    input.parentElement.append(value);
    const say = () => {
      value.textContent = view.signal(`${name}_text`);
      input.setAttribute("aria-valuetext", value.textContent);
    };
    view.addSignalListener(`${name}_text`, say);
    say();
  });

  // A control that would change nothing is not shown.
  const spare = (place, spec, view) => (spec.params || []).forEach(({ name }) => {
    const input = place.querySelector(`.vega-bind :is(input, select)[name="${name}"]`);
    if (!input || !spec.params.some((p) => p.name === `${name}_needed`)) return;
    const row = input.closest(".vega-bind");
    const set = () => { row.hidden = !view.signal(`${name}_needed`); };
    view.addSignalListener(`${name}_needed`, set);
    set();
  });

  // A long menu of networks is grouped by what they learn; Vega counts the options, whose order stays.
  const group = (select) => {
    const sets = [...select.options].map((o) => (o.text.match(/ on ([^,]+)/) || [])[1]);
    const met = sets.filter((s, i) => s !== sets[i - 1]);
    if (sets.length < 5 || !sets.every(Boolean) || met.length < 2 || new Set(met).size < met.length) return;
    const chosen = select.selectedIndex, options = [...select.options];
    met.forEach((set) => {
      const part = document.createElement("optgroup");
      part.label = set;
      part.append(...options.filter((_, i) => sets[i] === set));
      select.append(part);
    });
    select.selectedIndex = chosen;
  };

  // What pointing at every mark would tell, for those who cannot point.
  const marks = (item, found) => {
    if (item.tooltip && typeof item.tooltip === "object" && !Array.isArray(item.tooltip)) found.push(Object.fromEntries(told(item.tooltip)));
    (item.items || []).forEach((one) => marks(one, found));
    return found;
  };
  const table = (records) => {
    const seen = [...new Map(records.map((r) => [JSON.stringify(r), r])).values()];
    const names = [...new Set(seen.flatMap(Object.keys))];
    const line = (cells, kind) => {
      const row = document.createElement("tr");
      row.append(...cells.map((text) => Object.assign(document.createElement(kind), { textContent: text ?? "" })));
      return row;
    };
    const whole = Object.assign(document.createElement("table"), { className: "book-table" });
    whole.createTHead().append(line(names, "th"));
    whole.createTBody().append(...seen.slice(0, MOST_ROWS).map((r) => line(names.map((n) => r[n]), "td")));
    if (seen.length > MOST_ROWS) whole.createCaption().textContent = `The first ${MOST_ROWS} of ${seen.length} rows.`;
    return whole;
  };
  // The quiet line under a figure: its address, what can be saved, its data as a table.
  const tools = (node) => node.closest("figure")?.querySelector(".book-tools") || node;
  const tabulate = (node) => {
    const place = tools(node).querySelector(":scope > .book-data"), view = live.get(node)?.view;
    if (!place?.open || !view) return;
    let records = marks(view.scenegraph().root, []);
    if (!records.length) {
      const data = Object.values(read(node).datasets || {}).sort((a, b) => b.length - a.length)[0] || [];
      records = data.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k.replaceAll("_", " "), v])));
    }
    const frame = Object.assign(document.createElement("div"), { className: "book-data-rows", tabIndex: 0 });
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "data of this chart");
    frame.append(table(records));
    place.replaceChildren(place.firstElementChild, frame);
  };
  const offer = (node) => {
    if (tools(node).querySelector(":scope > .book-data")) return;
    const place = Object.assign(document.createElement("details"), { className: "book-data" });
    place.append(Object.assign(document.createElement("summary"), { textContent: "Table", ariaLabel: "What it shows, as a table" }));
    place.addEventListener("toggle", () => tabulate(node));
    tools(node).append(place);
  };

  // --- what is chosen, in the figure's title and in the page's address: #fig-x?goal=2&network=MLP ---

  const follow = (node, spec, view) => {
    const title = node.closest("figure")?.querySelector(".book-title");
    if (!title || !(spec.params || []).some((p) => p.name === "title_text")) return;
    const say = () => { title.textContent = view.signal("title_text"); };
    title.setAttribute("aria-live", "polite");
    view.addSignalListener("title_text", say);
    say();
  };
  const inAddress = () => {
    const [name, query = ""] = location.hash.slice(1).split("?");
    return { name, query: new URLSearchParams(query) };
  };
  const READ = { number: Number, boolean: (text) => text === "true" };
  const asked = (node, spec) => {
    const { name, query } = inAddress();
    const there = name === named(node) ? bound(spec).filter((p) => query.has(p.name)) : [];
    return Object.fromEntries(there.map((p) => [p.name, (READ[typeof p.value] || String)(query.get(p.name))]));
  };
  // The reader's own job, which the sheet's form keeps, too
  const JOB = "book-job";
  const job = (spec) => {
    const known = spec.usermeta?.job && JSON.parse(localStorage.getItem(JOB) || "{}");
    return Object.fromEntries((spec.usermeta?.job || []).filter((name) => known[name]).map((name) => [name, String(known[name])]));
  };
  // The figure's part of an address, with what is chosen other than at first.
  const chosenAddress = (node, spec, view) => {
    const moved = view ? bound(spec).filter(({ name, value }) => view.signal(name) !== value) : [];
    const query = new URLSearchParams(moved.map(({ name }) => [name, view.signal(name)]));
    return `#${named(node)}${moved.length ? "?" : ""}${query}`;
  };
  const keep = (node, spec, view) => {
    history.replaceState(null, "", chosenAddress(node, spec, view));
    const own = spec.usermeta?.job;
    if (own) localStorage.setItem(JOB, JSON.stringify(Object.fromEntries(own.map((name) => [name, view.signal(name)]))));
  };

  // A chart may slide once, when it is first seen: unless its reader wants less motion, chose a state, or is faster.
  const [WAIT, SLIDE] = [700, 2600];  // milliseconds
  const slides = (spec) => spec.usermeta?.slides;
  const still = (kept) => Object.keys(kept || {}).length > 0 || matchMedia("(prefers-reduced-motion: reduce)").matches;
  const slide = (node, name, view) => {
    let stopped = false;
    node.addEventListener("input", ({ target }) => { stopped ||= target.name === name; });
    const begun = performance.now() + WAIT;
    const frame = (now) => {
      if (stopped || live.get(node)?.view !== view) return;
      const part = Math.min(1, Math.max(0, (now - begun) / SLIDE));
      view.signal(name, Math.round(100 * part * part * (3 - 2 * part)) / 100).run();
      if (part < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };

  // --- by keyboard ---

  // Drawn as SVG, a chart has an element for each mark: the arrow keys go from one that has words to the next, and show them.
  const centre = (part) => {
    const { left, top, width, height } = part.getBoundingClientRect();
    return { bubbles: true, cancelable: true, clientX: left + width / 2, clientY: top + height / 2 };
  };
  const point = (part, ...kinds) => kinds.forEach((kind) => part.dispatchEvent(new PointerEvent(kind, centre(part))));
  const words = (item) => told(item.tooltip).map(([name, value]) => `${name}: ${value}`).join("; ");
  const worded = (svg) => {
    const found = [...svg.querySelectorAll(".role-mark:not(.mark-line, .mark-area) > *")].filter(({ __data__: item }) => item && item.tooltip && typeof item.tooltip === "object");
    const at = new Map(found.map((part) => {
      const { mark, fill, stroke, x, y } = part.__data__;
      return [part, [found.findIndex((one) => one.__data__.mark === mark), fill || stroke || "", x || 0, y || 0]];
    }));
    const order = (a, b) => { const i = a.findIndex((value, n) => value !== b[n]); return i < 0 ? 0 : a[i] < b[i] ? -1 : 1; };
    return found.sort((a, b) => order(at.get(a), at.get(b)));
  };
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const walkMarks = (svg, event) => {
    const list = worded(svg), now = list.indexOf(document.activeElement);
    const to = { Home: 0, End: list.length - 1 }[event.key] ?? (event.key in STEPS ? Math.min(list.length - 1, Math.max(0, now + STEPS[event.key])) : null);
    if (event.key === "Escape" && now >= 0) svg.focus();
    if (to === null || !list.length) return;
    event.preventDefault();
    list[to].setAttribute("tabindex", "-1");
    list[to].setAttribute("aria-label", words(list[to].__data__));
    list[to].focus();
    point(list[to], "pointerover", "pointermove");
  };

  // An entry of a legend that singles out what it names is a button: Enter chooses it, and Enter again, or Escape, shows all.
  const entries = (svg) => [...svg.querySelectorAll(".role-legend-label > text")].filter((text) => text.__data__?.mark?.interactive);
  const chosen = (view) => {
    const stores = view.getState({ data: (name) => name.endsWith("_store"), signals: () => false }).data || {};
    return Object.values(stores).flat().flatMap((tuple) => tuple.values || []);
  };
  const reach = (node, spec, view) => {
    const svg = node.querySelector("svg.marks");
    if (!svg) return;
    svg.setAttribute("role", "group");
    const has = worded(svg).length;
    svg.setAttribute("aria-label", (spec.description || "chart") + (has ? " The arrow keys go from mark to mark." : ""));
    if (has) svg.setAttribute("tabindex", "0");
    const single = new Set(chosen(view).map(String));
    entries(svg).forEach((text) => {
      text.closest(".role-legend")?.setAttribute("role", "group");
      const pressed = single.has(String(text.__data__.datum.value));
      const set = { tabindex: "0", role: "button", "aria-pressed": pressed, "aria-label": `show only ${text.textContent}` };
      Object.entries(set).forEach(([name, value]) => text.setAttribute(name, value));
    });
  };
  const listen = (node, spec, view) => {
    const svg = node.querySelector("svg.marks");
    if (!svg) return;
    const again = () => view.runAsync().then(() => reach(node, spec, view)).then(() => tabulate(node));
    svg.addEventListener("keydown", (event) => {
      const entry = entries(svg).find((text) => text === event.target);
      if (!entry) { walkMarks(svg, event); return; }
      const clear = event.key === "Escape" || entry.getAttribute("aria-pressed") === "true";
      if (!["Enter", " ", "Escape"].includes(event.key)) return;
      event.preventDefault();
      point(clear ? svg : entry, "click");  // beside the marks, which chooses none
      again();
    });
    svg.addEventListener("click", () => setTimeout(again, 50));
    svg.addEventListener("focusout", ({ target }) => { if (target !== svg) point(target, "pointerout"); });
    new MutationObserver(() => reach(node, spec, view)).observe(svg, { childList: true, subtree: true });
  };

  // --- to take along ---

  const WIDTH = 800;  // pixels of a picture
  const LETTERS = 112;  // of a line of its words
  const lines = (text) => text.split(/\s+/).reduce((made, word) => {
    const longer = `${made.at(-1)} ${word}`.trim();
    return longer.length > LETTERS ? [...made, word] : [...made.slice(0, -1), longer];
  }, [""]).filter(Boolean);
  // The title, the caption without what can be done on the page alone, and the address.
  const titled = (node, spec) => {
    const figure = node.closest("figure");
    if (!figure) return spec;
    const caption = figure.querySelector("figcaption")?.cloneNode(true);
    caption?.querySelectorAll(".book-live").forEach((part) => part.remove());
    const page = /^http/.test(location.protocol) ? location.href.split("#")[0] : location.pathname.split("/").at(-1);
    const own = [].concat(spec.title?.text ?? spec.title ?? []);
    const text = lines(figure.querySelector(".book-title")?.textContent || "");
    const subtitle = [...lines(caption?.textContent || ""), page + chosenAddress(node, spec, live.get(node)?.view), ...own];
    return { ...spec, title: { text, subtitle, anchor: "start", fontSize: 16, fontWeight: "bold", subtitleFontSize: 12, subtitlePadding: 6, offset: 14 } };
  };
  // As it stands, but in the ink of the light page, on white.
  const picture = async (node) => {
    const spec = titled(node, { ...structuredClone(read(node)), width: WIDTH });
    spec.config = { ...spec.config, background: "white" };
    const place = document.createElement("div");  // in the page, since panels share its width
    Object.assign(place.style, { position: "absolute", left: "-9999px", width: `${WIDTH}px` });
    document.body.append(place);
    const { view } = await vegaEmbed(place, spec, { config: config("light"), actions: false });
    place.remove();
    const chosen = new Set(bound(spec).map((p) => p.name));
    const state = live.get(node)?.view.getState({ signals: (name) => chosen.has(name), data: (name) => name.endsWith("_store") });
    if (state) await view.setState(state).runAsync();
    return view;
  };
  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  // Every table that is drawn, one below the other, all of their columns side by side.
  const csv = (node) => {
    const tables = Object.values(read(node).datasets || {}).filter((table, _, all) => table.length > 1 || all.length === 1);
    const names = [...new Set(tables.flat().flatMap(Object.keys))];
    const line = (n) => (row) => [...(tables.length > 1 ? [n + 1] : []), ...names.map((name) => quoted(row[name] ?? ""))].join(",");
    const head = [...(tables.length > 1 ? ["table"] : []), ...names].map(quoted).join(",");
    return [head, ...tables.flatMap((table, n) => table.map(line(n)))].join("\n") + "\n";
  };
  const FORMS = {
    PNG: async (node) => (await picture(node)).toImageURL("png", 2),
    SVG: async (node) => URL.createObjectURL(new Blob([await (await picture(node)).toSVG()], { type: "image/svg+xml" })),
    CSV: async (node) => URL.createObjectURL(new Blob([csv(node)], { type: "text/csv" })),
  };
  const take = async (node, form) => {
    const link = Object.assign(document.createElement("a"), { download: `${named(node)}.${form.toLowerCase()}`, href: await FORMS[form](node) });
    link.click();
    if (link.href.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const takeAlong = (node) => {
    if (tools(node).querySelector(":scope > .book-take")) return;
    const place = Object.assign(document.createElement("span"), { className: "book-take" });
    Object.keys(FORMS).forEach((form) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: form });
      button.setAttribute("aria-label", `Save this figure as ${form}`);
      button.addEventListener("click", () => take(node, form).catch(console.error));
      place.append(button);
    });
    tools(node).append(place);
  };

  const draw = async (node) => {
    const spec = read(node);
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    if (node.dataset.drawn === theme) return;
    let place = node.querySelector(".vl-live");
    if (!place) {
      place = document.createElement("div");
      place.className = "vl-live";
      node.append(place);
    }
    const form = node.dataset.marks <= MOST_MARKS ? "svg" : "canvas";
    const before = live.get(node);
    const kept = before ? Object.fromEntries(bound(spec).map((p) => [p.name, before.view.signal(p.name)])) : asked(node, spec);
    before?.finalize();
    const result = await vegaEmbed(place, theme === "dark" ? onDark(spec) : spec, {
      renderer: form,
      config: config(theme),
      tooltip: { formatTooltip: tip },
      actions: false,  // its editor is on another host; what else it offers, `takeAlong` does
    });
    live.set(node, result);
    node.vegaView = result.view;
    Object.entries(before ? kept : { ...job(spec), ...kept }).forEach(([name, value]) => result.view.signal(name, value));
    const moves = !before && slides(spec) && !still(kept);
    if (moves) result.view.signal(slides(spec), 0);
    if ((spec.params || []).some((p) => p.name === "still")) result.view.signal("still", false);
    await result.view.runAsync();
    if (moves) slide(node, slides(spec), result.view);
    node.classList.toggle("vl-slides", Boolean(slides(spec)));
    follow(node, spec, result.view);
    speak(place, spec, result.view);
    spare(place, spec, result.view);
    place.querySelectorAll(".vega-bind select").forEach(group);
    place.querySelector("canvas")?.setAttribute("aria-label", spec.description || "chart");
    node.querySelector(":scope > img")?.classList.add("vl-still");  // print has use for it
    listen(node, spec, result.view);
    reach(node, spec, result.view);
    takeAlong(node);
    offer(node);
    tabulate(node);
    window.dispatchEvent(new Event("resize"));  // the page may have moved while Vega was at work
    node.dataset.drawn = theme;
  };

  // A sidebar that opens, or is laid out late, leaves a chart another width, but the window, which alone Vega watches, its own.
  const widths = new WeakMap();
  const watch = new ResizeObserver((entries) => {
    const moved = entries.filter(({ target, contentRect }) => widths.get(target) !== contentRect.width);
    moved.forEach(({ target, contentRect }) => widths.set(target, contentRect.width));
    if (moved.length) window.dispatchEvent(new Event("resize"));
  });

  // A drawn chart may be higher than its picture: what the address names stays where it is until the reader scrolls.
  const hold = () => {
    const target = document.getElementById(inAddress().name);
    if (!target) return;
    const page = document.documentElement.style;
    let place = null;
    const go = () => {
      target.scrollIntoView({ behavior: "instant" });
      place = scrollY;
    };
    const grown = new ResizeObserver(go);
    const left = () => {
      if (place === null || Math.abs(scrollY - place) <= 1) return;
      grown.disconnect();
      removeEventListener("scroll", left);
      page.overflowAnchor = "";
    };
    page.overflowAnchor = "none";  // else the browser scrolls, too
    grown.observe(document.body);
    addEventListener("scroll", left);
  };

  document.addEventListener("DOMContentLoaded", () => {
    // One drawing of a chart at a time: two at once, as when the theme is set while a page loads, measure each other's canvas.
    const last = new Map();
    const next = (node) => last.set(node, (last.get(node) || Promise.resolve()).then(() => draw(node)).catch(console.error));
    const near = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
      near.unobserve(target);
      next(target);
    }), { rootMargin: AHEAD });
    document.querySelectorAll(".vl-chart").forEach((node) => {
      near.observe(node);
      watch.observe(node);
      node.addEventListener("input", () => setTimeout(() => {  // Vega answers in between
        tabulate(node);
        keep(node, read(node), live.get(node).view);
      }, 100));
      node.addEventListener("click", ({ target }) => target.closest("canvas, svg.marks") && setTimeout(() => tabulate(node), 100));
    });
    hold();
    addEventListener("hashchange", hold);
    new MutationObserver(() => last.forEach((_, node) => next(node)))
      .observe(document.documentElement, { attributeFilter: ["data-theme"] });
  });
})();
