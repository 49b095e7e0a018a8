/* The query as code to copy, and tables as files. */

class CodeView {
  constructor() {
    byId("file").value = model.file;
    byId("file").addEventListener("input", () => this.draw());
    byId("tables-csv").addEventListener("click", () => {
      download("distributions.csv", distributionRows());
    });
    for (const box of escapes()) {
      box.addEventListener("change", () => escapes().forEach((one) => (one.checked = box.checked)));
    }
    for (const button of document.querySelectorAll("[data-copies]")) {
      button.addEventListener("click", () => copy(byId(button.dataset.copies), button));
    }
  }

  draw() {
    const chosen = asked();
    const file = byId("file").value;
    const why = this.whyNoQuery(chosen);
    const whyNoCommand = why || this.whyNoCommand(chosen);
    drawChoices(chosen);
    byId("code-about").textContent = whyNoCommand;
    byId("python").textContent = why ? "" : pythonCode(chosen, file);
    byId("shell").textContent = whyNoCommand ? "" : shellCommand(chosen, file);
    byId("link").textContent = `${location.href.split("#")[0]}#${fragmentOf()}`;
    byId("tables-csv").disabled = !posterior.isPossible;
    for (const button of document.querySelectorAll("[data-copies]")) {
      button.disabled = !byId(button.dataset.copies).textContent;
    }
  }

  whyNoQuery(chosen) {
    if (!posterior.isPossible) return IMPOSSIBLE;
    const { name, position } = model.component;
    if (state.evidence.has(position) && name !== "component")
      return "A variable is called “component”, so that code cannot give the component.";
    if (isFree(chosen)) return "";
    return `${short(chosen.name, 60)} is given; choose a variable that is not.`;
  }

  whyNoCommand(chosen) {
    if (chosen.name.includes("\0")) return "The command cannot name this variable; Python can.";
    const variables = [...state.evidence.keys()].map((position) => model.at(position));
    const odd = variables.find((one) => isMistaken(one, state.evidence.get(one.position)));
    if (!odd) return "";
    return `The command cannot name the given levels of ${short(odd.name, 60)}; Python can.`;
  }
}

/** Whether the command would take these levels for others: it goes by text, and | separates. */
function isMistaken(variable, codes) {
  const texts = codes.map((code) => variable.levels[code]);
  const isCut = texts.some((text) => text.includes("|"));
  const isOther = model.codeOf(variable, texts.join("|")) !== undefined;
  const isMistakenAlone = codes.some((code) => variable.untyped.includes(code));
  return isMistakenAlone || (codes.length > 1 && (isCut || isOther));
}

function pythonCode(chosen, file) {
  const items = [...state.evidence].map(([position, codes]) => {
    const { name, levels, literals } = model.at(position);
    const texts = codes.map((code) => literals?.[code] ?? JSON.stringify(levels[code]));
    const given = codes.length > 1 ? `{${texts.join(", ")}}` : texts[0];
    return `    ${JSON.stringify(name)}: ${given},`;
  });
  const name = JSON.stringify(chosen.name);
  const marginal = `marginal([${name}])`;
  return [
    ...(items.some((item) => item.includes("datetime.")) ? ["import datetime"] : []),
    ...(items.some((item) => item.includes("Decimal(")) ? ["from decimal import Decimal"] : []),
    ...(items.some((item) => item.includes("np.")) ? ["import numpy as np"] : []),
    "import jointpmf as jp",
    "",
    `pmf = jp.load(${JSON.stringify(file)})`,
    ...(state.names.size ? [`pmf = pmf.reordered(range(pmf.rank), names=${pythonNames()})`] : []),
    ...(items.length ? ["given = {", ...items, "}"] : []),
    `answer = ${items.length ? `pmf.condition(given).${marginal}` : `pmf.${marginal}`}`,
    `print(dict(zip(answer.domain[${name}].levels, answer.table().tolist())))`,
  ].join("\n");
}

/** What the components are called in this page, for the library to call them so too. */
function pythonNames() {
  const names = model.component.levels.map((_, c) => JSON.stringify(componentName(c)));
  return `[${names.join(", ")}]`;
}

function shellCommand(chosen, file) {
  const given = [...state.evidence].map(([position, codes]) => {
    const { name, levels } = model.at(position);
    return option("--given", `${name}=${codes.map((code) => levels[code]).join("|")}`);
  });
  const path = file.startsWith("-") ? `./${file}` : file;
  return ["jointpmf query", quoted(path), option("--of", chosen.name), ...given].join(" ");
}

function option(flag, text) {
  return text.startsWith("-") ? quoted(`${flag}=${text}`) : `${flag} ${quoted(text)}`;
}

function quoted(text) {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

async function copy(source, button) {
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source); // so that the user can, should the old way fail too
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function distributionRows() {
  const rows = model.variables.flatMap((variable) => {
    const [now, before] = [posterior, prior].map((one) => one.distribution(variable));
    const ends = replicates ? intervalsOf(variable).map((one) => one ?? ["", ""]) : [];
    const line = (level, code) => [variable.name, level, now[code], before[code]];
    return variable.levels.map((level, code) => [...line(level, code), ...(ends[code] ?? [])]);
  });
  const headings = ["variable", "level", "probability", "unconditional"];
  return [replicates ? [...headings, "low", "high"] : headings, ...rows];
}

const escapes = () => document.querySelectorAll(".escapes"); // both boxes are one setting

/** A cell that a spreadsheet does not compute: text stays text, and numbers are as they were. */
function escapedCell(content) {
  const text = String(content);
  const isNumber = text.trim() !== "" && Number.isFinite(Number(text));
  return /^[=+\-@\t\r]/.test(text) && !isNumber ? `'${text}` : text;
}

function download(name, rows) {
  const written = escapes()[0].checked ? escapedCell : String;
  const cell = (content) => {
    const text = written(content);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text = rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
