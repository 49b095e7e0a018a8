/* What is around the views; and the start of it all. */

function showView() {
  for (const view of VIEWS) {
    byId(`view-${view}`).hidden = view !== state.view;
    byId(`tab-${view}`).setAttribute("aria-selected", view === state.view);
    byId(`tab-${view}`).tabIndex = view === state.view ? 0 : -1;
  }
  drawControls();
  views[state.view].draw();
}

/** Show a control only where it acts. */
function drawControls() {
  for (const control of document.querySelectorAll("[data-acts]")) {
    const isIdle = control.id === "intervals-label" && !replicates;
    control.hidden = isIdle || !control.dataset.acts.split(" ").includes(state.view);
  }
  const controls = document.querySelector(".controls");
  controls.hidden = [...controls.children].every(({ hidden }) => hidden);
}

function openView(view) {
  state.view = view;
  remember(false);
  showView();
}

function tabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = VIEWS[(VIEWS.indexOf(state.view) + step + VIEWS.length) % VIEWS.length];
  openView(next);
  byId(`tab-${next}`).focus();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function drawTheme() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
}

/** Run with the browser's memory of the theme, where the page may have one. */
function withMemory(action) {
  try {
    return action(localStorage);
  } catch {
    return null;
  }
}

function startTheme() {
  const kept = withMemory((memory) => memory.getItem("jointpmf-theme"));
  if (["light", "dark"].includes(kept)) document.documentElement.dataset.theme = kept;
  byId("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    withMemory((memory) => memory.setItem("jointpmf-theme", theme));
    drawTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTheme);
  drawTheme();
}

function startControls() {
  byId("search").addEventListener("input", () => rearranged("search", byId("search").value));
  byId("sort").addEventListener("change", () => rearranged("sort", byId("sort").value));
  byId("layout").addEventListener("change", () => {
    rearranged("layout", byId("layout").checked ? "bars" : "cards");
  });
  byId("clear").addEventListener("click", () => {
    state.evidence.clear();
    refresh();
    remember(true);
  });
  byId("chips").addEventListener("click", removeChip);
  byId("notice").lastElementChild.addEventListener("click", () => notify(""));
  for (const view of VIEWS) byId(`tab-${view}`).addEventListener("click", () => openView(view));
  byId("tab-variables").parentElement.addEventListener("keydown", tabKey);
  for (const select of document.querySelectorAll(".of-select")) {
    select.addEventListener("change", () => chooseVariable(model.variables[select.value]));
  }
  window.addEventListener("hashchange", applyAddress);
  document.addEventListener("keydown", (event) => {
    const isElsewhere = byId("search").closest("label").hidden;
    if (event.key !== "/" || isElsewhere || event.target.closest("input, select")) return;
    event.preventDefault();
    byId("search").focus();
  });
}

function rearranged(key, value) {
  state[key] = value;
  arrangeVariables();
  views[state.view].draw();
  remember(false);
}

/** Remove what was clicked, and leave the focus on its neighbour. */
function removeChip(event) {
  const clicked = event.target.closest(".chip");
  if (!clicked) return;
  const place = [...byId("chips").querySelectorAll(".chip")].indexOf(clicked);
  give(variableOf(clicked), []);
  const left = byId("chips").querySelectorAll(".chip");
  (left[Math.min(place, left.length - 1)] ?? byId(`tab-${state.view}`)).focus();
}

function about() {
  const counted = (number, word) =>
    `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  const { variables, nLevels, rank } = model;
  return `${counted(variables.length, "variable")}, ${counted(nLevels, "level")}, rank ${rank}`;
}

/** Offer the intervals to be hidden, where there are any; the browser remembers it. */
function startIntervals() {
  if (!replicates) return;
  const [label, box] = [byId("intervals-label"), byId("intervals")];
  const { levelText, how } = replicates;
  label.title = `Intervals that hold the truth in ${levelText} of samples, from ${how}`;
  box.checked = withMemory((memory) => memory.getItem("jointpmf-intervals")) !== "hidden";
  box.addEventListener("change", () => {
    withMemory((memory) => memory.setItem("jointpmf-intervals", box.checked ? "shown" : "hidden"));
    drawEvidence();
    views[state.view].draw();
  });
}

/** All numbers in full, for other programs and for tests; nothing can be changed through it. */
function numbers() {
  const named = (name) => {
    const variable = model.variables[model.positionOf.get(name)];
    if (!variable) throw new RangeError(`there is no variable “${short(String(name), 40)}”`);
    return variable;
  };
  const ifPossible = (answer) => (posterior.isPossible ? answer() : null);
  return Object.freeze({
    names: Object.freeze(model.variables.map(({ name }) => name)),
    logProbability: () => posterior.logProbability,
    weights: () => ifPossible(() => [...posterior.weights]),
    distribution: (name) => ifPossible(() => [...posterior.distribution(named(name))]),
    interval: (name) => ifPossible(() => intervalsOf(named(name))),
    unconditional: (name) => [...prior.distribution(named(name))],
    mean: (name) => ifPossible(() => (named(name).values ? posterior.mean(named(name)) : null)),
    divergence: (name) => ifPossible(() => posterior.divergence(named(name), prior)),
    mutualInformation: (a, b) => ifPossible(() => posterior.mutualInformation(named(a), named(b))),
    completion: () => ifPossible(() => posterior.completion()),
    sample: (count, seed) => ifPossible(() => posterior.sample(count, seed)),
    shown: () => shown.map(({ name }) => name),
  });
}

Object.defineProperty(window, "jointpmf", { value: numbers() });
byId("about").textContent = about();
const views = {
  variables: new CardsView(),
  dependencies: new DependenciesView(),
  components: new ComponentsView(),
  rows: new RowsView(),
  code: new CodeView(),
};
startTheme();
startControls();
startIntervals();
applyAddress();
