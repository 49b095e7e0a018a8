/* The view as the fragment of the page's address, so that it can be shared. */

function fragmentOf() {
  const given = [...state.evidence].map(([position, codes]) => {
    const { name, levels } = model.at(position);
    const texts = codes.map((code) => encodeURIComponent(levels[code]));
    return `${encodeURIComponent(name)}:${texts.join(",")}`;
  });
  const parts = given.length ? [`given=${given.join(";")}`] : [];
  const names = [...state.names].map(([c, name]) => `${c}:${encodeURIComponent(name)}`);
  if (names.length) parts.push(`names=${names.join(",")}`);
  for (const key of ["sort", "search", "layout", "measure", "view", "seed"]) {
    if (state[key] !== firstState()[key]) parts.push(`${key}=${encodeURIComponent(state[key])}`);
  }
  if (state.of !== null) parts.push(`of=${encodeURIComponent(model.variables[state.of].name)}`);
  return parts.join("&");
}

/** Read a fragment into the state; what means nothing is left out, and returned as sentences. */
function readFragment(fragment) {
  const problems = [];
  Object.assign(state, firstState());
  for (const part of fragment.split("&").filter(Boolean)) {
    try {
      const [, key, value] = /^([^=]*)=?(.*)$/s.exec(part);
      if (key === "given") readEvidence(value, problems);
      else if (key === "names") readNames(value, problems);
      else readSetting(key, decodeURIComponent(value), problems);
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
      problems.push(`“${short(part, 40)}” is not percent-encoded text`);
    }
  }
  return problems;
}

function readSetting(key, text, problems) {
  if (key === "search") state.search = text;
  else if (key === "sort" && SORTS.includes(text)) state.sort = text;
  else if (key === "layout" && LAYOUTS.includes(text)) state.layout = text;
  else if (key === "measure" && MEASURES.includes(text)) state.measure = text;
  else if (key === "view" && VIEWS.includes(text)) state.view = text;
  else if (key === "seed" && /^\d{1,9}$/.test(text)) state.seed = Number(text);
  else if (key === "of") state.of = variableNamed(text, problems)?.position ?? null;
  else problems.push(`“${short(`${key}=${text}`, 40)}” means nothing here`);
}

function readEvidence(text, problems) {
  const given = text.split(";").filter(Boolean);
  if (!given.length) problems.push("“given” names nothing");
  for (const one of given) {
    const [name, levels] = one.split(":", 2).map((part) => part.split(",").map(decodeURIComponent));
    const isComponent = name.join(",") === model.component.name;
    const variable = isComponent ? model.component : variableNamed(name.join(","), problems);
    if (!variable) continue;
    if (levels) keepGiven(variable, codesNamed(variable, levels, problems));
    else problems.push(`no level of “${short(variable.name, 40)}” is given`);
  }
}

function readNames(text, problems) {
  for (const one of text.split(",").filter(Boolean)) {
    const [, c, name] = /^(\d*):?(.*)$/s.exec(one);
    const isOne = c !== "" && Number(c) < model.rank;
    const isNamed = isOne && nameComponent(Number(c), decodeURIComponent(name));
    if (!isNamed) problems.push(`“${short(one, 40)}” names no component`);
  }
}

function variableNamed(name, problems) {
  const position = model.positionOf.get(name);
  if (position === undefined) problems.push(`there is no variable “${short(name, 40)}”`);
  return model.variables[position];
}

function codesNamed(variable, levels, problems) {
  const codes = levels.map((level) => model.codeOf(variable, level));
  codes.forEach((code, k) => {
    const what = `“${short(variable.name, 40)}” has no level “${short(levels[k], 40)}”`;
    if (code === undefined) problems.push(what);
  });
  return codes.filter((code) => code !== undefined);
}

/** Keep the view in the address; evidence as a step that the back button undoes. */
function remember(isStep) {
  const target = `#${fragmentOf()}`;
  if (target === (location.hash || "#")) return;
  try {
    if (isStep) history.pushState(null, "", target);
    else history.replaceState(null, "", target);
  } catch {
    // where a page is shown inside another it may have no address of its own
  }
}

function applyAddress() {
  const problems = readFragment(location.hash.slice(1));
  byId("search").value = state.search;
  byId("sort").value = state.sort;
  byId("layout").checked = state.layout === "bars";
  conclude();
  arrangeVariables();
  announce();
  drawEvidence();
  showView();
  const rest = problems.length - 3;
  const said = problems.slice(0, 3).concat(rest > 0 ? [`${rest} more like this`] : []);
  notify(said.length ? `Part of this link was ignored: ${joined(said)}.` : "");
}

function notify(sentence) {
  byId("notice").hidden = !sentence;
  byId("notice").firstElementChild.textContent = sentence;
}
