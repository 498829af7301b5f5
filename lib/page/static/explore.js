// A view of all curves: controls, chart and tables of what they choose, which the address keeps.  No library, no request.
document.addEventListener("DOMContentLoaded", () => {
  const root = document.querySelector(".book-explore");
  if (!root) return;
  const data = JSON.parse(root.querySelector(".ex-data").textContent);
  const records = ({ columns, rows }) => rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, finite(row[i])])));
  const finite = (value) => (value === "inf" ? Infinity : value);
  const curves = records(data.curves).map((curve) => ({ ...curve, points: [] }));
  records(data.points).forEach((point) => curves[point.curve].points.push(point));
  const times = records(data.times), updates = records(data.updates);

  // --- words and numbers ---------------------------------------------------------------------------------------------

  const rounded = (value, digits = 4) => (Number.isFinite(value) ? Number(value.toPrecision(digits)) : value);
  const number = (value) => value === null || value === undefined ? "—" : value === Infinity ? "∞"
    : rounded(value).toLocaleString("en-US", { maximumSignificantDigits: 4 });
  const brief = (value) => (Number.isInteger(value) && value < 100 ? `${value}` : number(rounded(value, 2)));
  const titled = (list, name) => list.find((one) => one.name === name)?.title ?? name;
  const level = (sparsity) => (sparsity === 0 ? "dense" : `sparsity ${sparsity}`);
  const percent = (goal) => `${rounded(100 * goal)} %`;
  const AXES = {
    steps: { label: "steps", head: "steps", unit: "steps to result (training steps)" },
    examples: { label: "examples processed", head: "examples", unit: "examples processed until the goal" },
    time: { label: "time", head: "seconds", unit: "time to the goal (seconds)" },
    relative: { label: "relative to the dense network", head: "steps over dense", told: "times the dense network’s steps", unit: "steps over the dense network's" },
  };

  // --- what can be chosen, and what is ---------------------------------------------------------------------------------

  const fits = (curve, state, ...free) => curve.workload === state.workload
    && (free.includes("method") || state.method.includes(curve.algorithm))
    && (free.includes("pruning") || curve.sparsity === 0 || curve.pruning === state.pruning)
    && (free.includes("sparsity") || state.sparsity.includes(curve.sparsity))
    && (free.includes("goal") || curve.goal === state.goal);
  const among = (field, state, ...free) => new Set(curves.filter((c) => fits(c, state, ...free)).map((c) => c[field]));
  const chosen = (state) => curves.filter((curve) => fits(curve, state));
  const denseOf = (curve) => curves.find((c) => c.sparsity === 0 && c.goal === curve.goal && c.workload === curve.workload
    && c.algorithm === curve.algorithm);

  const can = {
    method: (state) => among("algorithm", state, "method", "pruning", "sparsity", "goal"),
    pruning: (state) => new Set(curves.filter((c) => c.sparsity > 0 && fits(c, state, "pruning", "sparsity", "goal"))
      .map((c) => c.pruning)),
    sparsity: (state) => among("sparsity", state, "sparsity", "goal"),
    goal: (state) => among("goal", state, "goal"),
    hardware: (state) => new Set(times.filter((t) => t.workload === state.workload).map((t) => t.hardware)),
    y: (state) => new Set(["steps", "examples", ...(can.hardware(state).size ? ["time"] : []),
      ...(chosen(state).some((c) => c.points.some((p) => p.over !== null)) ? ["relative"] : [])]),
  };
  const WHY = {
    method: "not measured on this workload",
    pruning: "not measured with this workload and training method",
    sparsity: "not measured with this workload, training method and pruning",
    goal: "no search of this choice met it",
    time: "no step of this workload was timed",
    relative: "needs a sparsity above 0 whose dense network is measured, at three batch sizes or more",
  };
  const one = (wanted, allowed, fallback) => (allowed.has(wanted) ? wanted : allowed.has(fallback) ? fallback : [...allowed][0]);
  const some = (wanted, allowed, fallback) => {
    const kept = wanted.filter((value) => allowed.has(value));
    return kept.length ? kept : fallback.filter((value) => allowed.has(value)).concat([...allowed]).slice(0, 1);
  };

  // The nearest choice that has data.
  const settled = (wanted) => {
    const state = { ...wanted }, { start } = data;
    state.workload = one(state.workload, new Set(data.workloads.map((w) => w.name)), start.workload);
    state.method = some(state.method, can.method(state), start.method);
    state.pruning = one(state.pruning, can.pruning(state), start.pruning) ?? start.pruning;
    state.sparsity = some(state.sparsity, can.sparsity(state), [0]);
    const goals = [...can.goal(state)].sort((a, b) => a - b);
    const usual = data.workloads.find((w) => w.name === state.workload).goal;
    state.goal = goals.includes(state.goal) ? state.goal : goals.includes(usual) ? usual : goals[0];
    state.hardware = one(state.hardware, can.hardware(state), start.hardware) ?? start.hardware;
    state.y = one(state.y, can.y(state), "steps");
    return state;
  };

  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1)), wanted = { ...data.start };
    ["workload", "pruning", "y", "hardware"].forEach((name) => { wanted[name] = given.get(name) ?? wanted[name]; });
    if (given.get("goal")) wanted.goal = Number(given.get("goal"));
    if (given.get("method")) wanted.method = given.get("method").split(",");
    if (given.get("sparsity")) wanted.sparsity = given.get("sparsity").split(",").map(Number);
    return settled(wanted);
  };
  const address = (state) => {
    const parts = { workload: state.workload, method: state.method.join(","), sparsity: state.sparsity.join(","), goal: state.goal, y: state.y };
    if (state.pruning !== data.start.pruning) parts.pruning = state.pruning;
    if (state.y === "time") parts.hardware = state.hardware;
    return `#${Object.entries(parts).map((pair) => pair.join("=")).join("&")}`;
  };

  // --- values on the vertical axis -------------------------------------------------------------------------------------

  // Between the sizes timed, on a straight line of logarithms; beyond, the nearest.
  const timed = (known) => {
    const logs = known.map((t) => [Math.log(t.batch_size), Math.log(t.seconds)]).sort(([a], [b]) => a - b);
    return (size) => {
      const x = Math.min(Math.max(Math.log(size), logs[0][0]), logs.at(-1)[0]);
      const at = Math.min(Math.max(logs.findIndex(([b]) => b >= x - 1e-9), 1), logs.length - 1);
      const [[x0, y0], [x1, y1]] = [logs[Math.max(at - 1, 0)], logs[at]];
      return Math.exp(x1 === x0 ? y1 : y0 + ((x - x0) / (x1 - x0)) * (y1 - y0));
    };
  };
  const secondsOf = (state, curve) => {
    const step = timed(times.filter((t) => t.workload === state.workload && t.hardware === state.hardware));
    const own = updates.filter((u) => u.workload === state.workload && u.algorithm === curve.algorithm && u.seconds > 0);
    const update = own.length > 1 ? timed(own) : () => 0;
    return (size) => step(size) + update(size);
  };
  const factorOf = (state, curve) => (state.y === "examples" ? (size) => size : state.y === "time" ? secondsOf(state, curve) : () => 1);
  const line = (curve, size) => (curve.c1 === null ? null : curve.c1 / size + curve.c2);

  // Each curve that is drawn: its points and its line as the vertical axis has them.
  const drawn = (state) => {
    const over = state.y === "relative";
    const list = chosen(state).filter((c) => !over || c.points.some((p) => p.over !== null));
    return list.map((curve) => {
      const dense = over && denseOf(curve), factor = factorOf(state, curve);
      const fitted = (size) => (over ? line(curve, size) / line(dense, size) : line(curve, size) * factor(size));
      const value = (p, name) => (over ? p[{ steps: "over", low: "over_low", high: "over_high" }[name]] : p[name] * factor(p.batch_size));
      const points = curve.points.filter((p) => !over || p.over !== null).map((p) => ({
        ...p, y: rounded(value(p, "steps")), from: rounded(value(p, "low")), to: rounded(value(p, "high")),
        line: curve.c1 === null ? null : rounded(fitted(p.batch_size)),
      }));
      return { ...curve, points, fitted: curve.c1 === null ? null : fitted };
    });
  };

  // --- controls ---------------------------------------------------------------------------------------------------------

  const make = (tag, attributes = {}, ...children) => {
    const drawing = attributes.svg || ["svg", "g", "path", "line", "text"].includes(tag);
    const node = drawing ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => name !== "svg" && value !== undefined && node.setAttribute(name, value));
    node.append(...children);
    return node;
  };
  const control = (words, input) => make("label", { class: "ex-field" }, make("span", {}, words), input);
  const menu = (name, words, options) => {
    const select = make("select", { name }, ...options);
    return control(words, select);
  };
  const option = (value, text) => make("option", { value }, text);
  const boxes = (kind, name, words, values) => make("fieldset", { class: "ex-field" }, make("legend", {}, words),
    ...values.map(([value, text]) => make("label", { class: "ex-box" }, make("input", { type: kind, name, value }), ` ${text}`)));
  const groups = () => [...new Set(data.workloads.map((w) => w.data))].map((group) => make("optgroup", { label: group },
    ...data.workloads.filter((w) => w.data === group).map((w) => option(w.name, w.title))));

  const form = make("form", { class: "ex-form", "aria-label": "what the figure shows" },
    menu("workload", "Workload", groups()), menu("goal", "Goal error", []),
    menu("pruning", "Pruning", data.prunings.map((p) => option(p.name, p.title))),
    boxes("checkbox", "method", "Training method", data.methods.map((m) => [m.name, m.title])),
    boxes("checkbox", "sparsity", "Sparsity", data.sparsities.map((s) => [s.level, s.level === 0 ? "0 (dense)" : s.level])),
    boxes("radio", "y", "Vertical axis", Object.entries(AXES).map(([name, axis]) => [name, axis.label])),
    menu("hardware", "Hardware", data.hardware.map((h) => option(h.name, h.title))),
    make("div", { class: "ex-field ex-copy" }, make("button", { type: "button", class: "ex-button" }, "Copy link"),
      make("output", { "aria-live": "polite" })));
  const inputs = (name) => [...form.querySelectorAll(`[name="${name}"]`)];
  const set = (node, allowed, why) => {
    node.disabled = !allowed;
    const outer = node.tagName === "INPUT" ? node.parentElement : node;
    [node, outer].forEach((n) => (allowed ? n.removeAttribute("title") : n.setAttribute("title", why)));
  };

  const show = (state) => {
    const goals = [...among("goal", state, "method", "pruning", "sparsity", "goal")].sort((a, b) => a - b), [goal] = inputs("goal");
    if (goals.join() !== [...goal.options].map((o) => o.value).join()) goal.replaceChildren(...goals.map((g) => option(g, percent(g))));
    [...goal.options].forEach((o) => set(o, can.goal(state).has(Number(o.value)), WHY.goal));
    ["workload", "goal", "pruning", "hardware"].forEach((name) => { inputs(name)[0].value = state[name]; });
    const prunings = can.pruning(state), [pruning] = inputs("pruning");
    [...pruning.options].forEach((o) => set(o, prunings.has(o.value), WHY.pruning));
    set(pruning, prunings.size > 0, WHY.pruning);
    inputs("method").forEach((box) => { box.checked = state.method.includes(box.value); set(box, can.method(state).has(box.value), WHY.method); });
    inputs("sparsity").forEach((box) => {
      box.checked = state.sparsity.includes(Number(box.value));
      set(box, can.sparsity(state).has(Number(box.value)), WHY.sparsity);
    });
    inputs("y").forEach((radio) => { radio.checked = state.y === radio.value; set(radio, can.y(state).has(radio.value), WHY[radio.value]); });
    ["method", "sparsity"].filter((name) => state[name].length === 1)
      .forEach((name) => { inputs(name).find((box) => box.checked).parentElement.title = "the last one stays"; });
    inputs("hardware")[0].closest("label").hidden = state.y !== "time";
  };
  const ticked = (name) => inputs(name).filter((box) => box.checked).map((box) => box.value);
  const asked = () => ({
    workload: inputs("workload")[0].value, goal: Number(inputs("goal")[0].value), pruning: inputs("pruning")[0].value,
    hardware: inputs("hardware")[0].value, y: ticked("y")[0], method: ticked("method"), sparsity: ticked("sparsity").map(Number),
  });

  // --- the chart --------------------------------------------------------------------------------------------------------

  const SHAPES = ["M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z", "M-4.5 -4.5H4.5V4.5H-4.5Z", "M0 -6L5.5 4.5H-5.5Z", "M0 6L5.5 -4.5H-5.5Z",
    "M-5.5 -2H-2V-5.5H2V-2H5.5V2H2V5.5H-2V2H-5.5Z"];
  const DASHES = ["none", "8 4", "2 4", "10 4 2 4", "5 3"];
  const looks = (state) => {
    const by = state.method.length > 1 && state.sparsity.length === 1 ? "method" : "sparsity";
    return (curve) => {
      const place = state.method.indexOf(curve.algorithm);
      const colour = by === "method" ? data.methods.find((m) => m.name === curve.algorithm).colour
        : data.sparsities.find((s) => s.level === curve.sparsity).colour;
      return { colour, shape: SHAPES[place % SHAPES.length], dash: DASHES[place % DASHES.length] };
    };
  };
  const called = (state) => (curve) => [state.method.length > 1 ? titled(data.methods, curve.algorithm) : "",
    state.sparsity.length > 1 || state.method.length === 1 ? level(curve.sparsity) : ""].filter(Boolean).join(", ");
  const ticksOf = (low, high) => {
    const decades = Math.log10(high / low);
    const parts = decades > 3 ? [1] : decades > 1.3 ? [1, 2, 5] : decades > 0.5 ? [1, 1.5, 2, 3, 5, 7] : [1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9];
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) parts.forEach((p) => found.push(rounded(p * 10 ** e)));
    return found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  };
  const short = (value) => (value >= 1e5 ? value.toLocaleString("en-US", { notation: "compact" }) : number(value));

  const FAR = 4;  // how many times beyond the outermost points the axis goes
  const HEIGHT = 340, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46;
  const chart = (state, list, width) => {
    const points = list.flatMap((c) => c.points), values = points.map((p) => p.y), look = looks(state), name = called(state);
    const sizes = [...new Set(points.map((p) => p.batch_size))].sort((a, b) => a - b);
    const one = state.y === "relative" ? [1] : [];
    const low = Math.min(...one, Math.max(Math.min(...points.map((p) => p.from)), Math.min(...values) / FAR)) / 1.1;
    const high = Math.max(...one, Math.min(Math.max(...points.map((p) => p.to)), Math.max(...values) * FAR)) * 1.1;
    const between = (v, a, b) => Math.min(Math.max(v, a), b);
    const place = (v, a, b, from, to) => from + ((Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a) || 1)) * (to - from);
    const x = (v) => place(v, sizes[0], sizes.at(-1), LEFT + 12, width - RIGHT - 12);
    const y = (v) => place(between(v, low, high), low, high, HEIGHT - BOTTOM, TOP);
    const svg = make("svg", { class: "ex-chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "group",
      "aria-label": `${AXES[state.y].unit} against batch size, both logarithmic; the arrow keys go from point to point, and the table below has the same numbers` });

    let end = -Infinity;
    sizes.forEach((size) => {
      const reach = (number(size).length * 7.2) / 2 + 4;
      svg.append(make("line", { class: "ex-grid", x1: x(size), x2: x(size), y1: TOP, y2: HEIGHT - BOTTOM }));
      if (x(size) - reach < end || x(size) + reach > width + 4) return;
      end = x(size) + reach;
      svg.append(make("text", { x: x(size), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, number(size)));
    });
    ticksOf(low, high).forEach((tick) => svg.append(
      make("line", { class: "ex-grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      make("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick))));
    svg.append(make("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "batch size (examples)"),
      make("text", { transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, AXES[state.y].unit));
    one.forEach(() => svg.append(make("line", { class: "ex-guide", x1: LEFT, x2: width - RIGHT, y1: y(1), y2: y(1) })));

    list.forEach((curve) => {
      const { colour, shape, dash } = look(curve), group = make("g", { style: `color: ${colour}` });
      if (curve.fitted) {
        const [first, last] = [curve.points[0].batch_size, curve.points.at(-1).batch_size];
        const along = Array.from({ length: 61 }, (_, i) => first * (last / first) ** (i / 60));
        const inside = along.filter((b) => curve.fitted(b) >= low && curve.fitted(b) <= high);
        group.append(make("path", { class: "ex-line", "stroke-dasharray": dash, d: `M${inside.map((b) => `${x(b).toFixed(1)} ${y(curve.fitted(b)).toFixed(1)}`).join("L")}` }));
        if (curve.identified && curve.critical >= sizes[0] && curve.critical <= sizes.at(-1)) {
          const at = y(curve.fitted(curve.critical)), [a, b] = [curve.critical_low, curve.critical_high].map((v) => x(between(v, sizes[0], sizes.at(-1))));
          const mark = make("path", { class: "ex-critical", d: "M0 -9L8 0L0 9L-8 0Z", transform: `translate(${x(curve.critical)} ${at})` });
          mark.append(make("title", { svg: true }, `critical batch size, ${name(curve)}: ${spanned(curve)}`));
          group.append(make("line", { class: "ex-bar", x1: a, x2: b, y1: at, y2: at }), mark);
        }
      }
      curve.points.forEach((p) => {
        const words = `${name(curve)}, batch size ${number(p.batch_size)}: ${brief(p.y)} ${AXES[state.y].told ?? AXES[state.y].head}, 90 % confidence interval ${brief(p.from)} to ${brief(p.to)}, ${p.searches} ${p.searches === 1 ? "search" : "searches"}${p.missed ? `, of which ${p.missed} missed the goal` : ""}`;
        const mark = make("g", { class: "ex-point", tabindex: -1, role: "img", "aria-label": words, transform: `translate(${x(p.batch_size)} ${y(p.y)})` });
        mark.append(make("title", { svg: true }, words), make("path", { class: p.missed ? "ex-mark ex-hollow" : "ex-mark", d: shape }));
        group.append(make("line", { class: "ex-bar", x1: x(p.batch_size), x2: x(p.batch_size), y1: y(p.from), y2: y(p.to) }), mark);
      });
      svg.append(group);
    });
    svg.querySelector(".ex-point")?.setAttribute("tabindex", 0);
    return svg;
  };
  const legend = (state, list) => make("ul", { class: "ex-legend" }, ...list.map((curve) => {
    const { colour, shape, dash } = looks(state)(curve);
    const key = make("svg", { width: 34, height: 14, viewBox: "-17 -7 34 14", style: `color: ${colour}`, "aria-hidden": "true" },
      make("line", { class: "ex-line", "stroke-dasharray": dash, x1: -17, x2: 17 }), make("path", { class: "ex-mark", d: shape }));
    return make("li", {}, key, ` ${called(state)(curve)}`);
  }));

  // --- what is said and listed --------------------------------------------------------------------------------------------

  const span = (low, high) => (brief(low) === brief(high) ? brief(low) : `${brief(low)}–${brief(high)}`);
  const spanned = (curve) => (curve.c1 === null ? "not known" : !curve.identified ? "beyond the sizes measured"
    : `${brief(curve.critical)} (${span(curve.critical_low, curve.critical_high)})`);
  const summary = (state, list) => {
    const shown = chosen(state), known = shown.filter((c) => c.identified).map((c) => c.critical);
    if (!shown.length) return "Nothing of this choice is measured.";
    if (shown.length > 4 && known.length) {
      return `Critical batch sizes from ${brief(Math.min(...known))} to ${brief(Math.max(...known))} on ${known.length} ${known.length < shown.length ? `of ${shown.length} ` : ""}curves`;
    }
    const told = (of) => of.map((c) => `${spanned(c)} ${c.sparsity === 0 ? "dense" : `at sparsity ${c.sparsity}`}`).join(", ");
    if (state.method.length === 1) return `Critical batch size ${told(shown)}`;
    return `Critical batch size: ${state.method.map((m) => [titled(data.methods, m), shown.filter((c) => c.algorithm === m)])
      .filter(([, of]) => of.length).map(([m, of]) => `${m} ${told(of)}`).join("; ")}`;
  };
  const lacking = (state) => {
    const wanted = state.method.flatMap((m) => state.sparsity.map((s) => [m, s]));
    const none = wanted.filter(([m, s]) => !chosen(state).some((c) => c.algorithm === m && c.sparsity === s));
    return none.length ? ` Not measured, or goal not met: ${none.map(([m, s]) => `${titled(data.methods, m)} ${level(s)}`).join("; ")}.` : "";
  };
  const about = (state) => `${titled(data.workloads, state.workload)}, goal: validation error ${percent(state.goal)}`
    + (state.y === "time" ? `, ${titled(data.hardware, state.hardware)}, at the dense network's speed` : "");
  const way = (curve) => (curve.sparsity === 0 ? "dense" : titled(data.prunings, curve.pruning));
  const rowsOf = (list) => list.flatMap((c) => c.points.map((p) => [titled(data.methods, c.algorithm), way(c), c.range, c.sparsity,
    p.batch_size, p.y, p.from, p.to, p.line, p.searches, p.missed]));
  const headsOf = (state) => ["training method", "pruning", "range", "sparsity", "batch size", AXES[state.y].head, "5 %", "95 %", "line", "searches", "missed"];
  const fitsOf = (state) => chosen(state).map((c) => [titled(data.methods, c.algorithm), way(c), c.range, c.sparsity, rounded(c.c1), rounded(c.c2),
    rounded(c.critical), rounded(c.critical_low), rounded(c.critical_high), c.c1 === null ? "—" : c.identified ? "yes" : "no"]);
  const FITS = ["training method", "pruning", "range", "sparsity", "c₁", "c₂", "critical batch size", "5 %", "95 %", "within the sizes measured"];

  const csv = (state, heads, rows) => {
    const quoted = (value) => { const text = `${value ?? ""}`; return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
    const whole = rows.map((row) => [state.workload, state.goal, ...row.map((v) => (v === Infinity ? "inf" : v))]);
    return [["workload", "goal", ...heads], ...whole].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  };
  const save = (name, text, type = "text/csv") => {
    const link = make("a", { href: URL.createObjectURL(typeof text === "string" ? new Blob([text], { type }) : text), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const table = (state, caption, file, heads, rows) => {
    const cell = (value, i) => make("td", { "data-head": heads[i], class: typeof value === "string" ? undefined : "ex-number" },
      typeof value === "string" ? value : number(value));
    const shown = make("table", { class: "book-table book-names book-stacked" },
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))));
    const button = make("button", { type: "button", class: "ex-button" }, `Download ${file}.csv`);
    button.addEventListener("click", () => save(`${file}-${state.workload}-${state.goal}-${state.y}.csv`, csv(state, heads, rows)));
    const scroll = make("div", { class: "ex-scroll", tabindex: 0, role: "region", "aria-label": caption }, shown);
    return [make("details", file === "lines" ? { open: "" } : {}, make("summary", { class: "ex-caption" }, caption), scroll), button];
  };

  // --- the figure, to take along ------------------------------------------------------------------------------------------

  const LOOKS = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight"];
  const PAPER = { light: "#fff", dark: "#14181e" };
  // A copy that carries its own looks, since the style sheet stays here.
  const alone = (svg) => {
    const copy = svg.cloneNode(true), parts = svg.querySelectorAll("*"), copies = copy.querySelectorAll("*");
    parts.forEach((part, i) => {
      const style = getComputedStyle(part);
      LOOKS.forEach((name) => copies[i].style.setProperty(name, style.getPropertyValue(name)));
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.style.background = PAPER[document.documentElement.dataset.theme] || PAPER.light;
    return new XMLSerializer().serializeToString(copy);
  };
  // The chart below its title, what it is of, its caption, its address and its legend.
  const LINE = 18, LETTER = 6.6;  // pixels
  const sheet = (state, list) => {
    const svg = make("svg", { class: "ex-chart", width }), most = width / LETTER;
    let y = 4;
    const write = (text, x = 4, style = "") => text.split(" ").reduce((lines, word) => {
      const longer = `${lines.at(-1)} ${word}`.trim();
      return longer.length > most ? [...lines, word] : [...lines.slice(0, -1), longer];
    }, [""]).filter(Boolean).forEach((line) => { y += LINE; svg.append(make("text", { x, y, style }, line)); });
    write(title.textContent, 4, "font-weight: 700");
    [told.textContent, figure.querySelector("figcaption").textContent].forEach((text) => write(text));
    write(location.href.split("#")[0].replace(/^file:.*\//, "") + address(state));
    list.forEach((curve) => {
      const { colour, shape, dash } = looks(state)(curve);
      write(called(state)(curve), 44);
      svg.append(make("g", { style: `color: ${colour}`, transform: `translate(22 ${y - 4})` },
        make("line", { class: "ex-line", "stroke-dasharray": dash, x1: -17, x2: 17 }), make("path", { class: "ex-mark", d: shape })));
    });
    const drawn = chart(state, list, width);
    drawn.setAttribute("y", y + LINE / 2);
    svg.append(drawn);
    svg.setAttribute("height", y + LINE / 2 + HEIGHT);
    return svg;
  };
  const painted = (svg, text) => new Promise((done) => {
    const picture = new Image(), [wide, high] = ["width", "height"].map((side) => 2 * svg.getAttribute(side));
    const paper = make("canvas", { width: wide, height: high });
    picture.addEventListener("load", () => {
      paper.getContext("2d").drawImage(picture, 0, 0, wide, high);
      paper.toBlob(done, "image/png");
    });
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  });
  const pictures = (canvas, name) => ["SVG", "PNG"].map((form) => {
    const button = make("button", { type: "button", class: "ex-button" }, `Download ${form}`);
    button.addEventListener("click", async () => {
      const svg = sheet(state, drawn(state));
      canvas.append(svg);  // styles are known of what is in the page
      const text = alone(svg);
      svg.remove();
      save(`${name()}.${form.toLowerCase()}`, form === "SVG" ? text : await painted(svg, text), "image/svg+xml");
    });
    return button;
  });

  // --- together -----------------------------------------------------------------------------------------------------------

  const figure = root.querySelector("figure"), title = figure.querySelector(".book-title"), tables = root.querySelector(".ex-tables");
  const canvas = make("div", { class: "ex-canvas" }), told = make("p", { class: "ex-about" }), tip = make("p", { class: "ex-tip", "aria-hidden": "true" });
  title.setAttribute("role", "status");
  title.setAttribute("aria-live", "polite");
  const taken = make("p", { class: "ex-taken" }, ...pictures(canvas, () => `figure-${state.workload}-${state.goal}-${state.y}`));
  figure.querySelector(".ex-still").replaceWith(told, canvas, tip, taken);
  root.prepend(form);
  let state = read(), width = 0;
  const settle = () => { if (location.hash.includes("=") && location.hash !== address(state)) history.replaceState(null, "", address(state)); };

  const draw = () => {
    const list = drawn(state);
    width = Math.max(Math.floor(canvas.clientWidth), 240);
    canvas.replaceChildren(legend(state, list), chart(state, list, width));
    tip.textContent = "";
    return list;
  };
  const render = () => {
    show(state);
    const list = draw();
    title.textContent = summary(state, list) + "." + lacking(state);
    told.textContent = about(state);
    tables.replaceChildren(...table(state, `Lines: ${about(state)}`, "lines", FITS, fitsOf(state)),
      ...table(state, `Points: ${about(state)}`, "points", headsOf(state), rowsOf(list)));
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    const wanted = asked();
    // The last one stays: a figure of nothing says nothing.
    ["method", "sparsity"].forEach((name) => { if (event.target.name === name && !wanted[name].length) wanted[name] = state[name]; });
    if (event.target.name === "workload") wanted.goal = null;  // another network, its own goal
    state = settled(wanted);
    render();
    if (location.hash !== address(state)) location.hash = address(state);
  });
  addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=") || location.hash === address(state)) return;
    state = read();
    settle();
    render();
  });

  const [copy, said] = [form.querySelector("button"), form.querySelector("output")];
  copy.addEventListener("click", async () => {
    const link = location.href.split("#")[0] + address(state);
    try {
      await navigator.clipboard.writeText(link);
      said.textContent = "Copied.";
    } catch {  // not allowed here: the reader copies it
      const field = make("input", { readonly: "", value: link, "aria-label": "link to this choice" });
      said.replaceChildren(field);
      field.select();
    }
  });

  const tell = (event) => { tip.textContent = event.target.closest?.(".ex-point")?.getAttribute("aria-label") ?? ""; };
  ["pointerover", "focusin"].forEach((name) => canvas.addEventListener(name, tell));
  canvas.addEventListener("keydown", (event) => {
    const marks = [...canvas.querySelectorAll(".ex-point")], at = marks.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: marks.length - 1 }[event.key];
    if (at < 0 || !marks[to]) return;
    event.preventDefault();
    marks[at].setAttribute("tabindex", -1);
    marks[to].setAttribute("tabindex", 0);
    marks[to].focus();
  });
  new ResizeObserver(() => { if (Math.floor(canvas.clientWidth) !== width) draw(); }).observe(canvas);
  settle();
  render();
});
