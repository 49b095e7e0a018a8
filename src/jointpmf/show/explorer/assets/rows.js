/* Rows given the evidence: some drawn, and the most likely one. */

const COLUMNS_SEEN = 30; // variables of drawn rows
const ROWS_DRAWN = 20;
const SEEDS = 1e9; // those that an address may have

class RowsView {
  constructor() {
    this.drawn = new LongTable(byId("drawn"));
    this.completion = new LongTable(byId("completion"));
    byId("draw").addEventListener("click", () => this.drawAgain());
    byId("drawn-csv").addEventListener("click", () => {
      download("rows.csv", [model.variables.map(({ name }) => name), ...this.drawnRows()]);
    });
  }

  drawAgain() {
    state.seed = (state.seed + 1) % SEEDS;
    remember(false);
    this.drawDrawn();
  }

  draw() {
    const { isPossible } = posterior;
    for (const id of ["draw", "drawn-csv"]) byId(id).disabled = !isPossible;
    for (const id of ["drawn", "completion"]) byId(id).hidden = !isPossible;
    for (const id of ["drawn-about", "completion-about"]) byId(id).textContent = IMPOSSIBLE;
    if (!isPossible) return;
    this.drawDrawn();
    this.drawCompletion();
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
    const heads = seen.map(({ name }) => headCell(textElement(name, "two-lines")));
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

  drawCompletion() {
    const completion = posterior.completion();
    const modes = model.variables.map((variable) => posterior.mode(variable));
    const nOther = modes.filter((code, n) => code !== completion.codes[n]).length;
    byId("completion-about").textContent = this.aboutCompletion(completion, nOther);
    const number = { class: "number" };
    const head = element(
      "tr",
      {},
      headCell("variable"),
      headCell("most likely row"),
      headCell("probability", number),
      headCell("by itself"),
      headCell("probability", number),
    );
    const first = clamped(0.3 * byId("completion").clientWidth, 170, 340);
    this.completion.draw([first, 190, 96, 190, 96], [head], shown.length, (k) =>
      this.completionLine(shown[k], completion.codes[shown[k].position]),
    );
  }

  aboutCompletion({ logProbability, isExact, nTried }, nOther) {
    const which = isExact
      ? "No row is more likely given the evidence: as a whole it has"
      : `The most likely of ${nTried.toLocaleString("en")} rows that were tried, among them each ` +
        "component's own and that of the most likely levels; others may be more likely. It has";
    const variables = nOther === 1 ? "one variable" : `${nOther.toLocaleString("en")} variables`;
    const beside = nOther
      ? `By itself, ${variables} would most likely be something else.`
      : "Each variable by itself would most likely be the same.";
    return `${which} probability ${probabilityText(logProbability)}. ${beside}`;
  }

  completionLine(variable, code) {
    const mode = posterior.mode(variable);
    const shares = posterior.distribution(variable);
    return element(
      "tr",
      { "data-position": variable.position, "data-code": code, "data-mode": mode },
      lineHead(textElement(variable.name)),
      this.levelCell(variable, variable.levels[code]),
      numberCell(percent(shares[code])),
      element("td", mode === code ? {} : { class: "is-other" }, textElement(variable.levels[mode])),
      numberCell(percent(shares[mode])),
    );
  }
}
