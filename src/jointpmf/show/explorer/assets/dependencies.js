/* Which variables tell about each other: a heat map of pairs, and the strongest of one. */

const PAIRS_SEEN = 40; // variables in the heat map
const NUMBERED_PAIRS = 14; // variables up to which the heat map has room for numbers
const STRONGEST_SEEN = 15;
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

class DependenciesView {
  constructor() {
    this.stops = [];
    byId("view-dependencies").addEventListener("click", (event) => {
      const inside = event.target.closest("[data-position]");
      if (inside) chooseVariable(variableOf(inside));
    });
  }

  draw() {
    this.stops.forEach((stop) => stop());
    const chosen = asked();
    drawChoices(chosen);
    byId("full-name").textContent = chosen.name;
    byId("full-name").hidden = chosen.name.length <= 40;
    this.stops = [inSlices(this.pairSteps(chosen)), inSlices(this.strongestSteps(chosen))];
  }

  *pairSteps(chosen) {
    const free = posterior.isPossible ? shown.filter(isFree) : [];
    const variables = this.mostTelling(free);
    byId("pairs").setAttribute("aria-busy", "true");
    byId("pairs-about").textContent = this.about(variables.length, free.length);
    const table = variables.map(() => new Float64Array(variables.length));
    for (let i = 0; i < variables.length; i++) {
      for (let j = 0; j < i; j++) {
        table[i][j] = table[j][i] = posterior.mutualInformation(variables[i], variables[j]);
        yield;
      }
    }
    this.drawPairs(variables, table, chosen);
    byId("pairs").setAttribute("aria-busy", "false");
  }

  /** Those that tell most about the component, which bounds what they tell about each other. */
  mostTelling(free) {
    if (free.length <= PAIRS_SEEN) return free;
    const told = new Map(free.map((one) => [one, posterior.componentInformation(one)]));
    const best = [...free].sort((a, b) => told.get(b) - told.get(a)).slice(0, PAIRS_SEEN);
    return free.filter((one) => best.includes(one));
  }

  about(count, nFree) {
    if (!posterior.isPossible) return IMPOSSIBLE;
    if (count < 2) return "There are no two variables left to compare.";
    const given = state.evidence.size ? " given the evidence" : "";
    const meaning = `How much two variables tell about each other${given}, in nats; 0 is none.`;
    if (count === nFree) return meaning;
    const which = `Of ${nFree} variables the ${count} that tell most about the component`;
    return `${meaning} ${which}; search to choose others.`;
  }

  drawPairs(variables, table, chosen) {
    const isNumbered = variables.length <= NUMBERED_PAIRS;
    const most = Math.max(...table.map((row) => Math.max(...row)));
    const cellWidth = isNumbered
      ? clamped((byId("pairs-box").clientWidth - 180) / variables.length, 52, 84)
      : 26;
    byId("pairs").style.setProperty("--cell", `${cellWidth}px`);
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
      textElement(name),
    );
  }

  cell(one, other, value, most, isNumbered) {
    if (one === other) return element("td", { class: "same" });
    const cell = element("td", {
      class: "heat",
      "data-position": one.position,
      "data-other": other.position,
    });
    cell.dataset.information = value;
    cell.title = `${short(one.name, 60)} and ${short(other.name, 60)}: ${nats(value)} nats`;
    cell.style.setProperty("--t", most > 0 ? Math.sqrt(value / most) : 0);
    cell.append(element("span", isNumbered ? {} : { class: "unseen" }, nats(value)));
    return cell;
  }

  *strongestSteps(chosen) {
    const others =
      posterior.isPossible && isFree(chosen)
        ? model.variables.filter((one) => one !== chosen && isFree(one))
        : [];
    const found = [];
    byId("strongest").setAttribute("aria-busy", "true");
    for (const other of others) {
      found.push([other, posterior.mutualInformation(chosen, other)]);
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
    if (!posterior.isPossible) return IMPOSSIBLE;
    if (!isFree(chosen)) return "It is given, so there is nothing more to learn of it.";
    if (!nFound) return "There is no other variable left.";
    const some = count < nFound ? `, the first ${count} of ${nFound}` : "";
    return `Mutual information in nats${some}.`;
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
      element("span", { class: "value" }, nats(value, 4)),
    );
    item.dataset.information = value;
    return item;
  }
}
