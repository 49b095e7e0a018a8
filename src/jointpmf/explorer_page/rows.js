/* Rows given the evidence: some drawn, and the most likely level of each variable. */

const COLUMNS_SEEN = 30; // variables of drawn rows
const ROWS_DRAWN = 20;

class RowsView {
  constructor() {
    this.drawn = new LongTable(byId("drawn"));
    this.modes = new LongTable(byId("modes"));
    byId("draw").addEventListener("click", () => this.drawAgain());
    byId("drawn-csv").addEventListener("click", () => {
      download("rows.csv", [model.variables.map(({ name }) => name), ...this.drawnRows()]);
    });
  }

  drawAgain() {
    state.seed += 1;
    remember(false);
    this.drawDrawn();
  }

  draw() {
    const { isPossible } = posterior;
    for (const id of ["draw", "drawn-csv"]) byId(id).disabled = !isPossible;
    for (const id of ["drawn", "modes"]) byId(id).hidden = !isPossible;
    for (const id of ["drawn-about", "modes-about"]) byId(id).textContent = IMPOSSIBLE;
    if (!isPossible) return;
    this.drawDrawn();
    this.drawModes();
  }

  drawnRows() {
    const rows = posterior.sample(ROWS_DRAWN, state.seed);
    return rows.map((codes) => codes.map((code, n) => model.variables[n].levels[code]));
  }

  drawDrawn() {
    const seen = shown.slice(0, COLUMNS_SEEN);
    const rows = this.drawnRows();
    const [count, all] = [seen.length, model.variables.length];
    const some = count < all ? ` ${count} of ${all} variables are shown; the file has all.` : "";
    byId("drawn-about").textContent =
      `${ROWS_DRAWN} rows from the model, seed ${state.seed}.${some}`;
    const heads = seen.map(({ name }) => headCell(textElement(name)));
    const head = element("tr", {}, headCell("row"), ...heads);
    const widths = [52, ...seen.map((variable) => this.widthOf(variable))];
    this.drawn.draw(widths, [head], rows.length, (k) => {
      const cells = seen.map((variable) => this.levelCell(variable, rows[k][variable.position]));
      return element("tr", {}, lineHead(String(k + 1)), ...cells);
    });
  }

  widthOf({ name, levels }) {
    const longest = Math.max(name.length, ...levels.slice(0, 100).map((level) => level.length));
    return clamped(8 * longest + 20, 56, 190);
  }

  levelCell(variable, level) {
    return element("td", isFree(variable) ? {} : { class: "is-given" }, textElement(level));
  }

  drawModes() {
    const modes = new Map(model.variables.map((one) => [one.position, [posterior.mode(one)]]));
    const log = new Posterior(model, modes).logProbability - posterior.logProbability;
    const together = log > -Infinity ? `has probability ${probabilityText(log)}` : "cannot occur";
    byId("modes-about").textContent =
      "Each variable by itself: its own most likely level given the evidence. Taken together " +
      `they need not be the most likely row; as a row, this one ${together} given the evidence.`;
    const heads = ["variable", "most likely"].map((text) => headCell(text));
    const numbers = ["probability", "without evidence"].map((text) =>
      headCell(text, { class: "number" }),
    );
    const head = element("tr", {}, ...heads, ...numbers);
    this.modes.draw([180, 200, 96, 130], [head], shown.length, (k) => this.modeLine(shown[k]));
  }

  modeLine(variable) {
    const code = posterior.mode(variable);
    const shares = [posterior, prior].map((one) => percent(one.distribution(variable)[code]));
    return element(
      "tr",
      { "data-position": variable.position, "data-code": code },
      lineHead(textElement(variable.name)),
      this.levelCell(variable, variable.levels[code]),
      ...shares.map(numberCell),
    );
  }
}
