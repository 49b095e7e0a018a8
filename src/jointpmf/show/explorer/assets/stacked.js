/* Variables as stacked bars, one line each: many of them on one screen. */

const STACKED_WIDTH = 560; // of a line, at least, before there is another column
const STACKED_MOST = 30; // levels, above which a line only tells the most likely one
const CHARACTER = 7.5; // pixels, about
const LEAST_TEXT = 32; // pixels, for a text that is cut

/** One variable as a line: its name, its levels side by side, and its mean. */
class StackedCard {
  constructor(variable) {
    this.variable = variable;
    this.active = state.evidence.get(variable.position)?.[0] ?? 0; // the part that Tab goes to
    const id = `name-${variable.position}`;
    this.name = cardName(variable, id);
    const isMany = variable.size > STACKED_MOST;
    this.parts = isMany ? [] : variable.levels.map((_, code) => new Part(variable, code));
    this.list = element("div", { class: "parts", role: "group", "aria-labelledby": id });
    this.list.append(...this.parts.map(({ root }) => root));
    this.befores = this.parts.map(() => element("i"));
    this.before = element("div", { class: "befores", "aria-hidden": "true" }, ...this.befores);
    this.likeliest = element("span", { class: "likeliest" });
    this.side = element("span", { class: "side" });
    this.root = element("div", { class: "card stacked", role: "listitem" });
    this.root.dataset.position = variable.position;
    const middle = isMany ? [this.likeliest] : [this.list, this.before];
    this.root.append(this.name, element("div", { class: "stack" }, ...middle), this.side);
    this.befores.forEach((one, code) => one.style.setProperty("--t", depth(variable, code)));
  }

  put(place, index) {
    placeCard(this.root, place, index);
    const isNarrow = place.width < STACKED_WIDTH;
    this.root.classList.toggle("narrow", isNarrow);
    const width = (isNarrow ? 1 : 0.48) * place.width;
    if (width === this.width) return;
    this.width = width;
    this.draw();
  }

  draw() {
    const { variable } = this;
    const given = state.evidence.get(variable.position);
    this.root.classList.toggle("given", given !== undefined);
    // what is given keeps the widths that it had, so that other levels can still be clicked
    const widths = (given ? prior : posterior).distribution(variable);
    for (const part of this.parts) {
      part.draw(widths[part.code], this.width, given);
      part.root.tabIndex = part.code === this.active ? 0 : -1;
    }
    const before = prior.distribution(variable);
    this.befores.forEach((one, code) => (one.style.flexGrow = before[code]));
    this.before.classList.toggle("idle", !state.evidence.size || given !== undefined);
    if (!this.parts.length) write(this.likeliest, this.likeliestText());
    write(this.side, given ? "given" : this.sideText());
    this.side.title = variable.values ? "its mean, and by how much that moved" : MOVED_MEANS;
  }

  likeliestText() {
    if (!posterior.isPossible) return "–";
    const code = posterior.mode(this.variable);
    const share = percent(posterior.distribution(this.variable)[code]);
    const name = short(this.variable.levels[code], 40);
    return `${this.variable.size.toLocaleString("en")} levels; most likely ${name}, ${share}`;
  }

  sideText() {
    if (!posterior.isPossible) return "–";
    const isMoved = state.evidence.size > 0;
    if (!this.variable.values) {
      return isMoved ? `${nats(posterior.divergence(this.variable, prior))} nats` : "";
    }
    const [before, now] = [prior, posterior].map((one) => one.mean(this.variable));
    return numberText(now) + (isMoved ? ` ${signed(now - before)}` : "");
  }

  focus(code) {
    this.active = code;
    for (const part of this.parts) part.root.tabIndex = part.code === code ? 0 : -1;
    this.parts[code].root.focus();
  }
}

/** How deep the colour of a level is: by its order if it has one, else unlike its neighbours. */
function depth({ values, size }, code) {
  return values ? (code + 0.5) / size : [0.15, 0.5, 0.3][code % 3];
}

/** One level as a part of its variable's bar. */
class Part {
  constructor(variable, code) {
    [this.variable, this.code] = [variable, code];
    this.text = element("bdi");
    this.root = element("button", { type: "button", class: "level part", "data-code": code });
    this.root.append(this.text);
    this.root.style.setProperty("--t", depth(variable, code));
  }

  draw(width, whole, given) {
    const [p, q] = [posterior, prior].map((one) => one.distribution(this.variable)[this.code]);
    const level = short(this.variable.levels[this.code], 40);
    const share = posterior.isPossible ? percent(p) : "–";
    this.root.style.flexGrow = width;
    this.root.dataset.probability = posterior.isPossible ? p : "";
    this.root.setAttribute("aria-pressed", (given ?? []).includes(this.code));
    const was = state.evidence.size ? `, was ${percent(q)}` : "";
    this.root.title = `${level}: ${share}${was}`;
    this.root.setAttribute("aria-label", `${level} · ${share}`);
    const room = width * whole - 10;
    const texts = given ? [level] : [`${level} · ${share}`, level];
    const fitting = texts.find((text) => CHARACTER * text.length < room);
    write(this.text, fitting ?? (room > LEAST_TEXT ? level : ""));
  }
}
