/* Variables as cards of bars; only the cards and bars in sight are in the document. */

const LEVELS_SEEN = 12; // of one variable, before its card scrolls
const LEVELS_MARGIN = 3; // bars beyond the edge of a card that scrolls
const CARD_WIDTH = 330;
const GAP = 12;
const SHORT_LEVEL = 14; // characters up to which a level stands beside its bar, not above it
const LONG_LEVEL = 34; // characters from which it takes two lines
const MOVED_MEANS =
  "How far the evidence moved it: the Kullback–Leibler divergence from what it is without " +
  "evidence, in nats. 0 is not at all; a bit is 0.69 nats.";
const MOVED_BY_MEANS = "Percentage points more or fewer than without evidence";

const variableOf = (inside) => model.at(inside.closest("[data-position]").dataset.position);
const isOrdinal = (variable) => variable.values !== null && variable.size > 2;

/** Sizes in pixels, for the user's size of text and kind of pointer. */
function measured() {
  const { style } = document.documentElement;
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 14;
  const isCoarse = matchMedia("(pointer: coarse)").matches;
  const row = Math.round((isCoarse ? 34 : 24) * unit);
  const sizesOf = [19, 20, isCoarse ? 50 : 42].map((size) => Math.round(size * unit));
  const [words, facts, stacked] = sizesOf;
  const sizes = { row, words, facts, stacked, range: row - 4, edges: 20 };
  for (const [name, size] of Object.entries(sizes)) style.setProperty(`--${name}`, `${size}px`);
  return { ...sizes, unit };
}

const ruler = document.createElement("canvas").getContext("2d");

/** How many lines a variable's name takes in a card of some width: one or two. */
function nameLines(variable, width, unit) {
  if (!variable.nameWidth) {
    ruler.font = `600 ${14 * unit}px ${getComputedStyle(document.body).fontFamily}`;
    variable.nameWidth = ruler.measureText(short(variable.name)).width;
  }
  return variable.nameWidth > width - 26 ? 2 : 1;
}

/** How many lines of text a level has above its bar; none if it stands beside it. */
function levelLines({ levels }) {
  const longest = Math.max(...levels.slice(0, 100).map((level) => level.length));
  if (longest <= SHORT_LEVEL) return 0;
  return longest > LONG_LEVEL ? 2 : 1;
}

/** A variable's name as a button that leads to its dependencies. */
function cardName(variable, id) {
  const name = element("button", { type: "button", class: "card-name", id });
  name.append(textElement(variable.name, "two-lines"));
  name.setAttribute("aria-description", "Shows its strongest dependencies");
  return name;
}

function placeCard(root, { left, top, width, height }, index) {
  [root.style.left, root.style.top] = [`${left}px`, `${top}px`];
  [root.style.width, root.style.height] = [`${width}px`, `${height}px`];
  root.setAttribute("aria-posinset", index + 1);
  root.setAttribute("aria-setsize", shown.length);
}

/** The height of a level: beside its bar, or with one or two lines of text above it. */
function rowOf(variable, { row, words, unit }) {
  const lines = levelLines(variable);
  return lines ? Math.max(row, Math.round(lines * words + 18 * unit)) : row;
}

/** Put an element behind another, or first, unless it stands there already. */
function insertAfter(parent, before, child) {
  const next = before ? before.nextElementSibling : parent.firstElementChild;
  if (next !== child) parent.insertBefore(child, next);
}

/** Do what may move the focused element in the document, and leave the focus on it. */
function keepingFocus(action) {
  const focused = document.activeElement;
  action();
  if (focused !== document.activeElement && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

class CardsView {
  constructor() {
    this.root = byId("cards");
    this.cards = new Map();
    this.sizes = measured();
    window.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.width = this.root.clientWidth;
    new ResizeObserver(([{ contentRect }]) => this.resized(contentRect.width)).observe(this.root);
    this.strip = new Strip();
    this.root.addEventListener("click", (event) => this.clicked(event));
    this.root.addEventListener("keydown", (event) => this.keyed(event));
    this.root.addEventListener("focusin", (event) => this.focused(event));
    this.root.addEventListener("input", (event) => this.slid(event, false));
    this.root.addEventListener("change", (event) => this.slid(event, true));
    this.root.addEventListener("pointerdown", (event) => this.pressed(event));
    window.addEventListener("pointermove", (event) => this.dragged(event));
    window.addEventListener("pointerup", () => this.released());
    window.addEventListener("pointercancel", () => this.released());
  }

  draw() {
    this.strip.draw();
    this.root.classList.toggle("has-evidence", state.evidence.size > 0);
    const isOther = this.arranged !== shown || this.layout !== state.layout;
    if (isOther && this.width) this.arrange();
    for (const card of this.cards.values()) card.draw();
  }

  /** Arrange the cards for another width, which is zero while another view is shown. */
  resized(width) {
    if (width === this.width) return;
    this.width = width;
    if (width) this.arrange();
  }

  scrolled() {
    if (this.isWaiting || state.view !== "variables") return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.drawInSight();
    });
  }

  /** Give every card its place: each goes to the column that is shortest so far. */
  arrange() {
    if (this.arranged !== shown) window.scrollTo(0, 0);
    if (this.layout !== state.layout) this.removeAll();
    [this.arranged, this.layout] = [shown, state.layout];
    const least = this.isStacked ? STACKED_WIDTH : CARD_WIDTH;
    const nColumns = Math.max(1, Math.floor((this.width + GAP) / (least + GAP)));
    const cardWidth = (this.width - GAP * (nColumns - 1)) / nColumns;
    const ends = Array(nColumns).fill(0);
    this.places = shown.map((variable) => {
      const column = ends.indexOf(Math.min(...ends));
      const top = ends[column];
      const height = this.heightOf(variable, cardWidth);
      ends[column] += height + (this.isStacked ? 0 : GAP);
      return { left: column * (cardWidth + GAP), top, width: cardWidth, height };
    });
    this.root.style.height = `${Math.max(...ends)}px`;
    byId("none").hidden = shown.length > 0;
    this.drawInSight();
  }

  get isStacked() {
    return state.layout === "bars";
  }

  removeAll() {
    for (const { root } of this.cards.values()) root.remove();
    this.cards = new Map();
  }

  heightOf(variable, width) {
    const { words, facts, range, edges, stacked, unit } = this.sizes;
    if (this.isStacked) {
      const isNarrow = width < STACKED_WIDTH; // then the name is above the bar
      return isNarrow ? stacked + nameLines(variable, width - 110, unit) * words : stacked;
    }
    const bars = Math.min(variable.size, LEVELS_SEEN) * rowOf(variable, this.sizes);
    const head = nameLines(variable, width, unit) * words + facts;
    return edges + head + bars + (isOrdinal(variable) ? range : 0);
  }

  newCard(variable) {
    return this.isStacked ? new StackedCard(variable) : new Card(variable, this.sizes);
  }

  /** Put the cards in and near sight into the document, in order, so that Tab follows it. */
  drawInSight() {
    const top = -this.root.getBoundingClientRect().top;
    const [low, high] = [top - innerHeight / 2, top + 1.5 * innerHeight];
    const before = this.cards;
    this.cards = new Map();
    keepingFocus(() => {
      let last = null;
      shown.forEach((variable, k) => {
        const place = this.places[k];
        const isFocused = before.get(variable)?.root.contains(document.activeElement);
        if (!isFocused && (place.top > high || place.top + place.height < low)) return;
        const card = before.get(variable) ?? this.newCard(variable);
        this.cards.set(variable, card);
        insertAfter(this.root, last, card.root);
        card.put(place, k);
        last = card.root;
      });
    });
    for (const [variable, card] of before) if (!this.cards.has(variable)) card.root.remove();
  }

  clicked(event) {
    const name = event.target.closest(".card-name");
    const level = event.target.closest(".level");
    if (name) chooseVariable(variableOf(name), "dependencies");
    if (!level || this.isDragEnd) return;
    pick(variableOf(level), Number(level.dataset.code), isForSeveral(event));
  }

  keyed(event) {
    const level = event.target.closest(".level");
    if (!level) return;
    const card = this.cards.get(variableOf(level));
    const code = Number(level.dataset.code);
    const last = card.variable.size - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -last, End: last };
    if (this.isStacked) Object.assign(steps, { ArrowRight: 1, ArrowLeft: -1 });
    if (!(event.key in steps)) return;
    event.preventDefault();
    card.focus(Math.min(Math.max(code + steps[event.key], 0), last));
  }

  focused(event) {
    const level = event.target.closest(".level");
    if (level) this.cards.get(variableOf(level)).active = Number(level.dataset.code);
  }

  slid(event, isFinal) {
    const card = this.cards.get(variableOf(event.target));
    const [low, high] = card.handles;
    if (Number(low.value) > Number(high.value)) {
      event.target.value = (event.target === low ? high : low).value; // one stops at the other
    }
    giveRange(card.variable, Number(low.value), Number(high.value), isFinal);
  }

  /** A mouse that is pressed on one bar and moved to another selects the range between them. */
  pressed(event) {
    const level = event.target.closest(".level");
    if (!level || event.pointerType === "touch" || event.button !== 0 || event.shiftKey) return;
    const variable = variableOf(level);
    if (isOrdinal(variable)) this.drag = { variable, from: Number(level.dataset.code), to: null };
  }

  dragged(event) {
    if (!this.drag) return;
    const level = document.elementFromPoint(event.clientX, event.clientY)?.closest(".level");
    if (!level || variableOf(level) !== this.drag.variable) return;
    const code = Number(level.dataset.code);
    if (code === (this.drag.to ?? this.drag.from)) return;
    this.drag.to = code;
    giveRange(this.drag.variable, this.drag.from, code, false);
  }

  released() {
    const { drag } = this;
    this.drag = null;
    if (!drag || drag.to === null) return;
    giveRange(drag.variable, drag.from, drag.to, true);
    this.isDragEnd = true; // the click that may follow at once is none
    setTimeout(() => (this.isDragEnd = false));
  }
}

/** One variable: its name, its mean, its levels as bars, and a slider if they have an order. */
class Card {
  constructor(variable, sizes) {
    this.variable = variable;
    this.row = rowOf(variable, sizes);
    this.bars = new Map();
    this.active = state.evidence.get(variable.position)?.[0] ?? 0; // the bar that Tab goes to
    this.top = 0; // how far the bars are scrolled; to ask the browser would make it lay out anew
    const id = `name-${variable.position}`;
    this.moved = element("span", { class: "moved", title: MOVED_MEANS });
    this.root = element("div", { class: "card", role: "listitem" });
    this.root.dataset.position = variable.position;
    this.mean = element("span", variable.values ? { class: "mean" } : {});
    const facts = element("p", { class: "facts" }, this.mean, this.moved);
    this.root.append(cardName(variable, id), facts);
    this.all = element("div", { class: "levels-all" });
    this.list = element("div", { class: "levels", role: "group", "aria-labelledby": id }, this.all);
    this.root.append(this.list);
    this.handles = isOrdinal(variable) ? this.addRange() : [];
    this.sizeList();
    this.list.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  sizeList() {
    const { levels, size } = this.variable;
    const longest = Math.max(...levels.slice(0, 100).map((level) => level.length));
    this.list.style.setProperty("--label", `${Math.min(longest, SHORT_LEVEL) + 1}ch`);
    this.list.style.setProperty("--row", `${this.row}px`);
    this.list.classList.toggle("above", levelLines(this.variable) > 0);
    this.list.style.height = `${Math.min(size, LEVELS_SEEN) * this.row}px`;
    this.all.style.height = `${size * this.row}px`;
  }

  addRange() {
    const handles = ["from", "to"].map((end) => {
      const handle = element("input", { type: "range", min: 0, max: this.variable.size - 1 });
      handle.setAttribute("aria-label", `${short(this.variable.name, 60)}, ${end}`);
      return handle;
    });
    this.part = element("span", { class: "part" });
    this.root.append(element("div", { class: "range" }, this.part, ...handles));
    return handles;
  }

  put(place, index) {
    placeCard(this.root, place, index);
    if (this.bars.size) return;
    this.reveal(this.active);
    this.draw();
  }

  draw() {
    const { variable } = this;
    const given = state.evidence.get(variable.position);
    this.root.classList.toggle("given", given !== undefined);
    write(this.moved, given ? "given" : this.movedText());
    write(this.mean, variable.values ? this.meanText() : this.levelsText());
    const shares = [prior, posterior].flatMap((one) => [...one.distribution(variable)]);
    this.intervals = new Map();
    const highs = this.codesInSight().map((code) => this.intervalOf(code)?.[1] ?? 0);
    const most = [...shares, ...highs].reduce((a, b) => Math.max(a, b));
    this.scale = scaleFor(most);
    this.drawBars();
    if (this.handles.length) this.drawRange(given ?? [0, variable.size - 1]);
  }

  /** The interval of a level's probability, found when it is first asked for. */
  intervalOf(code) {
    if (!this.intervals.has(code)) {
      const answer = (one) => one.distribution(this.variable)[code];
      this.intervals.set(code, shownInterval(posterior, answer));
    }
    return this.intervals.get(code);
  }

  movedText() {
    if (!state.evidence.size || !posterior.isPossible) return "";
    return `moved ${nats(posterior.divergence(this.variable, prior))} nats`;
  }

  levelsText() {
    const { size } = this.variable;
    return `${size.toLocaleString("en")} level${size === 1 ? "" : "s"}`;
  }

  meanText() {
    if (!posterior.isPossible) return "mean –";
    const [before, now] = [prior, posterior].map((one) => numberText(one.mean(this.variable)));
    const interval = shownInterval(posterior, (one) => one.mean(this.variable), false);
    const between = interval ? ` (${interval.map(numberText).join("–")})` : "";
    return `mean ${now}${between}${before === now ? "" : `, was ${before}`}`;
  }

  codesInSight() {
    const first = Math.floor(this.top / this.row) - LEVELS_MARGIN;
    const begin = Math.max(0, first);
    const end = Math.min(this.variable.size, first + LEVELS_SEEN + 2 * LEVELS_MARGIN + 1);
    return Array.from({ length: end - begin }, (_, k) => begin + k);
  }

  /** Put the bars in and near sight into the document, in order. */
  drawBars() {
    const codes = this.codesInSight();
    const before = this.bars;
    this.bars = new Map();
    keepingFocus(() => {
      let last = null;
      for (const code of codes) {
        const bar = before.get(code) ?? new Bar(this.variable, code, this.row);
        this.bars.set(code, bar);
        insertAfter(this.all, last, bar.root);
        bar.draw(this.scale, this.intervalOf(code));
        last = bar.root;
      }
    });
    for (const [code, bar] of before) if (!this.bars.has(code)) this.leave(code, bar);
    const tabbed = this.bars.has(this.active) ? this.active : codes[0];
    for (const [code, bar] of this.bars) bar.root.tabIndex = code === tabbed ? 0 : -1;
  }

  /** Take a bar out of the document, but not from under the user's fingers. */
  leave(code, bar) {
    if (bar.root === document.activeElement) this.bars.set(code, bar);
    else bar.root.remove();
  }

  drawRange(codes) {
    const last = this.variable.size - 1;
    const ends = [codes[0], codes.at(-1)];
    this.handles.forEach((handle, k) => {
      if (handle.value !== String(ends[k])) handle.value = ends[k];
      handle.setAttribute("aria-valuetext", short(this.variable.levels[ends[k]]));
    });
    this.handles[0].style.zIndex = ends[0] > last / 2 ? 1 : 0; // the one with room is on top
    this.part.style.setProperty("--from", ends[0] / last);
    this.part.style.setProperty("--to", ends[1] / last);
  }

  scrolled() {
    this.top = this.list.scrollTop;
    this.drawBars();
  }

  reveal(code) {
    const end = (code + 1 - LEVELS_SEEN) * this.row;
    this.top = clamped(this.top, Math.max(end, 0), code * this.row);
    if (this.variable.size > LEVELS_SEEN) this.list.scrollTop = this.top;
  }

  focus(code) {
    this.active = code;
    this.reveal(code);
    this.drawBars();
    this.bars.get(code).root.focus();
  }
}

/** One level: a button with its name, its bar before that without evidence, and numbers. */
class Bar {
  constructor(variable, code, row) {
    [this.variable, this.code] = [variable, code];
    this.was = element("span", { class: "was" });
    this.now = element("span", { class: "now" });
    this.whisker = element("span", { class: "whisker" });
    this.share = element("span", { class: "share" });
    this.movedBy = element("span", { class: "moved-by", title: MOVED_BY_MEANS });
    this.root = element(
      "button",
      { type: "button", class: "level", "data-code": code },
      textElement(variable.levels[code], "level-name two-lines"),
      element("span", { class: "bars" }, this.was, this.now, this.whisker),
      this.share,
      this.movedBy,
    );
    this.root.style.top = `${code * row}px`;
  }

  draw(scale, interval) {
    const [p, q] = [posterior, prior].map((one) => one.distribution(this.variable)[this.code]);
    const codes = state.evidence.get(this.variable.position) ?? [];
    this.root.setAttribute("aria-pressed", codes.includes(this.code));
    this.root.dataset.probability = posterior.isPossible ? p : "";
    this.now.style.transform = `scaleX(${Math.min(p / scale, 1)})`;
    this.was.style.width = `${Math.min((100 * q) / scale, 100)}%`;
    this.was.hidden = !state.evidence.size;
    write(this.share, posterior.isPossible ? percent(p) : "–");
    const isMoved = state.evidence.size > 0 && posterior.isPossible;
    write(this.movedBy, isMoved ? points(p - q) : "");
    this.drawInterval(interval, scale);
  }

  /** Draw a whisker from end to end of an interval that is not a point, and say it on hover. */
  drawInterval(interval, scale) {
    const isSeen = interval !== null && interval[1] - interval[0] > 1e-9;
    this.whisker.hidden = !isSeen;
    sayInterval(this.root, isSeen ? interval : null);
    if (!isSeen) return;
    const [low, high] = interval.map((end) => clamped((100 * end) / scale, 0, 100));
    this.whisker.style.left = `${low}%`;
    this.whisker.style.width = `${high - low}%`;
  }
}
