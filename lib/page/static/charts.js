// Replace each chart's static picture by a live view, and follow the page's light or dark theme.
(() => {
  const ink = { light: "#24292f", dark: "#d5d9de" };
  const live = new WeakMap();  // chart node -> vega-embed result, so that a redraw keeps what the reader chose

  const config = (theme) => ({
    background: "transparent",
    axis: { labelColor: ink[theme], titleColor: ink[theme] },
    legend: { labelColor: ink[theme], titleColor: ink[theme] },
    header: { labelColor: ink[theme], titleColor: ink[theme] },
    title: { color: ink[theme] },
    text: { color: ink[theme] },
  });

  // Sliders count places in a list: a screen reader is told the value, as the chart shows it.
  const speak = (place, spec, view) => (spec.params || []).forEach(({ name }) => {
    const input = place.querySelector(`input[type="range"][name="${name}"]`);
    if (!input || !spec.params.some((p) => p.name === `${name}_text`)) return;
    const say = () => input.setAttribute("aria-valuetext", view.signal(`${name}_text`));
    view.addSignalListener(`${name}_text`, say);
    say();
  });

  const draw = async (node) => {
    const spec = JSON.parse(node.querySelector('script[type="application/json"]').textContent);
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
      actions: { export: true, source: true, compiled: false, editor: false },  // "editor" would post to another host
    });
    live.set(node, result);
    node.vegaView = result.view;
    Object.entries(kept || {}).forEach(([name, value]) => result.view.signal(name, value));
    await result.view.runAsync();
    speak(place, spec, result.view);
    place.querySelector("canvas")?.setAttribute("aria-label", spec.description || "chart");
    node.querySelector(":scope > img")?.remove();
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
    const all = () => document.querySelectorAll(".vl-chart").forEach(next);
    all();
    document.querySelectorAll(".vl-chart").forEach((node) => watch.observe(node));
    new MutationObserver(all).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  });
})();
