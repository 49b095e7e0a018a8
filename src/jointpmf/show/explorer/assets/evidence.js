/* What is given, what follows from it, and which variables are shown in which order. */

const SORTS = ["own", "name", "moved"];
const MEASURES = ["information", "residual"];
const LAYOUTS = ["cards", "bars"];
const VIEWS = ["variables", "dependencies", "components", "rows", "code"];

const description = JSON.parse(byId("description").textContent);
const model = new Model(
  description,
  allNumbers(description, new Float64Array(bytesIn(byId("numbers").textContent).buffer)),
);
const replicates =
  description.replicates &&
  new Replicates(model, description.replicates, bytesIn(byId("replicates").textContent));
const residuals =
  byId("residuals") && new Residuals(model, bytesIn(byId("residuals").textContent));
const prior = new Posterior(model, new Map());
const state = firstState();
let posterior = prior;
let shown = []; // the variables that the search leaves, sorted

function firstState() {
  const given = { evidence: new Map(), names: new Map(), of: null };
  const kinds = { sort: "own", layout: "cards", view: "variables", measure: "information" };
  return { ...given, ...kinds, search: "", seed: 0 };
}

/** What a component is called: by the user, in the model, or by its number. */
function componentName(c) {
  return state.names.get(c) ?? model.component.levels[c];
}

/** The same where nothing else says that it is a component. */
function componentTitle(c) {
  return componentName(c) === String(c) ? `component ${c}` : componentName(c);
}

/** Give a component a name, or its own one back; false if another has it. */
function nameComponent(c, name) {
  const own = model.component.levels[c];
  const text = name.trim() || own;
  if (model.component.levels.some((_, other) => other !== c && componentName(other) === text))
    return false;
  if (text === own) state.names.delete(c);
  else state.names.set(c, text);
  return true;
}

const levelOf = (variable, code) =>
  variable === model.component ? componentName(code) : variable.levels[code];

/** The interval of what a function answers of a posterior, or null where none is to be shown. */
function shownInterval(one, answer, isProbability = true) {
  if (!replicates || !byId("intervals").checked) return null;
  return replicates.interval(one, answer, isProbability);
}

/** Say an interval of an element's number on hover, and to those who listen. */
function sayInterval(target, interval) {
  const said = interval ? `${replicates.levelText} interval: ${rangeText(interval)}` : "";
  if (target.title !== said) target.title = said;
}

/** The interval of each level's probability, or null where there is none. */
function intervalsOf(variable) {
  const of = (code) => replicates?.interval(posterior, (one) => one.distribution(variable)[code]);
  return variable.levels.map((_, code) => of(code) ?? null);
}

/** Keep which levels a variable may have; all of several levels say nothing. */
function keepGiven({ position, size }, codes) {
  const inOrder = [...new Set(codes)].sort((a, b) => a - b);
  const saysSomething = inOrder.length > 0 && (inOrder.length < size || size === 1);
  if (saysSomething) state.evidence.set(position, inOrder);
  else state.evidence.delete(position);
}

/** Say which levels a variable may have; `isFinal` is false while the pointer still moves. */
function give(variable, codes, isFinal = true) {
  keepGiven(variable, codes);
  refresh(isFinal);
  if (isFinal) remember(true);
}

function pick(variable, code, isSeveral) {
  const before = state.evidence.get(variable.position) ?? [];
  const others = before.filter((one) => one !== code);
  const isIn = others.length < before.length;
  if (isSeveral) give(variable, isIn ? others : [...others, code]);
  else give(variable, isIn && !others.length ? [] : [code]);
}

function giveRange(variable, from, to, isFinal) {
  const low = Math.min(from, to);
  const codes = Array.from({ length: Math.abs(to - from) + 1 }, (_, k) => low + k);
  give(variable, codes, isFinal);
}

function refresh(isFinal = true) {
  conclude();
  if (isFinal && state.sort === "moved") arrangeVariables();
  if (isFinal) announce();
  drawEvidence();
  views[state.view].draw();
}

function conclude() {
  posterior = state.evidence.size ? new Posterior(model, state.evidence) : prior;
}

function arrangeVariables() {
  const sought = state.search.trim().toLowerCase();
  const found = model.variables.filter(({ name }) => name.toLowerCase().includes(sought));
  const collator = new Intl.Collator("en", { numeric: true });
  if (state.sort === "name") found.sort((a, b) => collator.compare(a.name, b.name));
  if (state.sort === "moved" && posterior.isPossible) sortByMovement(found);
  const isSame = found.length === shown.length && found.every((one, k) => one === shown[k]);
  if (!isSame) shown = found;
}

/** What is given comes first, lest a card that is being clicked runs away. */
function sortByMovement(variables) {
  const given = [...state.evidence.keys()].reverse();
  const place = new Map(variables.map((one) => [one, given.indexOf(one.position)]));
  const moved = new Map(variables.map((one) => [one, posterior.divergence(one, prior)]));
  variables.sort((a, b) => place.get(b) - place.get(a) || moved.get(b) - moved.get(a));
}

function drawEvidence() {
  const { isPossible, logProbability } = posterior;
  const chips = [...state.evidence].map(([position, codes]) =>
    chip(model.at(position), codes),
  );
  if (!chips.length)
    chips.push(element("p", {}, "Nothing is given: click a bar to say what is known."));
  if (!isPossible) chips.unshift(element("p", { class: "bad" }, "These never occur together."));
  const why = whyNoIntervals();
  if (why) chips.push(element("p", {}, why));
  byId("chips").replaceChildren(...chips);
  byId("clear").disabled = !state.evidence.size;
  byId("probability").textContent = probabilityText(logProbability);
  byId("probability").dataset.log = logProbability;
  byId("probability").classList.toggle("bad", !isPossible);
  const answer = (one) => Math.exp(one.logProbability);
  const interval = state.evidence.size ? shownInterval(posterior, answer) : null;
  write(byId("probability-interval"), interval ? `(${likelyRange(interval)})` : "");
}

/** Between what the probability of the evidence is, which may be very small. */
function likelyRange([low, high]) {
  if (high > 1e-4) return rangeText([low, high]);
  return [low, high].map((end) => probabilityText(Math.log(Math.max(end, 0)))).join(" to ");
}

function whyNoIntervals() {
  if (!replicates || !posterior.isPossible || !byId("intervals").checked) return "";
  if (!replicates.canAnswer(posterior))
    return "No intervals: the replicates have other components.";
  const { nImpossible } = replicates.given(posterior);
  if (!nImpossible) return "";
  const which = `${nImpossible} of ${replicates.count} replicates`;
  return `No intervals: in ${which} these never occur together.`;
}

function chip(variable, codes) {
  return element(
    "button",
    { type: "button", class: "chip", "data-position": variable.position },
    element("span", { class: "unseen" }, "Remove "),
    textElement(variable.name),
    element("span", { class: "is" }, " is "),
    element("bdi", { class: "cut" }, levelsText(variable, codes)),
    element("span", { class: "remove", "aria-hidden": "true" }, "×"),
  );
}

/** Say to those who listen what is given and how likely that is. */
function announce() {
  const given = [...state.evidence].slice(-3).map(([position, codes]) => {
    const variable = model.at(position);
    return `${short(variable.name, 60)} is ${levelsText(variable, codes)}`;
  });
  const probability = posterior.isPossible ? probabilityText(posterior.logProbability) : "zero";
  byId("said").textContent = given.length
    ? `Given: ${given.join("; ")}. The evidence has probability ${probability}.`
    : "Nothing is given.";
}
