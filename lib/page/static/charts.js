// Replace each chart's static picture by a live view once it comes near, and follow the page's light or dark theme.
(() => {
  const ink = { light: "#24292f", dark: "#d5d9de" };
  const AHEAD = "300px";  // how far below or above what is seen a chart is drawn
  const MOST_ROWS = 400;  // of a table
  const live = new WeakMap();  // chart node -> vega-embed result, so that a redraw keeps what the reader chose
  const specs = new WeakMap();  // chart node -> specification, once it is needed

  const config = (theme) => ({
    background: "transparent",
    axis: { labelColor: ink[theme], titleColor: ink[theme] },
    legend: { labelColor: ink[theme], titleColor: ink[theme] },
    header: { labelColor: ink[theme], titleColor: ink[theme] },
    title: { color: ink[theme] },
    text: { color: ink[theme] },
  });

  // Data lies in the page column by column, a column as its values or as places in a list of them; null is no value.
  const rows = (columns) => {
    const lists = Object.entries(columns).map(([name, c]) => [name, Array.isArray(c) ? c : c.at.map((place) => c.of[place])]);
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
  const tabulate = (node) => {
    const place = node.querySelector(":scope > .book-data"), view = live.get(node)?.view;
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
    if (node.querySelector(":scope > .book-data")) return;
    const place = Object.assign(document.createElement("details"), { className: "book-data" });
    place.append(Object.assign(document.createElement("summary"), { textContent: "What it shows, as a table" }));
    place.addEventListener("toggle", () => tabulate(node));
    node.append(place);
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
    const before = live.get(node);
    const kept = before && Object.fromEntries(
      (spec.params || []).filter((p) => p.bind && p.bind !== "legend").map((p) => [p.name, before.view.signal(p.name)]));
    before?.finalize();
    const result = await vegaEmbed(place, spec, {
      renderer: "canvas",  // gradient ids of several SVGs on one page clash
      config: config(theme),
      tooltip: { formatTooltip: tip },
      // "editor" would post to another host; "source" opens a page in which what looks like a tag would be one.
      actions: { export: true, source: !/<[a-z!/?]/i.test(JSON.stringify(spec)), compiled: false, editor: false },
    });
    live.set(node, result);
    node.vegaView = result.view;
    Object.entries(kept || {}).forEach(([name, value]) => result.view.signal(name, value));
    if ((spec.params || []).some((p) => p.name === "still")) result.view.signal("still", false);
    await result.view.runAsync();
    speak(place, spec, result.view);
    spare(place, spec, result.view);
    place.querySelectorAll(".vega-bind select").forEach(group);
    place.querySelector("canvas")?.setAttribute("aria-label", spec.description || "chart");
    node.querySelector(":scope > img")?.classList.add("vl-still");  // print has use for it
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
      node.addEventListener("input", () => setTimeout(() => tabulate(node), 100));  // Vega answers in between
      node.addEventListener("click", ({ target }) => target.tagName === "CANVAS" && setTimeout(() => tabulate(node), 100));
    });
    new MutationObserver(() => last.forEach((_, node) => next(node)))
      .observe(document.documentElement, { attributeFilter: ["data-theme"] });
  });
})();
