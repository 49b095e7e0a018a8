/* Which variables tell about each other: a heat map of pairs, and the strongest of one. */

const PAIRS_SEEN = 40; // variables in the heat map
const NUMBERED_PAIRS = 14; // variables up to which the heat map has room for numbers
const STRONGEST_SEEN = 15;
const ROUNDING = 1e-9; // nats, below which mutual information is taken for none
const SLICE = 12; // milliseconds of work between two chances to answer the user

const isFree = ({ position }) => !state.evidence.has(position);

/** The variable that is asked about: the one chosen, or else the first that is not given. */
function asked() {
  return model.variables[state.of] ?? model.variables.find(isFree) ?? model.variables[0];
}

function chooseVariable(variable, view = state.view) {
  const isElsewhere = view !== state.view;
  [state.of, state.view] = [variable.position, view];
  remember(false);
  showView();
  if (isElsewhere) byId(`tab-${view}`).focus({ preventScroll: true });
}

/** Put other content into an element; a focus on one of its buttons goes to the one like it. */
function replaceContent(target, ...children) {
  const focused = target.contains(document.activeElement) ? document.activeElement : null;
  target.replaceChildren(...children);
  if (!focused) return;
  const same = target.querySelector(`button[data-position="${focused.dataset.position}"]`);
  (same ?? target.querySelector("button"))?.focus({ preventScroll: true });
}

function drawChoices(chosen) {
  for (const select of document.querySelectorAll(".of-select")) {
    const choice = ({ name, position }) => element("option", { value: position }, short(name, 80));
    if (!select.length) select.append(...model.variables.map(choice));
    select.value = chosen.position;
  }
}

/** Run a generator in slices, so that the page goes on answering; returns how to stop it. */
function inSlices(steps) {
  let isStopped = false;
  const run = () => {
    const end = performance.now() + SLICE;
    while (!isStopped && performance.now() < end) if (steps.next().done) return;
    if (!isStopped) setTimeout(run);
  };
  run();
  return () => (isStopped = true);
}

/** What two variables tell about each other by the model, given the evidence. */
const INFORMATION = {
  name: "information",
  title: "Mutual information in nats",
  unit: " nats",
  digits: 3,
  which: "tell most about the component",
  compared: (variables) => (posterior.isPossible ? variables.filter(isFree) : []),
  of: (one, other) => {
    const value = posterior.mutualInformation(one, other);
    return value > ROUNDING ? value : 0;
  },
  // no pair with a variable has more mutual information
  most: (one) => posterior.componentInformation(one),
  meaning: () => {
    const isOne = posterior.weights.filter((weight) => weight > 0).length === 1;
    if (isOne) return "Only one component is left, so no variable tells anything about another.";
    const given = state.evidence.size ? " given the evidence" : "";
    return `How much two variables tell about each other${given}, in nats; 0 is none.`;
  },
};

/** What the rows say of two variables beyond the model, whatever is given. */
const RESIDUAL = {
  name: "residual",
  title: "χ²/df in the rows",
  unit: "",
  digits: 2,
  which: "fit worst in a pair",
  compared: (variables) => variables,
  of: (one, other) => residuals.of(one, other),
  most: (one, all) => {
    const others = all.filter((other) => other !== one);
    return Math.max(...others.map((other) => residuals.of(one, other) || 0));
  },
  meaning: () =>
    "χ²/df of each pair in the rows that were given: about 1 where the model holds, above 3 or 4 " +
    "where two variables depend on each other in a way that the components do not explain. " +
    "Evidence does not change it.",
};

class DependenciesView {
  constructor() {
    this.stops = [];
    byId("measure-label").hidden = !residuals;
    byId("measure").addEventListener("change", () => rearranged("measure", byId("measure").value));
    byId("view-dependencies").addEventListener("click", (event) => {
      const inside = event.target.closest("[data-position]");
      if (inside) chooseVariable(variableOf(inside));
    });
  }

  draw() {
    this.stops.forEach((stop) => stop());
    const chosen = asked();
    drawChoices(chosen);
    byId("measure").value = this.measure.name;
    byId("full-name").textContent = chosen.name;
    byId("full-name").hidden = chosen.name.length <= 40;
    this.stops = [inSlices(this.pairSteps(chosen)), inSlices(this.strongestSteps(chosen))];
  }

  /** What is shown of pairs: what the model says, or what the rows say beyond it. */
  get measure() {
    return residuals && state.measure === "residual" ? RESIDUAL : INFORMATION;
  }

  *pairSteps(chosen) {
    const { measure } = this;
    const compared = measure.compared(shown);
    const variables = this.mostTelling(compared);
    byId("pairs").setAttribute("aria-busy", "true");
    byId("pairs-about").textContent = this.about(variables.length, compared.length);
    const table = variables.map(() => new Float64Array(variables.length));
    for (let i = 0; i < variables.length; i++) {
      for (let j = 0; j < i; j++) {
        table[i][j] = table[j][i] = measure.of(variables[i], variables[j]);
        yield;
      }
    }
    this.drawPairs(variables, table, chosen);
    byId("pairs").setAttribute("aria-busy", "false");
  }

  /** Those whose largest measure with another one may be largest. */
  mostTelling(free) {
    if (free.length <= PAIRS_SEEN) return free;
    const told = new Map(free.map((one) => [one, this.measure.most(one, free)]));
    const best = [...free].sort((a, b) => told.get(b) - told.get(a)).slice(0, PAIRS_SEEN);
    return free.filter((one) => best.includes(one));
  }

  about(count, nFree) {
    const { meaning, which } = this.measure;
    if (!posterior.isPossible && this.measure === INFORMATION) return IMPOSSIBLE;
    if (count < 2) return "There are no two variables left to compare.";
    if (count === nFree) return meaning();
    const some = `Of ${nFree} variables the ${count} that ${which}`;
    return `${meaning()} ${some}; search to choose others.`;
  }

  drawPairs(variables, table, chosen) {
    const isNumbered = variables.length <= NUMBERED_PAIRS;
    const most = table.flatMap((row) => [...row]).reduce((a, b) => (b > a ? b : a), 0);
    const room = (byId("pairs-box").clientWidth - 226) / variables.length;
    const cellWidth = isNumbered ? clamped(room, 52, 84) : clamped(room, 30, 40);
    byId("pairs").style.setProperty("--cell", `${cellWidth}px`);
    this.drawLegend(variables.length > 1 ? most : 0);
    const heads = variables.map((one) => this.columnHead(one, one === chosen));
    const rows = variables.map((one, i) => {
      const cells = variables.map((other, j) =>
        this.cell(one, other, table[i][j], most, isNumbered),
      );
      return element("tr", {}, this.rowHead(one, one === chosen), ...cells);
    });
    const head = element("thead", {}, element("tr", {}, element("td"), ...heads));
    const content = rows.length > 1 ? [head, element("tbody", {}, ...rows)] : [];
    replaceContent(byId("pairs"), ...content);
  }

  /** Say what colours stand for: halfway to the deepest is a quarter of the largest number. */
  drawLegend(most) {
    const { unit, digits } = this.measure;
    const numbers = [0, most / 4, most].map((number) => nats(number, number ? digits : 0));
    numbers[2] += unit;
    const said = `Colours from light to deep: ${joined(numbers)}`;
    const labels = element("p", {}, ...numbers.map((number) => element("span", {}, number)));
    byId("pairs-legend").replaceChildren(...(most > 0 ? [element("i"), labels] : []));
    byId("pairs-legend").setAttribute("aria-label", said);
    byId("pairs-legend").hidden = most === 0;
  }

  columnHead(variable, isChosen) {
    return element(
      "th",
      { scope: "col", class: isChosen ? "chosen" : "" },
      textElement(variable.name),
    );
  }

  rowHead(variable, isChosen) {
    return element("th", { scope: "row", class: isChosen ? "chosen" : "" }, this.button(variable));
  }

  button(variable) {
    const { name, position } = variable;
    return element(
      "button",
      { type: "button", class: "link", "data-position": position },
      textElement(name, "two-lines"),
    );
  }

  cell(one, other, value, most, isNumbered) {
    if (one === other) return element("td", { class: "same" });
    const cell = element("td", {
      class: "heat",
      "data-position": one.position,
      "data-other": other.position,
    });
    const { unit, digits } = this.measure;
    const text = Number.isNaN(value) ? "–" : nats(value, digits);
    cell.dataset.information = value;
    cell.title = `${short(one.name, 60)} and ${short(other.name, 60)}: ${text}${unit}`;
    cell.style.setProperty("--t", value > 0 ? Math.sqrt(value / most) : 0);
    cell.append(element("span", isNumbered ? {} : { class: "unseen" }, text));
    return cell;
  }

  *strongestSteps(chosen) {
    const { measure } = this;
    const compared = measure.compared(model.variables);
    const others = compared.includes(chosen) ? compared.filter((one) => one !== chosen) : [];
    const found = [];
    byId("strongest").setAttribute("aria-busy", "true");
    for (const other of others) {
      const value = measure.of(chosen, other);
      if (!Number.isNaN(value)) found.push([other, value]);
      yield;
    }
    found.sort((a, b) => b[1] - a[1]);
    const seen = found.slice(0, STRONGEST_SEEN);
    byId("strongest-about").textContent = this.aboutStrongest(chosen, seen.length, found.length);
    const items = seen.map(([other, value]) => this.item(other, value, seen[0][1]));
    replaceContent(byId("strongest"), ...items);
    byId("strongest").setAttribute("aria-busy", "false");
  }

  aboutStrongest(chosen, count, nFound) {
    const { title } = this.measure;
    if (this.measure === INFORMATION && !posterior.isPossible) return IMPOSSIBLE;
    if (this.measure === INFORMATION && !isFree(chosen))
      return "It is given, so there is nothing more to learn of it.";
    if (!nFound) return "There is no other variable left.";
    return `${title}${count < nFound ? `, the first ${count} of ${nFound}` : ""}.`;
  }

  item(other, value, most) {
    const now = element("span", { class: "now" });
    now.style.transform = `scaleX(${most > 0 ? value / most : 0})`;
    const bar = element("span", { class: "bars" }, now);
    const item = element(
      "li",
      {},
      this.button(other),
      bar,
      element("span", { class: "value" }, nats(value, this.measure.digits + 1)),
    );
    item.dataset.information = value;
    return item;
  }
}
