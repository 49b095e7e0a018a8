/* The components: their weights, and what the levels of each variable are given each. */

const COMPONENTS_SEEN = 24;

class ComponentsView {
  constructor() {
    this.table = new LongTable(byId("components"));
    byId("components").addEventListener("click", (event) => {
      const button = event.target.closest("[data-component]");
      if (!button) return;
      const { component } = button.dataset;
      pick(model.component, Number(component), isForSeveral(event));
      byId("components").querySelector(`[data-component="${component}"]`)?.focus();
    });
  }

  draw() {
    const components = this.heaviest();
    const some =
      components.length < model.rank ? ` The ${components.length} heaviest of ${model.rank}.` : "";
    byId("components-about").textContent =
      "Given its component, the variables of a row are independent. A column is P(level | " +
      `component); click its head to give it as evidence.${some}${this.unclear()}`;
    const { clientWidth } = byId("components");
    const lines = shown.flatMap((variable) => {
      const isLong = 8.5 * variable.name.length > clientWidth - 16;
      const heads = isLong ? [[variable, "long"], [variable, "rest"]] : [[variable, "short"]];
      return [...heads, ...variable.levels.map((_, code) => [variable, code])];
    });
    const first = clamped(0.3 * clientWidth, 136, 320);
    const [least, most] = this.interval(prior, () => 0) ? [158, 190] : [92, 130];
    byId("components").style.setProperty("--seen", `${clientWidth - 16}px`);
    const width = clamped((clientWidth - first) / components.length, least, most);
    const widths = [first, ...components.map(() => width)];
    const line = (k) => this.line(...lines[k], components);
    this.table.draw(widths, this.head(components), lines.length, line);
  }

  /** Say where the components of replicates may not be those of the model. */
  unclear() {
    if (!replicates?.hasComponents || !replicates.nUnclear) return "";
    const which = `${replicates.nUnclear} of ${replicates.count} replicates`;
    return ` Of ${which} it is not clear which component is which.`;
  }

  /** The components that weigh most given the evidence, in their order. */
  heaviest() {
    const all = Array.from(model.weights.keys());
    all.sort((a, b) => posterior.weights[b] - posterior.weights[a]);
    return all.slice(0, COMPONENTS_SEEN).sort((a, b) => a - b);
  }

  head(components) {
    const number = { class: "number" };
    const figures = (title, one) =>
      element("tr", {}, lineHead(title), ...components.map((c) => this.weight(one, c)));
    const heads = components.map((c) => headCell(this.button(c), number));
    return [
      element("tr", {}, headCell("component"), ...heads),
      figures("weight", prior),
      figures("weight given the evidence", posterior),
    ];
  }

  button(c) {
    const given = state.evidence.get(model.component.position) ?? [];
    const button = element("button", { type: "button", class: "link", "data-component": c });
    button.append(textElement(componentName(c)));
    button.setAttribute("aria-pressed", given.includes(c));
    button.setAttribute("aria-label", `Give ${short(componentTitle(c), 60)} as evidence`);
    return button;
  }

  weight(one, c) {
    const interval = this.interval(one, ({ weights }) => weights[c]);
    return this.number(one.isPossible ? percent(one.weights[c]) : "–", interval);
  }

  line(variable, code, components) {
    if (code === "rest") return element("tr"); // the name above takes this line too
    if (code === "long" || code === "short") {
      const span = { colspan: components.length + 1, rowspan: code === "long" ? 2 : 1 };
      const name = textElement(variable.name, code === "long" ? "two-lines" : "cut");
      const head = element("th", { scope: "rowgroup", ...span }, name);
      return element("tr", { class: "of-variable" }, head);
    }
    const cells = components.map((c) =>
      this.cell((variable.begin + code) * model.rank + c),
    );
    const name = lineHead(textElement(variable.levels[code]));
    return element("tr", { class: "of-level" }, name, ...cells);
  }

  cell(place) {
    const share = model.factors[place];
    const interval = this.interval(prior, (one) => one.model.factors[place]);
    const cell = this.number(percent(share), interval);
    cell.classList.add("heat");
    cell.style.setProperty("--t", share);
    return cell;
  }

  interval(one, answer) {
    return replicates?.hasComponents ? shownInterval(one, answer) : null;
  }

  number(text, interval) {
    const cell = numberCell(text);
    const between = interval && ` (${rangeText(interval).replace(" %", "")})`;
    if (between) cell.append(element("span", { class: "between" }, between));
    return cell;
  }
}
