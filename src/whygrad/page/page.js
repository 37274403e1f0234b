"use strict";
// Draws the page from the JSON in #data. No request, no library but uPlot (above).
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const unpack = (grid) => ({
    ...grid,
    columns: Object.fromEntries(Object.entries(grid.columns).map(([name, text]) => [name, name === "histogram" ? bytes(text) : floats(text)])),
  });
  const grids = {};
  for (const name of ["gradient", "weight", "update", "histogram", "output", "output_gradient"]) grids[name] = unpack(data[name]);
  const size = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "not recorded";
    if (value === 0) return "0";
    const magnitude = Math.abs(value);
    return magnitude >= 0.01 && magnitude < 10000 ? Number(value.toPrecision(3)).toString() : value.toExponential(1);
  };
  const row = (grid, column, index) => grid.columns[column].subarray(index * grid.steps.length, (index + 1) * grid.steps.length);

  // -- colours: cividis, which reads the same with every kind of colour vision ---------------------------------------
  const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];
  const PALETTE = Array.from({ length: 256 }, (_, index) => {
    const at = (index / 255) * (CIVIDIS.length - 1), low = Math.min(Math.floor(at), CIVIDIS.length - 2);
    return CIVIDIS[low].map((value, i) => Math.round(value + (CIVIDIS[low + 1][i] - value) * (at - low)));
  });
  const shade = (share) => PALETTE[Math.round(255 * Math.min(Math.max(share, 0), 1))];
  const colour = (share) => `rgb(${shade(share).join(",")})`;
  const BROKEN = [214, 0, 108];
  const SHOWN = {
    gradient: { grid: grids.gradient, column: "rms", label: "RMS of the gradient", log: true },
    update: { grid: grids.update, column: "update_ratio", label: "size of the update against the weight", log: true },
    zeros: { grid: grids.gradient, column: "zeros", label: "share of gradient elements that are exactly zero", log: false },
  };
  const rangeOf = (shown) => {
    if (!shown.log) return [0, 1];
    const logs = Array.from(shown.grid.columns[shown.column]).filter((v) => v > 0 && v < Infinity).map(Math.log10).sort((a, b) => a - b);
    if (!logs.length) return [-8, 0];
    const low = Math.floor(logs[Math.floor(logs.length * 0.01)]), high = Math.ceil(logs[Math.floor((logs.length - 1) * 0.99)]);
    return [low, Math.max(high, low + 1)];
  };

  // -- the whole model ------------------------------------------------------------------------------------------------
  const model = { shown: SHOWN.gradient, rows: data.parameters.map((_, i) => i), at: null };
  const GUTTER = Math.min(240, Math.max(90, window.innerWidth * 0.3));
  const canvas = make("canvas");
  $("model").append(canvas);
  const geometry = () => {
    const steps = Math.max(1, model.shown.grid.steps.length);
    const width = Math.max(2, Math.min(24, Math.floor(($("model").clientWidth - GUTTER - 4) / steps)));
    const height = model.rows.length > 120 ? 12 : 16;
    return { steps, width, height };
  };
  const hatch = (context) => {
    const tile = make("canvas", { width: 6, height: 6 });
    const pen = tile.getContext("2d");
    pen.strokeStyle = css("--faint"); pen.globalAlpha = 0.5;
    pen.beginPath(); pen.moveTo(0, 6); pen.lineTo(6, 0); pen.stroke();
    return context.createPattern(tile, "repeat");
  };
  const shadeOf = (value, broken, range, zero) => {
    if (broken > 0) return BROKEN;
    if (Number.isNaN(value)) return null; // a hole: what lies under the picture shows
    if (model.shown.log && value === 0) return zero;
    return shade(((model.shown.log ? Math.log10(value) : value) - range[0]) / (range[1] - range[0]));
  };
  // one pixel a cell; scaled up when it is drawn
  const cells = (range) => {
    const steps = model.shown.grid.steps.length, small = make("canvas", { width: steps, height: model.rows.length });
    const image = new ImageData(steps, model.rows.length);
    const zero = window.matchMedia("(prefers-color-scheme: dark)").matches ? [255, 255, 255] : [0, 0, 0];
    model.rows.forEach((parameter, position) => {
      const values = row(model.shown.grid, model.shown.column, parameter);
      const broken = model.shown.grid === grids.gradient ? row(grids.gradient, "nonfinite", parameter) : [];
      for (let step = 0; step < steps; step++) {
        const found = shadeOf(values[step], broken[step], range, zero);
        if (found) image.data.set([...found, 255], 4 * (position * steps + step));
      }
    });
    small.getContext("2d").putImageData(image, 0, 0);
    return small;
  };
  function drawModel() {
    const { steps, width, height } = geometry(), ratio = window.devicePixelRatio || 1;
    const wide = GUTTER + steps * width, high = Math.max(height, model.rows.length * height);
    canvas.width = wide * ratio; canvas.height = high * ratio;
    canvas.style.width = `${wide}px`; canvas.style.height = `${high}px`;
    const context = canvas.getContext("2d"), range = rangeOf(model.shown);
    context.scale(ratio, ratio);
    if (model.rows.length && model.shown.grid.steps.length) {
      context.fillStyle = hatch(context);
      context.fillRect(GUTTER, 0, steps * width, high);
      context.imageSmoothingEnabled = false;
      context.drawImage(cells(range), GUTTER, 0, steps * width, high);
    }
    context.font = `${height - 4}px ui-monospace, monospace`;
    context.textBaseline = "middle";
    model.rows.forEach((parameter, position) => {
      const { name, state, cuts } = data.parameters[parameter], top = position * height;
      const mark = cuts.length ? "\u2702 " : state === "learns" ? "" : "\u25cb ";
      context.fillStyle = state === "learns" ? css("--ink") : css("--error");
      context.fillText(shortened(context, mark + name, GUTTER - 8), 2, top + height / 2);
      context.fillStyle = css("--ground");
      context.fillRect(GUTTER, top + height - 1, steps * width, 1);
    });
    if (model.at) {
      context.strokeStyle = css("--error"); context.lineWidth = 2;
      context.strokeRect(GUTTER + model.at[1] * width - 1, model.at[0] * height - 1, width + 2, height + 1);
    }
    drawScale(range);
  }
  const shortened = (context, text, room) => {
    if (context.measureText(text).width <= room) return text;
    let kept = text.length - 1;
    while (kept > 4 && context.measureText(`\u2026${text.slice(-kept)}`).width > room) kept--;
    return `\u2026${text.slice(-kept)}`;
  };
  function drawScale(range) {
    const bar = make("canvas", { width: 120, height: 10 });
    const pen = bar.getContext("2d");
    for (let x = 0; x < 120; x++) { pen.fillStyle = colour(x / 119); pen.fillRect(x, 0, 1, 10); }
    const ends = model.shown.log ? range.map((exponent) => `1e${exponent}`) : ["0%", "100%"];
    const legend = model.shown.log ? "; solid: exactly 0; hatched: not recorded, or no gradient; magenta: NaN or Inf" : "; hatched: not recorded, or no gradient";
    $("scale").replaceChildren(`${model.shown.label}: ${ends[0]}`, bar, `${ends[1]}${legend}. \u2702 the path to the loss is cut, \u25cb does not learn for another reason.`);
  }
  function tell(at) {
    model.at = at;
    if (at === null) return;
    const parameter = model.rows[at[0]], step = model.shown.grid.steps[at[1]];
    const facts = data.parameters[parameter], value = row(model.shown.grid, model.shown.column, parameter)[at[1]];
    const cut = facts.cuts.length ? `, cut by ${facts.cuts[0]}` : "";
    $("cell").textContent = `${facts.name}, step ${step}: ${model.shown.label} ${size(value)} (${facts.state}${cut})`;
  }
  const under = (event) => {
    const { width, height, steps } = geometry(), box = canvas.getBoundingClientRect();
    const position = Math.floor((event.clientY - box.top) / height), step = Math.floor((event.clientX - box.left - GUTTER) / width);
    return position >= 0 && position < model.rows.length && steps && model.shown.grid.steps.length ? [position, Math.min(Math.max(step, 0), model.shown.grid.steps.length - 1)] : null;
  };
  canvas.addEventListener("mousemove", (event) => { const at = under(event); if (at) { tell(at); } });
  canvas.addEventListener("click", (event) => { const at = under(event); if (at) { tell(at); drawModel(); open(model.rows[at[0]]); } });
  $("model").addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }, move = moves[event.key];
    if (!model.rows.length || !model.shown.grid.steps.length) return;
    if (event.key === "Enter" && model.at) { open(model.rows[model.at[0]]); return; }
    if (!move) return;
    event.preventDefault();
    const [position, step] = model.at || [0, -move[1]];
    tell([Math.min(Math.max(position + move[0], 0), model.rows.length - 1), Math.min(Math.max(step + move[1], 0), model.shown.grid.steps.length - 1)]);
    drawModel();
  });
  for (const button of document.querySelectorAll('input[name="shown"]')) {
    button.addEventListener("change", () => { model.shown = SHOWN[button.value]; model.at = null; drawModel(); });
  }
  $("filter").addEventListener("input", () => {
    const wanted = $("filter").value.toLowerCase();
    model.rows = data.parameters.map((_, i) => i).filter((i) => data.parameters[i].name.toLowerCase().includes(wanted));
    model.at = null;
    drawModel();
    drawDepth();
  });

  // -- over depth -----------------------------------------------------------------------------------------------------
  const kind = () => document.querySelector('input[name="kind"]:checked').value;
  function drawDepth() {
    const outputs = kind() === "outputs", grid = outputs ? grids.output_gradient : grids.gradient;
    const slider = $("step");
    slider.max = Math.max(0, grid.steps.length - 1);
    const at = Number(slider.value), wanted = $("filter").value.toLowerCase();
    $("step-number").textContent = grid.steps.length ? String(grid.steps[at]) : "none recorded";
    const things = (outputs ? data.outputs : data.parameters).map((thing, i) => ({ name: thing.name, i, value: grid.steps.length ? row(grid, "rms", i)[at] : NaN })).filter((thing) => thing.name.toLowerCase().includes(wanted));
    const logs = things.filter((t) => t.value > 0 && t.value < Infinity).map((t) => Math.log10(t.value));
    const low = Math.floor(Math.min(...logs, 0)) - 0.2, high = Math.max(Math.ceil(Math.max(...logs, low + 1)), low + 1);
    const rows = things.map(({ name, i, value }) => {
      const bar = make("span");
      if (value > 0 && value < Infinity) { bar.className = "bar"; bar.style.width = `${(100 * (Math.log10(value) - low)) / (high - low)}%`; }
      const number = make("span", { textContent: size(value), className: value > 0 ? "" : "none" });
      const line = make("button", { className: "row", type: "button", title: name }, make("span", { textContent: name }), bar, number);
      line.addEventListener("click", () => open(outputs ? data.parameters.length + i : i));
      return line;
    });
    const caption = `RMS of the gradient, nearest the input first; bars on a log scale from 1e${Math.ceil(low)} to 1e${high}`;
    $("depth").replaceChildren(make("p", { className: "note", textContent: caption }), ...rows);
  }
  $("step").addEventListener("input", drawDepth);
  for (const button of document.querySelectorAll('input[name="kind"]')) button.addEventListener("change", () => { $("step").value = 0; drawDepth(); });

  // -- one tensor -----------------------------------------------------------------------------------------------------
  const axis = (log) => ({ stroke: css("--faint"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, size: 64, values: (_, ticks) => ticks.map((t) => (t === null ? "" : log ? t.toExponential(0) : size(t))) });
  // as the grid of .charts divides the page
  const chartWidth = (target) => {
    const columns = target.classList.contains("wide") ? 1 : Math.max(1, Math.floor((target.clientWidth + 16) / (384 + 16)));
    return Math.floor((target.clientWidth - 16 * (columns - 1)) / columns);
  };
  // a series with `right: true` has the scale on the right to itself
  function chart(target, title, steps, series, log, marks = []) {
    const figure = make("figure", {}, make("figcaption", { textContent: title }));
    target.append(figure);
    const drawn = series.map(({ values }) => Array.from(values, (v) => (Number.isFinite(v) && (!log || v > 0) ? v : null)));
    if (!drawn.some((values) => values.some((v) => v !== null))) { figure.append(make("p", { className: "note", textContent: log ? "nothing above 0 was recorded" : "nothing was recorded" })); return; }
    const strokes = [css("--info"), css("--warning"), css("--good")];
    const lines = (plot) => {
      const pen = plot.ctx;
      pen.save(); pen.strokeStyle = css("--error"); pen.setLineDash([3, 3]);
      for (const mark of marks) { const x = plot.valToPos(mark, "x", true); pen.beginPath(); pen.moveTo(x, plot.bbox.top); pen.lineTo(x, plot.bbox.top + plot.bbox.height); pen.stroke(); }
      pen.restore();
    };
    new uPlot({
      width: Math.max(240, chartWidth(target)), height: 200,
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 }, right: {} },
      axes: [{ ...axis(false), values: undefined }, axis(log), ...(series.some(({ right }) => right) ? [{ ...axis(false), scale: "right", side: 1, grid: { show: false } }] : [])],
      series: [{ label: "step" }, ...series.map(({ label, right }, i) => ({ label, scale: right ? "right" : "y", stroke: strokes[i % 3], width: 1.5, spanGaps: true, points: { show: steps.length < 40 } }))],
      hooks: { draw: [lines] },
    }, [steps, ...drawn], figure);
  }
  function drawTensor() {
    const index = Number($("tensor").value), outputs = index >= data.parameters.length;
    const charts = $("tensor-charts");
    charts.replaceChildren(); $("histogram").replaceChildren();
    if (outputs) {
      const i = index - data.parameters.length, facts = data.outputs[i];
      $("tensor-facts").textContent = `output [${facts.shape.join(", ")}] ${facts.dtype}, ${facts.calls} calls, ${facts.gradient_calls} gradients`;
      chart(charts, "RMS", grids.output.steps, [{ label: "output", values: row(grids.output, "rms", i) }], true);
      chart(charts, "RMS of its gradient", grids.output_gradient.steps, [{ label: "gradient", values: row(grids.output_gradient, "rms", i) }], true);
      chart(charts, "share of zeros", grids.output.steps, [{ label: "output", values: row(grids.output, "zeros", i) }], false);
      return;
    }
    const facts = data.parameters[index];
    const cut = facts.cuts.length ? `; cut by ${facts.cuts.join("; ")}` : "";
    $("tensor-facts").textContent = `parameter [${facts.shape.join(", ")}] ${facts.dtype}, ${facts.state}, gradient in ${facts.gradient_steps} of ${facts.steps} steps${facts.made_at ? `, made at ${facts.made_at}` : ""}${cut}`;
    const steps = grids.gradient.steps;
    chart(charts, "RMS", steps, [{ label: "gradient", values: row(grids.gradient, "rms", index) }], true);
    chart(charts, "mean and spread of the gradient", steps, [{ label: "mean", values: row(grids.gradient, "mean", index) }, { label: "std", values: row(grids.gradient, "std", index) }], false);
    chart(charts, "update / weight", grids.update.steps, [{ label: "update / weight", values: row(grids.update, "update_ratio", index) }], true);
    chart(charts, "share of zeros in the gradient", steps, [{ label: "zeros", values: row(grids.gradient, "zeros", index) }], false);
    drawHistogram(index);
  }
  function drawHistogram(index) {
    const { steps, columns } = grids.histogram;
    if (!steps.length) return;
    const width = Math.max(2, Math.min(24, Math.floor(720 / steps.length))), height = 6;
    const picture = make("canvas", { width: steps.length * width, height: 32 * height, role: "img" });
    picture.setAttribute("aria-label", "Histogram of the gradient's sizes over the recorded steps");
    const pen = picture.getContext("2d");
    for (let step = 0; step < steps.length; step++) {
      for (let bin = 0; bin < 32; bin++) {
        const share = columns.histogram[(index * steps.length + step) * 32 + bin] / 255;
        if (share > 0) { pen.fillStyle = colour(0.15 + 0.85 * share); pen.fillRect(step * width, (31 - bin) * height, width, height); }
      }
    }
    const caption = "sizes |g| of the gradient's elements over steps: from below 2^-46 (bottom) to 2^14 and above (top)";
    $("histogram").replaceChildren(make("figure", {}, make("figcaption", { textContent: caption }), picture));
  }
  function open(index) {
    $("tensor").value = String(index);
    drawTensor();
    $("tensor-title").scrollIntoView({ block: "start" });
  }
  const choices = (label, things, offset) => {
    const group = make("optgroup", { label });
    things.forEach((thing, i) => group.append(make("option", { value: String(offset + i), textContent: thing.name })));
    return group;
  };
  $("tensor").append(choices("parameters", data.parameters, 0), choices("module outputs", data.outputs, data.parameters.length));
  $("tensor").addEventListener("change", drawTensor);

  // -- loss and learning rate -----------------------------------------------------------------------------------------
  function drawLoop() {
    const { steps, loss, learning_rate, nonfinite } = data.loop, marks = data.events.map((event) => event.step).filter((step) => step !== null).slice(0, 20).concat(nonfinite.slice(0, 1));
    $("loop").replaceChildren();
    const broken = nonfinite.length ? `; NaN or Inf from step ${nonfinite[0]} on` : "";
    const both = [{ label: "loss", values: loss }, { label: "learning rate", values: learning_rate, right: true }];
    chart($("loop"), `loss (left) and learning rate (right)${broken}; dashed: what is listed below`, steps, both, false, marks);
    $("loop-events").replaceChildren(...data.events.map(({ step, text }) => make("li", { textContent: step === null ? text : `step ${step}: ${text}` })));
  }

  // -- the rest -------------------------------------------------------------------------------------------------------
  for (const box of document.querySelectorAll("input[data-level]")) {
    box.addEventListener("change", () => {
      for (const card of document.querySelectorAll(`.card[data-severity="${box.dataset.level}"]`)) card.hidden = !box.checked;
    });
  }
  for (const link of document.querySelectorAll('a[href^="#rule-"]')) link.addEventListener("click", () => { $(link.hash.slice(1)).open = true; });
  function drawAll() {
    drawModel(); drawDepth(); drawLoop();
    if (data.parameters.length + data.outputs.length) drawTensor();
  }
  drawAll();
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.documentElement.dataset.ready = "yes";
})();
