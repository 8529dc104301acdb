// Draws the plots of the page from its data, and draws them again when the width or the scheme changes.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const rounded = (value) => (Math.abs(value) < 1 ? Number(value.toPrecision(3)) : Math.round(value * 100) / 100);
  const shown = (value, unit) => (value == null ? "–" : `${rounded(value)}${unit ? " " + unit : ""}`);

  // How far apart ticks are, in seconds; what each says; what is added below at a new year, day and so on.
  const TIMES = [
    [86400 * 365, "{YYYY}", null, null, null, null, null, null, 1],
    [86400 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  ];

  function series(each, unit) {
    const stroke = colour(`--c${each.colour}`);
    const common = { label: each.label, stroke, width: each.width, value: (_, v) => shown(v, unit), spanGaps: true };
    if (each.kind === "bars") {
      return { ...common, width: 0, fill: stroke, paths: uPlot.paths.bars({ size: [0.75, 60] }), points: { show: false } };
    }
    if (each.kind === "points") {
      return { ...common, paths: () => null, points: { show: true, size: 3, width: 0, fill: stroke, space: 0 } };
    }
    return { ...common, points: { show: false } };
  }

  // What is left free beside the first and the last place, a part of the mean distance between places.
  function padding(plot) {
    const span = Math.max(...plot.x) - Math.min(...plot.x);
    return 0.6 * (span / (plot.x.length - 1) || 1);
  }

  // Places that have room for a name: each is so far from the one before.
  function spaced(places, room) {
    let last = -Infinity;
    return places.filter((place) => place - last >= room * 0.999 && ((last = place), true));
  }

  function axes(plot, width) {
    const look = { stroke: colour("--soft"), grid: { stroke: colour("--rule"), width: 1 }, ticks: { stroke: colour("--rule") } };
    const x = { ...look, grid: { show: false }, values: plot.names ? undefined : TIMES, space: 62 };
    if (plot.names) {
      const room = (84 * (Math.max(...plot.x) - Math.min(...plot.x) + 2 * padding(plot))) / Math.max(width - 60, 1);
      x.splits = () => spaced(plot.x, room);
      x.values = (_, places) => places.map((place) => plot.names[plot.x.indexOf(place)] ?? "");
    }
    const y = { ...look, size: 78, values: (_, splits) => splits.map((v) => (v == null ? "" : v.toLocaleString("en", { maximumFractionDigits: 6 }))) };
    if (plot.log) y.filter = (_, splits) => splits.map((v) => (Number.isInteger(Math.log10(v)) ? v : null));
    return [x, y];
  }

  function draw(place, plot) {
    place.textContent = "";
    const width = Math.max(place.clientWidth, 200);
    const pad = plot.names ? padding(plot) : 0;
    const options = {
      width, height: width < 500 ? 230 : 300, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      scales: {
        x: { time: !plot.names, range: (_, low, high) => [low - pad, high + pad] },
        y: plot.log ? { distr: 3, range: (_, low, high) => [Math.min(0.6, (low || 1) / 1.5), Math.max(high * 1.5, 10)] } : {},
      },
      series: [{ label: plot.named, value: plot.names ? (_, v) => plot.names[plot.x.indexOf(v)] ?? "" : undefined },
        ...plot.series.map((each) => series(each, plot.unit))],
      axes: axes(plot, width),
      cursor: { points: { show: !plot.names } },
      legend: { live: true },
    };
    if (!plot.names) options.series[0] = { label: "time", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" };
    const values = plot.series.map((each) => (plot.log ? each.values.map((v) => (v > 0 ? v : null)) : each.values));
    new uPlot(options, [plot.x, ...values], place);
  }

  const redraws = [...document.querySelectorAll("figure[data-plot]")].map((figure) => {
    const data = plots[Number(figure.dataset.plot)];
    const caption = figure.appendChild(document.createElement("figcaption"));
    const title = caption.appendChild(document.createElement("span"));
    const place = figure.appendChild(document.createElement("div"));
    let select = null;
    if (!("series" in data)) {
      select = caption.appendChild(document.createElement("select"));
      select.setAttribute("aria-label", "which one");
      for (const name of Object.keys(data)) select.add(new Option(name, name));
    }
    let width = 0;
    const redraw = () => {
      const plot = select ? data[select.value] : data;
      title.textContent = plot.title;
      draw(place, plot);
      width = place.clientWidth;
    };
    if (select) select.addEventListener("change", redraw);
    new ResizeObserver(() => { if (place.clientWidth !== width) redraw(); }).observe(figure);
    redraw();
    return redraw;
  });

  const all = () => redraws.forEach((redraw) => redraw());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", all);
  document.getElementById("scheme").addEventListener("click", () => {
    const now = root.dataset.scheme || (dark.matches ? "dark" : "light");
    root.dataset.scheme = now === "dark" ? "light" : "dark";
    all();
  });
  root.dataset.drawn = String(redraws.length);
})();
