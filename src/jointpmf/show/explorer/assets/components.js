/* The components: their weights, and what the levels of each variable are given each. */

const COMPONENTS_SEEN = 24;

class ComponentsView {
  constructor() {
    this.table = new LongTable(byId("components"));
  }

  draw() {
    const components = this.heaviest();
    const some =
      components.length < model.rank ? ` The ${components.length} heaviest of ${model.rank}.` : "";
    byId("components-about").textContent =
      "Given its component, the variables of a row are independent. " +
      `A column is P(level | component).${some}`;
    const lines = shown.flatMap((variable) => [
      [variable, null],
      ...variable.levels.map((_, code) => [variable, code]),
    ]);
    const { clientWidth } = byId("components");
    const first = clamped(0.4 * clientWidth, 130, 220);
    const width = clamped((clientWidth - first) / components.length, 84, 120);
    const widths = [first, ...components.map(() => width)];
    const line = (k) => this.line(...lines[k], components);
    this.table.draw(widths, this.head(components), lines.length, line);
  }

  /** The components that weigh most given the evidence, in their order. */
  heaviest() {
    const all = Array.from(model.weights.keys());
    all.sort((a, b) => posterior.weights[b] - posterior.weights[a]);
    return all.slice(0, COMPONENTS_SEEN).sort((a, b) => a - b);
  }

  head(components) {
    const number = { class: "number" };
    const figures = (title, shares) =>
      element("tr", {}, lineHead(title), ...shares.map(numberCell));
    const after = (c) => (posterior.isPossible ? percent(posterior.weights[c]) : "–");
    const heads = components.map((c) => headCell(textElement(model.components[c]), number));
    return [
      element("tr", {}, headCell("component"), ...heads),
      figures(
        "weight",
        components.map((c) => percent(model.weights[c])),
      ),
      figures("weight given the evidence", components.map(after)),
    ];
  }

  line(variable, code, components) {
    if (code === null) {
      const name = element("th", { scope: "rowgroup" }, textElement(variable.name));
      const rest = element("td", { colspan: components.length });
      return element("tr", { class: "of-variable" }, name, rest);
    }
    const cells = components.map((c) =>
      this.cell(model.factors[(variable.begin + code) * model.rank + c]),
    );
    const name = lineHead(textElement(variable.levels[code]));
    return element("tr", { class: "of-level" }, name, ...cells);
  }

  cell(share) {
    const cell = numberCell(percent(share));
    cell.classList.add("heat");
    cell.style.setProperty("--t", share);
    return cell;
  }
}
