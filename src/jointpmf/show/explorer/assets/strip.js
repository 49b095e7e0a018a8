/* The components in a row above the cards: how much each weighs, to be given and to be named. */

const TILES_SEEN = 24; // with more components there is no strip; their own view shows the heaviest

/** Whether a click is to add to what is given, or take away from it. */
const isForSeveral = (event) =>
  event.shiftKey || event.ctrlKey || event.metaKey || byId("several").checked;

class Strip {
  constructor() {
    this.root = byId("strip");
    const isShown = model.rank > 1 && model.rank <= TILES_SEEN;
    this.tiles = isShown ? Array.from({ length: model.rank }, (_, c) => new Tile(c)) : [];
    this.root.hidden = !isShown;
    this.root.append(...this.tiles.map(({ root }) => root));
  }

  draw() {
    const most = this.tiles.map(({ c }) => Math.max(prior.weights[c], posterior.weights[c]));
    const scale = scaleFor(Math.max(0, ...most));
    for (const tile of this.tiles) tile.draw(scale);
  }
}

/** One component: a button that gives it as evidence, and one that lets it be named. */
class Tile {
  constructor(c) {
    this.c = c;
    this.name = element("bdi", { class: "level-name" });
    this.share = element("span", { class: "share" });
    [this.was, this.now] = ["was", "now"].map((kind) => element("span", { class: kind }));
    const bars = element("span", { class: "bars" }, this.was, this.now);
    this.button = element("button", { type: "button", class: "tile-give" });
    this.button.append(this.name, this.share, bars);
    this.button.addEventListener("click", (event) => pick(model.component, c, isForSeveral(event)));
    this.rename = element("button", { type: "button", class: "tile-rename" }, "✎");
    this.rename.addEventListener("click", () => this.ask());
    this.input = element("input", { type: "text", maxlength: TEXT_SEEN, autocomplete: "off" });
    this.input.hidden = true;
    this.input.addEventListener("keydown", (event) => this.keyed(event));
    this.input.addEventListener("blur", () => this.keep());
    this.root = element("div", { class: "tile" }, this.button, this.input, this.rename);
  }

  ask() {
    this.input.value = state.names.get(this.c) ?? "";
    this.input.placeholder = short(componentTitle(this.c), 40);
    this.showInput(true);
    this.input.focus();
  }

  showInput(isAsked) {
    this.input.hidden = !isAsked;
    this.button.hidden = this.rename.hidden = isAsked;
  }

  keyed(event) {
    const { key } = event;
    if (key !== "Enter" && key !== "Escape") return;
    event.preventDefault(); // Enter would press the button that gets the focus
    if (key === "Escape") this.showInput(false); // what loses the focus hidden is not kept
    else this.keep();
    this.rename.focus();
  }

  keep() {
    if (this.input.hidden) return;
    this.showInput(false);
    if (!nameComponent(this.c, this.input.value)) notify("Another component has this name.");
    remember(false);
    drawEvidence();
    views[state.view].draw();
  }

  intervalText() {
    if (!replicates?.hasComponents) return "";
    const interval = shownInterval(posterior, ({ weights }) => weights[this.c]);
    return interval ? `, ${replicates.levelText} interval ${rangeText(interval)}` : "";
  }

  draw(scale) {
    const [p, q] = [posterior, prior].map(({ weights }) => weights[this.c]);
    const title = componentTitle(this.c);
    const codes = state.evidence.get(model.component.position) ?? [];
    write(this.name, short(title, 80));
    write(this.share, posterior.isPossible ? percent(p) : "–");
    this.button.setAttribute("aria-pressed", codes.includes(this.c));
    const was = state.evidence.size ? `, ${percent(q)} without evidence` : "";
    const share = `${this.share.textContent} of rows${was}${this.intervalText()}`;
    this.button.title = `${short(title)}: ${share}. Click to give it`;
    this.rename.title = `Name ${short(title)}`;
    for (const named of [this.rename, this.input]) {
      named.setAttribute("aria-label", `Name ${short(title, 60)}`);
    }
    this.now.style.transform = `scaleX(${Math.min(p / scale, 1)})`;
    this.was.style.width = `${Math.min((100 * q) / scale, 100)}%`;
    this.was.hidden = !state.evidence.size;
  }
}
